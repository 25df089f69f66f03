//! Congestion between many hosts at one switch.

use dcp::core::{
    CongestionControl, CqId, DcqcnConfig, PdId, QpConfig, Rate, Remote, SendOp, SendRequest, Status,
    SwiftConfig,
};
use dcp_pair::MR_VA;
use dcp_pipeline::{FaultConfig, LoadBalance, PipelineConfig, Probability, RedConfig};
use dcp_switch::topology::{Description, NetworkConfig, Topology};

use crate::network::Network;

/// Bytes of a message, and messages that a client keeps outstanding.
const MESSAGE: u32 = 64 << 10;
const DEPTH: u32 = 8;
const LINK_GBPS: f64 = 10.0;
/// Propagation of a link.
const DELAY_NS: u64 = 1000;

/// Clients that WRITE to one server, the last host, each over a queue pair of its own, as fast as they may.
struct Star {
    network: Network,
    clients: Vec<Client>,
}

#[derive(Clone, Copy, Default)]
struct Client {
    /// Messages posted.
    posted: u64,
    /// Bytes delivered and acknowledged.
    done: u64,
}

impl Star {
    fn new(clients: u8, qp: QpConfig, base: PipelineConfig) -> Self {
        let description = Description::single(u32::from(clients) + 1);
        let topology = Topology::new(&description, LINK_GBPS).expect("a legal topology");
        let config = NetworkConfig { base, balance: LoadBalance::Ecmp, host_faults: FaultConfig::NONE };
        let clients = usize::from(clients);
        let mut network = Network::new(topology, &config, DELAY_NS, MESSAGE as usize * clients);
        (0..clients).for_each(|client| network.connect(client, clients, qp));
        Self { network, clients: vec![Client::default(); clients] }
    }

    /// Keeps all clients busy for `ns`; bytes that each delivered meanwhile.
    fn run(&mut self, ns: u64) -> Vec<u64> {
        let end = self.network.now.after(ns);
        let before = self.clients.clone();
        while self.network.now < end {
            (0..self.clients.len()).for_each(|client| self.post(client));
            self.network.step(end);
        }
        self.clients.iter().zip(before).map(|(client, before)| client.done - before.done).collect()
    }

    fn post(&mut self, number: usize) {
        let rkey = self.network.hosts[self.clients.len()].keys.rkey;
        let (client, host) = (&mut self.clients[number], &mut self.network.hosts[number]);
        host.collect();
        for completion in host.completions.drain(..) {
            assert_eq!(completion.status, Status::Success);
            client.done += u64::from(completion.byte_len);
        }
        let va = MR_VA + number as u64 * u64::from(MESSAGE);
        while host.endpoint.outstanding(host.qps[0]) < DEPTH {
            let sges = [host.sge(0, MESSAGE)];
            let request = SendRequest::new(client.posted, SendOp::Write(Remote { va, rkey }), &sges);
            host.endpoint.post_send(host.qps[0], &request).expect("room in the queue");
            client.posted += 1;
        }
    }

    fn timeouts(&self) -> u64 {
        (0..self.clients.len()).map(|client| self.network.counters(client).timeouts).sum()
    }
}

const MS: u64 = 1_000_000;
/// Payload's part of the wire: 1024 of payload, 73 of headers, 24 of check, preamble and gap.
const PAYLOAD: f64 = 1024.0 / (1024.0 + 73.0 + 24.0);

/// Jain's index of fairness.
fn jain(bytes: &[u64]) -> f64 {
    let sum: f64 = bytes.iter().map(|&it| it as f64).sum();
    let squares: f64 = bytes.iter().map(|&it| (it as f64).powi(2)).sum();
    sum * sum / (bytes.len() as f64 * squares)
}

/// A switch that trims above 512 KiB.
fn trimming() -> PipelineConfig {
    PipelineConfig::new(1)
}

/// The same that marks between 40 and 160 KB, up to a fifth.
fn marking() -> PipelineConfig {
    let at_max = Probability::from_ppm(200_000);
    PipelineConfig { ecn: Some(RedConfig { min_bytes: 40_000, max_bytes: 160_000, at_max }), ..trimming() }
}

fn queue_pair(cc: CongestionControl) -> QpConfig {
    QpConfig { mtu: 1024, cc, ..QpConfig::new(PdId(0), CqId(0)) }
}

fn dcqcn() -> QpConfig {
    let line = Rate::from_gbps(10);
    QpConfig { rate_max: line, ..queue_pair(CongestionControl::Dcqcn(DcqcnConfig::paper(line))) }
}

/// How a port was shared in 20 ms.
struct Shares {
    /// Of the port's rate.
    of_port: f64,
    jain: f64,
    /// The least by the mean.
    least: f64,
}

impl Shares {
    fn of(name: &str, bytes: &[u64], star: &Star) -> Self {
        let sum: u64 = bytes.iter().sum();
        let of_port = sum as f64 * 8.0 / (20 * MS) as f64 / PAYLOAD / LINK_GBPS;
        let mean = sum as f64 / bytes.len() as f64;
        let least = bytes.iter().copied().min().unwrap_or_default() as f64 / mean.max(1.0);
        let shares = Self { of_port, jain: jain(bytes), least };
        let totals = star.network.egress();
        println!(
            "{name}: {:.1} % of the port, Jain {:.4}, min/mean {least:.3}; {} trimmed, {} marked in all",
            of_port * 100.0,
            shares.jain,
            totals.trimmed,
            totals.marked
        );
        shares
    }
}

// C-2
#[test]
fn two_dcqcn_flows_fill_a_port_and_share_it() {
    let mut star = Star::new(2, dcqcn(), marking());
    star.run(20 * MS);
    let bytes = star.run(20 * MS);
    let shares = Shares::of("2 DCQCN flows after 20 ms", &bytes, &star);
    assert!(shares.of_port >= 0.95 && shares.jain >= 0.95);
    assert_eq!(star.timeouts(), 0);
}

// C-2
#[test]
fn incast_of_32_dcqcn_flows_starves_nobody() {
    let mut star = Star::new(32, dcqcn(), marking());
    star.run(10 * MS);
    let bytes = star.run(20 * MS);
    let shares = Shares::of("32 DCQCN flows after 10 ms", &bytes, &star);
    assert!(shares.of_port >= 0.75 && shares.least >= 0.5);
    assert_eq!(star.timeouts(), 0);
}

#[test]
fn delay_based_windows_fill_a_port_and_share_it_at_any_incast() {
    let qp = queue_pair(CongestionControl::Swift(SwiftConfig::new()));
    for clients in [2, 12, 32] {
        let mut star = Star::new(clients, qp, trimming());
        star.run(20 * MS);
        let trimmed = star.network.egress().trimmed;
        let bytes = star.run(20 * MS);
        let shares = Shares::of(&format!("{clients} delay-based flows after 20 ms"), &bytes, &star);
        assert!(shares.of_port >= 0.95 && shares.jain >= 0.95 && shares.least >= 0.5);
        assert_eq!(star.network.egress().trimmed, trimmed, "no queue fills up any more");
    }
}

// S-3: a window each, and nothing that sees the network: the price of DCP without congestion control.
#[test]
fn static_windows_beyond_the_weights_range_waste_the_port_on_headers() {
    let window = CongestionControl::Window { bytes: 256 << 10 };
    let mut star = Star::new(32, QpConfig { timeout_exponent: 10, ..queue_pair(window) }, trimming());
    let bytes = star.run(2 * MS);
    let shares = Shares::of("32 static windows", &bytes, &star);
    assert!(shares.of_port < 0.5 && star.network.egress().trimmed > 10_000);
}
