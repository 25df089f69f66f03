//! Messages of every awkward size arrive as they were sent, at every kind of MTU.
#![forbid(unsafe_code)]

use dcp_tests::program::verified;

/// Runs messages of `size` bytes and checks that no more packets were sent than it takes.
#[track_caller]
fn assert_arrives(size: u64, mtu: u64, n: u64) {
    let results = verified(&format!("--size {size} --mtu {mtu} -n {n}"));
    assert_eq!(results.iterations(), n);
    assert_eq!(results.net("data_packets"), n * size.div_ceil(mtu).max(1), "{size} at {mtu}");
    assert_eq!(results.net("retransmitted"), 0, "{size} at {mtu}");
}

fn assert_all_arrive(mtu: u64) {
    for size in [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1] {
        assert_arrives(size, mtu, 300);
    }
    assert_arrives((1 << 20) + 3, mtu, 3);
    assert_arrives(64 << 20, mtu, 1);
}

#[test]
fn sizes_around_an_mtu_of_256_arrive() {
    assert_all_arrive(256);
}

#[test]
fn sizes_around_an_mtu_of_1024_arrive() {
    assert_all_arrive(1024);
}

#[test]
fn sizes_around_an_mtu_of_4096_arrive() {
    assert_all_arrive(4096);
}

#[test]
fn each_message_of_every_size_is_checked_as_it_completes() {
    for size in [0, 1, 255, 257, 511, 513, (1 << 20) + 3] {
        let results = verified(&format!("--size {size} --mtu 256 -n 5 --verify"));
        assert_eq!(results.iterations(), 5, "{size}");
    }
}

#[test]
fn sizes_arrive_through_a_network_that_trims_drops_and_duplicates() {
    for mtu in [256, 1024, 4096] {
        for size in [0, 1, mtu - 1, mtu + 1, 2 * mtu + 1, (1 << 18) + 3] {
            let results =
                verified(&format!("-s {size} -m {mtu} -n 40 -u 8 --trim 5% --drop 0.5% --dup 2% --verify"));
            assert_eq!(results.iterations(), 40, "{size} at {mtu}");
        }
    }
}
