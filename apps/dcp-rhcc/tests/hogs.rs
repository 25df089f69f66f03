//! The antagonist: real hogs.
#![forbid(unsafe_code)]

mod common;

use std::process::Command;

use common::{Process, await_that, program, state};
use dcp_rhcc::modes::Program;
use dcp_rhcc::{Antagonist, AntagonistConfig};

fn config(hogs: usize, cores: &[usize]) -> AntagonistConfig {
    AntagonistConfig { hogs, cores: cores.to_vec(), mib: 1, program: Program::at(program()) }
}

#[test]
fn hogs_work_in_their_group_on_their_cores_and_are_gone_when_dropped() {
    let antagonist = Antagonist::start_with(config(2, &[0])).expect("hogs");
    let pids = antagonist.pids();
    assert_eq!(pids.len(), 2);
    for pid in &pids {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    }
    let group = antagonist.cgroup().map(std::path::Path::to_owned);
    match &group {
        Some(group) => {
            let members = std::fs::read_to_string(group.join("cgroup.procs")).expect("it is there");
            let mut members: Vec<u32> = members.lines().filter_map(|line| line.parse().ok()).collect();
            members.sort_unstable();
            let mut expected = pids.clone();
            expected.sort_unstable();
            assert_eq!(members, expected);
        }
        None => println!("skipped: no group: {}", antagonist.why_no_cgroup().unwrap_or("no reason")),
    }
    let before = antagonist.work_done();
    await_that("they work", || antagonist.work_done() > before);
    drop(antagonist);
    assert!(pids.iter().all(|&pid| state(pid).is_none()));
    assert!(group.is_none_or(|group| !group.exists()));
}

#[test]
fn hogs_that_cannot_begin_are_an_error_and_leave_nothing() {
    let error = Antagonist::start_with(config(1, &[1000])).expect_err("no such core");
    assert!(error.to_string().contains("ended at once"), "{error}");
    assert!(Antagonist::start_with(config(0, &[])).is_err());
    assert!(Antagonist::start_with(config(257, &[])).is_err());
}

#[test]
fn hogs_end_when_who_started_them_is_killed() {
    let mut command = Command::new(program());
    let mut starter = Process::start(command.args(["hog", "--processes", "2", "--mib", "1"]));
    // Its children are the hogs and a guardian.
    let mut hogs = Vec::new();
    await_that("hogs start", || {
        hogs = children(starter.pid(), "rhcc-hog");
        hogs.len() == 2
    });
    starter.signal("KILL");
    starter.end();
    await_that("they end", || hogs.iter().all(|&pid| state(pid).is_none()));
}

/// Children of a process that have a word in their command line.
fn children(parent: u32, word: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        fields.get(1).and_then(|it| it.parse().ok()) == Some(parent) && line.contains(word)
    };
    pids.filter(is_it).collect()
}
