//! What devices, their workers and their queue pairs count.

use dcp_core::{Counters, QpCounters, QpState};
use dcp_wire::Ipv4Addr;
use dpdk_ffi::PortStats;

use super::device::Device;
use super::error::ResourceError;
use crate::worker::WorkerCounters;

/// What a device counts.
#[derive(Clone, Debug)]
pub struct DeviceStats {
    /// By worker.
    pub workers: Vec<WorkerStats>,
    /// Of the queue pairs that there are, by worker and number.
    pub qps: Vec<QpStats>,
    /// The Ethernet device's own; `None` when its driver does not count, or the device has no worker.
    pub port: Option<PortStats>,
}

/// What a worker counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerStats {
    /// The protocol's counters.
    pub endpoint: Counters,
    /// The driver's.
    pub worker: WorkerCounters,
    /// Rounds of its loop.
    pub polls: u64,
    /// Times that its thread went to sleep for want of work.
    pub sleeps: u64,
    /// Nanoseconds that it asked to sleep for, in all.
    pub sleep_ns: u64,
    /// Queue pairs that there are.
    pub qps: u32,
}

/// What a queue pair counts, and how it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpStats {
    /// Its number.
    pub qpn: u32,
    /// Worker that it lives on.
    pub worker: usize,
    /// Its state.
    pub state: QpState,
    /// Address and number of the other side, once connected.
    pub peer: Option<(Ipv4Addr, u32)>,
    /// Messages sent and not acknowledged, and those waiting to be sent.
    pub outstanding: u32,
    /// Bytes on their way, as far as the sender can know.
    pub in_flight: u64,
    /// Receives posted and not used; without a shared queue.
    pub receives: usize,
    /// Since it was made.
    pub counters: QpCounters,
}

impl Device {
    /// Counters of the device, its workers and queue pairs. Waits for every worker once: not for the hot path.
    ///
    /// # Errors
    /// A worker is gone.
    pub fn stats(&self) -> Result<DeviceStats, ResourceError> {
        let mut stats = DeviceStats { workers: Vec::new(), qps: Vec::new(), port: None };
        for worker in 0..self.workers() {
            let act = |engine: &mut super::engine::Engine| {
                (engine.stats(), engine.qp_stats(), engine.worker().port_stats())
            };
            let (own, qps, port) = self.inner.with_engine(worker, act)?;
            stats.workers.push(own);
            stats.qps.extend(qps);
            stats.port = port;
        }
        Ok(stats)
    }
}
