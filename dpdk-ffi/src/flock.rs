//! Locks between processes, on files and directories that are there anyway and that every user can open.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

/// A lock; gone when dropped, and when the process ends in any way.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

/// Who else may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Others that share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Why there is no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// There is nothing to lock: no such file, or one that this user cannot open.
    NoFile,
    /// Somebody else has it.
    Held,
}

impl FileLock {
    /// The lock, if nobody is in the way.
    pub(crate) fn try_take(path: &Path, sharing: Sharing) -> Result<Self, Denied> {
        Self::take(path, sharing, libc::LOCK_NB)
    }

    /// The lock, as soon as nobody is in the way.
    pub(crate) fn wait(path: &Path, sharing: Sharing) -> Result<Self, Denied> {
        Self::take(path, sharing, 0)
    }

    /// The lock, if it is to be had within `tries` times 2 ms: whoever can open a file can also hold its lock for ever.
    pub(crate) fn wait_at_most(path: &Path, sharing: Sharing, tries: u32) -> Result<Self, Denied> {
        for _ in 0..tries {
            match Self::try_take(path, sharing) {
                Err(Denied::Held) => {}
                settled => return settled,
            }
            #[expect(clippy::disallowed_methods, reason = "waits for another process, before anything runs")]
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(Denied::Held)
    }

    fn take(path: &Path, sharing: Sharing, flags: i32) -> Result<Self, Denied> {
        let file = File::open(path).map_err(|_| Denied::NoFile)?;
        let operation = match sharing {
            Sharing::Shared => libc::LOCK_SH,
            Sharing::Exclusive => libc::LOCK_EX,
        };
        // SAFETY: the descriptor is open.
        let code = unsafe { libc::flock(file.as_raw_fd(), operation | flags) };
        if code == 0 {
            return Ok(Self { _file: file });
        }
        // A file system without locks is like a file that is not there.
        let held = std::io::Error::last_os_error().raw_os_error() == Some(libc::EWOULDBLOCK);
        Err(if held { Denied::Held } else { Denied::NoFile })
    }
}

#[cfg(test)]
mod tests {
    use super::{Denied, FileLock, Sharing};

    #[test]
    fn exclusive_lock_keeps_others_out_until_it_is_dropped() {
        let path = std::env::temp_dir().join(format!("dcp-flock-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let held = FileLock::try_take(&path, Sharing::Exclusive).unwrap();
        for sharing in [Sharing::Shared, Sharing::Exclusive] {
            assert_eq!(FileLock::try_take(&path, sharing).unwrap_err(), Denied::Held);
        }
        assert_eq!(FileLock::wait_at_most(&path, Sharing::Shared, 2).unwrap_err(), Denied::Held);
        drop(held);
        let _first = FileLock::wait(&path, Sharing::Shared).unwrap();
        let _second = FileLock::try_take(&path, Sharing::Shared).unwrap();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(FileLock::try_take(&path, Sharing::Shared).unwrap_err(), Denied::NoFile);
    }
}
