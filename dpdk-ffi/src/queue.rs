//! Receive and transmit queues: what an endpoint or a switch port is made of.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::rte_ring;

use crate::batch::MbufBatch;
use crate::dma::DmaDevice;
use crate::eal::Eal;
use crate::port::{self, PortError, PortStats};

/// An endpoint's or a switch port's two queues. A device has many such pairs: DPDK allows only 32 devices.
#[derive(Debug)]
pub struct QueuePair {
    /// What comes in.
    pub rx: RxQueue,
    /// What goes out.
    pub tx: TxQueue,
    /// The pair's own Ethernet address, or the device's when the device has one pair.
    pub mac: [u8; 6],
    pub(crate) started: bool,
}

impl QueuePair {
    /// Whether the device's link is up; net_memif's is down until its peer comes. Not for the hot path.
    pub fn link_is_up(&self) -> bool {
        // SAFETY: the device is alive while the queue is.
        unsafe { dpdk_sys::dcpshim_link_is_up(self.rx.id.device.port) != 0 }
    }

    /// The device behind it, for [`Region::map_for`](crate::Region::map_for). Not for the hot path.
    pub fn dma_device(&self) -> Option<DmaDevice> {
        DmaDevice::of(crate::port::bus_device(self.rx.id.device.port)?, &self.rx.id.keep)
    }

    /// What the device counted, all its queues together; `None` when its driver does not count. Not for the hot path.
    pub fn port_stats(&self) -> Option<PortStats> {
        PortStats::read(self.rx.id.device.port)
    }

    /// The driver's name, such as `net_tap`. Not for the hot path.
    pub fn driver(&self) -> String {
        port::driver_of(self.rx.id.device.port)
    }

    /// Whether the queues move frames: not between [`stop`](Self::stop) and [`start`](Self::start), nor while
    /// [held](Self::hold).
    pub fn is_running(&self) -> bool {
        self.rx.burst_max != 0
    }

    /// Whether the device is started: not before its first [`start`](Self::start), and not after [`stop`](Self::stop).
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Stops the device, which this must be the only queue pair of. Frames offered meanwhile stay the caller's.
    ///
    /// # Errors
    /// [`PortError::Shared`] when the device has more queue pairs, or this pair is made of two devices' queues.
    pub fn stop(&mut self) -> Result<(), PortError> {
        let device = self.whole_device()?;
        self.set_started(false);
        port::stop(device.port, self.rx.id.keep.eal());
        Ok(())
    }

    /// Starts the device again, or for the first time after [`Port::configure`](crate::Port::configure).
    ///
    /// # Errors
    /// As for [`stop`](Self::stop), and [`PortError::Refused`] when the device cannot start yet, such as a net_memif
    /// client without a server.
    pub fn start(&mut self) -> Result<(), PortError> {
        let device = self.whole_device()?;
        port::start(device.port)?;
        self.set_started(true);
        Ok(())
    }

    /// Keeps frames from moving while the device runs: a held queue receives none and takes none.
    ///
    /// For the moments when DPDK's interrupt thread works on the device: see [`InterruptGate`](crate::InterruptGate).
    pub fn hold(&mut self) {
        self.set_running(false);
    }

    /// Lets frames move again after [`hold`](Self::hold). Does nothing for a device that is stopped.
    pub fn release(&mut self) {
        if self.started {
            self.set_running(true);
        }
    }

    /// Exclusive access to the only queues of a device proves that nobody is inside a burst of it.
    fn whole_device(&self) -> Result<DeviceOfQueue, PortError> {
        let device = self.rx.id.device;
        if device.queues != 1 || device.port != self.tx.id.device.port {
            return Err(PortError::Shared { queues: device.queues });
        }
        Ok(device)
    }

    pub(crate) fn set_started(&mut self, started: bool) {
        self.started = started;
        self.set_running(started);
    }

    fn set_running(&mut self, running: bool) {
        self.rx.burst_max = if running { self.rx.id.device.burst_max } else { 0 };
        self.tx.burst_max = if running { self.tx.id.device.burst_max } else { 0 };
    }
}

/// Whatever must live for as long as a queue is used; stops the device when the last one drops it.
pub(crate) trait Keep: fmt::Debug + Send + Sync {
    /// The EAL that the device lives in.
    fn eal(&self) -> &Eal;
}

/// A whole batch at once.
#[expect(clippy::cast_possible_truncation, reason = "64")]
pub(crate) const BURST_MAX: u16 = MbufBatch::CAPACITY as u16;

/// Which queue of which device.
#[derive(Clone, Debug)]
pub(crate) struct QueueId {
    pub(crate) device: DeviceOfQueue,
    pub(crate) queue: u16,
    pub(crate) keep: Arc<dyn Keep>,
}

/// What a queue needs to know of its device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOfQueue {
    pub(crate) port: u16,
    /// Queue pairs that the device has.
    pub(crate) queues: u16,
    /// The largest burst that the driver takes.
    pub(crate) burst_max: u16,
}

/// A receive queue, used by one thread at a time.
#[derive(Debug)]
pub struct RxQueue {
    id: QueueId,
    /// Zero while the device is stopped or held.
    burst_max: u16,
    _one_thread: PhantomData<Cell<()>>,
}

impl RxQueue {
    pub(crate) fn new(id: QueueId) -> Self {
        Self { burst_max: id.device.burst_max, id, _one_thread: PhantomData }
    }

    /// Adds the frames that have come to `batch`, as far as it has room; returns how many.
    #[inline]
    pub fn burst(&mut self, batch: &mut MbufBatch) -> usize {
        let spare = batch.spare();
        #[expect(clippy::cast_possible_truncation, reason = "a batch holds 64")]
        let room = (spare.len() as u16).min(self.burst_max);
        if room == 0 {
            return 0;
        }
        // SAFETY: the device runs while `id.keep` lives, this handle is the queue's only one, and `spare` holds `room`.
        let count = unsafe {
            dpdk_sys::dcpshim_rx_burst(self.id.device.port, self.id.queue, spare.as_mut_ptr(), room)
        };
        // SAFETY: the device wrote `count` frames, which are ours now.
        unsafe { batch.commit(usize::from(count)) };
        usize::from(count)
    }
}

/// A transmit queue, used by one thread at a time.
#[derive(Debug)]
pub struct TxQueue {
    id: QueueId,
    /// Zero while the device is stopped or held.
    burst_max: u16,
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
        Self { burst_max: id.device.burst_max, id, ring: ring.map(Ring), _one_thread: PhantomData }
    }

    /// Sends frames from the front of `batch`, takes those sent out of it, and returns how many; the rest stays the
    /// caller's.
    #[inline]
    pub fn burst(&mut self, batch: &mut MbufBatch) -> usize {
        let mbufs = batch.raw();
        #[expect(clippy::cast_possible_truncation, reason = "a batch holds 64")]
        let offered = (mbufs.len() as u16).min(self.burst_max);
        if offered == 0 {
            return 0;
        }
        // SAFETY: as in `RxQueue::burst`; the frames are ours until sent, and forgotten right after.
        let sent = unsafe {
            dpdk_sys::dcpshim_tx_burst(self.id.device.port, self.id.queue, mbufs.as_mut_ptr(), offered)
        };
        let sent = usize::from(sent);
        batch.forget_front(sent);
        sent
    }

    /// Frames that the queue has room for; `None` when the device does not say.
    #[inline]
    pub fn free_count(&self) -> Option<usize> {
        // SAFETY: the ring lives while `id.keep` does.
        self.ring.as_ref().map(|ring| unsafe { dpdk_sys::dcpshim_ring_free_count(ring.0.as_ptr()) } as usize)
    }
}
