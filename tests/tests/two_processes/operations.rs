//! What arrives, and what each side says about it.

use dcp_tests::namespace::Namespace;

use crate::pair::Pair;

const OPS: [&str; 7] = ["write", "write-imm", "send", "send-imm", "read", "cas", "faa"];

#[test]
fn every_operation_arrives_verified_over_memif() {
    let pair = Pair::over_memif("pair-ops");
    for op in OPS {
        for (options, total) in [("-n 300 -q 2", 600), ("-n 50 -t 3 -Q 2 -q 3 --verify --icrc", 150)] {
            let (server, client) = pair.verified(op, options);
            for (results, role) in [(&server, "server"), (&client, "client")] {
                assert_eq!(results.iterations(), total, "{op} {options} {role}");
                assert_eq!(results.0["role"], role);
                assert_eq!(results.0["op"], op);
                assert_eq!(results.0["mtu"], 4096);
            }
            assert_eq!(server.net("data_packets"), client.net("data_packets"), "{op} {options}");
        }
    }
}

#[test]
fn operations_arrive_verified_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    for (ip_bytes, mtu) in [(1500, 1024), (9000, 4096)] {
        namespace.add_veth(ip_bytes);
        for op in ["write", "send", "read", "faa"] {
            let (server, client) = Pair::over_veth(&namespace).verified(op, "-n 200");
            assert_eq!((&server.0["mtu"], &client.0["mtu"]), (&mtu.into(), &mtu.into()), "{op}");
        }
        namespace.ip("link del v0");
    }
}

#[test]
fn smaller_mtu_of_one_side_is_taken_by_both() {
    let pair = Pair::over_memif("pair-mtu");
    for (for_server, for_client) in [("-m 1024", ""), ("", "-m 512")] {
        let options = |mtu: &str| format!("-n 20 {mtu}");
        let (server, client) = pair.run("write", &options(for_server), &options(for_client));
        let mtu = if for_server.is_empty() { 512 } else { 1024 };
        for end in [server, client] {
            end.assert_code(0);
            assert_eq!(end.json().0["mtu"], mtu);
        }
    }
}

#[test]
fn sizes_around_the_mtu_arrive() {
    let pair = Pair::over_memif("pair-sizes");
    for op in ["write", "send", "read"] {
        for size in [0, 1, 4095, 4097, (1 << 20) + 3] {
            pair.verified(op, &format!("-n 5 -s {size}"));
        }
    }
}

#[test]
fn a_thousand_queue_pairs_connect_and_each_does_its_part() {
    let pair = Pair::over_memif("pair-many");
    for op in ["write", "send"] {
        let (server, client) = pair.verified(op, "-q 1024 -n 5 -s 64");
        assert_eq!([server.iterations(), client.iterations()], [5120; 2], "{op}");
    }
}

#[test]
fn client_waits_for_a_server_with_too_few_receives() {
    let pair = Pair::over_memif("pair-rnr");
    let (server, client) = pair.run("send", "-n 100 -s 64 -r 1", "-n 100 -s 64");
    for end in [&server, &client] {
        end.assert_code(0);
        assert_eq!(end.json().verified(), Some(true));
    }
    assert!(server.json().net("rnr_naks") > 0);
}

#[test]
fn server_measures_what_it_can_see() {
    let pair = Pair::over_memif("pair-own");
    let (write, _) = pair.verified("write", "-n 300");
    assert!(write.row()["bw_peak_gbps"].is_null(), "{}", write.0);
    let (send, client) = pair.verified("send", "-n 300");
    assert!(send.row()["bw_peak_gbps"].as_f64().is_some_and(|peak| peak > 0.0), "{}", send.0);
    for results in [&write, &send, &client] {
        assert!(results.row()["bw_average_gbps"].as_f64().is_some_and(|average| average > 0.0));
        // There is no switch here.
        assert!(results.0["threshold"].is_null() && results.0["faults"].is_null());
    }
}

#[test]
fn duration_ends_the_run_on_both_sides() {
    let (server, client) = Pair::over_memif("pair-time").verified("write", "-D 0.5");
    assert!(client.iterations() > 0);
    assert_eq!(server.iterations(), client.iterations());
}

#[test]
fn run_after_run_on_one_port_and_one_socket_ends_well_on_both_sides() {
    run_after_run("pair-again", 20);
}

#[test]
#[ignore = "takes minutes: cargo test -p dcp-tests --test two_processes -- --ignored two_hundred"]
fn two_hundred_runs_back_to_back_end_well_on_both_sides() {
    run_after_run("pair-200", 200);
}

fn run_after_run(name: &str, runs: usize) {
    let pair = Pair::over_memif(name);
    for _ in 0..runs {
        pair.verified("write", "-n 20");
    }
}
