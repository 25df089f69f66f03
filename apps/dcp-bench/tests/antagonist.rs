//! Hogs at the server: they burden it, are held back, and never outlive the run.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dcp_bench::burden::{Burden, Carried};
use dcp_rhcc::clock::within;
use dcp_rhcc::modes::Program;
use serde_json::Value;

use common::{Running, assert_refused, command, json, results};

/// Bound against hanging, no measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hogs and guardians that a process started, by process id.
fn parts_of(parent: u32) -> BTreeSet<u32> {
    let pids = fs::read_dir("/proc").expect("procfs").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| parent_of(pid) == Some(parent) && is_part(pid)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn is_part(pid: u32) -> bool {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split('\0').nth(1).is_some_and(|word| word.starts_with("rhcc-"))
}

/// Control groups that a process made for its hogs.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(Path::new("/sys/fs/cgroup"), &format!("dcp-hogs-{pid}-"), &mut found);
    found
}

fn search(directory: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            let is_meant = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
            if is_meant { found.push(entry.path()) } else { search(&entry.path(), prefix, found) }
        }
    }
}

/// A run with two hogs, and these and their guardians.
fn start() -> (Running, BTreeSet<u32>) {
    let mut command = command("write --antagonist 2 --rhcc-receiver -D 600 --size 4K --quiet");
    let run = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    // Where no group can be made, there is nothing that a guardian of it would remove.
    let wanted = |parts: &BTreeSet<u32>| parts.len() >= if groups_of(run.id()).is_empty() { 3 } else { 4 };
    assert!(within(PATIENCE, || wanted(&parts_of(run.id()))), "the hogs begin");
    let parts = parts_of(run.id());
    (run, parts)
}

/// Waits for its end; answers its exit code.
fn ended(run: &mut Running) -> Option<i32> {
    let mut status = None;
    within(PATIENCE, || {
        status = run.child().try_wait().expect("it is a child");
        status.is_some()
    });
    status.expect("it ends").code()
}

#[track_caller]
fn nothing_is_left(pid: u32, parts: &BTreeSet<u32>) {
    assert!(within(PATIENCE, || !parts.iter().any(|&part| is_part(part))), "{parts:?}");
    assert!(within(PATIENCE, || groups_of(pid).is_empty()), "{:?}", groups_of(pid));
}

#[test]
fn hogs_burden_the_server_and_the_receivers_control_holds_them_back() {
    let json = results("write --antagonist 2 --rhcc-receiver -D 0.5 --size 64K");
    assert_eq!(json["threads"], "split");
    let row = &json["results"][0];
    let host = &row["host"];
    assert_eq!((&host["hogs"], &host["rhcc_receiver"]), (&2.into(), &true.into()));
    assert!(host["hogs_gbs"].as_f64() > Some(0.0), "{host}");
    assert!(host["actuator"].is_string(), "{host}");
    assert!(host["left_percent"].as_f64() <= Some(100.0), "{host}");
    let notes = json["notes"].to_string();
    assert!(notes.contains("--threads split") && notes.contains("signal software"), "{notes}");
}

#[test]
fn latency_is_measured_beside_hogs_too() {
    let json = results("write --lat --antagonist 1 --rhcc-receiver -n 20 --size 64K");
    assert_eq!(json["results"][0]["host"]["hogs"], 1);
}

#[test]
fn control_without_hogs_holds_nobody_back() {
    let json = results("write --rhcc-receiver -n 500");
    let host = &json["results"][0]["host"];
    assert_eq!((&host["hogs"], &host["actuator"]), (&0.into(), &Value::Null));
    assert!(results("write -n 10")["results"][0].get("host").is_none());
}

#[test]
fn ctrl_c_ends_hogs_and_lifts_limits() {
    let (mut run, parts) = start();
    run.signal("INT");
    assert_eq!(ended(&mut run), Some(130));
    nothing_is_left(run.id(), &parts);
}

#[test]
fn run_that_is_killed_leaves_no_hogs_and_no_groups() {
    let (mut run, parts) = start();
    run.signal("KILL");
    assert_eq!(ended(&mut run), None);
    nothing_is_left(run.id(), &parts);
}

#[test]
fn panic_ends_hogs_and_lifts_limits() {
    let me = std::process::id();
    let mut parts = BTreeSet::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let program = Program::at(env!("CARGO_BIN_EXE_dcp-bench"));
        let burden = Burden { hogs: 1, is_governed: true };
        let _carried = Carried::start_with(burden, None, program).expect("hogs run");
        // A guardian is one when it has begun its own program.
        let both = within(PATIENCE, || {
            parts = parts_of(me);
            parts.len() >= 2
        });
        assert!(both, "{parts:?}");
        panic!("on purpose");
    }));
    let cause = panicked.expect_err("it panics");
    assert_eq!(cause.downcast_ref(), Some(&"on purpose"));
    assert!(!parts.iter().any(|&part| is_part(part)), "{parts:?}");
    assert!(groups_of(me).is_empty());
}

#[test]
fn table_has_a_row_for_each_half_of_rhcc_with_and_without_hogs() {
    let json = json("rhcc -n 20", 0);
    let rows = json["rows"].as_array().expect("rows");
    let rhcc: Vec<_> = rows.iter().map(|row| (row["hogs"].clone(), row["rhcc"].clone())).collect();
    let expected = [(0, "off"), (0, "both"), (1, "off"), (1, "sender"), (1, "receiver"), (1, "both")];
    assert_eq!(rhcc, expected.map(|(hogs, rhcc)| (hogs.into(), rhcc.into())));
    for row in rows {
        assert!(
            row["bw_average_gbps"].as_f64() > Some(0.0) && row["lat_p99_us"].as_f64() > Some(0.0),
            "{row}"
        );
        assert_eq!(row["hogs_relative"].is_null(), row["hogs"] == 0, "{row}");
    }
    assert!(json["hogs_alone_gbs"].as_f64() > Some(0.0));
}

#[test]
fn burden_where_no_server_is_is_refused() {
    for (options, sentence) in [
        ("write --device null --antagonist 1", "--antagonist needs a server"),
        ("write --device null --rhcc-receiver", "--rhcc-receiver needs a server"),
        ("write 10.0.0.1 --device memif:/tmp/x --ip 10.0.0.2/24 --antagonist 1", "give it there"),
        ("write --antagonist 257", "from 0 to 256"),
        ("rhcc --server --device memif:/tmp/x --ip 10.0.0.2/24", "rhcc runs in the loop"),
        ("rhcc --lat", "leave out --lat"),
    ] {
        assert_refused(options, sentence);
    }
}
