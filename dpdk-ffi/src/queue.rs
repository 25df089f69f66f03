//! Receive and transmit queues: what an endpoint or a switch port is made of.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::rte_ring;

use crate::batch::MbufBatch;

/// An endpoint's or a switch port's two queues. A device has many such pairs: DPDK allows only 32 devices.
#[derive(Debug)]
pub struct QueuePair {
    /// What comes in.
    pub rx: RxQueue,
    /// What goes out.
    pub tx: TxQueue,
    /// The pair's own Ethernet address, or the device's when the device has one pair.
    pub mac: [u8; 6],
}

impl QueuePair {
    /// Whether the device's link is up; net_memif's is down until its peer comes. Not for the hot path.
    pub fn link_is_up(&self) -> bool {
        // SAFETY: the device is alive while the queue is.
        unsafe { dpdk_sys::dcp_link_is_up(self.rx.id.port) != 0 }
    }
}

/// Whatever must live for as long as a queue is used; stops the device when the last one drops it.
pub(crate) trait Keep: fmt::Debug + Send + Sync {}

/// A whole batch at once.
#[expect(clippy::cast_possible_truncation, reason = "64")]
pub(crate) const BURST_MAX: u16 = MbufBatch::CAPACITY as u16;

/// Which queue of which device.
#[derive(Clone, Debug)]
pub(crate) struct QueueId {
    pub(crate) port: u16,
    pub(crate) queue: u16,
    /// The largest burst that the driver takes.
    pub(crate) burst_max: u16,
    #[expect(dead_code, reason = "held for its Drop")]
    pub(crate) keep: Arc<dyn Keep>,
}

/// A receive queue, used by one thread at a time.
#[derive(Debug)]
pub struct RxQueue {
    id: QueueId,
    _one_thread: PhantomData<Cell<()>>,
}

impl RxQueue {
    pub(crate) fn new(id: QueueId) -> Self {
        Self { id, _one_thread: PhantomData }
    }

    /// Adds the frames that have come to `batch`, as far as it has room; returns how many.
    #[inline]
    pub fn burst(&mut self, batch: &mut MbufBatch) -> usize {
        let spare = batch.spare();
        #[expect(clippy::cast_possible_truncation, reason = "a batch holds 64")]
        let room = (spare.len() as u16).min(self.id.burst_max);
        // SAFETY: the device runs while `id.keep` lives, this handle is the queue's only one, and `spare` holds `room`.
        let count = unsafe { dpdk_sys::dcp_rx_burst(self.id.port, self.id.queue, spare.as_mut_ptr(), room) };
        // SAFETY: the device wrote `count` frames, which are ours now.
        unsafe { batch.commit(usize::from(count)) };
        usize::from(count)
    }
}

/// A transmit queue, used by one thread at a time.
#[derive(Debug)]
pub struct TxQueue {
    id: QueueId,
    /// The ring behind a net_ring queue.
    ring: Option<Ring>,
    _one_thread: PhantomData<Cell<()>>,
}

#[derive(Debug)]
struct Ring(NonNull<rte_ring>);

// SAFETY: a ring is made for two threads, and only its counters are read through this pointer.
unsafe impl Send for Ring {}

impl TxQueue {
    pub(crate) fn new(id: QueueId, ring: Option<NonNull<rte_ring>>) -> Self {
        Self { id, ring: ring.map(Ring), _one_thread: PhantomData }
    }

    /// Sends frames from the front of `batch`, takes those sent out of it, and returns how many; the rest stays the
    /// caller's.
    #[inline]
    pub fn burst(&mut self, batch: &mut MbufBatch) -> usize {
        let mbufs = batch.raw();
        #[expect(clippy::cast_possible_truncation, reason = "a batch holds 64")]
        let offered = (mbufs.len() as u16).min(self.id.burst_max);
        // SAFETY: as in `RxQueue::burst`; the frames are ours until sent, and forgotten right after.
        let sent =
            unsafe { dpdk_sys::dcp_tx_burst(self.id.port, self.id.queue, mbufs.as_mut_ptr(), offered) };
        let sent = usize::from(sent);
        batch.forget_front(sent);
        sent
    }

    /// Frames that the queue has room for; `None` when the device does not say.
    #[inline]
    pub fn free_count(&self) -> Option<usize> {
        // SAFETY: the ring lives while `id.keep` does.
        self.ring.as_ref().map(|ring| unsafe { dpdk_sys::dcp_ring_free_count(ring.0.as_ptr()) } as usize)
    }
}
