use super::*;

fn parse(text: &str) -> Result<DeviceUri, UriError> {
    text.parse()
}

fn memif_uri(socket: &str, id: u32, role: Option<MemifRole>) -> DeviceUri {
    DeviceUri::Memif { socket: socket.to_owned(), id, role }
}

#[test]
fn every_form_parses() {
    assert_eq!(parse("loop"), Ok(DeviceUri::Loop));
    assert_eq!(parse("null"), Ok(DeviceUri::Null));
    assert_eq!(parse("memif:/run/a.sock"), Ok(memif_uri("/run/a.sock", 0, None)));
    assert_eq!(parse("memif:a:b,id=7"), Ok(memif_uri("a:b", 7, None)));
    let server = Some(MemifRole::Server);
    assert_eq!(parse("memif:s,role=server,id=4294967295"), Ok(memif_uri("s", u32::MAX, server)));
    assert_eq!(parse("memif:s,role=client"), Ok(memif_uri("s", 0, Some(MemifRole::Client))));
    assert_eq!(parse("tap:dcp0"), Ok(DeviceUri::Tap { interface: "dcp0".into() }));
    assert_eq!(parse("af_packet:eth1.7@x"), Ok(DeviceUri::AfPacket { interface: "eth1.7@x".into() }));
    assert_eq!(parse("af_xdp:eth1"), Ok(DeviceUri::AfXdp { interface: "eth1".into() }));
    let card = DeviceUri::Pci { address: "0000:3b:00.0".into() };
    assert_eq!(parse("pci:0000:3b:00.0"), Ok(card.clone()));
    assert_eq!(parse("pci:3B:00.0"), Ok(card));
    let vdev =
        |name: &str, arguments: &str| DeviceUri::Vdev { name: name.into(), arguments: arguments.into() };
    assert_eq!(parse("vdev:net_null0,size=64,copy=1"), Ok(vdev("net_null0", "size=64,copy=1")));
    assert_eq!(parse("vdev:net_ring3"), Ok(vdev("net_ring3", "")));
}

#[test]
fn printed_uri_parses_to_the_same_device() {
    for text in [
        "loop",
        "null",
        "memif:/run/a.sock,id=0",
        "memif:/run/a.sock,id=3,role=server",
        "memif:x,id=1,role=client",
        "tap:dcp0",
        "af_packet:veth0",
        "af_xdp:veth0",
        "pci:0000:3b:00.0",
        "pci:ffff:ff:1f.7",
        "vdev:net_null0,size=64",
        "vdev:net_ring0",
    ] {
        let uri = parse(text).unwrap();
        assert_eq!(uri.to_string(), text);
        assert_eq!(parse(&uri.to_string()), Ok(uri));
    }
}

#[test]
fn unknown_words_are_refused_with_the_known_ones() {
    for text in ["", ":", "Loop", "memi:/a", "eth0", " loop", "loop ", "tap", "0000:3b:00.0"] {
        let error = parse(text).unwrap_err();
        let known = text == "tap";
        assert_eq!(matches!(error, UriError::NoTarget { .. }), known, "{text:?}: {error}");
        assert!(known || error.to_string().contains("memif:SOCKET"), "{error}");
    }
}

#[test]
fn missing_and_surplus_targets_are_refused() {
    for scheme in ["memif", "tap", "af_packet", "af_xdp", "pci", "vdev"] {
        for text in [scheme.to_owned(), format!("{scheme}:")] {
            assert_eq!(parse(&text), Err(UriError::NoTarget { scheme: scheme.to_owned() }));
        }
    }
    for text in ["loop:", "loop:0", "null:", "null:x"] {
        assert!(matches!(parse(text), Err(UriError::Surplus { .. })), "{text}");
    }
}

#[test]
fn malformed_memif_is_refused() {
    let longest = "s".repeat(SOCKET_LEN_MAX);
    assert!(parse(&format!("memif:{longest}")).is_ok());
    for socket in ["", "a b", "a\n", "a\0b", &format!("{longest}s")] {
        assert!(matches!(parse(&format!("memif:{socket},id=1")), Err(UriError::Socket { .. })), "{socket:?}");
    }
    for word in [
        "",
        "id",
        "id=",
        "id=-1",
        "id=+1",
        "id=4294967296",
        "id=1x",
        "ID=1",
        "role",
        "role=",
        "role=master",
        "role=Server",
        "mtu=9000",
        " id=1",
    ] {
        let error = parse(&format!("memif:/s,{word}")).unwrap_err();
        assert_eq!(error, UriError::Option { word: word.to_owned() }, "{word:?}");
    }
    for text in ["memif:/s,id=1,id=1", "memif:/s,role=server,role=client", "memif:/s,id=1,"] {
        assert!(matches!(parse(text), Err(UriError::Option { .. })), "{text}");
    }
}

#[test]
fn malformed_interfaces_are_refused() {
    for scheme in ["tap", "af_packet", "af_xdp"] {
        assert!(parse(&format!("{scheme}:fifteen-letters")).is_ok());
        for name in ["sixteen-letters!", "a b", "a/b", "a,b", "a:b", "a=b", ".", "..", "\u{e4}", "a\0"] {
            let error = parse(&format!("{scheme}:{name}")).unwrap_err();
            assert_eq!(error, UriError::Interface { name: name.to_owned() }, "{name:?}");
        }
    }
}

#[test]
fn malformed_pci_addresses_are_refused() {
    for address in [
        "x",
        "3b:00",
        "3b.0",
        "0:3b:00.0",
        "0000:3b:00.8",
        "0000:3b:20.0",
        "0000:3b:00.00",
        "0000:3:00.0",
        "0000:3b:00.",
        "0000:3b:+1.0",
        "1:0000:3b:00.0",
        "0000:3g:00.0",
        "0000:3b:00.0 ",
    ] {
        assert!(matches!(parse(&format!("pci:{address}")), Err(UriError::Pci { .. })), "{address}");
    }
}

#[test]
fn malformed_vdevs_are_refused() {
    for text in ["eth0", "net-null0", ",size=64", "crypto_null0", "net_null0 ,x", "net_null0,a\nb"] {
        assert!(matches!(parse(&format!("vdev:{text}")), Err(UriError::Vdev { .. })), "{text}");
    }
}

#[test]
fn errors_are_one_sentence_that_names_the_text() {
    for text in ["nope", "memif:", "loop:x", "memif:a b", "memif:/s,x=1", "tap:a/b", "pci:zz", "vdev:eth0"] {
        let sentence = parse(text).unwrap_err().to_string();
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(sentence.contains(": ") && !sentence.ends_with('.'), "{sentence}");
    }
}
