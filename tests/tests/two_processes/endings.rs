//! Runs that are ended before they are done.

use dcp_tests::machine::eventually;
use dcp_tests::program::{End, cpu_ticks};

use crate::pair::Pair;

fn message(end: &End) -> String {
    end.json().error()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn death_of_either_side_is_noticed_and_named_by_the_other() {
    let pair = Pair::over_memif("pair-killed");
    for (op, options) in [("write", ""), ("send", ""), ("read", ""), ("send", "-b")] {
        for server_dies in [true, false] {
            let (server, client) = pair.start(op, options);
            let (victim, other, name) =
                if server_dies { (server, client, "server") } else { (client, server, "client") };
            victim.signal("KILL");
            let survivor = other.end_soon();
            survivor.assert_code(1);
            survivor.assert_clean();
            let sentence = message(&survivor);
            assert!(sentence.contains(&format!("the {name} ended without a word")), "{op}: {sentence}");
            assert_eq!(victim.end_soon().code(), None);
        }
    }
    pair.verified("write", "-n 20");
}

#[test]
fn ctrl_c_on_either_side_ends_both() {
    let pair = Pair::over_memif("pair-ctrl-c");
    for (op, options, signal) in [
        ("write", "", "INT"),
        ("send", "", "TERM"),
        ("read", "", "INT"),
        ("faa", "", "INT"),
        ("write", "-b", "INT"),
        ("send", "-b --verify", "TERM"),
        ("read", "-b", "INT"),
        ("write", "-a", "INT"),
    ] {
        for server_stops in [true, false] {
            let (server, client) = pair.start(op, options);
            let (stopped, other, name) =
                if server_stops { (server, client, "server") } else { (client, server, "client") };
            stopped.signal(signal);
            let (stopped, other) = (stopped.end_soon(), other.end_soon());
            stopped.assert_code(130);
            other.assert_code(1);
            [&stopped, &other].iter().for_each(|end| end.assert_clean());
            let results = stopped.json();
            assert_eq!(results.0["interrupted"], true);
            assert!(results.iterations() > 0 && results.verified() == Some(true), "{op}: {}", results.0);
            let sentence = message(&other);
            assert!(sentence.contains(&format!("the {name} was stopped")), "{op}: {sentence}");
        }
    }
}

#[test]
fn server_that_waits_takes_little_of_a_core_and_ends_by_ctrl_c() {
    let pair = Pair::over_memif("pair-waiting");
    let server = pair.server("write", "").start_until("Waiting for client");
    let before = cpu_ticks(server.pid()).expect("it runs");
    eventually(3_000_000_000, || false);
    let ticks = cpu_ticks(server.pid()).expect("it still runs") - before;
    // Of 300 that a loop without pauses would take, or 100 beside two others.
    assert!(ticks < 45, "{ticks} ticks of 10 ms in 3 s");
    server.signal("INT");
    let server = server.end_soon();
    server.assert_code(130);
    server.assert_clean();
    assert!(message(&server).contains("before the transfer had begun"));
}

#[test]
fn client_that_waits_for_a_server_ends_by_ctrl_c() {
    let pair = Pair::over_memif("pair-looking");
    let client = pair.client("write", "").start_until("looking for");
    client.signal("INT");
    let client = client.end_soon();
    client.assert_code(130);
    client.assert_clean();
}
