//! Hosts and switch of one run, built from DPDK objects and connected.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::core::{
    Access, CongestionControl, CqId, Endpoint, EndpointConfig, Mixer, MrAttr, PdId, Peer, QpConfig, QpId,
};
use dcp::dpdk::memory::{MemInfo, available_bytes};
use dcp::dpdk::{
    Clock, Eal, FabricConfig, HugePreference, Pool, PoolConfig, QueuePair, Region, create_links,
};
use dcp::wire::{HO_LEN, Ipv4Addr, MacAddr, Msn, PKey, Ssn};
use dcp::{Worker, WorkerConfig};
use dcp_switch::Switch;
use dcp_switch::pipeline::{FaultConfig, PipelineConfig, PortId, Probability, QUEUE_FRAMES_MAX};

use super::client::{Client, Target};
use super::layout::Layout;
use crate::failure::Failure;
use crate::plan::Plan;

/// Frames that each direction of a link holds.
const RING_FRAMES: u32 = 1024;
/// MSNs under way per queue pair at most.
const WINDOW_MAX: u32 = 1 << 15;
/// Address of the first byte of a registered region, the same for each.
pub(super) const REGION_VA: u64 = 0x1000_0000_0000;

/// Header and payload mbufs of one host.
#[derive(Debug)]
struct HostPools {
    header: Pool,
    payload: Pool,
}

/// Mbufs of all hosts. They outlive the fabric, so that its frames can be counted when it is gone.
#[derive(Debug)]
pub(super) struct Pools(Vec<HostPools>);

/// Mbufs of one kind at one host: what a window, two rings and a stash hold, less with many hosts.
const fn mbufs_per_host(hosts: u32) -> u32 {
    if hosts <= 8 { 8191 } else { 2047 }
}

/// Memory for pools and rings, in MiB: 896 bytes for a header and a payload mbuf, and as much again for slack.
pub(super) fn memory_mib(hosts: u32) -> u32 {
    64 + hosts * mbufs_per_host(hosts) / 1024 * 2
}

impl Pools {
    pub(super) fn new(eal: &Eal, hosts: u32) -> Result<Self, Failure> {
        let count = mbufs_per_host(hosts);
        let pool = |config| {
            Pool::new(eal, config)
                .map_err(|error| Failure::environment(error.to_string()).with_hint("try fewer --hosts"))
        };
        let host = |_| {
            Ok(HostPools {
                header: pool(PoolConfig::header("header", count))?,
                payload: pool(PoolConfig::payload("payload", count))?,
            })
        };
        (0..hosts).map(host).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn in_use(&self) -> u32 {
        self.0.iter().map(|host| host.header.in_use() + host.payload.in_use()).sum()
    }
}

/// Everything that one run drives.
pub(super) struct Fabric<'a> {
    pub(super) clients: Vec<Client<'a>>,
    pub(super) switch: Switch,
    pub(super) server: Worker,
    pub(super) notes: Vec<String>,
}

/// A host before it is connected.
struct Host {
    worker: Worker,
    pd: PdId,
    cq: CqId,
    number: u32,
}

impl<'a> Fabric<'a> {
    pub(super) fn build(
        eal: &Eal,
        clock: &Clock,
        pools: &Pools,
        plan: &Plan,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Failure> {
        let config = FabricConfig { links: plan.hosts as usize, ring_size: RING_FRAMES };
        let links = create_links(eal, config).map_err(|error| Failure::environment(error.to_string()))?;
        let (host_ends, switch_ends): (Vec<_>, Vec<_>) = links.into_iter().unzip();
        let layout = Layout::new(plan);
        check_memory(layout, plan.clients())?;
        let mut hosts = Vec::with_capacity(host_ends.len());
        for (number, (queues, pools)) in host_ends.into_iter().zip(&pools.0).enumerate() {
            hosts.push(make_host(number, queues, pools, clock, plan)?);
        }
        let switch = make_switch(&hosts, switch_ends, clock, plan)?;
        let mut notes: Vec<String> = switch.pipeline().notes().iter().map(ToString::to_string).collect();
        if layout.depth < u64::from(plan.tx_depth) {
            notes.push(format!(
                "--verify gives each message a buffer of its own: depth {} here",
                layout.depth
            ));
        }
        let mut server = hosts.remove(0);
        let clients = hosts
            .into_iter()
            .map(|host| connect_client(host, &mut server, layout, plan, interrupted))
            .collect::<Result<_, _>>()?;
        Ok(Self { clients, switch, server: server.worker, notes })
    }
}

/// Refuses buffers that the machine cannot hold, before the kernel's memory killer does.
fn check_memory(layout: Layout, clients: u32) -> Result<(), Failure> {
    let needed = (layout.bytes() as u64).saturating_mul(2 * u64::from(clients));
    let available = available_bytes().saturating_add(MemInfo::read().huge_free_bytes());
    if needed <= available {
        return Ok(());
    }
    let message = format!(
        "{} MiB of memory are needed for messages and {} are available",
        needed >> 20,
        available >> 20
    );
    Err(Failure::environment(message).with_hint("use a smaller --size, fewer --qp or fewer --hosts"))
}

fn make_host(
    number: usize,
    queues: QueuePair,
    pools: &HostPools,
    clock: &Clock,
    plan: &Plan,
) -> Result<Host, Failure> {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let config = EndpointConfig {
        qpn_base: 1,
        qps_max: if number == 0 { plan.clients() * plan.qps } else { plan.qps },
        ..EndpointConfig::new(MacAddr(queues.mac), host_ip(number))
    };
    let service_port = config.service_port;
    let mut endpoint = Endpoint::new(config);
    let pd = endpoint.create_pd();
    // Every outstanding message can complete between two polls.
    let depth = if number == 0 { 1 } else { plan.qps as usize * plan.tx_depth as usize };
    let cq = endpoint
        .create_cq(depth)
        .map_err(|error| Failure::usage(format!("--qp times --tx-depth: {error}")))?;
    let worker = Worker::new(WorkerConfig {
        endpoint,
        queues,
        header_pool: pools.header.clone(),
        payload_pool: pools.payload.clone(),
        clock: *clock,
        service_port,
        segments_max: 1,
    });
    Ok(Host { worker, pd, cq, number })
}

fn host_ip(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number)
}

fn make_switch(hosts: &[Host], ports: Vec<QueuePair>, clock: &Clock, plan: &Plan) -> Result<Switch, Failure> {
    let count = u16::try_from(ports.len()).unwrap_or(u16::MAX);
    let probability = |value: f64| Probability::new(value).unwrap_or(Probability::NEVER);
    let faults = FaultConfig {
        trim: probability(plan.faults.trim.get()),
        drop: probability(plan.faults.drop.get()),
        duplicate: probability(plan.faults.duplicate.get()),
        ..FaultConfig::NONE
    };
    let bytes = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let config = PipelineConfig {
        trim_threshold_bytes: bytes(plan.threshold_bytes),
        control_bytes_max: bytes(plan.control_bytes),
        data_frames_max: frames_max(plan, plan.threshold_bytes, 1),
        control_frames_max: frames_max(plan, plan.control_bytes, 0),
        static_macs: hosts.iter().zip(0..count).map(|(host, port)| (mac_of(host), PortId(port))).collect(),
        faults: vec![faults; usize::from(count)],
        seed: plan.seed,
        ..PipelineConfig::new(count)
    };
    Switch::new(config, ports, *clock).map_err(|error| Failure::usage(error.to_string()))
}

/// Frames that a queue of so many bytes can hold, so that it is the bytes that bound it: no more than there are mbufs to
/// put frames in, with one for the frame that a queue at its threshold still takes.
fn frames_max(plan: &Plan, bytes: u64, least: u32) -> u32 {
    let frames = u32::try_from(bytes / HO_LEN as u64 + 1).unwrap_or(u32::MAX);
    let mbufs = plan.hosts * mbufs_per_host(plan.hosts);
    frames.min(mbufs).clamp(least, QUEUE_FRAMES_MAX)
}

fn mac_of(host: &Host) -> MacAddr {
    host.worker.endpoint().config().mac
}

fn qp_config(host: &Host, plan: &Plan, depth: u64) -> QpConfig {
    let depth = u32::try_from(depth).unwrap_or(u32::MAX);
    QpConfig {
        send_depth: depth,
        mtu: plan.mtu,
        window: depth.next_power_of_two().min(WINDOW_MAX),
        timeout_exponent: plan.qp_timeout,
        retry_cnt: plan.retry_cnt,
        start_msn: Msn::ZERO,
        cc: CongestionControl::Window { bytes: u32::try_from(plan.window_bytes).unwrap_or(u32::MAX) },
        ..QpConfig::new(host.pd, host.cq)
    }
}

/// Memory, registration and queue pairs of one client, at both ends.
fn connect_client<'a>(
    mut host: Host,
    server: &mut Host,
    layout: Layout,
    plan: &Plan,
    interrupted: &'a AtomicBool,
) -> Result<Client<'a>, Failure> {
    let (source, source_key) = add_memory(&mut host, layout, Access::default(), interrupted)?;
    let remote = Access { remote_write: true, ..Access::default() };
    let (target, target_key) = add_memory(server, layout, remote, interrupted)?;
    let config = qp_config(&host, plan, layout.depth);
    let server_config = QpConfig { send_depth: 1, ..qp_config(server, plan, layout.depth) };
    let mut qps = Vec::with_capacity(plan.qps as usize);
    for index in 0..plan.qps {
        let pkey = connection_key(plan.seed, host.number, index);
        let local = create_qp(&mut host, config)?;
        let remote = create_qp(server, server_config)?;
        connect(&mut host, local, server, remote, pkey)?;
        connect(server, remote, &host, local, pkey)?;
        qps.push(local);
    }
    let target = Target { region: target, rkey: target_key.rkey };
    let client = Client::new(
        host.worker,
        host.cq,
        host.number,
        qps,
        super::client::Source { region: source, lkey: source_key.lkey },
        target,
        layout,
        plan,
        interrupted,
    );
    client.fill_slots()?;
    Ok(client)
}

/// Any key will do inside one process, where no stale peer can be.
fn connection_key(seed: u64, host: u32, index: u32) -> PKey {
    let [low, high, ..] = Mixer::mix(seed ^ u64::from(host) << 32 ^ u64::from(index)).to_le_bytes();
    PKey(u16::from_le_bytes([low, high]))
}

/// Bytes cleared between two looks at the wish to stop.
const PART: usize = 4 << 20;

fn add_memory(
    host: &mut Host,
    layout: Layout,
    access: Access,
    interrupted: &AtomicBool,
) -> Result<(Region, dcp::core::MrKeys), Failure> {
    let region = Region::alloc(layout.bytes(), HugePreference::Auto).map_err(|error| {
        Failure::environment(error.to_string()).with_hint("use a smaller --size, fewer --qp or fewer --hosts")
    })?;
    // Pages appear now, not in the middle of the run.
    for at in (0..layout.bytes()).step_by(PART) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        let len = PART.min(layout.bytes() - at);
        region.fill(at as u64, len, 0).map_err(|error| Failure::environment(error.to_string()))?;
    }
    let id = host.worker.add_region(region.clone());
    let attr =
        MrAttr { pd: host.pd, region: id, offset: 0, va: REGION_VA, len: layout.bytes() as u64, access };
    let keys =
        host.worker.endpoint_mut().register(attr).map_err(|error| Failure::environment(error.to_string()))?;
    Ok((region, keys))
}

fn create_qp(host: &mut Host, config: QpConfig) -> Result<QpId, Failure> {
    host.worker.endpoint_mut().create_qp(config).map_err(|error| Failure::usage(error.to_string()))
}

fn connect(host: &mut Host, qp: QpId, peer: &Host, peer_qp: QpId, pkey: PKey) -> Result<(), Failure> {
    let peer_config = *peer.worker.endpoint().config();
    let peer = Peer {
        qpn: peer.worker.endpoint().qpn(peer_qp),
        pkey,
        mac: peer_config.mac,
        ip: peer_config.ip,
        service_port: peer_config.service_port,
        start_msn: Msn::ZERO,
        start_ssn: Ssn::ZERO,
    };
    let endpoint = host.worker.endpoint_mut();
    let connected = endpoint
        .modify_to_init(qp)
        .and_then(|()| endpoint.modify_to_rtr(qp, peer))
        .and_then(|()| endpoint.modify_to_rts(qp));
    connected.map_err(|error| Failure::transfer(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_bounded_by_bytes_and_not_by_frames() {
        for (hosts, bytes) in [(2, 0), (2, 512 << 10), (2, 900_000), (33, 3 << 20)] {
            let plan = Plan { hosts, ..Plan::default() };
            assert!(
                u64::from(frames_max(&plan, bytes, 1)) * HO_LEN as u64 > bytes,
                "{hosts} hosts, {bytes} bytes"
            );
        }
    }

    #[test]
    fn no_queue_is_made_for_more_frames_than_there_are() {
        for hosts in 2..=33 {
            let plan = Plan { hosts, ..Plan::default() };
            let frames = frames_max(&plan, 1 << 30, 1);
            assert_eq!(frames, hosts * mbufs_per_host(hosts));
            assert!(frames <= QUEUE_FRAMES_MAX);
        }
    }
}
