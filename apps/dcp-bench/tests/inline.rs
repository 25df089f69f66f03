//! Messages that are copied when they are posted, on the loop device and with nobody at the other end.

mod common;

use common::{assert_refused_in_json, json, results};

#[test]
fn copied_messages_arrive_as_they_were_posted() {
    for op in ["write", "write-imm", "send", "send-imm"] {
        for options in ["-s 64 -I 64", "-s 1000 -I 1K -q 3 --verify", "-s 2 -I 100 -t 3 -b", "-I 64 --lat"] {
            let json = results(&format!("{op} -n 200 {options}"));
            assert!(json["inline_bytes"].as_u64() > Some(0), "{json}");
        }
    }
    let sent = json("write --device null -n 50 -s 8 -I 8", 0);
    assert_eq!(sent["results"][0]["iterations"], 50);
}

#[test]
fn larger_messages_go_from_their_memory_with_a_note() {
    let json = results("write -n 5 -s 64K -I 1K");
    assert!(json["notes"].to_string().contains("larger than --inline_size 1024"), "{json}");
    // Of all sizes, some are copied.
    let json = results("send -a -n 3 -I 256");
    assert!(!json["notes"].to_string().contains("inline_size"), "{json}");
}

#[test]
fn what_cannot_be_copied_is_refused() {
    for (line, sentence) in [
        ("write -I 1025", "--inline_size is 1025, but must be 0 to 1024"),
        ("read -I 1", "--inline_size is for data that is posted, and read posts none"),
        ("faa -I 8", "--inline_size is for data that is posted, and faa posts none"),
    ] {
        assert_refused_in_json(line, sentence);
    }
}
