//! Runs in both directions, on the loop device.

mod common;

use serde_json::Value;

use common::{assert_refused_in_json, file, run, text};

/// The JSON of a run in both directions that must succeed, with all of its data verified.
#[track_caller]
fn results(op: &str, options: &str) -> Value {
    let json = common::results(&format!("{op} -b {options}"));
    assert_eq!(json["bidirectional"], true);
    json
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_operation_arrives_in_both_directions() {
    for op in ["write", "write-imm", "send", "send-imm", "read", "cas", "faa"] {
        for options in ["-n 300 -q 2", "-n 300 -q 2 -t 3 -Q 2 --verify --icrc", "-n 300 -q 2 --threads split"]
        {
            let json = results(op, options);
            let row = &json["results"][0];
            let directions = &row["directions"];
            let parts = ["from_client", "from_server"].map(|side| &directions[side]["iterations"]);
            assert_eq!(parts, [&Value::from(600); 2], "{op} {options}");
            assert_eq!(row["iterations"], 1200, "{op} {options}");
            let bytes =
                number(&directions["from_client"]["bytes"]) + number(&directions["from_server"]["bytes"]);
            assert_eq!(bytes, 1200 * number(&row["size_bytes"]), "{op} {options}");
        }
    }
}

#[test]
fn average_is_the_sum_of_both_directions() {
    let row = results("write", "-n 200")["results"][0].clone();
    let bits = 400.0 * 65536.0 * 8.0;
    let (seconds, gbps) = (row["seconds"].as_f64().unwrap(), row["bw_average_gbps"].as_f64().unwrap());
    assert!((gbps * seconds * 1e9 / bits - 1.0).abs() < 1e-6, "{row}");
    // The peak is a sum of two rates, the average a rate of two sums: they may differ in the last digit.
    assert!(row["bw_peak_gbps"].as_f64().unwrap() >= gbps * (1.0 - 1e-9), "{row}");
}

#[test]
fn lost_cut_and_copied_packets_are_mended_in_both_directions() {
    let json = results("send", "-n 200 --trim 2%");
    let net = &json["results"][0]["net"];
    assert!(number(&net["trimmed"]) > 0 && net["trimmed"] == net["retransmitted"], "{net}");
    results("send", "-n 200 --trim 2% --dup 1%");
    results("write", "-n 200 --drop 0.5% -u 10");
}

#[test]
fn intervals_add_up_to_both_directions() {
    for options in ["-D 0.5 --interval 0.1", "-D 0.5 --interval 0.1 --threads split"] {
        let row = results("write", options)["results"][0].clone();
        let intervals = row["intervals"].as_array().expect("intervals");
        let messages: u64 = intervals.iter().map(|it| number(&it["messages"])).sum();
        assert_eq!(messages, number(&row["iterations"]), "{options}");
    }
}

#[test]
fn all_sizes_have_a_row_each() {
    let json = results("read", "-a -n 3");
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 23);
    assert!(rows.iter().all(|row| row["iterations"] == 6), "{json}");
}

/// The last five cells of each line: whether both sides sent, then messages and bytes of client and server.
fn last_cells(csv: &str) -> Vec<Vec<&str>> {
    csv.lines()
        .map(|line| line.split(',').rev().take(5).collect::<Vec<_>>().into_iter().rev().collect())
        .collect()
}

#[test]
fn csv_tells_both_directions_apart_in_its_last_columns() {
    let path = file("both-ways.csv");
    results("send", &format!("-n 5 -q 2 -s 100 --csv {}", path.display()));
    let csv = std::fs::read_to_string(path).expect("it is there");
    let heads = [
        "bidirectional",
        "from_client_iterations",
        "from_client_bytes",
        "from_server_iterations",
        "from_server_bytes",
    ];
    assert_eq!(last_cells(&csv), [heads, ["true", "10", "1000", "10", "1000"]]);
    let one_way = text(&run("send -n 5 --csv -").stdout);
    assert_eq!(last_cells(&one_way), [heads, ["false", "", "", "", ""]]);
}

#[test]
fn banner_names_both_directions_as_perftest_does() {
    let table = text(&run("send -b -n 5").stdout);
    assert!(table.contains("Send Bidirectional BW Test"), "{table}");
}

#[test]
fn what_has_no_two_directions_is_refused() {
    for (options, sentence) in [
        ("--lat", "--bidirectional is for bandwidth"),
        ("--hosts 3", "--bidirectional is between two hosts, and --hosts is 3"),
        ("--device null", "null answers nothing"),
    ] {
        assert_refused_in_json(&format!("write -b {options}"), sentence);
    }
}
