//! Cores and threads: which cores there are, pinning to one, and making a thread known to DPDK.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use core_affinity::CoreId;

use crate::eal::Eal;
use crate::errno::Errno;

/// The cores that this process may use, ascending; respects the affinity mask and the cgroup's cpuset.
///
/// Read once and remembered: [`Eal::start`] asks first, so no later pinning narrows the answer. Call it, or start the
/// EAL, before any thread is pinned.
pub fn available_cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let mut cores: Vec<usize> =
            core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect();
        cores.sort_unstable();
        cores
    })
}

/// Pins the calling thread to `core`.
///
/// # Errors
/// [`PinError`] when the core does not exist or is not ours to use.
pub fn pin(core: usize) -> Result<(), PinError> {
    if available_cores().contains(&core) && core_affinity::set_for_current(CoreId { id: core }) {
        Ok(())
    } else {
        Err(PinError { core })
    }
}

/// The core asked for is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinError {
    /// The core asked for.
    pub core: usize,
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {} cannot be used: choose one of {}", self.core, core_list())
    }
}

impl std::error::Error for PinError {}

/// The usable cores as text, for messages.
pub(crate) fn core_list() -> String {
    let cores: Vec<String> = available_cores().iter().map(usize::to_string).collect();
    cores.join(", ")
}

/// Makes the calling thread known to DPDK until the guard is dropped.
///
/// An unknown thread has no mempool cache (9 instead of 5 ns per mbuf) and counts freed frames atomically. A thread that
/// is registered already gets a guard that does nothing.
///
/// # Errors
/// [`RegisterError`] when DPDK has no lcore id left (there are 128).
pub fn register_thread(eal: &Eal) -> Result<LcoreGuard, RegisterError> {
    let registered_here = lcore_id().is_none();
    if registered_here {
        // SAFETY: the EAL runs, since `eal` exists; the call concerns the calling thread only.
        let code = unsafe { dpdk_sys::rte_thread_register() };
        if code != 0 {
            return Err(RegisterError { errno: Errno::last_dpdk() });
        }
    }
    Ok(LcoreGuard { registered_here, _eal: eal.clone(), _this_thread: PhantomData })
}

/// Keeps the thread that made it registered with DPDK.
#[derive(Debug)]
pub struct LcoreGuard {
    registered_here: bool,
    _eal: Eal,
    /// Not `Send`: DPDK's registration is a thread-local.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for LcoreGuard {
    fn drop(&mut self) {
        if self.registered_here {
            // SAFETY: this thread was registered by `register_thread`, and the guard cannot leave it.
            unsafe { dpdk_sys::rte_thread_unregister() };
        }
    }
}

/// DPDK refused to register the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterError {
    /// DPDK's reason.
    pub errno: Errno,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = dpdk_sys::RTE_MAX_LCORE;
        write!(
            f,
            "DPDK could not register this thread ({}): use fewer than {most} worker threads",
            self.errno
        )
    }
}

impl std::error::Error for RegisterError {}

/// The calling thread's lcore id, if DPDK knows it.
pub fn lcore_id() -> Option<u32> {
    // SAFETY: reads a thread-local integer.
    let id = unsafe { dpdk_sys::dcpshim_lcore_id() };
    (id < dpdk_sys::RTE_MAX_LCORE).then_some(id)
}
