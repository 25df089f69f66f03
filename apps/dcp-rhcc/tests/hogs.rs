//! The antagonist: real hogs.
#![forbid(unsafe_code)]

mod common;

use std::process::Command;

use common::{Process, await_that, program, state};
use dcp_core::{HostControl, HostControlConfig, Occupancy, TrafficClass};
use dcp_rhcc::actuator::cgroup::Cgroups;
use dcp_rhcc::modes::Program;
use dcp_rhcc::root::Root;
use dcp_rhcc::signal::FromClosure;
use dcp_rhcc::target::Target;
use dcp_rhcc::{Antagonist, AntagonistConfig, Governor};

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

// C-4: as a program does that controls inside itself.
#[test]
fn hogs_are_held_back_by_a_governor_in_a_thread_and_set_free_when_it_stops() {
    let antagonist = Antagonist::start_with(config(1, &[0])).expect("hogs");
    let Some(group) = antagonist.cgroup() else {
        println!("skipped: no group: {}", antagonist.why_no_cgroup().unwrap_or("no reason"));
        return;
    };
    let quota = || {
        let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
        let text = read("cpu.max").or_else(|| read("cpu.cfs_quota_us")).unwrap_or_default();
        text.split_whitespace().next().and_then(|it| it.parse::<u64>().ok())
    };
    let root = Root::machine();
    let actuator = Cgroups::open(&root, &[]).expect("the hogs have a group");
    let read = |_| Ok(Some(Occupancy::new(200)));
    let signal = FromClosure { name: "made up", threshold: Occupancy::new(45), read };
    let control = HostControl::new(HostControlConfig::new()).expect("the defaults");
    let mut governor = Governor::new(root, Box::new(signal), control, Box::new(actuator), None);
    governor.adopt(TrafficClass::Local, &Target::Cgroup(group.to_owned())).expect("its files are there");
    let running = governor.spawn(std::time::Duration::from_millis(5)).expect("a thread");
    // One busy thread: a fifth of 10 ms.
    await_that("it is held back", || quota() == Some(2000));
    let before = antagonist.work_done();
    await_that("it works on", || antagonist.work_done() > before);
    running.stop().expect("nothing refuses");
    assert_eq!(quota(), None);
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
