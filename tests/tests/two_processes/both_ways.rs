//! Both sides send.

use dcp_tests::namespace::Namespace;
use dcp_tests::results::Results;

use crate::pair::Pair;

const OPS: [&str; 7] = ["write", "write-imm", "send", "send-imm", "read", "cas", "faa"];

/// Messages from the client, and from the server.
fn directions(results: &Results) -> [u64; 2] {
    let of = |side: &str| results.row()["directions"][side]["iterations"].as_u64().expect("a number");
    [of("from_client"), of("from_server")]
}

#[test]
fn every_operation_arrives_verified_in_both_directions() {
    let pair = Pair::over_memif("both-ops");
    for op in OPS {
        for (options, each) in [("-b -n 300 -q 2", 600), ("-b -n 50 -t 3 -Q 2 -q 3 --verify --icrc", 150)] {
            let (server, client) = pair.verified(op, options);
            for (results, role) in [(&server, "server"), (&client, "client")] {
                assert_eq!(directions(results), [each; 2], "{op} {options} {role}");
                assert_eq!(results.iterations(), 2 * each, "{op} {options} {role}");
                assert_eq!(results.0["bidirectional"], true);
            }
            let seconds = [&server, &client].map(|side| side.row()["seconds"].as_f64().unwrap());
            assert!(seconds.iter().all(|&seconds| seconds > 0.0));
        }
    }
}

#[test]
fn time_ends_both_directions_on_both_sides() {
    let pair = Pair::over_memif("both-time");
    for op in ["write", "send", "read"] {
        let (server, client) = pair.verified(op, "-b -D 0.5 --interval 0.1");
        assert_eq!(directions(&server), directions(&client), "{op}");
        for side in [&server, &client] {
            assert!(directions(side).iter().all(|&messages| messages > 0), "{op}");
            let intervals = side.row()["intervals"].as_array().expect("intervals");
            let messages: u64 = intervals.iter().map(|it| it["messages"].as_u64().unwrap()).sum();
            assert_eq!(messages, side.iterations(), "{op}");
        }
    }
}

#[test]
fn both_directions_arrive_verified_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    for op in ["write", "send", "read"] {
        Pair::over_veth(&namespace).verified(op, "-b -n 200");
    }
}

#[test]
fn one_side_alone_that_wants_both_directions_is_refused() {
    let pair = Pair::over_memif("both-differ");
    let (server, client) = pair.run("write", "-b", "");
    for end in [&server, &client] {
        end.assert_code(2);
        let sentence = end.json().error()["message"].as_str().unwrap_or_default().to_owned();
        assert!(sentence.contains("--bidirectional is off at the client and on at the server"), "{sentence}");
    }
}
