//! DPDK's interrupt thread, held still while we use what it would take away.
//!
//! net_memif handles the end of a peer on that thread: it unmaps the shared memory while a worker may be inside a burst,
//! and frees what a close on another thread is freeing. Upstream has no lock there. So the thread is parked, by an alarm
//! whose callback waits, and let go at moments when nobody is inside the driver.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::eal::Eal;

/// Keeps DPDK's interrupt thread parked until it is dropped. Several may exist; the thread runs when none does.
///
/// A worker on a net_memif device holds one, and calls [`let_through`](Self::let_through) every 100 ms between bursts:
/// without that no peer is seen to come or go.
#[derive(Debug)]
pub struct InterruptGate {
    _eal: Eal,
}

impl InterruptGate {
    /// Parks the interrupt thread and waits until it stands: about 1 ms. Does nothing on a system without alarms.
    pub fn close(eal: &Eal) -> Self {
        let mut state = lock();
        state.gates += 1;
        if !state.parked {
            drop(park_and_wait(state));
        }
        Self { _eal: eal.clone() }
    }

    /// Lets the interrupt thread handle what has come, and parks it again: 0.25 to 1.4 ms where we measured. The caller
    /// must not be inside a burst. Does nothing while another gate is closed.
    pub fn let_through(&mut self) {
        let mut state = lock();
        if state.gates != 1 || !state.parked {
            return;
        }
        state.passing = true;
        CHANGED.notify_all();
        while state.parked {
            state = wait(state);
        }
        state.passing = false;
        drop(park_and_wait(state));
    }
}

impl Drop for InterruptGate {
    fn drop(&mut self) {
        lock().gates -= 1;
        CHANGED.notify_all();
    }
}

#[derive(Debug)]
struct State {
    /// Gates that are closed.
    gates: usize,
    /// The interrupt thread stands in `park`.
    parked: bool,
    /// It may leave although gates are closed.
    passing: bool,
}

static STATE: Mutex<State> = Mutex::new(State { gates: 0, parked: false, passing: false });
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner)
}

fn park_and_wait(mut state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    // SAFETY: the callback is a function that needs no argument; the EAL runs.
    let code = unsafe { dpdk_sys::rte_eal_alarm_set(ALARM_US, Some(park), ptr::null_mut()) };
    while code == 0 && !state.parked {
        state = wait(state);
    }
    state
}

/// The shortest that DPDK takes.
const ALARM_US: u64 = 1;

/// Runs on the interrupt thread.
extern "C" fn park(_argument: *mut c_void) {
    let mut state = lock();
    if state.parked {
        return;
    }
    state.parked = true;
    CHANGED.notify_all();
    while state.gates > 0 && !state.passing {
        state = wait(state);
    }
    state.parked = false;
    CHANGED.notify_all();
}
