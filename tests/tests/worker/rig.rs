//! A client, a server and what lies between them.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dcp::core::{
    Access, Completion, CongestionControl, CqId, Endpoint, EndpointConfig, MrAttr, MrKeys, Peer, QpConfig,
    QpId, Remote, SendOp, SendRequest, Sge, Status,
};
use dcp::dpdk::{
    Clock, Eal, EalConfig, FabricConfig, HugePreference, LcoreGuard, Pool, PoolConfig, QueuePair, Region,
    create_links, register_thread,
};
use dcp::wire::{Ipv4Addr, MacAddr, Msn, PKey, Ssn};
use dcp::{Worker, WorkerConfig};
use dcp_bench::pattern::Pattern;

use crate::relay::{Edit, Relay};

/// First address of both regions.
const VA: u64 = 0x10_0000;
const PKEY: PKey = PKey(0x1234);
const PATTERN: Pattern = Pattern { seed: 1, message: 1 };
/// Rounds after which a transfer counts as stuck; the longest here takes a hundredth.
const ROUNDS_MAX: u64 = 200_000_000;

/// What a rig is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) header_mbufs: u32,
    pub(crate) payload_mbufs: u32,
    pub(crate) ring_size: u32,
    pub(crate) depth: u32,
    pub(crate) size: usize,
    pub(crate) mtu: u32,
    pub(crate) cc: CongestionControl,
    pub(crate) segments_max: usize,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            header_mbufs: 4095,
            payload_mbufs: 4095,
            ring_size: 512,
            depth: 64,
            size: 50_000,
            mtu: 1024,
            cc: CongestionControl::Window { bytes: 256 << 10 },
            segments_max: 1,
        }
    }
}

/// DPDK for one test at a time: pools, devices and thread ids are few.
pub(crate) struct Dpdk {
    pub(crate) eal: &'static Eal,
    clock: Clock,
    _registered: LcoreGuard,
    _only: MutexGuard<'static, ()>,
}

impl Dpdk {
    pub(crate) fn take() -> Self {
        static ONLY: Mutex<()> = Mutex::new(());
        static EAL: OnceLock<(Eal, Clock)> = OnceLock::new();
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || Eal::start(EalConfig::default()).unwrap_or_else(|error| panic!("{error}"));
        let (eal, clock) = EAL.get_or_init(|| (start(), Clock::calibrate()));
        let registered = register_thread(eal).expect("one test thread at a time");
        Self { eal, clock: *clock, _registered: registered, _only: only }
    }

    pub(crate) fn pool(&self, config: PoolConfig) -> Pool {
        Pool::new(self.eal, config).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn links(&self, links: usize, ring_size: u32) -> Vec<(QueuePair, QueuePair)> {
        create_links(self.eal, FabricConfig { links, ring_size }).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }
}

/// One end of the connection.
pub(crate) struct Host {
    pub(crate) worker: Worker,
    pub(crate) region: Region,
    pub(crate) header_pool: Pool,
    pub(crate) payload_pool: Pool,
    cq: CqId,
    qp: QpId,
    keys: MrKeys,
}

impl Host {
    pub(crate) fn new(dpdk: &Dpdk, queues: QueuePair, parts: Parts, number: u8) -> Self {
        let config = EndpointConfig::new(MacAddr(queues.mac), Ipv4Addr::new(10, 0, 0, number));
        let mut endpoint = Endpoint::new(config);
        let pd = endpoint.create_pd();
        let cq = endpoint.create_cq(parts.depth as usize).expect("a depth above zero");
        let qp_config = QpConfig {
            send_depth: parts.depth,
            mtu: parts.mtu,
            window: parts.depth.next_power_of_two(),
            cc: parts.cc,
            ..QpConfig::new(pd, cq)
        };
        let qp = endpoint.create_qp(qp_config).expect("legal parameters");
        let header_pool = dpdk.pool(PoolConfig::header("header", parts.header_mbufs));
        let payload_pool = dpdk.pool(PoolConfig::payload("payload", parts.payload_mbufs));
        let mut worker = Worker::new(WorkerConfig {
            endpoint,
            queues,
            header_pool: header_pool.clone(),
            payload_pool: payload_pool.clone(),
            clock: dpdk.clock(),
            service_port: config.service_port,
            segments_max: parts.segments_max,
        });
        let region = Region::alloc(parts.size, HugePreference::Never).expect("there is memory");
        let id = worker.add_region(region.clone());
        let attr = MrAttr { pd, region: id, offset: 0, va: VA, len: parts.size as u64, access: Access::ALL };
        let keys = worker.endpoint_mut().register(attr).expect("a legal range");
        Self { worker, region, header_pool, payload_pool, cq, qp, keys }
    }

    fn peer(&self) -> Peer {
        let config = self.worker.endpoint().config();
        Peer {
            qpn: self.worker.endpoint().qpn(self.qp),
            pkey: PKEY,
            mac: config.mac,
            ip: config.ip,
            service_port: config.service_port,
            start_msn: Msn::ZERO,
            start_ssn: Ssn::ZERO,
        }
    }

    fn connect(&mut self, peer: Peer) {
        let endpoint = self.worker.endpoint_mut();
        endpoint.modify_to_init(self.qp).expect("a fresh queue pair");
        endpoint.modify_to_rtr(self.qp, peer).expect("an initialised one");
        endpoint.modify_to_rts(self.qp).expect("ready to receive");
    }
}

/// Two hosts and a relay.
pub(crate) struct Rig {
    pub(crate) client: Host,
    pub(crate) server: Host,
    pub(crate) relay: Relay,
    size: usize,
    posted: u64,
    completed: u64,
}

impl Rig {
    /// Hosts on two links, and a relay between these that does `edit` to what passes.
    pub(crate) fn new(dpdk: &Dpdk, parts: Parts, edit: Edit) -> Self {
        let mut links = dpdk.links(2, parts.ring_size);
        let (server_end, server_port) = links.remove(1);
        let (client_end, client_port) = links.remove(0);
        let relay = Relay::new(client_port, server_port, edit);
        Self::around(dpdk, parts, client_end, server_end, relay)
    }

    /// The same around a given relay.
    pub(crate) fn around(
        dpdk: &Dpdk,
        parts: Parts,
        client_end: QueuePair,
        server_end: QueuePair,
        relay: Relay,
    ) -> Self {
        let mut client = Host::new(dpdk, client_end, parts, 1);
        let mut server = Host::new(dpdk, server_end, parts, 2);
        client.connect(server.peer());
        server.connect(client.peer());
        let mut bytes = vec![0; parts.size];
        PATTERN.fill(&mut bytes);
        client.region.write(0, &bytes).expect("the region is that long");
        Self { client, server, relay, size: parts.size, posted: 0, completed: 0 }
    }

    /// Posts a WRITE of the whole region, gathered from pieces of at most `piece` bytes.
    pub(crate) fn post(&mut self, piece: usize) {
        let lkey = self.client.keys.lkey;
        let sges: Vec<Sge> = (0..self.size)
            .step_by(piece)
            .map(|at| Sge {
                va: VA + at as u64,
                len: u32::try_from(piece.min(self.size - at)).expect("a small piece"),
                lkey,
            })
            .collect();
        let op = SendOp::Write(Remote { va: VA, rkey: self.server.keys.rkey });
        let request = SendRequest::new(self.posted, op, &sges);
        let posted = self.client.worker.endpoint_mut().post_send(self.client.qp, &request);
        posted.unwrap_or_else(|error| panic!("{error}"));
        self.posted += 1;
    }

    /// One round of everything.
    pub(crate) fn poll(&mut self) {
        self.client.worker.poll();
        self.relay.poll();
        self.server.worker.poll();
        self.relay.poll();
        self.collect();
    }

    fn collect(&mut self) {
        let mut batch = [Completion::BLANK; 64];
        let count = self.client.worker.endpoint_mut().poll_completions(self.client.cq, &mut batch);
        for completion in &batch[..count] {
            assert_eq!(completion.status, Status::Success, "message {}", completion.wr_id);
            assert_eq!(completion.wr_id, self.completed, "in posting order");
            self.completed += 1;
        }
    }

    /// Drives until every message has completed, then checks both sides' bytes.
    pub(crate) fn finish(&mut self) {
        let mut rounds = 0;
        while self.completed < self.posted {
            self.poll();
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "stuck at {} of {}", self.completed, self.posted);
        }
        self.assert_source_is_untouched();
        let mut expected = vec![0; self.size];
        PATTERN.fill(&mut expected);
        assert_eq!(self.server.region.compare(0, &expected), Ok(None), "delivered bytes");
    }

    pub(crate) fn assert_source_is_untouched(&self) {
        let mut expected = vec![0; self.size];
        PATTERN.fill(&mut expected);
        assert_eq!(self.client.region.compare(0, &expected), Ok(None), "the sender's bytes");
    }

    /// Takes it apart and checks that nothing leaked.
    pub(crate) fn assert_no_leak(self) {
        let Self { client, server, relay, .. } = self;
        let pools = [&client, &server].map(|host| [host.header_pool.clone(), host.payload_pool.clone()]);
        let regions = [client.region.clone(), server.region.clone()];
        drop((client, server, relay));
        for pool in pools.iter().flatten() {
            assert_eq!(pool.in_use(), 0, "mbufs of pool {}", pool.config().name);
        }
        for region in regions {
            assert_eq!(region.in_flight(), 0, "segments that point into a region");
        }
    }
}
