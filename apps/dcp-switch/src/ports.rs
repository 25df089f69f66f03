//! The devices behind the ports: opened, and their links kept.

use std::fmt;
use std::time::Duration;

use dcp::device::{
    DeviceConfig, DeviceError, DeviceUri, MtuChoice, NetDevice, Upkeep, Upkeeps, WorkerQueues, eal_config,
    limits, pool_bytes,
};
use dcp::dpdk::{Eal, EalConfig, EalError, Interface, QueuePair};
use dcp_switch::Switch;
use dcp_switch::pipeline::PortId;

use crate::failure::Failure;
use crate::plan::Plan;

/// Bytes of buffers of each port, by default, with few ports and with many.
const POOL_BYTES: (u64, u64) = (64 << 20, 32 << 20);
/// Ports that are few.
const FEW: usize = 8;
/// Between looks at the links.
const LOOK: Duration = Duration::from_millis(100);
/// Looks during which a device takes nothing, after which what waits for it is dropped: a second.
const STALLED_LOOKS: u32 = 10;

/// The devices of all ports.
pub struct Ports {
    links: Vec<Link>,
    upkeeps: Option<Upkeeps>,
    next_look_ns: u64,
    /// They hold the pools.
    _devices: Vec<NetDevice>,
}

/// One port's link.
#[derive(Debug)]
struct Link {
    uri: DeviceUri,
    kind: Kind,
    is_up: bool,
    /// What its device had taken when it was last looked at.
    sent: u64,
    stalled_looks: u32,
}

/// How its state is found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Shared memory, by its index among such ports.
    Memif(usize),
    /// The kernel's interface, by name.
    Interface,
    /// DPDK knows.
    Device,
    /// Nobody knows: a tap may have moved to another network namespace, where its state cannot be read.
    Unknown,
}

/// A link that came or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The port.
    pub port: u16,
    /// Whether it is there now.
    pub is_up: bool,
}

/// Starts DPDK with the memory that the ports need.
///
/// # Errors
/// The machine does not let it start.
pub fn start_eal(plan: &Plan) -> Result<Eal, Failure> {
    let pools: u64 = plan.ports.iter().map(|uri| pool_bytes(uri, &device_config(plan, uri))).sum();
    let memory_mib = u32::try_from(pools >> 20).unwrap_or(u32::MAX).saturating_add(64);
    let cores = plan.core.into_iter().collect();
    let config = eal_config(
        EalConfig { memory_mib, cores, telemetry: plan.telemetry, ..EalConfig::default() },
        &plan.ports,
    );
    Eal::start(config).map_err(|error| match error {
        EalError::NoMemory { .. } | EalError::MemoryRefused { .. } => {
            Failure::environment(format!("{error}; or give ports fewer --mbufs"))
        }
        error => Failure::environment(error),
    })
}

fn device_config(plan: &Plan, uri: &DeviceUri) -> DeviceConfig {
    let mut config = DeviceConfig { mtu: mtu(plan, uri), ..DeviceConfig::default() };
    config.mbufs = plan.mbufs.unwrap_or_else(|| {
        let budget = if plan.ports.len() > FEW { POOL_BYTES.1 } else { POOL_BYTES.0 };
        let each = pool_bytes(uri, &DeviceConfig { mbufs: 1, ..config });
        let count = u32::try_from(budget / each.max(1)).unwrap_or(u32::MAX);
        // 2^n − 1 wastes least. Below 2047 rings alone would take all.
        ((1 << count.clamp(2048, 8192).ilog2()) - 1).max(2047)
    });
    config
}

/// Interfaces of the kernel carry frames of others too: everything that fits the interface must arrive whole.
fn mtu(plan: &Plan, uri: &DeviceUri) -> MtuChoice {
    match uri {
        DeviceUri::AfPacket { interface } => {
            let whole = Interface::read(interface).ok().and_then(|it| limits::mtu_of_link(it.mtu));
            whole.map_or(MtuChoice::Largest, MtuChoice::Exactly)
        }
        DeviceUri::Memif { .. } => plan.mtu.map_or(MtuChoice::Largest, MtuChoice::Exactly),
        _ => MtuChoice::Largest,
    }
}

impl Ports {
    /// Opens every device. Returns their queues too, in the order of the ports.
    ///
    /// # Errors
    /// One cannot be opened: a sentence that names it.
    pub fn open(eal: &Eal, plan: &Plan) -> Result<(Self, Vec<QueuePair>), Failure> {
        let (mut devices, mut queues, mut upkeeps, mut links) = (vec![], vec![], vec![], vec![]);
        for (number, uri) in plan.ports.iter().enumerate() {
            let mut device = open(eal, plan, uri).map_err(|error| failure(number, &error))?;
            let taken = device.take_queues().pop();
            let WorkerQueues { queues: pair, upkeep } =
                taken.ok_or_else(|| Failure::environment(format!("port {number}: {uri} has no queues")))?;
            links.push(Link::new(uri, upkeep.as_ref().map(|_| upkeeps.len())));
            upkeeps.extend(upkeep);
            queues.push(pair);
            devices.push(device);
        }
        let upkeeps = Upkeeps::of(upkeeps.into_iter().collect::<Vec<Upkeep>>());
        Ok((Self { links, upkeeps, next_look_ns: 0, _devices: devices }, queues))
    }

    /// Tells the switch what it must know of its devices.
    pub fn introduce(&self, switch: &mut Switch) {
        for (number, link) in (0..).zip(&self.links) {
            switch.set_finishes_checksums(PortId(number), link.kind == Kind::Interface);
        }
    }

    /// URI of each port, and whether its link is up.
    pub fn links(&self) -> impl Iterator<Item = (&DeviceUri, bool)> {
        self.links.iter().map(|link| (&link.uri, link.is_up))
    }

    /// One round between bursts: takes two comparisons unless something is due. Tells the switch, and `on_change`, which
    /// links came or went.
    #[inline]
    pub fn keep_up(&mut self, now_ns: u64, switch: &mut Switch, on_change: impl FnMut(Change)) {
        let is_due = self.upkeeps.as_ref().is_some_and(|upkeeps| upkeeps.is_due(now_ns));
        if is_due || now_ns >= self.next_look_ns {
            self.look(now_ns, switch, on_change);
        }
    }

    #[cold]
    fn look(&mut self, now_ns: u64, switch: &mut Switch, mut on_change: impl FnMut(Change)) {
        if let Some(upkeeps) = self.upkeeps.as_mut().filter(|upkeeps| upkeeps.is_due(now_ns)) {
            let links = &self.links;
            let pairs = switch.queues_mut().zip(links);
            let memifs = pairs.filter(|(_, link)| matches!(link.kind, Kind::Memif(_))).map(|(pair, _)| pair);
            if upkeeps.poll(now_ns, memifs) {
                // Seen below at once, not at the next look.
                self.next_look_ns = now_ns;
            }
        }
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = now_ns + u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
        let states: Vec<bool> = switch
            .queues_mut()
            .zip(&self.links)
            .map(|(pair, link)| link.state(pair, self.upkeeps.as_ref()))
            .collect();
        for ((number, link), is_up) in (0..).zip(&mut self.links).zip(states) {
            if link.is_up != is_up {
                link.is_up = is_up;
                switch.set_link(PortId(number), is_up);
                on_change(Change { port: number, is_up });
            }
            link.drop_stalled(PortId(number), switch);
        }
    }
}

fn open(eal: &Eal, plan: &Plan, uri: &DeviceUri) -> Result<NetDevice, DeviceError> {
    NetDevice::open(eal, uri, &device_config(plan, uri))
}

fn failure(port: usize, error: &DeviceError) -> Failure {
    let sentence = format!("port {port}: {error}");
    if error.is_usage() { Failure::Usage(sentence) } else { Failure::Environment(sentence) }
}

impl Link {
    fn new(uri: &DeviceUri, memif: Option<usize>) -> Self {
        let kind = match (memif, uri) {
            (Some(index), _) => Kind::Memif(index),
            (None, DeviceUri::AfPacket { .. } | DeviceUri::AfXdp { .. }) => Kind::Interface,
            (None, DeviceUri::Tap { .. }) => Kind::Unknown,
            (None, _) => Kind::Device,
        };
        // Up in the pipeline until it is told otherwise.
        Self { uri: uri.clone(), kind, is_up: true, sent: 0, stalled_looks: 0 }
    }

    fn state(&self, queues: &QueuePair, upkeeps: Option<&Upkeeps>) -> bool {
        match (self.kind, &self.uri) {
            (Kind::Memif(index), _) => upkeeps.is_some_and(|upkeeps| upkeeps.is_connected(index)),
            (Kind::Interface, DeviceUri::AfPacket { interface } | DeviceUri::AfXdp { interface }) => {
                Interface::read(interface).is_ok_and(|interface| interface.is_running)
            }
            (Kind::Unknown, _) => true,
            _ => queues.link_is_up(),
        }
    }

    /// Frames for a device that takes none, such as a tap whose other end is down, must not wait until they are old, and
    /// keep buffers from frames that have a way.
    fn drop_stalled(&mut self, port: PortId, switch: &mut Switch) {
        let device = switch.device_counters(port);
        let is_stalled = self.is_up && device.waiting > 0 && device.sent == self.sent;
        self.stalled_looks = if is_stalled { self.stalled_looks + 1 } else { 0 };
        self.sent = device.sent;
        if self.stalled_looks >= STALLED_LOOKS {
            self.stalled_looks = 0;
            switch.set_link(port, false);
            switch.set_link(port, true);
        }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").field("links", &self.links).finish_non_exhaustive()
    }
}
