//! One side's device, worker, memory and queue pairs.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::connect::{Agreement, MrOffer, Offer};
use dcp::core::{EndpointConfig, PdId, Peer, QpConfig, QpId};
use dcp::device::{
    DeviceConfig, DeviceError, DeviceUri, MemifRole, MtuChoice, NetDevice, WorkerOptions, eal_config,
};
use dcp::dpdk::{Clock, Eal, EalConfig, LcoreGuard, pin, register_thread};
use dcp::net::Resolution;
use dcp::wire::{MacAddr, Msn, PKey, Qpn, RegionKey, Ssn};
use serde_json::Value;

use super::client::CLIENT;
use super::options::Extras;
use crate::failure::Failure;
use crate::plan::{Link, Plan, Side};
use crate::traffic::{
    Copies, Cqs, DuplexParts, Extent, Layout, Memory, REGION_VA, RallyParts, Role, add_memory, check_memory,
    clear, qp_config, queue_bytes,
};

/// Mbufs of each kind: rings, bursts, and what DPDK keeps per thread.
const MBUFS: u32 = 4095;
/// Time for a link to come up and for the peer's Ethernet address to be found, in nanoseconds.
const LINK_NS: u64 = 10_000_000_000;

/// A side before and while it is connected.
pub(crate) struct Host {
    pub(crate) cqs: Cqs,
    pub(crate) qps: Vec<QpId>,
    pub(crate) memory: Memory,
    /// Where the other side's messages arrive, if this side sends some too: then `memory` is for those.
    pub(crate) inbox: Option<Memory>,
    /// Of the run at hand; the memory holds that of every run.
    pub(crate) layout: Layout,
    /// Copies of messages that are posted inline.
    pub(crate) copies: Option<Copies>,
    pub(crate) clock: Clock,
    /// The plan of the run at hand, with the MTU of the device or of both.
    pub(crate) plan: Plan,
    /// Runs of one connection so far.
    runs: u16,
    /// The Ethernet address that leads to the peer, once it is known.
    peer_mac: Option<MacAddr>,
    config: QpConfig,
    // These go last, in this order.
    device: NetDevice,
    _registered: LcoreGuard,
    _eal: Eal,
}

fn environment(error: impl std::fmt::Display) -> Failure {
    Failure::environment(error.to_string())
}

fn device_failure(error: &DeviceError) -> Failure {
    if error.is_usage() { Failure::usage(error.to_string()) } else { environment(error) }
}

impl Host {
    /// Starts DPDK, opens the device, and makes everything that needs no peer, for runs by any of `plans`: they differ
    /// in their sizes alone.
    pub(crate) fn open(
        plans: &[Plan],
        link: &Link,
        interrupted: &AtomicBool,
    ) -> Result<(Self, Worker), Failure> {
        let plan = &plans[0];
        let eal = EalConfig { memory_mib: memory_mib(plan.mtu), ..EalConfig::default() };
        let uri = with_role(link);
        let eal = Eal::start(eal_config(eal, std::slice::from_ref(&uri))).map_err(environment)?;
        if let [core] = plan.cores[..] {
            pin(core).map_err(environment)?;
        }
        let registered = register_thread(&eal).map_err(environment)?;
        let mtu = if plan.mtu_asked { MtuChoice::Exactly(plan.mtu) } else { MtuChoice::Largest };
        let config = DeviceConfig { mtu, mac: link.mac, mbufs: MBUFS, ..DeviceConfig::default() };
        let mut device = NetDevice::open(&eal, &uri, &config).map_err(|error| device_failure(&error))?;
        let plan = Plan { mtu: device.mtu(), ..plan.clone() };
        let clock = Clock::calibrate();
        let mut worker = make_worker(&eal, &mut device, &clock, link, &plan)?;
        let role = if link.side == Side::Server { Role::Server } else { Role::Client };
        let pd = worker.endpoint_mut().create_pd();
        let (deepest, extent) = room(plans);
        check_memory(memory_bytes(&plan, deepest, extent, role))?;
        let cqs = Cqs::create(worker.endpoint_mut(), &plan, role, plan.qps.into())?;
        let config = qp_config(&plan, deepest, pd, cqs, role);
        let (memory, inbox) = add_memories(&mut worker, &plan, role, (pd, extent), interrupted)?;
        if let Some(card) = device.dma_device() {
            let regions = std::iter::once(&memory).chain(&inbox).map(|memory| &memory.region);
            regions.into_iter().try_for_each(|region| region.map_for(&card)).map_err(environment)?;
        }
        let copies = Copies::new(&plan, deepest, &mut worker, pd, interrupted)?;
        let qps = make_qps(&mut worker, plan.qps, config)?;
        let host = Self {
            cqs,
            qps,
            memory,
            inbox,
            layout: Layout::new(&plan),
            copies,
            clock,
            plan,
            runs: 1,
            peer_mac: None,
            config,
            device,
            _registered: registered,
            _eal: eal,
        };
        Ok((host, worker))
    }

    /// What the other side must know.
    pub(super) fn offer(&self, worker: &Worker, app: Value) -> Offer {
        let endpoint = worker.endpoint();
        let config = endpoint.config();
        let mr = MrOffer {
            va: REGION_VA,
            len: self.offered().region.len() as u64,
            rkey: self.offered().keys.rkey,
        };
        Offer {
            qpn: endpoint.qpn(self.qps[0]),
            mac: config.mac,
            ip: config.ip,
            service_port: config.service_port,
            mtu: self.plan.mtu,
            window: self.config.window,
            max_rd_atomic: self.config.max_rd_atomic.min(self.config.window / 2),
            start_msn: Msn::ZERO,
            start_ssn: Ssn::ZERO,
            icrc: self.plan.icrc,
            ack_bytes: self.config.ack_bytes,
            mrs: vec![mr],
            cc: self.plan.congestion.scheme.name().to_owned(),
            app,
        }
    }

    /// The memory that the other side uses.
    fn offered(&self) -> &Memory {
        self.inbox.as_ref().unwrap_or(&self.memory)
    }

    /// What a side of a ping-pong is made of. `rkey`: of the other side's inbox.
    pub(super) fn rally_parts(&self, worker: Worker, role: Role, rkey: RegionKey) -> RallyParts {
        let (cqs, qp, number) = (self.cqs, self.qps[0], CLIENT);
        let (outbox, inbox) = (self.memory.share(), self.offered().share());
        RallyParts { worker, cqs, role, number, qp, outbox, inbox, rkey, copies: self.copies() }
    }

    /// What a side of a run in both directions is made of. `rkey`: of the other side's inbox.
    pub(super) fn duplex_parts(&self, worker: Worker, role: Role, rkey: RegionKey) -> DuplexParts {
        let (cqs, qps, number) = (self.cqs, self.qps.clone(), CLIENT);
        let (outbox, inbox) = (self.memory.share(), self.offered().share());
        let copies = self.copies();
        DuplexParts { worker, cqs, role, number, qps, outbox, inbox, rkey, other: None, copies }
    }

    /// Room for copies of messages that are posted inline.
    pub(crate) fn copies(&self) -> Option<Copies> {
        self.copies.as_ref().map(Copies::share)
    }

    /// Numbers of the queue pairs.
    pub(super) fn qpns(&self, worker: &Worker) -> Vec<u32> {
        self.qps.iter().map(|&qp| worker.endpoint().qpn(qp).get()).collect()
    }

    /// Finds the peer and connects every queue pair.
    pub(super) fn connect(
        &mut self,
        worker: &mut Worker,
        agreement: &Agreement,
        theirs: &Extras,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        self.plan.mtu = agreement.mtu;
        self.peer_mac = Some(self.find(worker, agreement.peer.ip, interrupted)?);
        self.connect_qps(worker, agreement, theirs)
    }

    /// Connects every queue pair to one of the peer that has been found.
    fn connect_qps(
        &self,
        worker: &mut Worker,
        agreement: &Agreement,
        theirs: &Extras,
    ) -> Result<(), Failure> {
        let mac = self.peer_mac.unwrap_or(agreement.peer.mac);
        // Another key for each run: nothing that is left of one is taken by the next.
        let pkey = PKey(agreement.pkey.0.wrapping_add(self.runs));
        for (&qp, &qpn) in self.qps.iter().zip(&theirs.qpns) {
            let peer = Peer {
                qpn: Qpn::from_low_bits(qpn),
                pkey,
                mac,
                ip: agreement.peer.ip,
                service_port: agreement.peer.service_port,
                start_msn: agreement.peer.start_msn,
                start_ssn: agreement.peer.start_ssn,
            };
            let endpoint = worker.endpoint_mut();
            let connected =
                endpoint.limit_mtu(qp, agreement.mtu).and_then(|()| endpoint.modify_to_rtr(qp, peer));
            connected.map_err(|error| Failure::transfer(error.to_string()))?;
        }
        Ok(())
    }

    /// Takes everything back to where it was before a run, for the next one by `plan`.
    pub(crate) fn renew(
        &mut self,
        worker: &mut Worker,
        plan: &Plan,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        self.plan = Plan { mtu: self.plan.mtu, ..plan.clone() };
        self.layout = Layout::new(&self.plan);
        self.runs += 1;
        let endpoint = worker.endpoint_mut();
        for &qp in &self.qps {
            endpoint.modify_to_reset(qp);
            endpoint.modify_to_init(qp).map_err(|error| Failure::transfer(error.to_string()))?;
        }
        self.cqs.drain(endpoint);
        let bytes = self.layout.bytes();
        std::iter::once(&self.memory)
            .chain(&self.inbox)
            .try_for_each(|memory| clear(&memory.region, bytes, interrupted))
    }

    /// The same with a peer that does so too.
    pub(super) fn connect_again(
        &mut self,
        worker: &mut Worker,
        plan: &Plan,
        (agreement, theirs): (&Agreement, &Extras),
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        self.renew(worker, plan, interrupted)?;
        self.connect_qps(worker, agreement, theirs)
    }

    /// Both sides are ready: lets the queue pairs send.
    pub(super) fn start(&self, worker: &mut Worker) -> Result<(), Failure> {
        for &qp in &self.qps {
            let started = worker.endpoint_mut().modify_to_rts(qp);
            started.map_err(|error| Failure::transfer(error.to_string()))?;
        }
        Ok(())
    }

    /// The Ethernet address that leads to the peer.
    fn find(
        &self,
        worker: &mut Worker,
        peer: Ipv4Addr,
        interrupted: &AtomicBool,
    ) -> Result<MacAddr, Failure> {
        let start = self.clock.now_ns();
        loop {
            worker.poll();
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::interrupted());
            }
            // An unreachable neighbour is asked again: a link may take a while to come up.
            match worker.resolve(peer) {
                Some(Ok(Resolution::Known(mac))) => return Ok(mac),
                Some(Err(error)) => return Err(Failure::usage(error.to_string())),
                _ => {}
            }
            if self.clock.now_ns() - start > LINK_NS {
                return Err(self.not_found(worker, peer));
            }
        }
    }

    fn not_found(&self, worker: &Worker, peer: Ipv4Addr) -> Failure {
        let uri = self.device.uri();
        let seconds = LINK_NS / 1_000_000_000;
        if !worker.link_is_up() {
            return Failure::environment(format!("{uri} had no link for {seconds} s"))
                .with_hint("give both sides the same socket and id");
        }
        Failure::environment(format!("{peer} did not answer on {uri} for {seconds} s"))
            .with_hint("check that both devices are on one network, and each --ip")
    }
}

/// The two may start at the same time, so that neither can know who comes first to memif's socket.
fn with_role(link: &Link) -> DeviceUri {
    let own = match link.side {
        Side::Server => MemifRole::Server,
        Side::Client { .. } => MemifRole::Client,
    };
    match link.uri.clone() {
        DeviceUri::Memif { socket, id, role: None } => DeviceUri::Memif { socket, id, role: Some(own) },
        uri => uri,
    }
}

/// The layout with most messages under way, and memory that is enough for the layout of any of the plans.
fn room(plans: &[Plan]) -> (Layout, Extent) {
    let mut deepest = Layout::new(&plans[0]);
    let mut extent = Extent::of(deepest);
    for layout in plans.iter().map(Layout::new) {
        if layout.depth > deepest.depth {
            deepest = layout;
        }
        extent.bytes = extent.bytes.max(layout.bytes());
    }
    (deepest, extent)
}

/// Bytes that messages and queue pairs take.
fn memory_bytes(plan: &Plan, deepest: Layout, extent: Extent, role: Role) -> u64 {
    let memories = 1 + u64::from(plan.is_duplex());
    let copies = if plan.inline_bytes > 0 { Copies::bytes(plan, deepest) } else { 0 };
    extent.bytes as u64 * memories + copies + queue_bytes(plan, deepest, role, plan.qps.into())
}

/// What this side sends from, and where the other side's messages arrive if both send.
fn add_memories(
    worker: &mut Worker,
    plan: &Plan,
    role: Role,
    (pd, extent): (PdId, Extent),
    interrupted: &AtomicBool,
) -> Result<(Memory, Option<Memory>), Failure> {
    let (outgoing, incoming) = (plan.op.client_access(), plan.op.server_access());
    let mut add = |access| add_memory(worker, pd, extent, access, interrupted);
    Ok(match role {
        _ if plan.is_duplex() => (add(outgoing)?, Some(add(incoming)?)),
        Role::Client => (add(outgoing)?, None),
        Role::Server => (add(incoming)?, None),
    })
}

/// Memory for pools, in MiB: three times the frames, for buffers that are rounded up to powers of two.
fn memory_mib(mtu: u32) -> u32 {
    64 + 3 * (MBUFS + 1) * (mtu + 512) / (1 << 20)
}

fn make_worker(
    eal: &Eal,
    device: &mut NetDevice,
    clock: &Clock,
    link: &Link,
    plan: &Plan,
) -> Result<Worker, Failure> {
    let endpoint =
        EndpointConfig { qps_max: plan.qps, ..EndpointConfig::new(device.mac(), link.ip.address()) };
    let options = WorkerOptions { endpoint, mbufs: MBUFS, segments_max: 1, clock: *clock };
    device.worker(eal, link.ip, &options).map_err(|error| device_failure(&error))
}

/// Queue pairs that receives can be posted to.
fn make_qps(worker: &mut Worker, count: u32, config: QpConfig) -> Result<Vec<QpId>, Failure> {
    let endpoint = worker.endpoint_mut();
    let mut make = |_| {
        let qp = endpoint.create_qp(config).map_err(|error| Failure::usage(error.to_string()))?;
        endpoint.modify_to_init(qp).map_err(|error| Failure::transfer(error.to_string()))?;
        Ok(qp)
    };
    (0..count).map(&mut make).collect()
}
