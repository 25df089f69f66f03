//! Several switches, parallel links, links of a rate.
#![forbid(unsafe_code)]

use dcp_tests::program::verified;
use dcp_tests::{Bench, Results};

#[track_caller]
fn assert_nothing_lost_in_silence(results: &Results) {
    for counter in ["timeouts", "dropped", "ho_lost", "duplicates"] {
        assert_eq!(results.net(counter), 0, "{counter}: {}", results.0);
    }
    assert_eq!(results.net("retransmitted"), results.net("trimmed"), "{}", results.0);
}

fn file(name: &str) -> String {
    format!("{}/../docs/topologies/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_way_of_choosing_among_parallel_links_delivers() {
    for lb in ["ecmp", "spray", "adaptive"] {
        for paths in ["--paths 1", "--paths 4", "--path-weights 1:4:10"] {
            let options = format!("--topology two-switch {paths} --lb {lb} -q 4 -n 50");
            assert_nothing_lost_in_silence(&verified(&options));
        }
    }
}

#[test]
fn two_hosts_without_a_switch_deliver() {
    for options in ["-n 50", "-q 4 --mtu 1024 -n 50", "--lat -n 50"] {
        let results = verified(&format!("--topology direct {options}"));
        assert_nothing_lost_in_silence(&results);
        assert_eq!(results.0.get("threshold"), None, "{}", results.0);
    }
}

#[test]
fn leaf_and_spine_deliver_in_any_order() {
    for options in ["--lb spray", "--lb ecmp -q 3", "--threshold 8K"] {
        let topology = file("leaf-spine.toml");
        let results = verified(&format!("--topology {topology} -n 20 {options}"));
        assert_eq!(results.iterations() % 5, 0, "five clients");
        assert_nothing_lost_in_silence(&results);
    }
}

#[test]
fn unequal_paths_with_trimming_and_reordering_deliver() {
    let topology = file("unequal-paths.toml");
    for options in ["--trim 2%", "--reorder 5%", "--reorder 50% --trim 10%", "--threshold 8K --lb spray"] {
        assert_nothing_lost_in_silence(&verified(&format!("--topology {topology} -n 20 {options}")));
    }
}

// The switch of a link with a rate trims: its queue is where the network is slow, not a ring of the sender.
#[test]
fn incast_on_links_of_a_rate_trims_at_the_switch_and_loses_no_header() {
    let results = verified("--hosts 9 --mtu 1024 --link-gbps 0.5 --threshold 32K -n 8");
    assert!(results.net("trimmed") > 0, "{}", results.0);
    assert_eq!((results.net("ho_lost"), results.net("dropped")), (0, 0), "{}", results.0);
}

// A run cannot be faster than its link, however slow this machine is.
#[test]
fn link_rate_bounds_the_run_in_both_directions_of_a_host() {
    for options in ["", "--topology two-switch --paths 1", "--topology two-switch --path-weights 1:1"] {
        let results = verified(&format!("--link-gbps 0.2 -n 40 {options}"));
        let gbps = results.0["results"][0]["bw_average_gbps"].as_f64().expect("a rate");
        assert!(gbps < 0.2, "{options}: {gbps}");
    }
}

#[test]
fn changed_bytes_are_found_with_an_icrc_by_the_receiver_and_else_at_the_end() {
    let end = Bench::write("--corrupt 20% -n 20").end();
    end.assert_code(1);
    assert!(end.stderr().contains("without --icrc"), "{}", end.stderr());
    let results = verified("--corrupt 1% -n 20 --icrc");
    assert!(results.net("timeouts") > 0, "a frame with a wrong ICRC is lost: {}", results.0);
}
