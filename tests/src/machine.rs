//! What this machine lets a test do: root, huge pages, time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use dpdk_ffi::Clock;

use crate::build;

/// Whether the tests run as root; if not, prints why `what` is skipped.
pub fn is_root_or_skip(what: &str) -> bool {
    let output = Command::new("id").arg("-u").output().expect("there is an id program");
    let root = output.stdout.trim_ascii() == b"0";
    if !root {
        println!("skipped: {what} needs root");
    }
    root
}

/// `dcp-bench` where every user can run it, and a directory beside it where nobody else can write.
///
/// # Panics
/// When there is no place for them.
pub fn public_copy(test: &str) -> PublicCopy {
    let directory = std::env::temp_dir().join(format!("dcp-tests-{test}-{}", std::process::id()));
    let copy = PublicCopy { directory };
    fs::create_dir_all(copy.read_only()).expect("the temporary directory is writable");
    fs::copy(build::dcp_bench(), copy.program()).expect("there is room for a copy");
    let mode = format!("chmod 755 {0} {0}/dcp-bench && chmod 555 {0}/read-only", copy.directory.display());
    let status = Command::new("sh").args(["-c", &mode]).status().expect("there is a shell");
    assert!(status.success(), "{mode}");
    copy
}

/// Removed when dropped.
#[derive(Debug)]
pub struct PublicCopy {
    directory: PathBuf,
}

impl PublicCopy {
    /// The program.
    pub fn program(&self) -> PathBuf {
        self.directory.join("dcp-bench")
    }

    /// A directory that only root could write to.
    pub fn read_only(&self) -> PathBuf {
        self.directory.join("read-only")
    }
}

impl Drop for PublicCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Huge pages reserved for a test, given back when dropped.
#[derive(Debug)]
pub struct HugePages {
    before: String,
}

const NR_HUGEPAGES: &str = "/proc/sys/vm/nr_hugepages";

impl HugePages {
    /// Sees to it that at least `count` are free; `Err` says why a test cannot have them.
    ///
    /// # Errors
    /// Not root, a read-only /proc, or memory too fragmented.
    pub fn reserve(count: u64) -> io::Result<Self> {
        let held = Self { before: fs::read_to_string(NR_HUGEPAGES)? };
        held.top_up(count)?;
        Ok(held)
    }

    /// The same again, after others have taken some.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn top_up(&self, count: u64) -> io::Result<()> {
        // With those that others still hold from a larger reservation.
        let total = field(Path::new("/proc/meminfo"), "HugePages_Total:").unwrap_or(0);
        let missing = count.saturating_sub(free_huge_pages());
        fs::write(NR_HUGEPAGES, (total + missing).to_string())?;
        let free = free_huge_pages();
        if free < count { Err(io::Error::other(format!("{free} of {count} could be had"))) } else { Ok(()) }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = fs::write(NR_HUGEPAGES, self.before.trim());
    }
}

/// Huge pages that are free.
///
/// # Panics
/// When the kernel does not say.
pub fn free_huge_pages() -> u64 {
    field(Path::new("/proc/meminfo"), "HugePages_Free:").expect("a kernel with huge pages")
}

/// Whether a process holds huge pages.
pub fn has_huge_pages(pid: u32) -> bool {
    field(Path::new(&format!("/proc/{pid}/status")), "HugetlbPages:").is_some_and(|kib| kib > 0)
}

/// Huge pages that are neither free nor in the hands of a living process: leaked, or in files.
///
/// Pages may change hands between the readings: ask until the answer stands.
pub fn ownerless_huge_pages() -> u64 {
    let memory = |name: &str| field(Path::new("/proc/meminfo"), name).unwrap_or(0);
    let page_kib = memory("Hugepagesize:").max(1);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let held_kib: u64 =
        processes.filter_map(|process| field(&process.path().join("status"), "HugetlbPages:")).sum();
    (memory("HugePages_Total:") - memory("HugePages_Free:")).saturating_sub(held_kib / page_kib)
}

/// The first number behind `name` in a file of lines.
fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Nanoseconds since the first call.
pub fn now_ns() -> u64 {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::calibrate).now_ns()
}

/// Whether `condition` holds within `limit_ns`: for what another process does, a bound against hanging and no
/// measure of speed.
pub fn eventually(limit_ns: u64, condition: impl Fn() -> bool) -> bool {
    let start = now_ns();
    loop {
        if condition() {
            return true;
        }
        if now_ns() - start > limit_ns {
            return false;
        }
        std::thread::yield_now();
    }
}
