//! The comparison runs and says what it found in a form that programs can read. How fast is no matter here.
#![forbid(unsafe_code)]

use std::process::{Command, Output, Stdio};

use dcp_tests::build::dcp_bench;
use serde_json::Value;

fn compare(only: &str, path: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.args(["--quick", "--seconds", "0.05", "--json", "-", "--only", only]);
    command.arg("--dcp-bench").arg(dcp_bench()).stdin(Stdio::null());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().expect("it starts")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn quick_comparison_has_a_row_for_everyone_at_every_size() {
    let json = json(&compare("memcpy,mbufs,dcp,dcp-direct", None));
    let rows = json["rows"].as_array().unwrap();
    for contender in ["memcpy", "mbufs", "dcp", "dcp-direct"] {
        for size in [64, 65536] {
            let found = rows.iter().filter(|row| row["contender"] == contender && row["size_bytes"] == size);
            let rows: Vec<_> = found.collect();
            assert_eq!(rows.len(), 1, "{contender} at {size}: {json}");
            for number in ["gbps", "gbps_per_core", "of_memcpy", "of_mbufs"] {
                assert!(rows[0][number].as_f64().is_some_and(|value| value > 0.0), "{number}: {}", rows[0]);
            }
        }
    }
    assert_eq!(json["skipped"], Value::Array(vec![]));
}

#[test]
fn what_is_not_installed_is_skipped_with_a_sentence() {
    let json = json(&compare("memcpy,tcp-loopback,tcp-veth,ucx-tcp", Some("/nowhere")));
    let skipped = json["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 3, "{json}");
    for one in skipped {
        assert!(one["reason"].as_str().is_some_and(|reason| reason.contains("not installed")), "{one}");
    }
    assert!(json["rows"].as_array().is_some_and(|rows| rows.iter().all(|row| row["contender"] == "memcpy")));
}

#[test]
fn tcp_over_namespaces_is_measured_or_skipped_and_leaves_nothing() {
    let json = json(&compare("tcp-veth-packets", None));
    let (rows, skipped) = (json["rows"].as_array().unwrap(), json["skipped"].as_array().unwrap());
    assert!(!rows.is_empty() || !skipped.is_empty(), "{json}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    let child = command.args(["--quick", "--only", "tcp-veth", "--json", "-"]).stdout(Stdio::null()).spawn();
    let mut child = child.unwrap();
    let prefix = format!("dcp-compare-{}-", child.id());
    child.wait().unwrap();
    let left = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let left: Vec<_> =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).collect();
    assert!(left.is_empty(), "{left:?}");
}
