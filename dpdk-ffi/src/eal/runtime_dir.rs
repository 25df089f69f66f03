//! The directory that DPDK insists on, also when it puts nothing there.

use std::env;
use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{EalError, stale};
use crate::flock::{FileLock, Sharing};

/// Removes DPDK's run-time directory when dropped, and the private parent that was made for it.
#[derive(Debug)]
pub(super) struct RuntimeDir {
    /// DPDK's own directory, `…/dpdk/<prefix>`.
    own: Option<PathBuf>,
    /// What we made for an unprivileged user.
    private: Option<PathBuf>,
    /// Tells others that these have a living owner, also those that cannot see its process.
    _alive: Vec<FileLock>,
}

/// A runtime directory before the EAL has started.
#[derive(Debug)]
pub(super) struct Prepared {
    private: Option<PathBuf>,
    /// As in [`RuntimeDir`].
    alive: Vec<FileLock>,
    /// Held by root while DPDK makes /var/run/dpdk and its own directory in it, so that no other instance of ours removes
    /// the first before the second is there.
    _making: Option<FileLock>,
    /// What `XDG_RUNTIME_DIR` was before.
    before: Option<OsString>,
}

impl RuntimeDir {
    /// Sees to it that DPDK will find a writable place.
    ///
    /// Root's is fixed to /var/run. Everyone else gets a fresh private directory: the shared default, /tmp/dpdk, may
    /// belong to another user.
    pub(super) fn prepare() -> Result<Prepared, EalError> {
        stale::remove_all();
        if user() == 0 {
            let _making = FileLock::wait(Path::new("/var/run"), Sharing::Shared).ok();
            return Ok(Prepared { private: None, alive: Vec::new(), _making, before: None });
        }
        let before = env::var_os(VARIABLE);
        let candidates =
            before.iter().map(PathBuf::from).chain([env::temp_dir()]).chain(FALLBACKS.map(PathBuf::from));
        let mut last = String::new();
        for parent in candidates {
            match make_private(&parent) {
                Ok(private) => {
                    set_variable(Some(&private.clone().into_os_string()));
                    let alive = FileLock::try_take(&private, Sharing::Exclusive).into_iter().collect();
                    return Ok(Prepared { private: Some(private), alive, _making: None, before });
                }
                Err(error) => last = format!("{}: {error}", parent.display()),
            }
        }
        Err(EalError::RuntimeDir { path: env::temp_dir().display().to_string(), reason: last })
    }
}

impl RuntimeDir {
    /// DPDK's own directory.
    pub(super) fn path(&self) -> Option<&Path> {
        self.own.as_deref()
    }
}

impl Prepared {
    /// After the start, failed or not: DPDK has read the variable, and says where its directory is.
    pub(super) fn settle(self) -> RuntimeDir {
        if self.private.is_some() {
            set_variable(self.before.as_ref());
        }
        // SAFETY: returns a static buffer, empty before the EAL has filled it.
        let own = unsafe { dpdk_sys::rte_eal_get_runtime_dir() };
        // SAFETY: zero-terminated, as DPDK made it with snprintf.
        let own = (!own.is_null()).then(|| unsafe { CStr::from_ptr(own) });
        let own = own
            .filter(|it| !it.is_empty())
            .map(|it| PathBuf::from(OsString::from_vec(it.to_bytes().to_vec())));
        let mut alive = self.alive;
        alive.extend(own.as_ref().and_then(|own| FileLock::try_take(own, Sharing::Exclusive).ok()));
        RuntimeDir { own, private: self.private, _alive: alive }
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        // What cannot be removed is not worth a failure.
        if let Some(own) = &self.own {
            let _ = fs::remove_dir_all(own);
            // The parent is shared: it only goes when it is empty and nobody is about to fill it.
            if let Some(shared) = own.parent()
                && let Some(Ok(_lock)) =
                    shared.parent().map(|above| FileLock::try_take(above, Sharing::Exclusive))
            {
                let _ = fs::remove_dir(shared);
            }
        }
        if let Some(private) = &self.private {
            let _ = fs::remove_dir_all(private);
        }
    }
}

/// Whose directories are ours.
pub(super) fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::getuid() }
}

pub(super) const VARIABLE: &str = "XDG_RUNTIME_DIR";
pub(super) const FALLBACKS: [&str; 3] = ["/dev/shm", "/var/tmp", "."];

fn make_private(parent: &Path) -> std::io::Result<PathBuf> {
    let mut template = parent.join(format!("dcp_{}_XXXXXX", std::process::id())).into_os_string().into_vec();
    template.push(0);
    let mut template =
        CString::from_vec_with_nul(template).map_err(std::io::Error::other)?.into_bytes_with_nul();
    // SAFETY: a zero-terminated buffer of our own, which the call overwrites in place.
    let made = unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) };
    if made.is_null() {
        return Err(std::io::Error::last_os_error());
    }
    template.pop();
    Ok(PathBuf::from(OsString::from_vec(template)))
}

/// DPDK reads the C library's environment, so that is what is changed, for the time of the start.
fn set_variable(value: Option<&OsString>) {
    match value.and_then(|value| CString::new(value.as_bytes()).ok()) {
        // SAFETY: both are C strings. Another thread that reads the environment through C meanwhile could see a torn
        // value; the documentation of `Eal::start` asks for a quiet process.
        Some(value) => unsafe { libc::setenv(c"XDG_RUNTIME_DIR".as_ptr(), value.as_ptr(), 1) },
        // SAFETY: as above.
        None => unsafe { libc::unsetenv(c"XDG_RUNTIME_DIR".as_ptr()) },
    };
}
