//! G2: huge pages free before = after, however a run ends. Reserves pages, so one test at a time.
#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use dcp_tests::Bench;
use dcp_tests::machine::{
    HugePages, eventually, free_huge_pages, is_root_or_skip, ownerless_huge_pages, public_copy,
};
use dcp_tests::program::End;

/// Enough for the memory of DPDK and for both regions of a small run.
const ENOUGH: u64 = 128;
/// Others on the machine may borrow pages for a while; a leak stays.
const SETTLED_NS: u64 = 20_000_000_000;

/// Pages for one test, to the exclusion of the others here.
struct Reserved {
    _pages: HugePages,
    _only: MutexGuard<'static, ()>,
}

fn reserve(count: u64) -> Option<Reserved> {
    static ONLY: Mutex<()> = Mutex::new(());
    let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_root_or_skip("reserving huge pages") {
        return None;
    }
    match HugePages::reserve(count) {
        Ok(pages) => Some(Reserved { _pages: pages, _only: only }),
        Err(error) => {
            println!("skipped: no huge pages here: {error}");
            None
        }
    }
}

/// Lets a run end in `run`'s way and checks that every page is free again.
#[track_caller]
fn assert_all_come_back(what: &str, run: impl FnOnce() -> End) {
    let before = ownerless_huge_pages();
    let end = run();
    let back = || ownerless_huge_pages() <= before;
    assert!(eventually(SETTLED_NS, back), "{what}: {} pages leaked", ownerless_huge_pages());
    end.assert_clean();
}

/// A run that is in the middle of its transfer, on huge pages, and gets a signal.
#[track_caller]
fn signalled(signal: &str, options: &str) -> End {
    let free = free_huge_pages();
    let running = Bench::write(options).start();
    let in_use = || free_huge_pages() < free;
    assert!(eventually(SETTLED_NS, in_use), "{options}: no huge page was taken");
    running.wait_for_cpu();
    running.signal(signal);
    running.end()
}

#[test]
fn g2_every_ending_gives_huge_pages_back() {
    let Some(_reserved) = reserve(ENOUGH) else { return };
    for options in ["-n 100 --json -", "-n 100 --threads split --json -", "-n 20 --hosts 5 --json -"] {
        assert_all_come_back(options, || {
            let end = Bench::write(options).end();
            end.assert_code(0);
            assert_eq!(end.json().verified(), Some(true));
            end
        });
    }
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        for options in ["-D 600", "-D 600 --threads split"] {
            assert_all_come_back(signal, || {
                let end = signalled(signal, options);
                assert_eq!(end.code(), code, "{signal}: {}", end.stderr());
                end
            });
        }
    }
    assert_all_come_back("failed transfer", || {
        let end = Bench::write("-n 5 --drop 100% -u 4 --retry-cnt 0 --json -").end();
        end.assert_code(1);
        end
    });
    assert_all_come_back("failed start", || {
        let wrapper = ["bash", "-c", "ulimit -v 160000 && exec \"$@\"", "bash"];
        let end = Bench::under(&wrapper, "-n 5 --json -").end();
        end.assert_code(3);
        end
    });
}

#[test]
fn g2_too_few_huge_pages_are_left_alone() {
    let Some(_reserved) = reserve(4) else { return };
    assert_all_come_back("too few", || {
        let end = Bench::write("-n 100 --json -").end();
        end.assert_code(0);
        end
    });
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
            end.assert_code(3);
        }
        end.assert_clean();
    }
}

#[test]
fn g2_other_users_give_huge_pages_back() {
    let Some(_reserved) = reserve(ENOUGH) else { return };
    let copy = public_copy("huge");
    assert_all_come_back("nobody", || {
        let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let end = Bench::at(&copy.program(), &wrapper, "-n 100 --json -").end();
        end.assert_code(0);
        end
    });
}
