//! Counting, with callgrind.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::baselines::{Baselines, rustc};
use crate::cases::{self, Case, Entry};

/// Rounds before counting: everything has grown to its size then.
const WARM_ROUNDS: u64 = 40;
/// Rounds that are counted.
const ROUNDS: u64 = 100;
/// The function whose instructions are counted, with all that it calls.
const COUNTED: &str = "--toggle-collect=*counted_round*";
/// The C library chooses functions by the processor; without these it takes the same ones everywhere.
const SAME_LIBC: &str = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load";

/// Runs a case; to be called under callgrind.
///
/// # Errors
/// A sentence: there is no such case.
pub fn run_counted(name: &str) -> Result<(), String> {
    let entry = cases::all().into_iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| format!("there is no case `{name}`"))?;
    let mut case = (entry.make)();
    for _ in 0..WARM_ROUNDS {
        case.prepare();
        case.run();
    }
    for _ in 0..ROUNDS {
        case.prepare();
        counted_round(&mut *case);
    }
    Ok(())
}

#[inline(never)]
fn counted_round(case: &mut dyn Case) {
    case.run();
}

/// Counts every case, as many at a time as there are cores.
///
/// # Errors
/// A sentence: valgrind is missing, or a case did not run.
pub fn count_all() -> Result<Baselines, String> {
    let entries = cases::all();
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let count = || {
            while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                let hundredths = count(entry)?;
                counts.lock().map_err(|_| "another count failed")?.insert(entry.name.to_owned(), hundredths);
            }
            Ok::<(), String>(())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })?;
    let hundredths = counts.into_inner().map_err(|_| "a count failed")?;
    Ok(Baselines { rustc: rustc()?, hundredths })
}

/// Instructions of one case per element, in hundredths.
fn count(entry: &Entry) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", COUNTED])
        .arg(program)
        .args(["--run", entry.name])
        // The stack begins below the environment: another length of it would shift every address.
        .env_clear()
        .env("GLIBC_TUNABLES", SAME_LIBC)
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .output()
        .map_err(|error| {
            format!("valgrind does not start: {error}; on Debian and Ubuntu: apt-get install valgrind")
        })?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match collected {
        Some(total @ 1u64..) if output.status.success() => Ok(total * 100 / (ROUNDS * entry.elements)),
        _ => Err(format!("{} did not run under callgrind:\n{text}", entry.name)),
    }
}
