//! Whoever else connects to a server's port.

use std::io::{Read, Write};
use std::net::TcpStream;

use dcp_tests::program::Bench;

use crate::pair::{Pair, in_background, joined};

fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("localhost", port)).expect("the server listens")
}

/// Sends what it can, and reads what comes until the server hangs up.
fn say(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    // The server may hang up in the middle.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn strangers_are_turned_away_and_the_server_waits_on() {
    let pair = Pair::over_memif("pair-strangers");
    let server =
        in_background(pair.server("write", "-n 20"), |bench: Bench| bench.start_until("Waiting for client"));
    let server = joined(server);
    let refusal = say(pair.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(refusal.contains("no offer of a DCP connection"), "{refusal}");
    assert!(say(pair.port, b"{\"dcp\":99}\n").contains("version 99 meets version 1"));
    say(pair.port, &vec![b'x'; 10 << 20]);
    drop(connect(pair.port));
    // Half a line and then silence; the next one waits until the server loses patience.
    let mut slow = connect(pair.port);
    slow.write_all(b"{\"dcp\":1,").expect("it is connected");
    let silent = connect(pair.port);
    let client = pair.client("write", "-n 20 --json -").end();
    client.assert_code(0);
    assert_eq!(client.json().verified(), Some(true));
    drop((slow, silent));
    let server = server.end();
    server.assert_code(0);
    assert!(server.stderr().contains("turned away"), "{}", server.stderr());
}

#[test]
fn other_application_on_the_port_is_turned_away() {
    let pair = Pair::over_memif("pair-other");
    let server = pair.server("write", "-n 20").start_until("Waiting for client");
    let offer = concat!(
        r#"{"dcp":1,"qpn":1,"pkey":1,"mac":"02:00:00:00:00:05","ipv4":"10.9.0.5","port":17791,"mtu":4096,"#,
        r#""window":128,"max_rd_atomic":16,"start_msn":0,"start_ssn":0,"ack_bytes":32768}"#,
        "\n"
    );
    let refusal = say(pair.port, offer.as_bytes());
    assert!(refusal.contains("no dcp-bench"), "{refusal}");
    pair.client("write", "-n 20 --json -").end().assert_code(0);
    server.end().assert_code(0);
}
