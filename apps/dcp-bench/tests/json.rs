//! What the program writes as JSON is JSON, whatever it does and however it ends.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use common::{Running, command};

/// The object on stdout, which Python takes too where there is one.
#[track_caller]
fn object(output: &Output, line: &str, code: i32) -> Value {
    let json = common::object(output, code, line);
    assert_eq!(json["tool"], "dcp-bench", "{line}");
    if let Some(accepted) = python_accepts(&output.stdout) {
        assert!(accepted, "{line}: python3 -m json.tool refuses it");
    }
    json
}

#[track_caller]
fn run(line: &str, code: i32) -> Value {
    object(&common::run(line), line, code)
}

/// A run that goes on, and of which all is heard at its end.
fn start(line: &str) -> Running {
    Running::start(command(line).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// `None` where there is no Python.
fn python_accepts(json: &[u8]) -> Option<bool> {
    let mut python = Command::new("python3")
        .args(["-m", "json.tool"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    python.stdin.take()?.write_all(json).ok()?;
    Some(python.wait().ok()?.success())
}

const OPS: [&str; 7] = ["write", "write-imm", "send", "send-imm", "read", "cas", "faa"];

#[test]
fn every_operation_writes_json_in_both_modes() {
    for op in OPS {
        for (options, mode) in [("", "bw"), ("--lat", "lat")] {
            let json = run(&format!("{op} -n 20 --json - {options}"), 0);
            assert_eq!((&json["op"], &json["mode"]), (&op.into(), &mode.into()));
            let row = &json["results"][0];
            assert_eq!((&row["iterations"], &row["verified"]), (&20.into(), &true.into()), "{op} {mode}");
            assert_eq!(
                (row["lat_us"].is_null(), row["bw_average_gbps"].is_null()),
                (mode == "bw", mode == "lat")
            );
        }
    }
}

#[test]
fn sender_alone_sweep_and_check_write_json() {
    assert_eq!(run("send -b -n 20 --json -", 0)["bidirectional"], true);
    assert_eq!(run("write -I 8 -s 8 -n 20 --json -", 0)["inline_bytes"], 8);
    let null = run("write --device null -a -n 20 --json -", 0);
    assert_eq!(null["results"].as_array().map(Vec::len), Some(23));
    assert!(run("send --device null -n 20 --json -", 0)["results"][0]["verified"].is_null());
    assert_eq!(run("write -D 0.1 --json -", 0)["results"][0]["bw_peak_gbps"], Value::Null);
    assert_eq!(run("sweep read -n 20 --size 0,64 --json -", 0)["points"].as_array().map(Vec::len), Some(2));
    assert_eq!(run("check --json", 0)["mode"], "check");
}

#[test]
fn failures_of_every_kind_write_json() {
    for (line, code, kind) in [
        ("write --json - -n 5 --drop 100% -u 4 --retry-cnt 0", 1, "transfer"),
        ("write --json - --mtu 1500", 2, "usage"),
        ("write --json - --nonsense", 2, "usage"),
        ("wriet --json -", 2, "usage"),
        ("write --json=- --cores 9999", 3, "environment"),
        ("write --json - --server --device tap:no/name --ip 10.0.0.1/24", 2, "usage"),
        ("sweep write --json - --size 1", 2, "usage"),
        ("sweep write --json - -n 5 --size 1,2 --cores 9999", 3, "environment"),
    ] {
        let json = run(line, code);
        assert_eq!(json["error"]["kind"], kind, "{line}: {json}");
        let hint = json["error"]["hint"].as_str().unwrap_or_default();
        assert_eq!(kind == "environment", hint.contains("`dcp-bench check`"), "{line}: {json}");
    }
}

#[test]
fn stopped_run_writes_json() {
    let line = "write -D 60 --json -";
    let child = start(line);
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    // Bit 1 is SIGINT: from here on it is caught.
    while !catches(&status, 1 << 1) {
        std::thread::yield_now();
    }
    child.signal("INT");
    let json = object(&child.end(), line, 130);
    assert!(json["interrupted"] == true || json["error"]["kind"] == "interrupted", "{json}");
}

/// Whether a process catches a signal.
fn catches(status: &Path, bit: u64) -> bool {
    let text = std::fs::read_to_string(status).expect("it still runs");
    let mask =
        text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default().trim().to_owned();
    u64::from_str_radix(&mask, 16).is_ok_and(|mask| mask & bit != 0)
}

#[test]
fn both_of_two_processes_write_json() {
    for (name, options) in
        [("one", ""), ("both", "-b"), ("all", "-a"), ("lat", "--lat"), ("inline", "-s 8 -I 8")]
    {
        write_json_both(name, options);
    }
}

fn write_json_both(name: &str, options: &str) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
    let socket = std::env::temp_dir().join(format!("dcp-json-{name}-{}.sock", std::process::id()));
    let socket = socket.display();
    let common = format!("-n 20 {options} --json - -p {port} --device memif:{socket}");
    let server_line = format!("send --server --ip 10.0.0.1/24 {common}");
    let server = start(&server_line);
    let client = run(&format!("send localhost --ip 10.0.0.2/24 {common}"), 0);
    let server = object(&server.end(), &server_line, 0);
    assert_eq!((&client["role"], &server["role"]), (&"client".into(), &"server".into()));
    let _ = std::fs::remove_file(socket.to_string());
}
