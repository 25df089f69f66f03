//! Two connected devices in one process, for the examples.
#![allow(dead_code, reason = "each example uses some of it")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use dcp::device::{self, NetDevice};
use dcp::dpdk::{Eal, EalConfig, LcoreGuard, register_thread};
use dcp::verbs::{Access, Completion, Cq, Device, DeviceConfig, Mr, Pd, Qp, QpOptions, Status};

/// What `main` returns.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One end, with everything on it.
pub(crate) struct Side {
    pub(crate) device: Device,
    pub(crate) pd: Pd,
    pub(crate) cq: Cq,
    pub(crate) mr: Mr,
    pub(crate) qp: Qp,
}

/// Both ends.
pub(crate) struct Pair {
    pub(crate) client: Side,
    pub(crate) server: Side,
    /// To be held: DPDK knows this thread meanwhile, which makes it faster.
    pub(crate) registered: LcoreGuard,
}

impl Pair {
    /// Connected devices with a memory region of `len` bytes each.
    pub(crate) fn new(len: usize) -> Outcome<Self> {
        let eal = Arc::new(Eal::start(EalConfig::default())?);
        let registered = register_thread(&eal)?;
        let (here, there) = NetDevice::open_loop(&eal, &device::DeviceConfig::default())?;
        let mut client = Side::new(&eal, here, Ipv4Addr::new(10, 0, 0, 1), len)?;
        let mut server = Side::new(&eal, there, Ipv4Addr::new(10, 0, 0, 2), len)?;
        client.qp.connect(&server.qp.address(), 0x1234)?;
        server.qp.connect(&client.qp.address(), 0x1234)?;
        Ok(Self { client, server, registered })
    }
}

impl Side {
    fn new(eal: &Arc<Eal>, mut net: NetDevice, ip: Ipv4Addr, len: usize) -> Outcome<Self> {
        let queues = net.take_queues().into_iter().map(|worker| worker.queues).collect();
        let device = Device::new(eal, queues, &DeviceConfig::new(ip))?;
        let pd = device.allocate_pd()?;
        let cq = device.create_cq(1024)?;
        let mr = pd.allocate(len, Access::ALL)?;
        let qp = pd.create_qp(&cq, QpOptions::default())?;
        Ok(Self { device, pd, cq, mr, qp })
    }

    /// The next completion, which must be a success; drives both ends.
    pub(crate) fn wait(&self, peer: &Self) -> Outcome<Completion> {
        loop {
            peer.device.poll();
            if let Some(completion) = self.cq.poll_one()? {
                return match completion.status {
                    Status::Success => Ok(completion),
                    failure => Err(failure.name().into()),
                };
            }
        }
    }
}
