//! Hosts around one switch, in virtual time: the real core and the real pipeline, without DPDK.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use dcp::core::{Counters, CqId, Instant, PdId, Peer, QpConfig, Remote, SendOp, SendRequest, Status};
use dcp::wire::{Ipv4Addr, MacAddr, PKey};
use dcp_pair::{Host, MR_VA};
use dcp_pipeline::{ByteFrame, LinkConfig, LinkRate, Pipeline, PipelineConfig, PortId};

/// How a star is set up.
pub(crate) struct StarConfig {
    /// Clients; the server is one host more.
    pub(crate) clients: u8,
    pub(crate) link_gbps: u32,
    /// Propagation of a link.
    pub(crate) delay_ns: u64,
    pub(crate) qp: QpConfig,
    /// Bytes of a message.
    pub(crate) message: u32,
    pub(crate) switch: fn(&mut PipelineConfig),
}

impl Default for StarConfig {
    fn default() -> Self {
        Self {
            clients: 2,
            link_gbps: 10,
            delay_ns: 1000,
            qp: QpConfig { mtu: 1024, ..QpConfig::new(PdId(0), CqId(0)) },
            message: 64 << 10,
            switch: |_| {},
        }
    }
}

/// A frame on its way: when, in which order, to which port's host or from which port's host, its bytes.
type Flight = Reverse<(Instant, u64, Place, Vec<u8>)>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Switch(u16),
    Host(u16),
}

struct Nic {
    host: Host,
    /// When its link is free again.
    free: Instant,
    /// Messages posted.
    posted: u64,
    /// Bytes delivered and acknowledged.
    done: u64,
}

/// Clients that WRITE to one server, each over a queue pair of its own, as fast as they may.
pub(crate) struct Star {
    pub(crate) now: Instant,
    nics: Vec<Nic>,
    pub(crate) switch: Pipeline<ByteFrame>,
    flying: BinaryHeap<Flight>,
    order: u64,
    config: StarConfig,
}

/// Messages that a client keeps outstanding.
const DEPTH: u32 = 8;

impl Star {
    pub(crate) fn new(config: StarConfig) -> Self {
        let ports = u16::from(config.clients) + 1;
        let mut switch = PipelineConfig::new(ports);
        let rate = LinkRate::from_mbps(config.link_gbps * 1000);
        let link = LinkConfig { rate, delay_ns: config.delay_ns, ..LinkConfig::default() };
        switch.links = vec![link; usize::from(ports)];
        switch.static_macs =
            (0..ports).map(|port| (mac(u8::try_from(port).expect("few")), PortId(port))).collect();
        (config.switch)(&mut switch);
        let memory = config.message as usize * (usize::from(config.clients) + 1);
        let nics = (0..=config.clients).map(|number| Nic {
            host: Host::new(number, memory, |_| {}),
            free: Instant::ZERO,
            posted: 0,
            done: 0,
        });
        let mut star = Self {
            now: Instant::ZERO,
            nics: nics.collect(),
            switch: Pipeline::new(switch).expect("a legal switch"),
            flying: BinaryHeap::new(),
            order: 0,
            config,
        };
        star.connect();
        star
    }

    fn server(&self) -> u8 {
        self.config.clients
    }

    fn connect(&mut self) {
        let template = self.config.qp;
        let server = usize::from(self.server());
        for client in 0..server {
            for own in [client, server] {
                // The client's only one, and the server's by client.
                let host = &mut self.nics[own].host;
                let config = QpConfig { pd: host.pd, send_cq: host.cq, recv_cq: host.cq, ..template };
                let qp = host.endpoint.create_qp(config).expect("a legal queue pair");
                host.qps.push(qp);
            }
            self.introduce(client, 0, server, client);
            self.introduce(server, client, client, 0);
        }
    }

    fn introduce(&mut self, own: usize, own_qp: usize, other: usize, other_qp: usize) {
        let peer = &self.nics[other].host;
        let qpn = peer.endpoint.qpn(peer.qps[other_qp]);
        let number = u8::try_from(other).expect("few hosts");
        let key = u16::try_from(own_qp.max(other_qp)).expect("few hosts");
        let host = &mut self.nics[own].host;
        let id = host.qps[own_qp];
        let peer = Peer {
            qpn,
            pkey: PKey(0x4000 + key),
            mac: mac(number),
            ip: Ipv4Addr::new(10, 0, 0, number),
            service_port: 17791,
            start_msn: self.config.qp.start_msn,
            start_ssn: self.config.qp.start_ssn,
        };
        host.endpoint.modify_to_init(id).expect("a fresh queue pair");
        host.endpoint.modify_to_rtr(id, peer).expect("a fresh queue pair");
        host.endpoint.modify_to_rts(id).expect("a connected queue pair");
    }

    /// Keeps all clients busy for `ns`; bytes that each delivered meanwhile.
    pub(crate) fn run(&mut self, ns: u64) -> Vec<u64> {
        let end = self.now.after(ns);
        let before: Vec<u64> = self.clients().iter().map(|nic| nic.done).collect();
        while self.now < end {
            self.post();
            self.transmit();
            let next = self.next_event().min(end);
            self.now = next.max(self.now);
            self.deliver();
        }
        self.clients().iter().zip(before).map(|(nic, before)| nic.done - before).collect()
    }

    fn clients(&self) -> &[Nic] {
        &self.nics[..usize::from(self.server())]
    }

    fn post(&mut self) {
        let len = self.config.message;
        let rkey = self.nics[usize::from(self.server())].host.keys.rkey;
        let clients = usize::from(self.server());
        for (number, nic) in self.nics[..clients].iter_mut().enumerate() {
            nic.host.collect();
            for completion in nic.host.completions.drain(..) {
                assert_eq!(completion.status, Status::Success);
                nic.done += u64::from(completion.byte_len);
            }
            let qp = nic.host.qps[0];
            while nic.host.endpoint.outstanding(qp) < DEPTH {
                let va = MR_VA + number as u64 * u64::from(len);
                let op = SendOp::Write(Remote { va, rkey });
                let sges = [nic.host.sge(0, len)];
                let request = SendRequest::new(nic.posted, op, &sges);
                nic.host.endpoint.post_send(qp, &request).expect("room in the queue");
                nic.posted += 1;
            }
        }
    }

    fn transmit(&mut self) {
        for port in 0..self.nics.len() {
            let (now, delay, gbps) = (self.now, self.config.delay_ns, self.config.link_gbps);
            let nic = &mut self.nics[port];
            if nic.free > now {
                continue;
            }
            let frames = nic.host.transmit(now, 4);
            nic.free = now;
            for frame in frames {
                let bytes = frame.len().max(60) + 24;
                nic.free = nic.free.after((bytes as u64 * 8).div_ceil(u64::from(gbps)));
                let at = nic.free.after(delay);
                self.order += 1;
                let port = u16::try_from(port).expect("few ports");
                self.flying.push(Reverse((at, self.order, Place::Switch(port), frame)));
            }
        }
        self.forward();
    }

    fn forward(&mut self) {
        self.switch.handle_timeout(self.now.ns());
        for port in 0..self.switch.ports() {
            let mut out: Vec<ByteFrame> = Vec::new();
            self.switch.poll_transmit(self.now.ns(), PortId(port), &mut out);
            for frame in out {
                self.order += 1;
                let bytes = frame.0.to_vec();
                self.flying.push(Reverse((self.now, self.order, Place::Host(port), bytes)));
            }
        }
    }

    fn next_event(&self) -> Instant {
        let flight = self.flying.peek().map(|Reverse((at, ..))| *at);
        let hosts = self.nics.iter().flat_map(|nic| {
            let ready = nic.host.endpoint.has_frames().then_some(nic.free);
            [nic.host.endpoint.next_timeout(), ready]
        });
        let switch = self.switch.next_timeout().map(Instant::from_ns);
        let next = hosts.flatten().chain(flight).chain(switch).min();
        // Time always moves, also where a wheel's tick lies behind.
        next.unwrap_or(self.now.after(1000)).max(self.now.after(1))
    }

    fn deliver(&mut self) {
        let now = self.now;
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, place, frame))) = self.flying.pop() else { return };
            match place {
                Place::Switch(port) => {
                    self.switch.handle_frame(now.ns(), PortId(port), ByteFrame(Bytes::from(frame)));
                }
                Place::Host(port) => {
                    let nic = &mut self.nics[usize::from(port)];
                    if let Some(bounced) = nic.host.receive(now, frame) {
                        self.order += 1;
                        // A bounce overtakes what waits: 57 bytes.
                        let at = now.after(self.config.delay_ns);
                        self.flying.push(Reverse((at, self.order, Place::Switch(port), bounced)));
                    }
                }
            }
        }
        for nic in &mut self.nics {
            nic.host.endpoint.handle_timeout(now);
        }
    }

    /// Counters of a client.
    pub(crate) fn counters(&self, client: usize) -> &Counters {
        self.nics[client].host.endpoint.counters()
    }
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}
