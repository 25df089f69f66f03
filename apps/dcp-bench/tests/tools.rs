//! What the program does besides measuring, seen from outside.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dcp-bench"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path of its own for each test.
fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn check_says_what_there_is_and_what_to_run() {
    let output = bench(&["check"]);
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}{}", text(&output.stderr));
    for section in
        ["DPDK", "huge pages", "cores", "permissions", "kernel", "container", "runtime dir", "loop"]
    {
        assert!(words.lines().any(|line| line.starts_with(section)), "{section}: {words}");
    }
    assert!(words.contains("best here     dcp-bench write --size 1M"), "{words}");
}

#[test]
fn check_is_one_json_object_on_stdout_or_in_a_file() {
    let output = bench(&["check", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object");
    assert_eq!((&json["tool"], &json["mode"]), (&"dcp-bench".into(), &"check".into()));
    assert_eq!((output.status.code(), &json["loop"]["starts"]), (Some(0), &true.into()));
    let drivers = json["dpdk"]["drivers"].as_array().expect("a list");
    assert!(drivers.iter().any(|it| it["name"] == "net_ring" && it["present"] == true), "{json}");
    let path = file("check.json");
    let output = bench(&["check", "--json", path.to_str().expect("plain")]);
    assert!(text(&output.stdout).contains("best here"));
    let json: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    assert!(json["cores"]["available"].as_array().is_some_and(|cores| !cores.is_empty()), "{json}");
}
