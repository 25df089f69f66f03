//! Runs with any number of queue pairs begin and end.

mod common;

use common::{json, results};

#[test]
fn one_to_4096_queue_pairs_complete_each_message() {
    for op in ["write", "send", "read", "faa"] {
        for qps in [1, 2, 64, 1024, 4096] {
            let size = if op == "faa" { "" } else { "-s 4K" };
            let json = results(&format!("{op} -q {qps} -n 3 {size}"));
            assert_eq!(json["results"][0]["iterations"], 3 * qps, "{op} {qps}");
        }
    }
}

#[test]
fn thousands_of_queue_pairs_complete_under_trimming_and_from_many_hosts() {
    let trimmed = results("write -q 4096 -n 2 -s 16K --trim 1%");
    assert_eq!(trimmed["results"][0]["iterations"], 2 * 4096);
    let net = &trimmed["results"][0]["net"];
    assert!(net["trimmed"].as_u64() > Some(0) && net["trimmed"] == net["retransmitted"], "{net}");
    let incast = results("write -q 1024 -n 2 -s 4K --hosts 5");
    assert_eq!(incast["results"][0]["iterations"], 4 * 1024 * 2);
}

#[test]
fn ten_thousand_queue_pairs_complete_each_message() {
    for line in ["write -q 10000 -n 2 -s 64K", "send -q 10000 -n 3 -s 64", "write -q 16384 -n 1 -s 8"] {
        let json = results(line);
        let count: u64 =
            line.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).take(2).product();
        assert_eq!(json["results"][0]["iterations"], count, "{line}");
    }
}

#[test]
fn run_that_memory_does_not_hold_is_refused_with_what_it_needs() {
    let json = json("write -q 16384 -s 1G", 3);
    let message = json["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("MiB of memory are needed for messages and queue pairs"), "{message}");
    assert!(json["error"]["hint"].as_str().is_some_and(|hint| hint.contains("fewer --qp")), "{json}");
}
