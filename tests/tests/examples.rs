//! The examples of the library run, without rights.
#![forbid(unsafe_code)]

use dcp_tests::build::{self, cargo};

fn example(name: &str) -> String {
    let build::Output { target, profile, .. } = build::output();
    let mut cargo = cargo(&["run", "--quiet", "--package", "dcp", "--example", name, "--profile", &profile]);
    let output = cargo.arg("--target-dir").arg(target).output().expect("cargo starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn hello_write_writes() {
    assert_eq!(example("hello_write"), "SUCCESS: the server has \"hello, remote memory\"\n");
}

#[test]
fn ping_pong_reports_a_latency() {
    let printed = example("ping_pong");
    assert!(printed.starts_with("10000 rounds of 64 bytes; half a round trip: "), "{printed}");
}

#[test]
fn counter_counts() {
    assert_eq!(example("counter"), "counted to 1000\nit was 1000 when it was set back to 0\n");
}

#[test]
fn kv_fetch_finds_what_is_there() {
    let printed = example("kv_fetch");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert!(lines[1].starts_with("350: \"value of 350\" in "), "{printed}");
    assert!(lines[3].starts_with("701: not there, after "), "{printed}");
}
