//! A worker on a device: its mbufs, and what the device asks of it.

use dcp_core::{Endpoint, EndpointConfig};
use dcp_wire::ParseOptions;
use dpdk_ffi::{Clock, Eal, Pool, PoolConfig};

use super::{DeviceError, NetDevice, Upkeep};
use crate::net::{IpConfig, NetStack};
use crate::worker::{Queues, Worker};

/// What a worker on a device is made with.
#[derive(Clone, Copy, Debug)]
pub struct WorkerOptions {
    /// Limits and identity of its endpoint: the [device's](NetDevice::mac) Ethernet address, and its own IPv4 address.
    pub endpoint: EndpointConfig,
    /// Mbufs for headers and for payload, of each kind.
    pub mbufs: u32,
    /// Payload segments that one frame may have: gather entries that meet inside one MTU. 1 … 16.
    pub segments_max: usize,
    /// The clock; workers of one process share its origin.
    pub clock: Clock,
}

impl NetDevice {
    /// A worker over the next queue pair not yet [taken](Self::take_queues): it answers ARP and ping for `address`, and
    /// keeps the device's link if it is the first.
    ///
    /// # Errors
    /// No queue pair is left, or the EAL's memory does not hold the mbufs.
    pub fn worker(
        &mut self,
        eal: &Eal,
        address: IpConfig,
        options: &WorkerOptions,
    ) -> Result<Worker, DeviceError> {
        if self.opened.queues.is_empty() {
            return Err(DeviceError::NoQueues { uri: self.uri.to_string() });
        }
        let queues = Queues::own(self.opened.queues.remove(0));
        let upkeep = self.opened.upkeep.take();
        let mut worker = self.worker_over(eal, queues, upkeep, options)?;
        worker.set_net_stack(NetStack::new(self.mac(), address));
        Ok(worker)
    }

    /// A worker over a queue pair of the device, or over another worker's.
    pub(crate) fn worker_over(
        &self,
        eal: &Eal,
        queues: Queues,
        upkeep: Option<Upkeep>,
        options: &WorkerOptions,
    ) -> Result<Worker, DeviceError> {
        let WorkerOptions { endpoint, mbufs, segments_max, clock } = *options;
        let header_pool = self.header_pool(eal, mbufs)?;
        let payload_pool =
            Pool::new(eal, PoolConfig::payload("payload", mbufs)).map_err(DeviceError::Pool)?;
        let parse = ParseOptions { service_port: endpoint.service_port, icrc: false };
        let pools = (header_pool, payload_pool);
        let mut worker = Worker::over(queues, Endpoint::new(endpoint), pools, clock, parse, segments_max);
        worker.set_transmit(self.transmit(), self.mtu());
        if let Some(upkeep) = upkeep {
            worker.set_upkeep(upkeep);
        }
        Ok(worker)
    }
}
