//! What memory this machine has to give: `/proc/meminfo`, and whether huge pages can really be had.

use std::fs;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::flock::{Denied, FileLock, Sharing};

/// What the caller thinks of huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePreference {
    /// Huge pages when enough are free, ordinary pages otherwise.
    #[default]
    Auto,
    /// Ordinary pages.
    Never,
    /// Huge pages or an error.
    Require,
}

/// The lines of `/proc/meminfo` that decisions are made by; zero when a line is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Memory that can be had without swapping, in bytes.
    pub available_bytes: u64,
    /// Size of one huge page in bytes; zero on a kernel without huge pages.
    pub huge_page_bytes: u64,
    /// Huge pages that are free and not reserved by anyone.
    pub huge_pages_free: u64,
}

impl MemInfo {
    /// Reads `/proc/meminfo`; all zero when it cannot be read.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// Bytes of free huge pages.
    pub fn huge_free_bytes(&self) -> u64 {
        self.huge_page_bytes.saturating_mul(self.huge_pages_free)
    }

    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            available_bytes: field("MemAvailable").saturating_mul(1024),
            huge_page_bytes: field("Hugepagesize").saturating_mul(1024),
            huge_pages_free: field("HugePages_Free").saturating_sub(field("HugePages_Rsvd")),
        }
    }
}

/// Bytes of ordinary memory that this process can still have: what the machine has, or what its cgroup leaves.
pub fn available_bytes() -> u64 {
    let machine = MemInfo::read().available_bytes;
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    cgroups.lines().filter_map(cgroup_left).fold(machine, u64::min)
}

/// What the memory limit of one line of `/proc/self/cgroup` leaves; `None` when it has none, or cannot be read.
fn cgroup_left(line: &str) -> Option<u64> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let (directory, limit, usage) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
        _ if controllers.split(',').any(|it| it == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    // A container sees its own group at the root of the mount, under a path that only the host knows.
    [format!("{directory}{path}"), directory.to_owned()].iter().find_map(|group| {
        let number =
            |file: &str| fs::read_to_string(format!("{group}/{file}")).ok()?.trim().parse::<u64>().ok();
        Some(number(limit)?.saturating_sub(number(usage)?))
    })
}

/// One turn at the huge pages: nobody else of ours counts, tries or takes any while it lasts.
#[derive(Debug)]
pub(crate) struct HugeTurn {
    /// `None` where there is nothing to lock.
    _lock: Option<FileLock>,
}

impl HugeTurn {
    /// Waits for it; `None` when somebody does not let go.
    pub(crate) fn wait() -> Option<Self> {
        match FileLock::wait_at_most(Path::new(HUGE_PAGES), Sharing::Exclusive, TURN_TRIES) {
            Ok(lock) => Some(Self { _lock: Some(lock) }),
            Err(Denied::NoFile) => Some(Self { _lock: None }),
            Err(Denied::Held) => None,
        }
    }
}

/// What is shared is what every user can open.
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";
/// Ten seconds: a hundred starts.
const TURN_TRIES: u32 = 5000;

/// The turn in which `bytes` of huge pages and a margin were seen to be there for this user and this cgroup. They are still
/// to be had as long as it is held, unless another program takes them.
///
/// Tries it and gives them back: the counts alone do not know about limits, and who finds out later is killed by SIGBUS.
pub(crate) fn prove_huge_pages(bytes: u64) -> Option<HugeTurn> {
    let info = MemInfo::read();
    // Before the wait, for machines without huge pages.
    if info.huge_page_bytes == 0 || bytes == 0 || info.huge_free_bytes() < bytes {
        return None;
    }
    let turn = HugeTurn::wait()?;
    let margin = (bytes / HUGE_MARGIN_PART).max(info.huge_page_bytes * HUGE_MARGIN_PAGES);
    let bytes = bytes.checked_add(margin)?.checked_next_multiple_of(info.huge_page_bytes)?;
    if MemInfo::read().huge_free_bytes() < bytes {
        return None;
    }
    let len = usize::try_from(bytes).ok()?;
    let base = map_anonymous(len, libc::MAP_HUGETLB)?;
    // SAFETY: the mapping above is ours and `len` long.
    let usable = unsafe { populate(base, len) };
    // SAFETY: as above, and nothing points into it.
    unsafe { unmap(base, len) };
    usable.then_some(turn)
}

/// What has to be free beyond the need, for programs that know of no turns and for a heap that grows: this part of it, …
const HUGE_MARGIN_PART: u64 = 8;
/// … and so many pages at least.
const HUGE_MARGIN_PAGES: u64 = 4;

/// Maps `len` zeroed private bytes, or `None`.
pub(crate) fn map_anonymous(len: usize, extra_flags: i32) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | extra_flags;
    // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours.
    let base = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Makes every page of a mapping present, and says whether that worked (a kernel before 5.14 cannot tell: yes).
///
/// # Safety
/// `base` must start a private writable mapping of at least `len` bytes.
pub(crate) unsafe fn populate(base: NonNull<u8>, len: usize) -> bool {
    // SAFETY: the caller vouches for the mapping; the call changes no byte of it.
    let code = unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
    code == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Gives a mapping back.
///
/// # Safety
/// `base` and `len` must be those of [`map_anonymous`], and nothing may point into it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len: usize) {
    // SAFETY: upheld by the caller.
    let code = unsafe { libc::munmap(base.as_ptr().cast(), len) };
    debug_assert_eq!(code, 0, "munmap of {len} bytes failed");
}

#[cfg(test)]
mod tests {
    use super::MemInfo;

    #[test]
    fn meminfo_counts_free_pages_without_the_reserved_ones() {
        let text =
            "MemAvailable:   2048 kB\nHugePages_Free:  10\nHugePages_Rsvd:  4\nHugepagesize:  2048 kB\n";
        let info = MemInfo::parse(text);
        assert_eq!(info.available_bytes, 2 << 20);
        assert_eq!(info.huge_free_bytes(), 6 * (2 << 20));
    }

    #[test]
    fn cgroup_never_leaves_more_than_the_machine_has() {
        let available = super::available_bytes();
        assert!(available > 0 && available <= MemInfo::read().available_bytes + (256 << 20), "{available}");
        assert_eq!(super::cgroup_left("3:cpuset:/"), None);
        assert_eq!(super::cgroup_left("nonsense"), None);
    }

    #[test]
    fn meminfo_of_a_kernel_without_huge_pages_is_zero() {
        assert_eq!(MemInfo::parse("MemTotal: 1 kB\n"), MemInfo::default());
    }
}
