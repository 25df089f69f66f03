//! What the network does to packets, and what the counters say about it.
#![forbid(unsafe_code)]

use dcp_tests::program::verified;
use dcp_tests::{Bench, Results};

/// A run without a coarse timeout: everything lost was trimmed, told about, and sent again once.
#[track_caller]
fn assert_resent_what_was_trimmed(results: &Results) {
    assert!(results.net("trimmed") > 0, "{}", results.0);
    assert_eq!(results.net("retransmitted"), results.net("trimmed"), "{}", results.0);
    assert_eq!(results.net("ho_returned"), results.net("trimmed"), "{}", results.0);
    for counter in ["timeouts", "dropped", "ho_lost", "duplicates"] {
        assert_eq!(results.net(counter), 0, "{counter}: {}", results.0);
    }
}

#[test]
fn trimmed_packets_are_resent_once_without_a_timeout() {
    for options in
        ["--size 1M --trim 5% -n 100", "--size 1M --trim 50% -n 20 --seed 2", "-s 64K --trim 5% -q 8 -n 100"]
    {
        assert_resent_what_was_trimmed(&verified(options));
    }
}

#[test]
fn congestion_of_8_queue_pairs_trims_and_delivers() {
    assert_resent_what_was_trimmed(&verified("--threshold 8K -q 8 -n 50"));
}

#[test]
fn threshold_of_zero_trims_and_delivers() {
    let results = verified("--size 256K --threshold 0 -n 20 -q 2");
    assert!(results.net("trimmed") > 0);
}

#[test]
fn silent_loss_is_recovered_by_timeouts() {
    let results = verified("--size 1M --drop 1% -n 20");
    assert!(results.net("timeouts") > 0);
    assert!(results.net("dropped") > 0);
}

#[test]
fn loss_and_duplication_together_are_recovered_by_timeouts() {
    let results = verified("--size 64K --dup 5% --drop 0.1% -n 500");
    assert!(results.net("timeouts") > 0);
    assert!(results.net("duplicates") > 0);
}

// C4: the last packet of the last message is one of those lost.
#[test]
fn c4_every_seed_of_a_lossy_single_message_ends_well() {
    for seed in 1..=8 {
        let results = verified(&format!("-s 12K -n 1 -u 4 --drop 20% --seed {seed}"));
        assert_eq!(results.iterations(), 1, "seed {seed}");
    }
}

#[test]
fn same_seed_makes_the_same_faults() {
    let [first, again, other] =
        [7, 7, 8].map(|seed| verified(&format!("-s 1M -n 20 -t 1 --trim 5% --seed {seed}")).net("trimmed"));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn incast_from_8_and_from_32_clients_delivers() {
    for hosts in [9, 33] {
        let results = verified(&format!("--hosts {hosts} -n 20"));
        assert_eq!(results.iterations(), 20 * (hosts - 1));
    }
}

// D3: HOs are lost here, and the coarse timer brings the data.
#[test]
fn d3_incast_over_a_control_queue_of_one_frame_delivers_short_messages() {
    let results = verified("--hosts 9 -s 16K -n 10 -u 11 --threshold 16K --control-bytes 100");
    assert_eq!(results.iterations(), 80);
    assert!(results.net("ho_lost") > 0);
}

// D3
#[test]
fn d3_incast_over_tiny_control_queues_delivers_or_fails_whole() {
    for (size, control_bytes) in [("16K", 0), ("256K", 0), ("256K", 100)] {
        let options = format!(
            "--hosts 9 -s {size} -n 5 -u 10 --retry-cnt 3 --threshold 16K --control-bytes {control_bytes}"
        );
        let end = Bench::write(&format!("{options} --json -")).end();
        if end.code() == Some(0) {
            assert_eq!(end.json().verified(), Some(true));
        } else {
            end.assert_code(1);
            assert_eq!(end.json().error()["status"], "RETRY_EXC_ERR (12)");
        }
    }
}

#[test]
fn split_over_threads_delivers() {
    assert_eq!(verified("--threads split -n 200").iterations(), 200);
    let results = verified("--threads split -s 16K -n 50 -q 4 --hosts 5 --trim 5% --drop 0.1% --dup 1%");
    assert_eq!(results.iterations(), 50 * 4 * 4);
}

#[test]
fn time_limit_ends_a_run() {
    let results = verified("-D 0.3");
    assert!(results.iterations() > 0);
    let results = verified("-D 0.3 --threads split -q 3");
    assert!(results.iterations() > 0);
}
