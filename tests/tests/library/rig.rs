//! Two devices on one link of DPDK rings.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dcp::dpdk::{Eal, EalConfig, FabricConfig, LcoreGuard, create_links, register_thread};
use dcp::verbs::{Access, Completion, Cq, Device, DeviceConfig, Mr, Pd, Qp, QpOptions};
use dcp::wire::Ipv4Addr;

/// DPDK, started once per process.
pub(crate) fn started() -> &'static Arc<Eal> {
    static EAL: OnceLock<Arc<Eal>> = OnceLock::new();
    let config = || EalConfig { telemetry: true, ..EalConfig::default() };
    EAL.get_or_init(|| Arc::new(Eal::start(config()).unwrap()))
}

/// Tests take turns.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One side: a device with everything on it.
pub(crate) struct Side {
    pub(crate) device: Device,
    pub(crate) pd: Pd,
    pub(crate) cq: Cq,
    pub(crate) mr: Mr,
    pub(crate) qps: Vec<Qp>,
}

impl Side {
    pub(crate) fn wait(&self, peer: &Self) -> Completion {
        for _ in 0..50_000_000u64 {
            peer.device.poll();
            if let Some(completion) = self.cq.poll_one().unwrap() {
                return completion;
            }
            std::thread::yield_now();
        }
        panic!("no completion came");
    }
}

pub(crate) struct Rig {
    pub(crate) client: Side,
    pub(crate) server: Side,
    pub(crate) _registered: LcoreGuard,
    pub(crate) _turn: MutexGuard<'static, ()>,
}

pub(crate) const MR_LEN: usize = 1 << 20;

/// Two devices with `workers` workers each, and a queue pair per worker, connected.
pub(crate) fn rig(workers: usize, options: &QpOptions) -> Rig {
    let mut rig = unconnected(workers, options, options);
    for worker in 0..workers {
        let pkey = 0x1000 + u16::try_from(worker).unwrap();
        let (to_server, to_client) = (rig.server.qps[worker].address(), rig.client.qps[worker].address());
        rig.client.qps[worker].connect(&to_server, pkey).unwrap();
        rig.server.qps[worker].connect(&to_client, pkey).unwrap();
    }
    rig
}

/// The same before the queue pairs are connected.
pub(crate) fn unconnected(workers: usize, client: &QpOptions, server: &QpOptions) -> Rig {
    let (eal, turn) = (started(), take_turn());
    let registered = register_thread(eal).unwrap();
    let links = create_links(eal, FabricConfig { links: workers, ring_size: 1024 }).unwrap();
    let (left, right): (Vec<_>, Vec<_>) = links.into_iter().unzip();
    let client = side(eal, left, 1, client);
    let server = side(eal, right, 2, server);
    Rig { client, server, _registered: registered, _turn: turn }
}

fn side(eal: &Arc<Eal>, queues: Vec<dcp::dpdk::QueuePair>, host: u8, options: &QpOptions) -> Side {
    let workers = queues.len();
    let config = DeviceConfig { mbufs: 2047, ..DeviceConfig::new(Ipv4Addr::new(10, 0, 0, host)) };
    let device = Device::new(eal, queues, &config).unwrap();
    let pd = device.allocate_pd().unwrap();
    let cq = device.create_cq(1024).unwrap();
    let mr = pd.allocate(MR_LEN, Access::ALL).unwrap();
    let qps =
        (0..workers).map(|worker| pd.create_qp_on(worker, &cq, &cq, options.clone()).unwrap()).collect();
    Side { device, pd, cq, mr, qps }
}

pub(crate) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i % 251).to_le_bytes()[0].wrapping_mul(31).wrapping_add(seed)).collect()
}
