//! Too little of something.

use std::process::Command;

use dcp_tests::Bench;
use dcp_tests::program::End;

use crate::{assert_refused, assert_works};

/// A run in a shell that set limits first.
fn limited(limits: &str, options: &str) -> End {
    let script = format!("{limits} && exec \"$@\"");
    Bench::under(&["bash", "-c", &script, "bash"], &format!("{options} --json -")).end()
}

#[test]
fn g1_too_little_address_space_is_one_sentence() {
    for kib in [100_000, 160_000, 200_000] {
        let end = limited(&format!("ulimit -v {kib}"), "-n 20");
        assert_refused(&end);
        assert!(end.stderr().contains("ulimit -v"), "{}", end.stderr());
    }
}

#[test]
fn g1_any_address_space_works_or_is_refused() {
    for kib in (90_000..400_000).step_by(31_000) {
        let end = limited(&format!("ulimit -v {kib}"), "-n 20");
        if end.code() == Some(0) { assert_works(&end) } else { assert_refused(&end) }
    }
}

#[test]
fn g1_too_little_room_for_buffers_is_one_sentence() {
    assert_refused(&limited("ulimit -v 600000", "-n 20 -s 1G"));
    assert_refused(&limited("ulimit -v 600000", "-n 20 -s 64M -q 8"));
}

// Were it not refused, the kernel's memory killer would come; then it is to take this process and no other.
#[test]
fn g1_more_buffers_than_memory_is_one_sentence() {
    for options in ["-n 1 -s 1G -q 4096", "-n 20 -s 1G -q 1000 --verify", "-n 1 -s 1G -q 100 --hosts 33"] {
        let end = Bench::under(&["choom", "-n", "1000", "--"], &format!("{options} --json -")).end();
        assert_refused(&end);
    }
}

#[test]
fn g1_few_file_descriptors_work_or_are_refused() {
    for count in [8, 10, 12, 16, 24, 32] {
        let end = limited(&format!("ulimit -n {count}"), "-n 20");
        if end.code() == Some(0) {
            assert_works(&end);
        } else {
            assert_refused(&end);
            assert!(end.stderr().contains("ulimit -n"), "{count}: {}", end.stderr());
        }
    }
}

#[test]
fn g1_without_a_spare_file_descriptor_the_sentence_still_comes() {
    let end = limited("ulimit -n 5", "-n 20");
    assert_refused(&end);
    assert!(end.stderr().contains("of a limit of 5: raise it"), "{}", end.stderr());
}

#[test]
fn g1_closed_standard_streams_do_not_matter() {
    let path = std::env::temp_dir().join(format!("dcp-tests-closed-{}.json", std::process::id()));
    let wrapper = ["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"];
    let end = Bench::under(&wrapper, &format!("-n 20 --json {}", path.display())).end();
    let json = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    end.assert_code(0);
    assert!(json.is_ok_and(|json| json.contains("\"verified\": true")));
}

#[test]
fn g1_one_core_is_enough_for_split_threads() {
    if Command::new("taskset").arg("--version").output().is_err() {
        println!("skipped: there is no taskset");
        return;
    }
    let end = Bench::under(&["taskset", "1"], "-n 20 --threads split --json -").end();
    assert_works(&end);
    assert!(end.stderr().contains("--threads split needs two cores"), "{}", end.stderr());
}
