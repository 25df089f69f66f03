//! Messages that are copied when they are posted, on the loop device and with nobody at the other end.

use std::process::{Command, Stdio};

use serde_json::Value;

#[track_caller]
fn run(line: &str, code: i32) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dcp-bench"));
    command.args(line.split_whitespace()).args(["--json", "-"]).stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(code), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object")
}

#[test]
fn copied_messages_arrive_as_they_were_posted() {
    for op in ["write", "write-imm", "send", "send-imm"] {
        for options in ["-s 64 -I 64", "-s 1000 -I 1K -q 3 --verify", "-s 2 -I 100 -t 3 -b", "-I 64 --lat"] {
            let json = run(&format!("{op} -n 200 {options}"), 0);
            assert_eq!(json["results"][0]["verified"], true, "{op} {options}: {json}");
            assert!(json["inline_bytes"].as_u64() > Some(0), "{json}");
        }
    }
    let sent = run("write --device null -n 50 -s 8 -I 8", 0);
    assert_eq!(sent["results"][0]["iterations"], 50);
}

#[test]
fn larger_messages_go_from_their_memory_with_a_note() {
    let json = run("write -n 5 -s 64K -I 1K", 0);
    assert!(json["notes"].to_string().contains("larger than --inline_size 1024"), "{json}");
    // Of all sizes, some are copied.
    let json = run("send -a -n 3 -I 256", 0);
    assert!(!json["notes"].to_string().contains("inline_size"), "{json}");
    assert!(json["results"].as_array().is_some_and(|rows| rows.iter().all(|row| row["verified"] == true)));
}

#[test]
fn what_cannot_be_copied_is_refused() {
    for (line, sentence) in [
        ("write -I 1025", "--inline_size is 1025, but must be 0 to 1024"),
        ("read -I 1", "--inline_size is for data that is posted, and read posts none"),
        ("faa -I 8", "--inline_size is for data that is posted, and faa posts none"),
    ] {
        let json = run(line, 2);
        let message = json["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(sentence), "{message}");
    }
}
