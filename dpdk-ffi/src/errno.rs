//! An error number of the C library or of DPDK, as a type.

use std::fmt;

/// A positive error number, as in `errno` and `rte_errno`; prints what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// What a DPDK call that returns a negative error number meant.
    pub(crate) fn from_return(code: i32) -> Self {
        Self(code.unsigned_abs().try_into().unwrap_or(libc::EINVAL))
    }

    /// DPDK's error number of the calling thread.
    pub(crate) fn last_dpdk() -> Self {
        // SAFETY: reads a thread-local integer.
        Self(unsafe { dpdk_sys::dcpshim_errno() })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}
