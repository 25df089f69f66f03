//! G2: huge pages free before = after, however a run ends. Reserves pages, so one test at a time.
//!
//! Others on the machine may take reserved pages at any moment: a run that found too few is tried again, and leaks
//! are told from loans by who holds what.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dcp_tests::Bench;
use dcp_tests::machine::{
    HugePages, eventually, has_huge_pages, is_root_or_skip, ownerless_huge_pages, public_copy,
};
use dcp_tests::program::End;

/// Enough for the memory of DPDK and for both regions of a small run.
const ENOUGH: u64 = 128;
const SETTLED_NS: u64 = 20_000_000_000;
const TRIES: u32 = 10;

/// Pages for one test, to the exclusion of the others here.
struct Reserved {
    pages: HugePages,
    count: u64,
    _only: MutexGuard<'static, ()>,
}

fn reserve(count: u64) -> Option<Reserved> {
    static ONLY: Mutex<()> = Mutex::new(());
    let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_root_or_skip("reserving huge pages") {
        return None;
    }
    match HugePages::reserve(count) {
        Ok(pages) => Some(Reserved { pages, count, _only: only }),
        Err(error) => {
            println!("skipped: no huge pages here: {error}");
            None
        }
    }
}

impl Reserved {
    /// Lets a run end in `run`'s way, with `code`, and checks that every page has an owner or is free again.
    #[track_caller]
    fn assert_all_come_back(&self, code: Option<i32>, run: impl Fn() -> Option<End>) {
        let before = ownerless_huge_pages();
        let tried = (0..TRIES).find_map(|_| {
            self.pages.top_up(self.count).ok()?;
            run().filter(|end| end.code() == code)
        });
        let back = || ownerless_huge_pages() <= before;
        let Some(end) = tried else { panic!("no run of {TRIES} ended with {code:?}") };
        assert!(eventually(SETTLED_NS, back), "{}: {} pages leaked", end.options, ownerless_huge_pages());
        assert!(!end.stderr().contains("panicked"), "{}", end.stderr());
        end.assert_clean();
    }
}

/// A run that is in the middle of its transfer and gets a signal; `None` when it found no huge pages.
fn signalled(signal: &str, options: &str) -> Option<End> {
    let mut running = Bench::write(&format!("{options} --interval 0.2")).start();
    running.wait_for_messages();
    let has_them = has_huge_pages(running.pid());
    running.signal(signal);
    let end = running.end();
    has_them.then_some(end)
}

#[test]
fn g2_finished_and_failed_runs_give_huge_pages_back() {
    let Some(reserved) = reserve(ENOUGH) else { return };
    let finished = ["-n 100 --json -", "-n 100 --threads split --json -", "-n 20 --hosts 5 --json -"];
    for options in finished {
        reserved.assert_all_come_back(Some(0), || Some(Bench::write(options).end()));
    }
    let lossy = "-n 5 --drop 100% -u 4 --retry-cnt 0 --json -";
    reserved.assert_all_come_back(Some(1), || Some(Bench::write(lossy).end()));
    let limits = ["bash", "-c", "ulimit -v 160000 && exec \"$@\"", "bash"];
    reserved.assert_all_come_back(Some(3), || Some(Bench::under(&limits, "-n 5 --json -").end()));
}

#[test]
fn g2_signals_give_huge_pages_back() {
    let Some(reserved) = reserve(ENOUGH) else { return };
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        for options in ["-D 600", "-D 600 --threads split"] {
            reserved.assert_all_come_back(code, || signalled(signal, options));
        }
    }
}

#[test]
fn g2_too_few_huge_pages_are_left_alone() {
    let Some(reserved) = reserve(4) else { return };
    reserved.assert_all_come_back(Some(0), || Some(Bench::write("-n 100 --json -").end()));
}

// Both look before either takes: the later one must not die of SIGBUS.
#[test]
fn g2_instances_that_race_for_huge_pages_all_work() {
    let Some(_reserved) = reserve(ENOUGH) else { return };
    let racing: Vec<_> =
        (0..8).map(|_| std::thread::spawn(|| Bench::write("-n 50 --json -").end())).collect();
    for one in racing {
        let Ok(end) = one.join() else { panic!("it could not be run") };
        if end.code() == Some(0) {
            assert_eq!(end.json().verified(), Some(true));
        } else {
            // Only those who know of no turns can be in the way: other programs on this machine.
            end.assert_code(3);
            assert!(end.stderr().contains("another program"), "{}", end.stderr());
        }
        end.assert_clean();
    }
}

#[test]
fn g2_other_users_give_huge_pages_back() {
    let Some(reserved) = reserve(ENOUGH) else { return };
    let copy = public_copy("huge");
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let run = || Bench::at(&copy.program(), &nobody, "-n 100 --json -").end();
    reserved.assert_all_come_back(Some(0), || Some(run()));
}

/// A process of the library alone, with devices and 128 MiB of registered memory in huge pages.
fn serving(uri: &str) -> std::process::Child {
    let mut probe = Command::new(env!("CARGO_BIN_EXE_device-probe"));
    probe.args(["serve", uri, "ip=10.9.0.1/24"]).stdout(Stdio::piped()).stderr(Stdio::null());
    probe.spawn().expect("the probe starts")
}

/// Waits until it serves, has it killed, and says whether it had huge pages.
fn killed_while_serving(signal: &str) -> bool {
    let mut probe = serving("null");
    let lines = BufReader::new(probe.stdout.take().expect("piped")).lines();
    let serves = lines.map_while(Result::ok).any(|line| line.starts_with("listening"));
    let has_them = has_huge_pages(probe.id());
    // By the shell's own `kill`: minimal systems have no such program.
    let line = format!("kill -s {signal} {}", probe.id());
    let signalled = Command::new("sh").args(["-c", &line]).status();
    let signalled = signalled.is_ok_and(|status| status.success()) || probe.kill().is_err();
    let ended = probe.wait();
    assert!(serves && signalled && ended.is_ok());
    has_them
}

#[test]
fn g2_processes_of_the_library_give_huge_pages_back() {
    let Some(reserved) = reserve(ENOUGH) else { return };
    for signal in ["INT", "TERM", "KILL"] {
        let before = ownerless_huge_pages();
        let had_them =
            (0..TRIES).any(|_| reserved.pages.top_up(reserved.count).is_ok() && killed_while_serving(signal));
        assert!(had_them, "no run of {TRIES} found huge pages");
        assert!(eventually(SETTLED_NS, || ownerless_huge_pages() <= before), "SIG{signal} leaks pages");
    }
    let before = ownerless_huge_pages();
    let failed = serving("vdev:net_nothing0").wait().expect("it can be waited for");
    assert_eq!(failed.code(), Some(3));
    assert!(eventually(SETTLED_NS, || ownerless_huge_pages() <= before), "a failed start leaks pages");
}
