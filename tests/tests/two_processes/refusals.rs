//! Two that do not fit together, and ways that do not exist.

use std::net::TcpListener;

use dcp_tests::namespace::Namespace;
use dcp_tests::program::{Bench, End};

use crate::pair::Pair;

fn sentence(end: &End) -> String {
    end.json().error()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn options_that_differ_are_named_on_both_sides() {
    let pair = Pair::over_memif("pair-differ");
    for (for_server, for_client, expected) in [
        ("-s 4K", "-s 64", "--size is 64 at the client and 4096 at the server"),
        ("", "-n 7", "--iters is 7 at the client and 5000 at the server"),
        ("-D 1", "-D 2", "--duration is 2.0 at the client and 1.0 at the server"),
        ("-q 2", "-q 3", "--qp is 3 at the client and 2 at the server"),
        ("-t 3", "", "--tx-depth is 128 at the client and 3 at the server"),
        ("--verify", "", "--verify is off at the client and on at the server"),
        ("", "--seed 5", "--seed is 5 at the client and 1 at the server"),
        ("", "--icrc", "--icrc is on at the client and off at the server"),
        ("-m 1024", "-m 2048", "--mtu is 2048 at the client, but the two have 1024 in common"),
    ] {
        let (server, client) = pair.run("write", for_server, for_client);
        for end in [&server, &client] {
            end.assert_code(2);
            end.assert_clean();
            assert!(sentence(end).contains(expected), "{}: {}", end.options, sentence(end));
        }
    }
}

#[test]
fn operations_that_differ_are_named_on_both_sides() {
    let pair = Pair::over_memif("pair-op");
    let server = pair.server("send", "--json -");
    let server = crate::pair::in_background(server, Bench::end);
    let client = pair.client("read", "--json -").end();
    for end in [&crate::pair::joined(server), &client] {
        end.assert_code(2);
        assert!(sentence(end).contains("the operation is read at the client and send at the server"));
    }
}

#[test]
fn one_address_on_both_sides_is_refused() {
    let pair = Pair::over_memif("pair-same");
    let server = crate::pair::in_background(pair.server("write", "--json -"), Bench::end);
    let (device, port) = (pair.device(), pair.port);
    let client =
        Bench::op(&[], "write", &format!("localhost --device {device} --ip 10.9.0.1/24 -p {port} --json -"))
            .end();
    for end in [&crate::pair::joined(server), &client] {
        end.assert_code(2);
        assert!(sentence(end).contains("both sides have the address 10.9.0.1"), "{}", sentence(end));
    }
}

// G4
#[test]
fn mtu_that_the_device_cannot_carry_is_refused_at_the_start() {
    let Some(namespace) = Namespace::new_or_skip("small links") else { return };
    namespace.add_veth(1500);
    let pair = Pair::over_veth(&namespace);
    for bench in [pair.server("write", "-m 4096 --json -"), pair.client("write", "-m 4096 --json -")] {
        let end = bench.end();
        end.assert_code(3);
        assert!(
            sentence(&end).contains("cannot carry an MTU of 4096: choose at most 1430"),
            "{}",
            sentence(&end)
        );
    }
}

#[test]
fn port_in_use_is_named() {
    let pair = Pair::over_memif("pair-port");
    let _taken = TcpListener::bind(("::", pair.port)).expect("it was free");
    let end = pair.server("write", "--json -").end();
    end.assert_code(3);
    assert!(sentence(&end).contains(&pair.port.to_string()), "{}", sentence(&end));
}

#[test]
fn server_that_is_not_there_is_waited_for_and_named() {
    let end = Pair::over_memif("pair-nobody").client("write", "--json -").end();
    end.assert_code(3);
    end.assert_clean();
    assert!(sentence(&end).contains("no server could be reached at localhost"), "{}", sentence(&end));
}

#[test]
fn server_on_another_network_is_named() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    let port = Pair::over_veth(&namespace).port;
    let ends = [
        "--server --device af_packet:v0 --ip 10.9.0.1/24",
        "localhost --device af_packet:v1 --ip 10.8.0.2/24",
    ]
    .map(|words| Bench::op(&namespace.wrapper(), "write", &format!("{words} -p {port} --json -")))
    .map(|bench| crate::pair::in_background(bench, Bench::end))
    .map(crate::pair::joined);
    let told = ends.iter().any(|end| end.code() == Some(2) && sentence(end).contains("10."));
    assert!(told && ends.iter().all(|end| end.code() != Some(0)), "{:?}", ends.map(|end| sentence(&end)));
}
