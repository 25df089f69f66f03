//! Directories of starts that were killed before they could tidy up.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::runtime_dir::{FALLBACKS, VARIABLE, user};
use crate::flock::{FileLock, Sharing};

/// Removes those of this user whose process is gone. What cannot be removed is not worth a failure.
pub(super) fn remove_all() {
    let mut places: Vec<PathBuf> = DPDK.iter().chain(&FALLBACKS).map(PathBuf::from).collect();
    places.push(std::env::temp_dir());
    places.extend(std::env::var_os(VARIABLE).map(PathBuf::from));
    // Never the current directory, where such a name may be the user's own.
    places.retain(|place| place.is_absolute());
    places.iter().for_each(|place| remove_in(place));
}

/// Where DPDK puts directories by itself, as root and otherwise.
const DPDK: [&str; 2] = ["/var/run/dpdk", "/tmp/dpdk"];

fn remove_in(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(owner) else { continue };
        let path = entry.path();
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir() && it.uid() == user());
        if !is_ours || lives(pid) {
            continue;
        }
        // The owner may live where its process cannot be seen, in another container with this same directory.
        let Ok(_lock) = FileLock::try_take(&path, Sharing::Exclusive) else { continue };
        let _ = fs::remove_dir_all(&path);
    }
}

/// The process that made a directory of this name: `dcp_<pid>_` and eight hexadecimal digits, or the six characters of
/// mkdtemp.
fn owner(name: &str) -> Option<i32> {
    let (pid, random) = name.strip_prefix("dcp_")?.split_once('_')?;
    let by_us = random.len() == 8 && random.bytes().all(|b| b.is_ascii_hexdigit());
    let by_mkdtemp = random.len() == 6 && random.bytes().all(|b| b.is_ascii_alphanumeric());
    let pid = pid.parse().ok().filter(|&pid| pid > 0)?;
    (by_us || by_mkdtemp).then_some(pid)
}

fn lives(pid: i32) -> bool {
    // SAFETY: signal 0 does nothing but ask.
    let code = unsafe { libc::kill(pid, 0) };
    code == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_owner() {
        assert_eq!(owner("dcp_10616_7ea1fada"), Some(10616));
        assert_eq!(owner("dcp_10616_aZ09bc"), Some(10616));
        for other in [
            "dcp_x_7ea1fada",
            "dcp_0_7ea1fada",
            "dcp_-1_7ea1fada",
            "dcp_1_x",
            "rte",
            "dcp_1",
            "dcp_1_7ea1fad!",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn only_directories_of_dead_owners_that_nobody_locks_are_removed() {
        let place = std::env::temp_dir().join(format!("dcp-stale-{}", std::process::id()));
        // Above the largest pid that Linux gives.
        let names = ["dcp_999999999_00000000", "dcp_999999999_aaaaaa", "dcp_999999998_00000000", "mine"];
        let living = format!("dcp_{}_00000000", std::process::id());
        for name in names.into_iter().chain([living.as_str()]) {
            fs::create_dir_all(place.join(name).join("inside")).unwrap();
        }
        let held = FileLock::try_take(&place.join(names[2]), Sharing::Exclusive).unwrap();
        remove_in(&place);
        let there = |name: &str| place.join(name).exists();
        assert_eq!(names.map(there), [false, false, true, true]);
        assert!(there(&living));
        drop(held);
        remove_in(&place);
        assert!(!there(names[2]));
        fs::remove_dir_all(&place).unwrap();
    }
}
