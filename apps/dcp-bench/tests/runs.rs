//! What `dcp-bench write` does on the loop device, seen from outside.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use common::{Running, assert_code, command, file, json, json_in, run, text};

/// The JSON of a run of `write` that must succeed, with all of its data verified.
#[track_caller]
fn results(options: &str) -> Value {
    common::results(&format!("write {options}"))
}

fn net(json: &Value, counter: &str) -> u64 {
    json["results"][0]["net"][counter].as_u64().expect("a counter")
}

#[test]
fn clean_run_resends_nothing() {
    let json = results("--size 1M --iters 50");
    assert_eq!(json["results"][0]["iterations"], 50);
    assert_eq!(json["results"][0]["size_bytes"], 1 << 20);
    assert_eq!(net(&json, "data_packets"), 50 * 256);
    for counter in ["retransmitted", "trimmed", "ho_returned", "ho_lost", "dropped", "duplicates", "timeouts"]
    {
        assert_eq!(net(&json, counter), 0, "{counter}");
    }
}

#[test]
fn table_has_the_row_and_the_network_line() {
    let output = run("write --size 4096 --iters 100 --report_gbits");
    let text = text(&output.stdout);
    let row = text.lines().rev().nth(2).expect("a row above the rule and the network line");
    let fields: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((fields.len(), fields[0], fields[1]), (5, "4096", "100"), "{text}");
    assert!(text.trim_end().ends_with("0 timeouts, 0 CNPs; data verified"), "{text}");
}

#[test]
fn trimmed_packets_are_resent_once_each() {
    let json = results("--size 1M --iters 50 --trim 5%");
    assert!(net(&json, "trimmed") > 0);
    assert_eq!(net(&json, "retransmitted"), net(&json, "trimmed"));
    assert_eq!(net(&json, "timeouts"), 0);
}

#[test]
fn silent_loss_is_recovered_by_the_coarse_timer() {
    let json = results("--size 64K --iters 200 --drop 0.5% --qp-timeout 10");
    assert!(net(&json, "timeouts") > 0);
}

#[test]
fn duplicates_are_delivered_once() {
    let json = results("--size 64K --iters 200 --drop 0.1% --dup 5% --qp-timeout 10");
    assert!(net(&json, "duplicates") > 0);
}

#[test]
fn congestion_trims_and_delivers() {
    let json = results("--size 64K --iters 50 --qp 8 --threshold 8K");
    assert!(net(&json, "trimmed") > 0);
}

#[test]
fn incast_of_many_hosts_delivers() {
    let json = results("--size 64K --iters 20 --hosts 33");
    assert_eq!(json["results"][0]["iterations"], 20 * 32);
}

#[test]
fn each_message_can_be_checked_as_it_completes() {
    results("--size 10000 --iters 100 --verify");
}

#[test]
fn message_sizes_around_the_mtu_arrive() {
    for mtu in [256, 1024, 4096] {
        for size in [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu + 1, (1 << 20) + 3] {
            results(&format!("--size {size} --mtu {mtu} --iters 5"));
        }
    }
}

#[test]
fn every_queue_pair_completes_what_was_asked() {
    for (n, depth, cq_mod, qps) in [
        (1, 1, 1, 1),
        (1, 128, 100, 8),
        (2, 3, 100, 3),
        (2, 128, 1000, 1),
        (7, 1, 1000, 8),
        (7, 3, 1, 3),
        (7, 128, 100, 3),
        (1001, 1, 100, 1),
        (1001, 3, 1000, 8),
        (1001, 128, 1, 3),
        (1001, 128, 100, 8),
    ] {
        let json = results(&format!("--size 64 -n {n} -t {depth} -Q {cq_mod} -q {qps}"));
        assert_eq!(json["results"][0]["iterations"], n * qps, "{n} {depth} {cq_mod} {qps}");
    }
}

#[test]
fn duration_ends_the_run() {
    let json = results("--size 64K --duration 0.3");
    assert!(json["results"][0]["iterations"].as_u64().is_some_and(|n| n > 0));
    assert!(json["results"][0]["seconds"].as_f64().is_some_and(|s| s >= 0.3));
    assert!(json["results"][0]["bw_peak_gbps"].is_null());
}

#[test]
fn total_loss_fails_with_the_status_and_in_json() {
    let path = file("total-loss.json");
    let output = run(&format!("write -n 5 --drop 100% -u 4 --retry-cnt 1 --json {}", path.display()));
    assert_code(&output, 1, "--drop 100%");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("RETRY_EXC_ERR (12)"), "{stderr}");
    assert!(stderr.contains("repeat: dcp-bench write -n 5"), "{stderr}");
    let json = json_in(&path);
    assert_eq!(json["error"]["kind"], "transfer");
    assert_eq!(json["error"]["status"], "RETRY_EXC_ERR (12)");
}

/// A run of `write` that goes on, and what it prints.
fn start(options: &str) -> (Running, impl Iterator<Item = String> + use<>) {
    let mut command = command(&format!("write {options}"));
    let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let stdout = running.child().stdout.take().expect("piped");
    (running, BufReader::new(stdout).lines().map_while(Result::ok))
}

#[test]
fn null_device_sends_everything_and_delivers_nothing() {
    for (op, options, packets) in [
        ("write", "-s 64K -n 200 -q 3", 9600),
        ("send", "-s 100 -n 300 -q 64", 19_200),
        ("write-imm", "-s 10000 -n 100 -m 1024 --icrc", 1000),
        ("send-imm", "-s 0 -n 50 -t 1", 50),
    ] {
        let json = json(&format!("{op} {options} --device null"), 0);
        assert_eq!(json["device"], "null");
        assert!(json["results"][0]["verified"].is_null(), "{json}");
        assert_eq!((net(&json, "data_packets"), net(&json, "retransmitted")), (packets, 0), "{op} {options}");
        assert!(
            json["notes"][0].as_str().is_some_and(|note| note.contains("nothing was delivered")),
            "{json}"
        );
    }
}

#[test]
fn ctrl_c_ends_a_run_that_has_just_begun() {
    for (signal, options) in
        [("INT", "--duration 600"), ("TERM", "--duration 600"), ("INT", "--duration 600 --device null")]
    {
        let (child, mut lines) = start(options);
        // The banner comes after the handlers are in place.
        assert!(lines.any(|line| line.contains("#iterations")));
        child.signal(signal);
        lines.for_each(drop);
        assert_code(&child.end(), 130, signal);
    }
}

#[test]
fn second_ctrl_c_leaves_an_object_and_no_half_file() {
    let path = file("second-signal.json");
    std::fs::write(&path, "old").unwrap();
    let (child, mut lines) = start(&format!("-n 5 --drop 100% -u 0 --json {}", path.display()));
    assert!(lines.any(|line| line.contains("#iterations")));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    for signal in ["INT", "TERM"] {
        child.signal(signal);
    }
    lines.for_each(drop);
    assert_code(&child.end(), 130, "INT and TERM");
    let json = json_in(&path);
    assert!(json["error"]["kind"] == "interrupted" || json["interrupted"] == true, "{json}");
}

#[test]
fn success_tells_what_it_takes_to_repeat_it() {
    let json =
        results("-n 20 -t 10 -q 2 --hosts 3 --window 128K --threshold 64K --control-bytes 32K --trim 1e-3");
    for (key, value) in [
        ("hosts", 3),
        ("window", 128 << 10),
        ("threshold", 64 << 10),
        ("control_bytes", 32 << 10),
        ("cq_mod", 10),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!((&json["faults"]["trim"], &json["faults"]["drop"]), (&0.001.into(), &0.0.into()));
    assert!(json["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{json}");
}

#[test]
fn hint_names_the_control_queue_that_lost_headers() {
    let line = "write --hosts 9 -s 256K -n 50 -u 6 --retry-cnt 0 --threshold 16K --control-bytes 0";
    let json = json(line, 1);
    assert!(json["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--control-bytes")), "{json}");
}

#[test]
fn reader_that_leaves_does_not_fail_the_run() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status =
        command("write -n 10 --json -").stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
