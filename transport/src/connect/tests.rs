use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use dcp_wire::{MacAddr, Msn, PKey, Qpn, RegionKey, Ssn};
use dpdk_ffi::Clock;
use serde_json::{Value, json};

use super::*;

fn offer(last: u8) -> Offer {
    Offer {
        qpn: Qpn::new(0x10_0001).unwrap(),
        mac: MacAddr([2, 0xdc, 0, 0, 0, last]),
        ip: Ipv4Addr::new(10, 0, 0, last),
        service_port: 17791,
        mtu: 4096,
        window: 128,
        max_rd_atomic: 16,
        start_msn: Msn::new(0xff_ffff).unwrap(),
        start_ssn: Ssn::new(7).unwrap(),
        icrc: false,
        ack_bytes: 32 << 10,
        mrs: vec![MrOffer { va: u64::MAX - 4095, len: 4096, rkey: RegionKey(0xdead_beef) }],
        cc: "window".to_owned(),
        app: json!({ "size": 65536 }),
    }
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::calibrate)
}

fn with_patience<T>(timeout_ms: u64, act: impl FnOnce(&mut Patience<'_>) -> T) -> T {
    let timeout = Duration::from_millis(timeout_ms);
    act(&mut Patience { clock: clock(), timeout, idle: &mut || true })
}

fn patiently<T>(act: impl FnOnce(&mut Patience<'_>) -> T) -> T {
    with_patience(30_000, act)
}

/// A listener on a port of its own, IPv4 or IPv6.
fn listener(host: &str) -> (Listener, SocketAddr) {
    let listener = Listener::bind(SocketAddr::new(host.parse().unwrap(), 0)).unwrap();
    let address = listener.address().unwrap();
    (listener, address)
}

/// Both ends of a channel that is ready, each with what it agreed to.
fn pair(client: Offer, server: Offer) -> [(Control, Agreement); 2] {
    let (listener, address) = listener("127.0.0.1");
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            patiently(|patience| {
                let incoming = listener.accept(patience).unwrap();
                let (mut control, agreement) = incoming.accept(&server, patience).unwrap();
                control.ready(patience).unwrap();
                (control, agreement)
            })
        });
        let connected = patiently(|patience| {
            let connected = Control::connect(address, &client, PKey(0x1234), patience);
            let (mut control, agreement) = connected.unwrap();
            control.ready(patience).unwrap();
            (control, agreement)
        });
        [connected, serving.join().unwrap()]
    })
}

/// What a raw client gets told that sends `line` as its offer, and what the server makes of it.
fn say(line: &str) -> (String, ConnectError) {
    let (listener, address) = listener("127.0.0.1");
    thread::scope(|scope| {
        let serving = scope.spawn(move || patiently(|patience| listener.accept(patience).map(|_| ())));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        (answer, serving.join().unwrap().unwrap_err())
    })
}

fn hello(change: impl FnOnce(&mut Value)) -> String {
    let text = Line::Hello(Box::new(offer(1)), Some(PKey(1))).print();
    let mut value = serde_json::from_str(&text).unwrap();
    change(&mut value);
    format!("{value}\n")
}

fn parse(text: &str) -> Result<Line, Refusal> {
    Line::parse(text.trim_end().as_bytes())
}

#[test]
fn every_line_reads_as_it_was_printed() {
    for line in [
        Line::Hello(Box::new(offer(1)), Some(PKey(0xffff))),
        Line::Hello(Box::new(Offer { app: Value::Null, mrs: vec![], ..offer(2) }), None),
        Line::Ready,
        Line::Refused("because".to_owned()),
        Line::Message(json!([1, "two", null])),
        Line::Bye,
    ] {
        let text = line.print();
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(parse(&text), Ok(line));
    }
}

#[test]
fn offer_is_the_object_of_the_protocol() {
    let value: Value = serde_json::from_str(&hello(|_| {})).unwrap();
    let expected = json!({
        "dcp": 1, "qpn": 0x10_0001, "pkey": 1, "mac": "02:dc:00:00:00:01", "ipv4": "10.0.0.1", "port": 17791,
        "mtu": 4096, "window": 128, "max_rd_atomic": 16, "start_msn": 0xff_ffff, "start_ssn": 7, "icrc": false,
        "ack_bytes": 32768, "cc": "window", "app": { "size": 65536 },
        "mrs": [{ "addr": "0xfffffffffffff000", "len": "0x1000", "rkey": 0xdead_beef_u32 }],
    });
    assert_eq!(value, expected);
}

#[test]
fn fields_of_a_later_minor_release_do_not_matter() {
    let line = hello(|value| value["colour"] = json!("blue"));
    assert!(matches!(parse(&line), Ok(Line::Hello(..))));
}

#[test]
fn other_version_is_refused_whatever_else_it_says() {
    let refusal = parse("{\"dcp\":2}").unwrap_err();
    assert_eq!(refusal, Refusal::Version { ours: 1, theirs: 2 });
    assert!(refusal.to_string().contains('2') && refusal.to_string().contains('1'));
}

#[test]
fn unusable_values_are_named() {
    let values = [
        ("mtu", json!(255)),
        ("mtu", json!(8193)),
        ("window", json!(0)),
        ("window", json!(100)),
        ("window", json!(65536)),
        ("max_rd_atomic", json!(65)),
        ("qpn", json!(0)),
        ("qpn", json!(1 << 24)),
        ("start_msn", json!(1 << 24)),
        ("start_ssn", json!(1 << 24)),
        ("port", json!(0)),
        ("ipv4", json!("224.0.0.1")),
        ("ipv4", json!("0.0.0.0")),
        ("mac", json!("01:00:00:00:00:01")),
        ("mac", json!("00:00:00:00:00:00")),
        ("mac", json!("02:00:00:00:01")),
        ("mac", json!("02:00:00:00:00:00:01")),
        ("mac", json!("+2:00:00:00:00:01")),
        ("mrs", json!([{ "addr": "0xfffffffffffff001", "len": "0x1001", "rkey": 1 }])),
        ("mrs", json!([{ "addr": "12", "len": "0x1", "rkey": 1 }])),
        ("mrs", json!([{ "addr": "0x+1", "len": "0x1", "rkey": 1 }])),
        ("mrs", Value::Array(vec![json!({ "addr": "0x1", "len": "0x1", "rkey": 1 }); 65])),
    ];
    for (name, value) in values {
        let refusal = parse(&hello(|hello| hello[name] = value.clone())).unwrap_err();
        assert!(matches!(&refusal, Refusal::Unusable { name: named, .. } if *named == name), "{refusal:?}");
        assert_eq!(refusal.to_string().lines().count(), 1);
    }
}

#[test]
fn missing_fields_and_wrong_kinds_are_malformed() {
    let fields = ["qpn", "mac", "ipv4", "port", "mtu", "window", "max_rd_atomic", "start_msn", "start_ssn"];
    for name in fields {
        for value in [None, Some(json!(-1)), Some(json!([]))] {
            let line = hello(|hello| match value {
                Some(value) => hello[name] = value,
                None => drop(hello.as_object_mut().unwrap().remove(name)),
            });
            assert!(matches!(parse(&line), Err(Refusal::Malformed { .. })), "{name}");
        }
    }
    for text in ["", "{", "[]", "7", "null", "{}", "GET / HTTP/1.1", "{\"ready\":false}", "{\"dcp\":\"1\"}"] {
        assert!(matches!(parse(text), Err(Refusal::Malformed { .. })), "{text}");
    }
}

#[test]
fn refusal_of_a_peer_cannot_write_to_the_terminal() {
    let line = format!("{{\"refused\":\"\\u001b[2J\\u202en\\u2066o\\n\\u2069{}\"}}", "x".repeat(5000));
    let Ok(Line::Refused(sentence)) = parse(&line) else { panic!("{line}") };
    assert!(sentence.starts_with("[2Jnox") && sentence.len() == 300);
}

#[test]
fn lines_are_put_together_from_any_pieces() {
    let text = "{\"ready\":true}\n\n{\"bye\":true}\n{\"re";
    for step in 1..text.len() {
        let mut buffer = LineBuffer::default();
        let mut lines = Vec::new();
        for piece in text.as_bytes().chunks(step) {
            buffer.handle_bytes(piece);
            while let Some(line) = buffer.poll_line().unwrap() {
                lines.push(String::from_utf8(line).unwrap());
            }
        }
        assert_eq!(lines, ["{\"ready\":true}", "", "{\"bye\":true}"]);
    }
    let mut endless = LineBuffer::default();
    endless.handle_bytes(&vec![b'x'; LINE_BYTES_MAX]);
    assert_eq!(endless.poll_line(), Ok(None));
    endless.handle_bytes(b"x");
    assert_eq!(endless.poll_line(), Err(ConnectError::LineTooLong));
}

#[test]
fn both_sides_take_the_smaller_of_each() {
    let small = Offer { mtu: 1024, max_rd_atomic: 4, ack_bytes: 0, ..offer(1) };
    let narrow = Offer { window: 4, max_rd_atomic: 2, icrc: true, ..offer(2) };
    let ours = negotiate(&small, narrow.clone(), PKey(9)).unwrap();
    let theirs = negotiate(&narrow, small.clone(), PKey(9)).unwrap();
    for agreement in [&ours, &theirs] {
        assert_eq!((agreement.mtu, agreement.window, agreement.max_rd_atomic), (1024, 4, 2));
        assert!(agreement.icrc);
        assert_eq!(agreement.pkey, PKey(9));
    }
    assert_eq!((ours.peer, theirs.peer), (narrow, small));
    // At most half the window, though either alone would allow more.
    let agreement = negotiate(&Offer { window: 8, max_rd_atomic: 4, ..offer(1) }, offer(2), PKey(0)).unwrap();
    assert_eq!(agreement.max_rd_atomic, 4);
    let agreement = negotiate(&offer(1), Offer { window: 1, max_rd_atomic: 0, ..offer(2) }, PKey(0)).unwrap();
    assert_eq!(agreement.max_rd_atomic, 0);
}

#[test]
fn one_address_for_two_hosts_is_refused_but_not_for_one() {
    let other = Offer { ip: offer(1).ip, ..offer(2) };
    let refusal = negotiate(&offer(1), other, PKey(0)).unwrap_err();
    assert!(refusal.to_string().contains("10.0.0.1"), "{refusal}");
    assert!(negotiate(&offer(1), offer(1), PKey(0)).is_ok());
}

#[test]
fn two_sides_connect_and_talk() {
    let [(mut client, ours), (mut server, theirs)] = pair(offer(1), Offer { mtu: 2048, ..offer(2) });
    assert_eq!((ours.mtu, theirs.mtu, ours.pkey, theirs.pkey), (2048, 2048, PKey(0x1234), PKey(0x1234)));
    assert_eq!((ours.peer.ip, theirs.peer.ip), (offer(2).ip, offer(1).ip));
    assert_eq!(theirs.peer.app, json!({ "size": 65536 }));
    assert_eq!(server.poll(), Ok(None));
    // Longer than a socket's buffer takes at once is not allowed; as long as a line may be is.
    let long = json!("x".repeat(LINE_BYTES_MAX - 100));
    patiently(|patience| client.send(&long, patience)).unwrap();
    assert_eq!(patiently(|patience| server.wait_message(patience)), Ok(long));
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| patiently(|patience| client.close(patience)));
        let bye = loop {
            if let Some(event) = server.poll().unwrap() {
                break event;
            }
        };
        assert_eq!(bye, ControlEvent::Bye);
        assert!(!closing.is_finished(), "it did not wait for the other side");
        // It has heard of the end already.
        patiently(|patience| server.close(patience));
    });
}

#[test]
fn who_closes_first_leaves_when_the_other_side_is_gone() {
    let [(client, _), (server, _)] = pair(offer(1), offer(2));
    std::thread::scope(|scope| {
        // Longer than anybody waits for a test.
        scope.spawn(|| with_patience(3_600_000, |patience| client.close(patience)));
        drop(server);
    });
}

#[test]
fn death_of_the_peer_is_seen() {
    let [(client, _), (mut server, _)] = pair(offer(1), offer(2));
    drop(client);
    let error = loop {
        match server.poll() {
            Ok(None) => {}
            Ok(Some(event)) => panic!("{event:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ConnectError::PeerLost { .. }), "{error}");
}

#[test]
fn connections_over_ipv6_and_by_name_work() {
    for (host, target) in [("::1", "::1"), ("127.0.0.1", "localhost")] {
        let Ok(listener) = Listener::bind(SocketAddr::new(host.parse().unwrap(), 0)) else {
            println!("skipped: this machine has no {host}");
            continue;
        };
        let port = listener.address().unwrap().port();
        let address =
            if target.contains(':') { format!("[{target}]:{port}") } else { format!("{target}:{port}") };
        thread::scope(|scope| {
            scope.spawn(move || {
                patiently(|patience| {
                    let (mut control, _) =
                        listener.accept(patience).unwrap().accept(&offer(2), patience).unwrap();
                    control.ready(patience).unwrap();
                });
            });
            patiently(|patience| {
                let (mut control, _) = Control::connect(address, &offer(1), PKey(1), patience).unwrap();
                control.ready(patience).unwrap();
            });
        });
    }
}

#[test]
fn refusal_reaches_the_other_side_as_the_same_sentence() {
    let (answer, error) = say(&hello(|hello| hello["mtu"] = json!(9000)));
    let ConnectError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!(parse(&answer), Ok(Line::Refused(refusal.to_string())));
    let (answer, error) = say(&hello(|hello| hello["dcp"] = json!(3)));
    assert_eq!(error, ConnectError::Refused(Refusal::Version { ours: 1, theirs: 3 }));
    assert!(answer.contains("version 3"), "{answer}");
    let (answer, error) = say(&hello(|hello| drop(hello.as_object_mut().unwrap().remove("pkey"))));
    assert_eq!(error, ConnectError::Refused(Refusal::NoKey));
    assert!(answer.contains("pkey"), "{answer}");
    let (answer, _) = say("GET / HTTP/1.1\n");
    assert!(answer.contains("no offer of a DCP connection"), "{answer}");
    assert_eq!(say("{\"ready\":true}\n").1, ConnectError::OutOfTurn { expected: "an offer" });
    assert_eq!(say(&"x".repeat(LINE_BYTES_MAX + 1)).1, ConnectError::LineTooLong);
}

#[test]
fn application_refuses_with_a_sentence_of_its_own() {
    let (listener, address) = listener("127.0.0.1");
    thread::scope(|scope| {
        scope.spawn(move || {
            patiently(|patience| {
                let incoming = listener.accept(patience).unwrap();
                assert_eq!(incoming.offer().app["size"], 65536);
                incoming.refuse("--size is 1024 here and 65536 there: use one for both");
            });
        });
        let refused = patiently(|patience| Control::connect(address, &offer(1), PKey(1), patience));
        let error = refused.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("--size is 1024 here"), "{error}");
    });
}

#[test]
fn waits_end_in_time_or_when_told_to() {
    let (listener, address) = listener("127.0.0.1");
    let error = with_patience(1, |patience| listener.accept(patience)).map(|_| ()).unwrap_err();
    assert_eq!(error, ConnectError::Timeout { expected: "connection" });
    // Connected, by the kernel, but never answered.
    let mut calls = 0;
    let stopped = Control::connect(
        address,
        &offer(1),
        PKey(1),
        &mut Patience {
            clock: clock(),
            timeout: Duration::from_secs(60),
            idle: &mut || {
                calls += 1;
                calls < 5
            },
        },
    );
    assert_eq!(stopped.map(|_| ()).unwrap_err(), ConnectError::Stopped);
    assert_eq!(calls, 5);
}

#[test]
fn absent_server_and_taken_port_are_said() {
    let (listener, address) = listener("127.0.0.1");
    let error = Listener::bind(address).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    drop(listener);
    let absent = patiently(|patience| Control::connect(address, &offer(1), PKey(1), patience));
    let error = absent.map(|_| ()).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let unknown =
        patiently(|patience| Control::connect("no-such-host.invalid:1", &offer(1), PKey(1), patience));
    assert!(matches!(unknown.map(|_| ()), Err(ConnectError::Unreachable { .. })));
}

#[test]
fn keys_differ() {
    let keys: std::collections::HashSet<u16> = (0..64).map(|_| random_key().unwrap().0).collect();
    assert!(keys.len() > 48, "{keys:?}");
}
