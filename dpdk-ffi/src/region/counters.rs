//! How many segments in flight point into a region, counted without an atomic read-modify-write per segment.
//!
//! Every counter has one writer at a time: attached segments are counted per [`AttachSlot`], freed ones per lcore by the
//! shim's `dcp_count_free`. Only threads that DPDK does not know, and stashes beyond the slots, share an atomic one.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counters of one region. They do not move when this does.
#[derive(Debug)]
pub(crate) struct Counters {
    attached: Box<[Line]>,
    freed: Box<[Line]>,
}

/// A counter in a cache line of its own; laid out like `dcp_free_slot`.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Line(AtomicU64);

const _: () = assert!(size_of::<Line>() == size_of::<dpdk_sys::dcpshim_free_slot>());

impl Counters {
    pub(super) fn new() -> Self {
        let lines = |count: usize| (0..count).map(|_| Line::default()).collect();
        Self { attached: lines(SLOTS + 1), freed: lines(dpdk_sys::DCP_FREE_SLOTS as usize) }
    }

    /// Counts a segment that now points into the region.
    #[inline]
    pub(crate) fn count_attached(&self, slot: &AttachSlot) {
        let counter = &self.attached[slot.index].0;
        if slot.index < SLOTS {
            // One writer: whoever holds the slot.
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The argument of `dcp_count_free`.
    #[inline]
    pub(crate) fn freed_ptr(&self) -> *mut c_void {
        self.freed.as_ptr().cast_mut().cast()
    }

    /// Attached minus freed. Freed is read first: a segment that comes and goes between the two readings makes the result
    /// too large, never too small. Acquire: the last use of a freed segment happens before what the caller does next.
    pub(super) fn in_flight(&self) -> u64 {
        let freed: u64 = self.freed.iter().map(|line| line.0.load(Ordering::Acquire)).sum();
        let attached: u64 = self.attached.iter().map(|line| line.0.load(Ordering::Acquire)).sum();
        attached.saturating_sub(freed)
    }
}

/// The right to count attached segments without atomics, in every region; one per stash.
#[derive(Debug)]
pub(crate) struct AttachSlot {
    index: usize,
}

/// Stashes beyond this many share one atomic counter: slower by some 5 ns a segment, not wrong.
const SLOTS: usize = 128;

static TAKEN: Mutex<[bool; SLOTS]> = Mutex::new([false; SLOTS]);

impl AttachSlot {
    pub(crate) fn take() -> Self {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let index = taken.iter().position(|&it| !it).unwrap_or(SLOTS);
        if let Some(slot) = taken.get_mut(index) {
            *slot = true;
        }
        Self { index }
    }
}

impl Drop for AttachSlot {
    fn drop(&mut self) {
        // The lock also hands the counts over to whoever takes the slot next.
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = taken.get_mut(self.index) {
            *slot = false;
        }
    }
}
