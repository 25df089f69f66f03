//! The directory that DPDK insists on, also when it puts nothing there.

use std::env;
use std::ffi::{CStr, CString, OsString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::EalError;

/// Removes DPDK's run-time directory when dropped, and the private parent that was made for it.
#[derive(Debug)]
pub(super) struct RuntimeDir {
    /// DPDK's own directory, `…/dpdk/<prefix>`.
    own: Option<PathBuf>,
    /// What we made for an unprivileged user.
    private: Option<PathBuf>,
}

/// A runtime directory before the EAL has started.
#[derive(Debug)]
pub(super) struct Prepared {
    private: Option<PathBuf>,
    /// Held by root while DPDK makes /var/run/dpdk and its own directory in it, so that no other instance of ours removes
    /// the first before the second is there.
    _making: Option<File>,
    /// What `XDG_RUNTIME_DIR` was before.
    before: Option<OsString>,
}

impl RuntimeDir {
    /// Sees to it that DPDK will find a writable place.
    ///
    /// Root's is fixed to /var/run. Everyone else gets a fresh private directory: the shared default, /tmp/dpdk, may
    /// belong to another user.
    pub(super) fn prepare() -> Result<Prepared, EalError> {
        // SAFETY: asks for a number.
        if unsafe { libc::getuid() } == 0 {
            return Ok(Prepared {
                private: None,
                _making: lock(Path::new("/var/run"), libc::LOCK_SH),
                before: None,
            });
        }
        let before = env::var_os(VARIABLE);
        let candidates =
            before.iter().map(PathBuf::from).chain([env::temp_dir()]).chain(FALLBACKS.map(PathBuf::from));
        let mut last = String::new();
        for parent in candidates {
            match make_private(&parent) {
                Ok(private) => {
                    set_variable(Some(&private.clone().into_os_string()));
                    return Ok(Prepared { private: Some(private), _making: None, before });
                }
                Err(error) => last = format!("{}: {error}", parent.display()),
            }
        }
        Err(EalError::RuntimeDir { path: env::temp_dir().display().to_string(), reason: last })
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
        RuntimeDir { own, private: self.private }
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        // What cannot be removed is not worth a failure.
        if let Some(own) = &self.own {
            let _ = fs::remove_dir_all(own);
            // The parent is shared: it only goes when it is empty and nobody is about to fill it.
            if let Some(shared) = own.parent()
                && let Some(_lock) =
                    shared.parent().and_then(|above| lock(above, libc::LOCK_EX | libc::LOCK_NB))
            {
                let _ = fs::remove_dir(shared);
            }
        }
        if let Some(private) = &self.private {
            let _ = fs::remove_dir_all(private);
        }
    }
}

/// Locks a directory until the file is dropped.
fn lock(directory: &Path, operation: i32) -> Option<File> {
    let file = File::open(directory).ok()?;
    // SAFETY: the descriptor is open.
    let code = unsafe { libc::flock(file.as_raw_fd(), operation) };
    (code == 0).then_some(file)
}

const VARIABLE: &str = "XDG_RUNTIME_DIR";
const FALLBACKS: [&str; 3] = ["/dev/shm", "/var/tmp", "."];

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
