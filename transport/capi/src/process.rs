//! What a process has once: DPDK, and for each thread its place in it.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};

use dcp::device::{DeviceUri, eal_config};
use dcp::dpdk::{Eal, EalConfig, EalError, LcoreGuard, register_thread};

use crate::failure::Failure;

struct Process {
    eal: Arc<Eal>,
    config: EalConfig,
}

/// Kept until the process ends: DPDK cannot be started again.
static PROCESS: Mutex<Option<Process>> = Mutex::new(None);

/// DPDK, started by the first who asks.
pub(crate) fn eal(config: EalConfig, uris: &[DeviceUri]) -> Result<Arc<Eal>, Failure> {
    let config = eal_config(config, uris);
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(started) = &*process {
        let fits = (started.config.ipc || !config.ipc)
            && config.pci.iter().all(|address| started.config.pci.contains(address));
        return if fits { Ok(Arc::clone(&started.eal)) } else { Err(TOO_LATE) };
    }
    let eal = Arc::new(Eal::start(config.clone()).map_err(|error| eal_failure(&error))?);
    *process = Some(Process { eal: Arc::clone(&eal), config });
    Ok(eal)
}

const TOO_LATE: Failure = Failure::fixed(
    libc::EALREADY,
    "DPDK runs in this process without what this device needs: open memif and pci devices first",
);

fn eal_failure(error: &EalError) -> Failure {
    let errno = match error {
        EalError::AlreadyStarted => libc::EALREADY,
        EalError::NoHugePages { .. } | EalError::NoMemory { .. } | EalError::MemoryRefused { .. } => {
            libc::ENOMEM
        }
        EalError::NoSuchCore { .. } | EalError::MemoryTooSmall { .. } => libc::EINVAL,
        _ => libc::ENODEV,
    };
    Failure::of(errno, error)
}

/// Makes the calling thread known to DPDK until it ends, for faster mbufs. Without it all works too.
pub(crate) fn know_this_thread() {
    thread_local! {
        static GUARD: OnceCell<Option<LcoreGuard>> = const { OnceCell::new() };
    }
    let _ = GUARD.try_with(|guard| {
        guard.get_or_init(register);
    });
}

#[cold]
fn register() -> Option<LcoreGuard> {
    let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    process.as_ref().and_then(|process| register_thread(&process.eal).ok())
}
