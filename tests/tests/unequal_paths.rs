//! The paper's Figure 11 in virtual time: two switches, two links of unequal capacity, adaptive routing, and the real
//! endpoints and pipelines.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dcp::core::{CongestionControl, Instant, QpConfig, Status};
use dcp_pair::{Pair, PairConfig, Side, WriteRange};
use dcp_pipeline::{ByteFrame, FaultConfig, LinkTime, LoadBalance, Pipeline, PipelineConfig, PortId};
use dcp_switch::topology::{Description, End, LinkDescription, NetworkConfig, SwitchDescription, Topology};

/// Both links together, in Gb/s.
const CAPACITY_GBPS: f64 = 10.0;
const MESSAGE: u32 = 1 << 20;
const MESSAGES: u64 = 64;
const WINDOW: u32 = 1 << 20;

/// A frame from a host: time of its arrival, a number that orders frames of one time, the host, its bytes.
type Flight = (u64, u64, usize, Vec<u8>);

/// Two hosts and the switches between them.
struct World {
    pair: Pair,
    topology: Topology,
    switches: Vec<Pipeline<ByteFrame>>,
    /// Lines from the hosts, the server's first, as hosts are numbered; and what bounced frames wait for them.
    lines: [LinkTime; 2],
    bounced: [Vec<Vec<u8>>; 2],
    flying: BinaryHeap<Reverse<Flight>>,
    sent: u64,
    now_ns: u64,
}

/// The host of each side.
const HOSTS: [Side; 2] = [Side::Server, Side::Client];

impl World {
    fn new(weights: [u32; 2], base: PipelineConfig, balance: LoadBalance) -> Self {
        let topology = Topology::new(&description(weights), 0.0).unwrap();
        let pair =
            Pair::new(PairConfig { memory: MESSAGE as usize, qp: queue_pair, ..PairConfig::default() });
        let macs = HOSTS.map(|side| pair.host(side).endpoint.config().mac);
        let network = NetworkConfig { base, balance, host_faults: FaultConfig::NONE };
        let configs = topology.configs(&network, &macs);
        Self {
            pair,
            switches: configs.into_iter().map(|config| Pipeline::new(config).unwrap()).collect(),
            lines: topology.hosts().iter().map(line(&topology)).collect::<Vec<_>>().try_into().unwrap(),
            topology,
            bounced: [Vec::new(), Vec::new()],
            flying: BinaryHeap::new(),
            sent: 0,
            now_ns: 0,
        }
    }

    /// Runs until all work has completed; when that was.
    fn run(&mut self) -> u64 {
        while !self.is_done() {
            self.transmit();
            let next = self.next_ns().expect("somebody has something to do");
            self.now_ns = self.now_ns.max(next);
            assert!(self.now_ns < 1_000_000_000, "a second is more than enough");
            self.arrive();
            (0..self.switches.len()).for_each(|switch| self.forward(switch));
            for host in &mut self.pair.hosts {
                host.endpoint.handle_timeout(Instant::from_ns(self.now_ns));
                host.collect();
            }
        }
        self.now_ns
    }

    fn is_done(&self) -> bool {
        self.pair.host(Side::Client).completions.len() as u64 == MESSAGES
    }

    /// When something happens next. A host that could send now has done so.
    fn next_ns(&self) -> Option<u64> {
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let switches = self.switches.iter().filter_map(Pipeline::next_timeout);
        let timers = self.pair.hosts.iter().filter_map(|host| host.endpoint.next_timeout()).map(Instant::ns);
        let ready = HOSTS.iter().zip(&self.lines).zip(&self.bounced);
        let ready = ready.filter(|((side, _), bounced)| {
            !bounced.is_empty() || self.pair.host(**side).endpoint.has_frames()
        });
        let lines = ready.map(|((_, line), _)| line.free_ns()).filter(|&free| free > self.now_ns);
        arrival.into_iter().chain(switches).chain(timers).chain(lines).min()
    }

    /// Hosts whose line is free send a frame.
    fn transmit(&mut self) {
        for (host, side) in HOSTS.into_iter().enumerate() {
            if self.lines[host].free_ns() > self.now_ns {
                continue;
            }
            let frames = match self.bounced[host].is_empty() {
                false => vec![self.bounced[host].remove(0)],
                true => self.pair.host_mut(side).transmit(Instant::from_ns(self.now_ns), 1),
            };
            for frame in frames {
                self.lines[host].wake(self.now_ns);
                let at = self.lines[host].start(u32::try_from(frame.len()).unwrap());
                self.sent += 1;
                self.flying.push(Reverse((at, self.sent, host, frame)));
            }
        }
    }

    fn arrive(&mut self) {
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now_ns) {
            let Some(Reverse((_, _, host, frame))) = self.flying.pop() else { return };
            let End { switch, port } = self.topology.hosts()[host];
            self.switches[switch].handle_frame(self.now_ns, port, ByteFrame(frame.into()));
        }
    }

    /// What a switch lets go now goes to the next switch, or to a host.
    fn forward(&mut self, switch: usize) {
        for port in (0..self.switches[switch].ports()).map(PortId) {
            let mut frames: Vec<ByteFrame> = Vec::new();
            self.switches[switch].poll_transmit(self.now_ns, port, &mut frames);
            let from = End { switch, port };
            for frame in frames {
                match self.topology.neighbour(from) {
                    Some(to) => self.switches[to.switch].handle_frame(self.now_ns, to.port, frame),
                    None => self.deliver(from, frame.0.to_vec()),
                }
            }
        }
    }

    fn deliver(&mut self, at: End, frame: Vec<u8>) {
        let host = self.topology.hosts().iter().position(|&host| host == at).unwrap();
        let now = Instant::from_ns(self.now_ns);
        let bounced = self.pair.host_mut(HOSTS[host]).receive(now, frame);
        self.bounced[host].extend(bounced);
    }

    fn trimmed(&self) -> u64 {
        self.switches.iter().map(|switch| switch.totals().egress.trimmed).sum()
    }
}

fn line(topology: &Topology) -> impl Fn(&End) -> LinkTime + '_ {
    |host| LinkTime::new(topology.links(host.switch)[host.port.index()].rate)
}

fn queue_pair(config: &mut QpConfig) {
    config.mtu = 4096;
    config.send_depth = 128;
    config.cc = CongestionControl::Window { bytes: WINDOW };
}

/// A host at each switch, on a line of twice the capacity of the two links.
fn description(weights: [u32; 2]) -> Description {
    let total: u32 = weights.iter().sum();
    let link = |weight: u32| LinkDescription {
        between: ["left".to_owned(), "right".to_owned()],
        count: 1,
        gbps: Some(CAPACITY_GBPS * f64::from(weight) / f64::from(total)),
        weight,
        delay_us: 1.0,
    };
    Description {
        host_gbps: Some(2.0 * CAPACITY_GBPS),
        switches: vec![SwitchDescription::new("left", 1), SwitchDescription::new("right", 1)],
        links: weights.map(link).to_vec(),
    }
}

/// Goodput in Gb/s, and the world after it.
fn transfer(weights: [u32; 2], base: PipelineConfig, balance: LoadBalance) -> (f64, World) {
    let mut world = World::new(weights, base, balance);
    let bytes = &mut world.pair.host_mut(Side::Client).memory;
    bytes.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = at.wrapping_mul(0x9E37_79B1).to_le_bytes()[3]);
    for number in 0..MESSAGES {
        let range = WriteRange { from: 0, to: 0, len: MESSAGE };
        world.pair.write(Side::Client, 0, number, range).unwrap();
    }
    let end_ns = world.run();
    let expected: Vec<_> = (0..MESSAGES).map(|number| (number, Status::Success)).collect();
    assert_eq!(world.pair.statuses(Side::Client), expected);
    assert!(world.pair.host(Side::Server).memory == world.pair.host(Side::Client).memory);
    let bits = MESSAGES as f64 * f64::from(MESSAGE) * 8.0;
    (bits / end_ns as f64, world)
}

// Figure 11: links of 1:1, 1:4 and 1:10.
#[test]
fn adaptive_routing_fills_two_unequal_links_without_a_timeout() {
    for weights in [[1, 1], [1, 4], [1, 10]] {
        for threshold in [1 << 20, 64 << 10] {
            let base = PipelineConfig { trim_threshold_bytes: threshold, ..PipelineConfig::new(1) };
            let (gbps, world) = transfer(weights, base, LoadBalance::Adaptive);
            let counters = world.pair.host(Side::Client).endpoint.counters();
            let case = format!("{weights:?}, {threshold} bytes: {gbps} Gb/s, {counters:?}");
            assert!(gbps >= 0.95 * CAPACITY_GBPS, "{case}");
            assert_eq!(counters.timeouts + counters.window_timeouts, 0, "{case}");
            assert_eq!(counters.retransmitted, world.trimmed(), "{case}");
            assert_eq!(world.trimmed() > 0, threshold < WINDOW, "{case}");
        }
    }
}
