//! What this process may have, by the limits that a shell sets (`ulimit`).

use std::fs;

/// Limits that a start can fail on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of address space, `ulimit -v`; `None` without a limit.
    pub(crate) address_space_bytes: Option<u64>,
    /// Open files, `ulimit -n`; `None` without a limit.
    pub(crate) descriptors: Option<u64>,
}

impl Limits {
    /// Those in force.
    pub(crate) fn read() -> Self {
        Self {
            address_space_bytes: soft_limit(libc::RLIMIT_AS),
            descriptors: soft_limit(libc::RLIMIT_NOFILE),
        }
    }

    /// Files that can still be opened.
    pub(crate) fn descriptors_free(&self) -> u64 {
        let Some(limit) = self.descriptors else { return u64::MAX };
        match fs::read_dir("/proc/self/fd") {
            // The listing itself is one of them.
            Ok(open) => limit.saturating_sub((open.count() as u64).saturating_sub(1)),
            // Without a descriptor for the listing there is none at all; without /proc, nothing is known.
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => 0,
            Err(_) => u64::MAX,
        }
    }
}

fn soft_limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is ours, and the resource one that Linux has.
    let code = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (code == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn an_open_file_is_one_less_that_can_be_opened() {
        let limits = Limits { descriptors: Some(100_000), ..Limits::read() };
        let before = limits.descriptors_free();
        let _files: Vec<_> = (0..50).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
        // Other tests open and close files of their own.
        assert!(limits.descriptors_free() <= before - 20, "{before}");
    }

    #[test]
    fn no_limit_leaves_any_number() {
        assert_eq!(Limits::default().descriptors_free(), u64::MAX);
    }
}
