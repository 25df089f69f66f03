//! Limits of processor time on this machine: put, and lifted again whatever ends whom.
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{FakeWorker, PATIENCE, Process, Scratch, await_that, rhcc, signal, state};
use dcp_rhcc::actuator::cgroup::{Hierarchy, Version};
use dcp_rhcc::clock::within;
use dcp_rhcc::root::Root;

/// The cpu hierarchy, if this user may make groups in it; if not, says that `what` is skipped.
fn hierarchy(what: &str) -> Option<Hierarchy> {
    let root = Root::machine();
    let name = format!("dcp-rhcc-try-{}-{what}", std::process::id());
    let made = Hierarchy::find(&root).and_then(|it| it.make(&root, &name).map(|made| (it, made)));
    match made {
        Ok((hierarchy, made)) => {
            fs::remove_dir(made).expect("it is empty");
            Some(hierarchy)
        }
        Err(reason) => {
            println!("skipped: {what}: {reason}");
            None
        }
    }
}

/// A group of the test's own, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn make(hierarchy: &Hierarchy, what: &str) -> Self {
        let name = format!("dcp-rhcc-test-{}-{what}", std::process::id());
        Self(hierarchy.make(&Root::machine(), &name).expect("it could be made before"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = within(PATIENCE, || fs::remove_dir(&self.0).is_ok());
    }
}

fn group_of(hierarchy: &Hierarchy, pid: u32) -> PathBuf {
    hierarchy.group_of(&Root::machine(), &pid.to_string())
}

/// A group's quota in microseconds; `None` without one.
fn quota(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let text = read("cpu.max").or_else(|| read("cpu.cfs_quota_us"))?;
    text.split_whitespace().next()?.parse().ok()
}

/// A program that writes its id to a file and sleeps: it costs nothing, and can be held back all the same.
fn sleeper(scratch: &Scratch) -> Vec<String> {
    let script = format!("echo $$ > {}/pid; exec sleep 1000", scratch.path().display());
    vec!["--".into(), "sh".into(), "-c".into(), script]
}

fn sleeper_pid(scratch: &Scratch) -> u32 {
    let mut pid = None;
    await_that("the program starts", || {
        pid = scratch.text("pid").trim().parse().ok();
        pid.is_some()
    });
    pid.expect("it has started")
}

/// A control of a sleeper by cgroup that has gone to the deepest level: control, sleeper, its group.
fn held_back(hierarchy: &Hierarchy, scratch: &Scratch, worker: &FakeWorker) -> (Process, u32, PathBuf) {
    let control = Process::start(rhcc(worker, "--actuator cgroup").args(sleeper(scratch)));
    let pid = sleeper_pid(scratch);
    let group = group_of(hierarchy, pid);
    assert!(group.ends_with(format!("dcp-rhcc-{}-local", control.pid())), "{}", group.display());
    await_that("a fifth of a processor", || quota(&group) == Some(2000));
    (control, pid, group)
}

// C-4
#[test]
fn levels_follow_the_signal_down_and_back() {
    let Some(hierarchy) = hierarchy("levels") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let (_control, pid, group) = held_back(&hierarchy, &scratch, &worker);
    worker.set_congested(false);
    await_that("no limit", || quota(&group).is_none());
    signal(pid, "KILL");
}

#[test]
fn sigterm_lifts_every_limit_and_ends_the_program() {
    let Some(hierarchy) = hierarchy("sigterm") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let (mut control, pid, group) = held_back(&hierarchy, &scratch, &worker);
    control.signal("TERM");
    assert_eq!(control.end().code(), Some(130));
    assert_eq!((state(pid), group.exists()), (None, false));
}

#[test]
fn killed_control_is_cleaned_up_after_by_its_guardian() {
    let Some(hierarchy) = hierarchy("kill") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let (control, pid, group) = held_back(&hierarchy, &scratch, &worker);
    control.signal("KILL");
    await_that("the group is gone", || !group.exists());
    assert!(state(pid).is_some(), "the program goes on");
    assert_eq!(Some(group_of(&hierarchy, pid).as_path()), group.parent());
    signal(pid, "KILL");
}

#[test]
fn end_of_the_program_is_the_end_of_the_control_and_of_its_group() {
    let Some(hierarchy) = hierarchy("endings") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let above = group_of(&hierarchy, std::process::id());
    for (script, code, words) in [
        ("exit 0", 0, ""),
        ("exit 7", 1, "exit code 7"),
        ("kill -SEGV $$", 1, "signal 11"),
        ("kill -KILL $$", 1, "signal 9"),
    ] {
        let mut command = rhcc(&worker, "--actuator cgroup --period 1");
        let child =
            command.args(["--", "sh", "-c", script]).stderr(Stdio::piped()).spawn().expect("it starts");
        let pid = child.id();
        let output = child.wait_with_output().expect("it can be waited for");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {stderr}");
        assert!(stderr.contains(words) && !stderr.contains("panicked"), "{script}: {stderr}");
        assert!(!above.join(format!("dcp-rhcc-{pid}-local")).exists(), "{script}");
    }
}

#[test]
fn running_process_is_taken_and_goes_back_where_it_was() {
    let Some(hierarchy) = hierarchy("pid") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let held = Process::start(Command::new("sleep").arg("1000"));
    let home = group_of(&hierarchy, held.pid());
    let options = format!("--actuator cgroup --pid {}", held.pid());
    let mut control = Process::start(&mut rhcc(&worker, &options));
    await_that("it is held back", || {
        let group = group_of(&hierarchy, held.pid());
        group != home && quota(&group) == Some(2000)
    });
    control.signal("INT");
    assert_eq!(control.end().code(), Some(130));
    assert_eq!((group_of(&hierarchy, held.pid()), state(held.pid()).is_some()), (home, true));
}

#[test]
fn control_of_a_process_ends_with_it() {
    let Some(_hierarchy) = hierarchy("pid-end") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let mut held = Process::start(Command::new("sleep").arg("1000"));
    let options = format!("--actuator cgroup --pid {}", held.pid());
    let mut control = Process::start(&mut rhcc(&worker, &options));
    held.signal("KILL");
    held.end();
    // Gone before it was taken, it is no process to take.
    let code = control.end().code();
    assert!(code == Some(0) || code == Some(3), "{code:?}");
}

#[test]
fn someone_elses_group_gets_its_quota_back() {
    let Some(hierarchy) = hierarchy("cgroup") else { return };
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let group = Group::make(&hierarchy, "cgroup");
    let held = Process::start(Command::new("sleep").arg("1000"));
    fs::write(group.0.join("cgroup.procs"), held.pid().to_string()).expect("our own group");
    let files: &[(&str, &str)] = match hierarchy.version {
        Version::V1 => &[("cpu.cfs_period_us", "200000"), ("cpu.cfs_quota_us", "140000")],
        Version::V2 => &[("cpu.max", "140000 200000")],
    };
    for (file, text) in files {
        fs::write(group.0.join(file), text).expect("our own group");
    }
    let mut control =
        Process::start(&mut rhcc(&worker, &format!("--actuator cgroup --cgroup {}", group.0.display())));
    // A fifth of 0.7 processors.
    await_that("it is held back", || quota(&group.0) == Some(1400));
    control.signal("TERM");
    assert_eq!(control.end().code(), Some(130));
    for (file, text) in files {
        assert_eq!(fs::read_to_string(group.0.join(file)).expect("there").trim(), *text);
    }
    drop(held);
}

#[test]
fn stopped_process_goes_on_after_sigterm_and_after_sigkill_of_the_control() {
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let held = Process::start(Command::new("sleep").arg("1000"));
    for (name, code) in [("TERM", Some(130)), ("KILL", None)] {
        let options = format!("--actuator sigstop --pid {}", held.pid());
        let mut control = Process::start(&mut rhcc(&worker, &options));
        // It stands still four fifths of the time.
        await_that("it is stopped", || state(held.pid()) == Some('T'));
        control.signal(name);
        assert_eq!(control.end().code(), code);
        await_that("it goes on", || state(held.pid()) == Some('S'));
        assert!(!within(std::time::Duration::from_millis(100), || state(held.pid()) == Some('T')), "{name}");
    }
}

#[test]
fn program_in_turns_ends_by_a_signal_to_the_control() {
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let mut control = Process::start(rhcc(&worker, "--actuator sigstop").args(sleeper(&scratch)));
    let pid = sleeper_pid(&scratch);
    await_that("it is stopped", || state(pid) == Some('T'));
    control.signal("HUP");
    assert_eq!(control.end().code(), Some(130));
    assert_eq!(state(pid), None);
}
