//! Hosts and switch of one run, built from DPDK objects and connected.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::core::{Endpoint, EndpointConfig, Mixer, PdId, Peer, QpConfig, QpId};
use dcp::dpdk::{Clock, Eal, Pool, PoolConfig, QueuePair};
use dcp::wire::{Ipv4Addr, MacAddr, Msn, PKey, RegionKey, Ssn};
use dcp::{Worker, WorkerConfig};
use dcp_switch::topology::Network;

use super::network;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::traffic::{
    Client, Content, Copies, Cqs, Duplex, DuplexParts, Extent, Layout, Memory, Rally, RallyParts, Receiver,
    Role, Sender, SenderParts, Server, add_memory, check_memory, qp_config, queue_bytes,
};

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
pub(super) const fn mbufs_per_host(hosts: u32) -> u32 {
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
    pub(super) network: Network,
    pub(super) server: Server<'a>,
    pub(super) notes: Vec<String>,
}

/// A host before it is connected.
struct Host {
    worker: Worker,
    pd: PdId,
    cqs: Cqs,
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
        let topology = plan.network.topology(plan.hosts)?;
        let (host_ends, cables) = network::make_links(eal, &topology)?;
        let layout = Layout::new(plan);
        check_memory(memory_bytes(plan, layout))?;
        let mut hosts = Vec::with_capacity(host_ends.len());
        for (number, (queues, pools)) in host_ends.into_iter().zip(&pools.0).enumerate() {
            hosts.push(make_host(number, queues, pools, clock, plan)?);
        }
        let macs: Vec<_> = hosts.iter().map(mac_of).collect();
        let (network, mut notes) = network::make(topology, &macs, cables, clock, plan)?;
        if layout.depth < u64::from(plan.tx_depth) {
            notes.push(format!(
                "--verify gives each message a buffer of its own: depth {} here",
                layout.depth
            ));
        }
        let server = hosts.remove(0);
        let (clients, server) = if plan.is_duplex() {
            let client = hosts.remove(0);
            let (client, server) = duplex(client, server, layout, plan, interrupted)?;
            (vec![client], server)
        } else {
            let mut served = Served { host: server, lanes: Vec::new() };
            let connect = |host| connect_client(host, &mut served, layout, plan, interrupted);
            let clients = hosts.into_iter().map(connect).collect::<Result<_, _>>()?;
            (clients, Server::Receiver(served.receiver(plan)?))
        };
        Ok(Self { clients, network, server, notes })
    }
}

/// Bytes that messages and queue pairs of all hosts take.
fn memory_bytes(plan: &Plan, layout: Layout) -> u64 {
    let copies = if plan.inline_bytes > 0 { Copies::bytes(plan, layout) } else { 0 };
    let (qps, sides) = (u64::from(plan.qps), 2 * plan.directions());
    let client = queue_bytes(plan, layout, Role::Client, qps) + queue_bytes(plan, layout, Role::Server, qps);
    u64::from(plan.clients()) * (layout.bytes() as u64 * sides + copies * plan.directions() + client)
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
    let (role, qps) = match number {
        0 => (Role::Server, plan.total_qps()),
        _ => (Role::Client, u64::from(plan.qps)),
    };
    let cqs = Cqs::create(&mut endpoint, plan, role, qps)?;
    let worker = Worker::new(WorkerConfig {
        endpoint,
        queues,
        header_pool: pools.header.clone(),
        payload_pool: pools.payload.clone(),
        clock: *clock,
        service_port,
        segments_max: 1,
    });
    Ok(Host { worker, pd, cqs, number })
}

fn host_ip(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number)
}

fn mac_of(host: &Host) -> MacAddr {
    host.worker.endpoint().config().mac
}

/// The server with its receives, and the memory that clients reach.
struct Served {
    host: Host,
    /// By queue pair, in the order they were made in.
    lanes: Vec<(QpId, (u32, usize), Content, RegionKey)>,
}

impl Served {
    fn receiver(self, plan: &Plan) -> Result<Receiver, Failure> {
        let mut receiver = Receiver::new(self.host.worker, self.host.cqs.recv, plan);
        for (qp, whose, content, lkey) in self.lanes {
            receiver.add(qp, whose, content, lkey)?;
        }
        Ok(receiver)
    }
}

/// Memory, registration and queue pairs of one client, at both ends.
fn connect_client<'a>(
    mut host: Host,
    served: &mut Served,
    layout: Layout,
    plan: &Plan,
    interrupted: &'a AtomicBool,
) -> Result<Client<'a>, Failure> {
    let server = &mut served.host;
    let content = Content::new(plan, layout, host.number);
    let extent = Extent::of(layout);
    let memory = add_memory(&mut host.worker, host.pd, extent, plan.op.client_access(), interrupted)?;
    let target = add_memory(&mut server.worker, server.pd, extent, plan.op.server_access(), interrupted)?;
    if !content.prepare_server(&target.region, &|| interrupted.load(Ordering::Relaxed)) {
        return Err(Failure::interrupted());
    }
    let config = qp_config(plan, layout, host.pd, host.cqs, Role::Client);
    let server_config = qp_config(plan, layout, server.pd, server.cqs, Role::Server);
    let mut qps = Vec::with_capacity(plan.qps as usize);
    for index in 0..plan.qps {
        let pkey = connection_key(plan.seed, host.number, index);
        let (local, remote) = join((&mut host, config), (server, server_config), pkey)?;
        served.lanes.push((remote, (host.number, index as usize), content, target.keys.lkey));
        qps.push(local);
    }
    let copies = Copies::new(plan, layout, &mut host.worker, host.pd, interrupted)?;
    let parts = SenderParts {
        worker: host.worker,
        cq: host.cqs.send,
        number: host.number,
        qps,
        memory,
        rkey: target.keys.rkey,
        server: Some(target.region),
        content,
        copies,
    };
    Sender::new(parts, plan, interrupted).map(Client::Sender)
}

/// One of two hosts that both send, with its queue pairs.
struct End {
    host: Host,
    role: Role,
    qps: Vec<QpId>,
    outbox: Memory,
    inbox: Memory,
    copies: Option<Copies>,
}

impl End {
    fn new(
        mut host: Host,
        role: Role,
        layout: Layout,
        plan: &Plan,
        interrupted: &AtomicBool,
    ) -> Result<Self, Failure> {
        let extent = Extent::of(layout);
        let mut add = |access| add_memory(&mut host.worker, host.pd, extent, access, interrupted);
        let (outbox, inbox) = (add(plan.op.client_access())?, add(plan.op.server_access())?);
        let copies = Copies::new(plan, layout, &mut host.worker, host.pd, interrupted)?;
        Ok(Self { host, role, qps: Vec::with_capacity(plan.qps as usize), outbox, inbox, copies })
    }

    fn config(&self, plan: &Plan, layout: Layout) -> QpConfig {
        qp_config(plan, layout, self.host.pd, self.host.cqs, self.role)
    }

    /// A side of a ping-pong. `peer`: the other end's inbox.
    fn rally<'a>(
        self,
        (number, peer): (u32, Memory),
        layout: Layout,
        plan: &Plan,
        interrupted: &'a AtomicBool,
    ) -> Result<Rally<'a>, Failure> {
        let Self { host: Host { worker, cqs, .. }, role, qps, outbox, inbox, copies } = self;
        let (qp, rkey) = (qps[0], peer.keys.rkey);
        let parts = RallyParts { worker, cqs, role, number, qp, outbox, inbox, rkey, copies };
        Rally::new(parts, plan, layout, interrupted)
    }

    /// A side of a run in both directions.
    fn duplex<'a>(
        self,
        (number, peer): (u32, Memory),
        layout: Layout,
        plan: &Plan,
        interrupted: &'a AtomicBool,
    ) -> Result<Duplex<'a>, Failure> {
        let Self { host: Host { worker, cqs, .. }, role, qps, outbox, inbox, copies } = self;
        let (rkey, other) = (peer.keys.rkey, Some(peer.region));
        let parts = DuplexParts { worker, cqs, role, number, qps, outbox, inbox, rkey, other, copies };
        Duplex::new(parts, plan, layout, interrupted)
    }
}

/// A client and a server that both send: in turns, or at once.
fn duplex<'a>(
    client: Host,
    server: Host,
    layout: Layout,
    plan: &Plan,
    interrupted: &'a AtomicBool,
) -> Result<(Client<'a>, Server<'a>), Failure> {
    let number = client.number;
    let mut client = End::new(client, Role::Client, layout, plan, interrupted)?;
    let mut server = End::new(server, Role::Server, layout, plan, interrupted)?;
    let (ours, theirs) = (client.config(plan, layout), server.config(plan, layout));
    for index in 0..plan.qps {
        let pkey = connection_key(plan.seed, number, index);
        let (local, remote) = join((&mut client.host, ours), (&mut server.host, theirs), pkey)?;
        client.qps.push(local);
        server.qps.push(remote);
    }
    let (of_client, of_server) = ((number, server.inbox.share()), (number, client.inbox.share()));
    if plan.is_rally() {
        let client = client.rally(of_client, layout, plan, interrupted)?;
        return Ok((
            Client::Rally(client),
            Server::Rally(server.rally(of_server, layout, plan, interrupted)?),
        ));
    }
    let client = client.duplex(of_client, layout, plan, interrupted)?;
    Ok((Client::Duplex(client), Server::Duplex(server.duplex(of_server, layout, plan, interrupted)?)))
}

/// A connected queue pair at each of two hosts.
fn join(
    (host, config): (&mut Host, QpConfig),
    (peer, peer_config): (&mut Host, QpConfig),
    pkey: PKey,
) -> Result<(QpId, QpId), Failure> {
    let local = create_qp(host, config)?;
    let remote = create_qp(peer, peer_config)?;
    connect(host, local, peer, remote, pkey)?;
    connect(peer, remote, host, local, pkey)?;
    Ok((local, remote))
}

/// Any key will do inside one process, where no stale peer can be.
fn connection_key(seed: u64, host: u32, index: u32) -> PKey {
    let [low, high, ..] = Mixer::mix(seed ^ u64::from(host) << 32 ^ u64::from(index)).to_le_bytes();
    PKey(u16::from_le_bytes([low, high]))
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
