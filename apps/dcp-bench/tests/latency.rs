//! What `dcp-bench OP --lat` does on the loop device, seen from outside. Nothing here depends on how long it takes.

mod common;

use serde_json::Value;

use common::{assert_refused, object, run, text};

const OPS: [(&str, &str, &str); 7] = [
    ("write", "half_round_trip", "last_byte"),
    ("write-imm", "half_round_trip", "immediate"),
    ("send", "half_round_trip", "receive"),
    ("send-imm", "half_round_trip", "receive"),
    ("read", "round_trip", "completion"),
    ("cas", "round_trip", "completion"),
    ("faa", "round_trip", "completion"),
];

/// The JSON of a run that must succeed, and its table.
#[track_caller]
fn latency(op: &str, options: &str) -> (Value, String) {
    let line = format!("{op} --lat --json - {options}");
    let output = run(&line);
    let json = object(&output, 0, &line);
    assert_eq!((&json["mode"], &json["results"][0]["verified"]), (&"lat".into(), &true.into()), "{json}");
    (json, text(&output.stderr))
}

#[track_caller]
fn assert_is_latency(row: &Value) {
    for rate in ["bw_average_gbps", "bw_peak_gbps", "msg_rate_mpps"] {
        assert!(row[rate].is_null(), "{rate}: {row}");
    }
    let of = |key: &str| row["lat_us"][key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"));
    let ordered = ["min", "p50", "p90", "p99", "p999", "max"].map(of);
    assert!(ordered[0] > 0.0 && ordered.is_sorted(), "{row}");
    assert!((of("min")..=of("max")).contains(&of("avg")) && of("stdev") >= 0.0, "{row}");
}

#[test]
fn every_operation_has_its_latency_measured() {
    for (op, what, trigger) in OPS {
        let (json, table) = latency(op, "-n 200");
        let row = &json["results"][0];
        assert_eq!(
            (&json["lat_is"], &json["results"][0]["lat_trigger"]),
            (&what.into(), &trigger.into()),
            "{op}"
        );
        assert_eq!(row["size_bytes"], if ["cas", "faa"].contains(&op) { 8 } else { 2 }, "{op}");
        // A message and its answer each time, and nothing twice.
        assert_eq!((&row["iterations"], &row["net"]["data_packets"]), (&200.into(), &400.into()), "{op}");
        assert_is_latency(row);
        let said = if what == "round_trip" { "a full round trip" } else { "half a round trip" };
        assert!(table.contains(said) && table.contains("99.9% percentile[usec]"), "{table}");
    }
}

#[test]
fn number_of_messages_is_perftests_unless_asked_for() {
    assert_eq!(latency("write", "").0["results"][0]["iterations"], 1000);
}

#[test]
fn write_above_one_packet_is_answered_when_its_immediate_comes() {
    for (options, trigger) in [
        ("-s 0", "immediate"),
        ("-s 1", "last_byte"),
        ("-s 4096", "last_byte"),
        ("-s 4097", "immediate"),
        ("-s 1024 -m 1024", "last_byte"),
        ("-s 1025 -m 1024", "immediate"),
    ] {
        let (json, table) = latency("write", &format!("-n 20 {options}"));
        assert_eq!(json["results"][0]["lat_trigger"], trigger, "{options}");
        assert_eq!(table.contains("immediate data is received"), trigger == "immediate", "{table}");
    }
}

#[test]
fn more_messages_than_a_last_byte_has_values_are_told_apart() {
    for options in ["-n 1001", "-n 1001 -t 1", "-n 700 --verify"] {
        assert_eq!(latency("write", options).0["results"][0]["net"]["duplicates"], 0);
    }
}

#[test]
fn each_message_can_be_checked_as_it_comes() {
    for (op, ..) in OPS {
        let size = if ["cas", "faa"].contains(&op) { "" } else { "-s 10000" };
        latency(op, &format!("-n 50 --verify {size}"));
    }
}

#[test]
fn what_the_network_loses_comes_late_and_whole() {
    for op in ["write", "send", "read", "faa"] {
        let (json, _) = latency(op, "-n 300 --trim 10% --drop 1% --dup 5% -u 8");
        assert!(json["results"][0]["net"]["retransmitted"].as_u64() > Some(0), "{op}");
        assert_is_latency(&json["results"][0]);
    }
}

#[test]
fn time_can_end_the_run_and_percentiles_are_there() {
    for op in ["write", "send", "read"] {
        let (json, _) = latency(op, "-D 0.2");
        assert!(json["results"][0]["seconds"].as_f64() >= Some(0.2), "{op}");
        assert_is_latency(&json["results"][0]);
    }
}

#[test]
fn threads_of_their_own_play_as_well() {
    for op in ["write", "send", "cas"] {
        latency(op, "-n 50 --threads split");
    }
}

#[test]
fn several_at_a_time_are_refused() {
    for (options, sentence) in [
        ("-q 2", "--qp is for bandwidth"),
        ("--hosts 3", "--hosts is for bandwidth"),
        ("--device null", "null answers nothing"),
    ] {
        assert_refused(&format!("write --lat {options}"), sentence);
    }
}
