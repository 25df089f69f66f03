//! Devices: an Ethernet device, its workers and everything made on it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use crossbeam::channel::{RecvTimeoutError, Sender, bounded, unbounded};
use crossbeam::queue::ArrayQueue;
use dcp_core::{Endpoint, EndpointConfig, MrAttr, MrKeys, RegionId};
use dcp_wire::{Ipv4Addr, MacAddr};
use dpdk_ffi::{Clock, DmaDevice, Eal, Pool, PoolConfig, QueuePair, Region};

use super::cq::Cq;
use super::engine::{Control, Engine, Post};
use super::error::ResourceError;
use super::pd::Pd;
use super::telemetry::Listing;
use crate::device::{NetDevice, WorkerOptions};
use crate::net::{IpConfig, NetStack, Resolution};
use crate::worker::{Lane, Queues, Worker, WorkerConfig};

/// Parameters of a device.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// UDP service port of its first worker; the others follow. Default 17791.
    pub service_port: u16,
    /// Largest MTU of its queue pairs, by what the Ethernet device carries. Default 4096.
    pub mtu: u32,
    /// Workers of a device with one queue pair, for [`Device::open`]: the first has the queues, and hands frames over to
    /// the others and from them. Otherwise there is a worker for each queue pair. Default 1.
    pub workers: u16,
    /// Mbufs for headers and for payload, of each kind and worker. Default 8191.
    pub mbufs: u32,
    /// Queue pairs per worker. Default 4096.
    pub qps_max: u32,
    /// Gather elements that may meet in one packet: 1 … 16. Default 16; fewer let more packets leave at once.
    pub segments_max: usize,
    /// Posts that a worker has not looked at yet. Default 4096.
    pub posts_max: usize,
}

impl DeviceConfig {
    /// The defaults, for a device with an address.
    pub const fn new(ip: Ipv4Addr) -> Self {
        Self {
            ip,
            service_port: 17791,
            mtu: 4096,
            workers: 1,
            mbufs: 8191,
            qps_max: 4096,
            segments_max: 16,
            posts_max: 4096,
        }
    }
}

/// An open device. Clones are the same device; it closes with the last of them and of what was made on it.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) inner: Arc<DeviceInner>,
}

#[derive(Debug)]
pub(super) struct DeviceInner {
    pub(super) workers: Vec<WorkerSlot>,
    pub(super) mtu: u32,
    pub(super) eal: Arc<Eal>,
    pub(super) clock: Clock,
    hosts: Vec<EndpointConfig>,
    next_va: AtomicU64,
    registry: Mutex<Registry>,
    /// A card that reads memory by itself: regions are mapped for it.
    dma: Option<DmaDevice>,
    _listing: Listing,
}

/// A worker, and the way to it.
#[derive(Debug)]
pub(super) struct WorkerSlot {
    /// Held by whoever drives the worker: its thread for as long as that lives, or a poll.
    pub(super) cell: Mutex<Engine>,
    controls: Sender<Control>,
    pub(super) posts: Arc<ArrayQueue<Post>>,
    /// Whether a thread of its own drives it.
    pub(super) threaded: AtomicBool,
}

/// Ids of regions: the same at every worker.
#[derive(Debug, Default)]
struct Registry {
    used: u32,
    /// Deregistered, with the number of workers that still hold them.
    retired: Vec<(RegionId, Arc<AtomicUsize>)>,
}

/// Distance of the addresses of two regions is a multiple of this.
const VA_STEP: u64 = 2 << 20;
const VA_FIRST: u64 = 0x1000_0000_0000;
/// A worker that sleeps looks at its controls at least so often.
const CONTROL_WAIT: Duration = Duration::from_millis(1);

impl Device {
    /// A device over queue pairs of an Ethernet device: one worker for each.
    ///
    /// # Errors
    /// The EAL's memory does not hold the mbufs.
    pub fn new(eal: &Arc<Eal>, queues: Vec<QueuePair>, config: &DeviceConfig) -> Result<Self, ResourceError> {
        let clock = Clock::calibrate();
        let mut made = Vec::with_capacity(queues.len());
        for (number, queues) in queues.into_iter().enumerate() {
            let host = host_config(number, MacAddr(queues.mac), config);
            made.push((make_worker(eal, queues, host, clock, config)?, host));
        }
        Ok(Self::of(eal, clock, made, None, config))
    }

    /// A device over an open network device: one worker for each of its queues, or more for
    /// one queue ([`DeviceConfig::workers`]). It answers ARP and ping for its
    /// address, and keeps the device's link.
    ///
    /// # Errors
    /// The EAL's memory does not hold the mbufs.
    pub fn open(
        eal: &Arc<Eal>,
        mut device: NetDevice,
        address: IpConfig,
        config: &DeviceConfig,
    ) -> Result<Self, ResourceError> {
        let clock = Clock::calibrate();
        let config = &DeviceConfig { mtu: config.mtu.min(device.mtu()), ..config.clone() };
        let own = device.take_queues();
        let lanes: Vec<Lane> =
            if own.len() == 1 { (1..config.workers).map(|_| Lane::new()).collect() } else { Vec::new() };
        let all = own.into_iter().map(|own| (Queues::own(own.queues), own.upkeep));
        let all = all.chain(lanes.iter().map(|lane| (Queues::Lane(lane.clone()), None)));
        let mut made = Vec::new();
        for (number, (queues, upkeep)) in all.enumerate() {
            let host = host_config(number, device.mac(), config);
            let options = WorkerOptions {
                endpoint: host,
                mbufs: config.mbufs,
                segments_max: config.segments_max,
                clock,
            };
            let mut worker = device.worker_over(eal, queues, upkeep, &options)?;
            if number == 0 {
                // Where frames for nobody in particular arrive.
                worker.set_net_stack(NetStack::new(device.mac(), address));
                worker.share_queues(lanes.clone());
            }
            made.push((worker, host));
        }
        Ok(Self::of(eal, clock, made, device.dma_device(), config))
    }

    fn of(
        eal: &Arc<Eal>,
        clock: Clock,
        made: Vec<(Worker, EndpointConfig)>,
        dma: Option<DmaDevice>,
        config: &DeviceConfig,
    ) -> Self {
        let mut workers = Vec::with_capacity(made.len());
        let mut hosts = Vec::with_capacity(made.len());
        for (number, (worker, host)) in made.into_iter().enumerate() {
            workers.push(WorkerSlot::new(worker, number, config));
            hosts.push(host);
        }
        let listing = Listing::of(&workers, hosts.first(), config.mtu);
        let inner = DeviceInner {
            workers,
            mtu: config.mtu,
            eal: Arc::clone(eal),
            clock,
            hosts,
            next_va: AtomicU64::new(VA_FIRST),
            registry: Mutex::default(),
            dma,
            _listing: listing,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The Ethernet address to send to for an IPv4 address: a neighbour's, or the gateway's. `None` while the question
    /// is on its way: poll, and ask again.
    ///
    /// # Errors
    /// Nobody answers, or the device has no network stack ([`Device::open`] gives it one).
    pub fn resolve(&self, ip: Ipv4Addr) -> Result<Option<MacAddr>, ResourceError> {
        self.inner.resolve(0, ip)?.ok_or(ResourceError::Unreachable { ip })
    }

    /// A new protection domain.
    ///
    /// # Errors
    /// A worker is gone.
    pub fn allocate_pd(&self) -> Result<Pd, ResourceError> {
        let _order = self.inner.lock_registry();
        let mut id = None;
        for worker in 0..self.inner.workers.len() {
            let pd = self.inner.with_engine(worker, |engine| engine.endpoint().create_pd())?;
            debug_assert!(id.is_none_or(|id| id == pd), "workers number alike");
            id = Some(pd);
        }
        let id = id.ok_or(ResourceError::NoSuchWorker { worker: 0, workers: 0 })?;
        Ok(Pd { device: Arc::clone(&self.inner), id })
    }

    /// A completion queue for `depth` completions of each worker.
    ///
    /// # Errors
    /// The depth is out of range, or the system is out of descriptors.
    pub fn create_cq(&self, depth: usize) -> Result<Cq, ResourceError> {
        let _order = self.inner.lock_registry();
        Cq::new(Arc::clone(&self.inner), depth)
    }

    /// Drives the workers that have no thread of their own. Returns what they moved; 0 when idle.
    ///
    /// # Panics
    /// When a worker panicked before: its state is not to be trusted.
    pub fn poll(&self) -> usize {
        self.inner.drive()
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.inner.workers.len()
    }
}

fn host_config(number: usize, mac: MacAddr, config: &DeviceConfig) -> EndpointConfig {
    let index = u16::try_from(number).expect("few workers");
    EndpointConfig {
        service_port: config.service_port + index,
        // The worker's number stands in the high bits; 0 is no queue pair.
        qpn_base: u32::from(index) << 20 | 1,
        qps_max: config.qps_max,
        ..EndpointConfig::new(mac, config.ip)
    }
}

fn make_worker(
    eal: &Eal,
    queues: QueuePair,
    host: EndpointConfig,
    clock: Clock,
    config: &DeviceConfig,
) -> Result<Worker, ResourceError> {
    let pool = |config| Pool::new(eal, config).map_err(ResourceError::Pool);
    Ok(Worker::new(WorkerConfig {
        endpoint: Endpoint::new(host),
        queues,
        header_pool: pool(PoolConfig::header("header", config.mbufs))?,
        payload_pool: pool(PoolConfig::payload("payload", config.mbufs))?,
        clock,
        service_port: host.service_port,
        segments_max: config.segments_max,
    }))
}

impl WorkerSlot {
    fn new(worker: Worker, number: usize, config: &DeviceConfig) -> Self {
        let (controls, inbox) = unbounded();
        let posts = Arc::new(ArrayQueue::new(config.posts_max.max(1)));
        let engine = Engine::new(worker, inbox, Arc::clone(&posts), number);
        Self { cell: Mutex::new(engine), controls, posts, threaded: AtomicBool::new(false) }
    }

    /// The way to it, for closures that it runs between two polls.
    pub(super) fn controls(&self) -> &Sender<Control> {
        &self.controls
    }
}

impl DeviceInner {
    pub(super) fn check_worker(&self, worker: usize) -> Result<&WorkerSlot, ResourceError> {
        let workers = self.workers.len();
        self.workers.get(worker).ok_or(ResourceError::NoSuchWorker { worker, workers })
    }

    pub(super) fn host(&self, worker: usize) -> &EndpointConfig {
        &self.hosts[worker]
    }

    /// Asks a worker's network stack, if it has one, for the address behind `ip`; pending as `None` inside.
    pub(super) fn resolve(
        &self,
        worker: usize,
        ip: Ipv4Addr,
    ) -> Result<Option<Option<MacAddr>>, ResourceError> {
        match self.with_engine(worker, move |engine| engine.resolve(ip))? {
            None => Ok(None),
            Some(Ok(Resolution::Known(mac))) => Ok(Some(Some(mac))),
            Some(Ok(Resolution::Pending)) => Ok(Some(None)),
            Some(_) => Err(ResourceError::Unreachable { ip }),
        }
    }

    pub(super) fn next_va(&self, len: u64) -> u64 {
        self.next_va.fetch_add(len.next_multiple_of(VA_STEP), Ordering::Relaxed)
    }

    fn lock_registry(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the worker do something between two polls, and waits for it. Whoever drives the worker does it: its thread,
    /// or, if it has none, the caller.
    pub(super) fn with_engine<T: Send + 'static>(
        &self,
        worker: usize,
        act: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, ResourceError> {
        let slot = self.check_worker(worker)?;
        let (reply, answer) = bounded(1);
        let control: Control = Box::new(move |engine| {
            // The caller waits, or is gone with its thread.
            let _ = reply.send(act(engine));
        });
        slot.controls.send(control).map_err(|_| ResourceError::WorkerGone { worker })?;
        loop {
            match slot.cell.try_lock() {
                Ok(mut engine) => engine.run_controls(),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(_)) => return Err(ResourceError::WorkerGone { worker }),
            }
            match answer.recv_timeout(CONTROL_WAIT) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(ResourceError::WorkerGone { worker }),
            }
        }
    }

    /// Polls the workers that have no thread.
    pub(super) fn drive(&self) -> usize {
        let mut moved = 0;
        for slot in self.workers.iter().filter(|slot| !slot.threaded.load(Ordering::Acquire)) {
            match slot.cell.try_lock() {
                Ok(mut engine) => moved += engine.poll(),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(_)) => panic!("a worker of this device panicked before"),
            }
        }
        moved
    }

    pub(super) fn register(
        &self,
        region: &Region,
        attr: MrAttr,
    ) -> Result<(RegionId, MrKeys), ResourceError> {
        if let Some(card) = &self.dma {
            region.map_for(card).map_err(ResourceError::Dma)?;
        }
        let mut registry = self.lock_registry();
        let id = registry.take();
        let attr = MrAttr { region: id, ..attr };
        let mut keys = None;
        for worker in 0..self.workers.len() {
            let region = region.clone();
            let registered = self.with_engine(worker, move |engine| engine.register(region, attr))?;
            let registered = registered.map_err(|error| {
                // Refused by the first worker, before any held it.
                registry.retired.push((id, Arc::new(AtomicUsize::new(0))));
                ResourceError::Register(error)
            })?;
            assert!(keys.is_none_or(|keys| keys == registered), "every worker gives the same keys");
            keys = Some(registered);
        }
        let keys = keys.ok_or(ResourceError::NoSuchWorker { worker: 0, workers: 0 })?;
        Ok((id, keys))
    }

    pub(super) fn deregister(&self, keys: MrKeys, id: RegionId) {
        let mut registry = self.lock_registry();
        let holders = Arc::new(AtomicUsize::new(self.workers.len()));
        for worker in 0..self.workers.len() {
            let held = Arc::clone(&holders);
            // A worker that is gone touches no memory any more.
            let _ = self.with_engine(worker, move |engine| engine.deregister(keys, id, held));
        }
        registry.retired.push((id, holders));
    }
}

impl Registry {
    /// An id that no worker knows: of a region that all have let go, or a new one.
    fn take(&mut self) -> RegionId {
        let free = self.retired.iter().position(|(_, holders)| holders.load(Ordering::Acquire) == 0);
        if let Some(index) = free {
            return self.retired.swap_remove(index).0;
        }
        self.used += 1;
        RegionId(self.used - 1)
    }
}
