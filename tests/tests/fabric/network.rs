//! Hosts and switches in virtual time, without DPDK.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use dcp::core::{Counters, Instant, Peer, QpConfig};
use dcp::wire::PKey;
use dcp_pair::Host;
use dcp_pipeline::{ByteFrame, EgressCounters, LinkRate, LinkTime, Pipeline, PortCounters, PortId};
use dcp_switch::topology::{End, NetworkConfig, Topology};

/// A frame from a host: when it arrives, a number that orders frames of one time, the host, its bytes.
type Flight = Reverse<(Instant, u64, usize, Vec<u8>)>;

/// A host's link towards its switch.
struct Line {
    time: LinkTime,
    /// Frames that go back. They take turns with the host's own: neither may starve the other.
    bounced: VecDeque<Vec<u8>>,
    is_turn_of_bounced: bool,
}

impl Line {
    fn new(rate: LinkRate) -> Self {
        Self { time: LinkTime::new(rate), bounced: VecDeque::new(), is_turn_of_bounced: true }
    }

    fn next_frame(&mut self, host: &mut Host, now: Instant) -> Option<Vec<u8>> {
        self.is_turn_of_bounced = !self.is_turn_of_bounced;
        let own = |host: &mut Host| host.transmit(now, 1).pop();
        match self.is_turn_of_bounced {
            true => self.bounced.pop_front().or_else(|| own(host)),
            false => own(host).or_else(|| self.bounced.pop_front()),
        }
    }
}

/// The hosts and the switches of a topology.
pub(crate) struct Network {
    pub(crate) now: Instant,
    /// By number.
    pub(crate) hosts: Vec<Host>,
    topology: Topology,
    switches: Vec<Pipeline<ByteFrame>>,
    lines: Vec<Line>,
    /// Propagation between a host and its switch, either way.
    delay_ns: u64,
    flying: BinaryHeap<Flight>,
    sent: u64,
    connected: u16,
}

impl Network {
    /// `memory` bytes for each host.
    pub(crate) fn new(topology: Topology, config: &NetworkConfig, delay_ns: u64, memory: usize) -> Self {
        let numbers = (0..topology.hosts().len()).map(|number| u8::try_from(number).expect("few hosts"));
        let hosts: Vec<Host> = numbers.map(|number| Host::new(number, memory, |_| {})).collect();
        let macs: Vec<_> = hosts.iter().map(|host| host.endpoint.config().mac).collect();
        let mut switches = topology.configs(config, &macs);
        let line = |host: &End| {
            let link = &mut switches[host.switch].links[host.port.index()];
            link.delay_ns = delay_ns;
            Line::new(link.rate)
        };
        Self {
            now: Instant::ZERO,
            lines: topology.hosts().iter().map(line).collect(),
            hosts,
            switches: switches
                .into_iter()
                .map(|config| Pipeline::new(config).expect("a legal switch"))
                .collect(),
            topology,
            delay_ns,
            flying: BinaryHeap::new(),
            sent: 0,
            connected: 0,
        }
    }

    /// Connects a new queue pair of `near` with one of `far`; each is its host's last.
    pub(crate) fn connect(&mut self, near: usize, far: usize, template: QpConfig) {
        for host in [near, far] {
            let host = &mut self.hosts[host];
            let config = QpConfig { pd: host.pd, send_cq: host.cq, recv_cq: host.cq, ..template };
            let qp = host.endpoint.create_qp(config).expect("a legal queue pair");
            host.qps.push(qp);
        }
        self.connected += 1;
        self.introduce(near, far, template);
        self.introduce(far, near, template);
    }

    fn introduce(&mut self, own: usize, other: usize, template: QpConfig) {
        let last = |host: &Host| *host.qps.last().expect("just made");
        let peer = &self.hosts[other];
        let config = peer.endpoint.config();
        let peer = Peer {
            qpn: peer.endpoint.qpn(last(peer)),
            pkey: PKey(0x4000 + self.connected),
            mac: config.mac,
            ip: config.ip,
            service_port: config.service_port,
            start_msn: template.start_msn,
            start_ssn: template.start_ssn,
        };
        let host = &mut self.hosts[own];
        let qp = last(host);
        host.endpoint.modify_to_init(qp).expect("a fresh queue pair");
        host.endpoint.modify_to_rtr(qp, peer).expect("a fresh queue pair");
        host.endpoint.modify_to_rts(qp).expect("a connected queue pair");
    }

    /// Lets everybody do what can be done now, and moves time on to what comes next, at most to `end`.
    pub(crate) fn step(&mut self, end: Instant) {
        self.transmit();
        self.now = self.next_event().min(end).max(self.now);
        self.arrive();
        (0..self.switches.len()).for_each(|switch| self.forward(switch));
        for host in &mut self.hosts {
            if host.endpoint.next_timeout().is_some_and(|at| at <= self.now) {
                host.endpoint.handle_timeout(self.now);
            }
        }
    }

    /// Hosts whose line is free send a frame.
    fn transmit(&mut self) {
        let now_ns = self.now.ns();
        for (number, line) in self.lines.iter_mut().enumerate() {
            if line.time.free_ns() > now_ns {
                continue;
            }
            let Some(frame) = line.next_frame(&mut self.hosts[number], self.now) else { continue };
            line.time.wake(now_ns);
            let sent_ns = line.time.start(u32::try_from(frame.len()).expect("a frame's length"));
            self.sent += 1;
            let at = Instant::from_ns(sent_ns + self.delay_ns);
            self.flying.push(Reverse((at, self.sent, number, frame)));
        }
    }

    /// A host that could send now has done so.
    fn next_event(&self) -> Instant {
        let flight = self.flying.peek().map(|Reverse((at, ..))| *at);
        let switches = self.switches.iter().filter_map(Pipeline::next_timeout).map(Instant::from_ns);
        let timers = self.hosts.iter().filter_map(|host| host.endpoint.next_timeout());
        let ready = self.hosts.iter().zip(&self.lines);
        let ready = ready.filter(|(host, line)| !line.bounced.is_empty() || host.endpoint.has_frames());
        let lines = ready.map(|(_, line)| Instant::from_ns(line.time.free_ns()));
        let next = lines.filter(|&free| free > self.now).chain(flight).chain(switches).chain(timers).min();
        // Time always moves, also where a wheel's tick lies behind.
        next.unwrap_or(self.now.after(1000)).max(self.now.after(1))
    }

    fn arrive(&mut self) {
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
            let Some(Reverse((_, _, host, frame))) = self.flying.pop() else { return };
            let End { switch, port } = self.topology.hosts()[host];
            self.switches[switch].handle_frame(self.now.ns(), port, ByteFrame(Bytes::from(frame)));
        }
    }

    /// What a switch lets go now goes to the next switch, or to a host.
    fn forward(&mut self, switch: usize) {
        let now_ns = self.now.ns();
        self.switches[switch].handle_timeout(now_ns);
        for port in 0..self.switches[switch].ports() {
            let from = End { switch, port: PortId(port) };
            let mut frames: Vec<ByteFrame> = Vec::new();
            self.switches[switch].poll_transmit(now_ns, from.port, &mut frames);
            for frame in frames {
                match self.topology.neighbour(from) {
                    Some(to) => self.switches[to.switch].handle_frame(now_ns, to.port, frame),
                    None => self.deliver(from, frame.0.to_vec()),
                }
            }
        }
    }

    fn deliver(&mut self, at: End, frame: Vec<u8>) {
        let host = self.topology.hosts().iter().position(|&host| host == at).expect("a port to a host");
        let bounced = self.hosts[host].receive(self.now, frame);
        self.lines[host].bounced.extend(bounced);
    }

    /// What a host's endpoint counted.
    pub(crate) fn counters(&self, host: usize) -> &Counters {
        self.hosts[host].endpoint.counters()
    }

    /// What left all ports of all switches.
    pub(crate) fn egress(&self) -> EgressCounters {
        let mut totals = PortCounters::default();
        self.switches.iter().for_each(|switch| totals.add(&switch.totals()));
        totals.egress
    }
}
