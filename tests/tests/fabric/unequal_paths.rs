//! The paper's Figure 11: two switches, two links of unequal capacity, adaptive routing.

use dcp::core::{CongestionControl, CqId, Instant, PdId, QpConfig, Remote, SendOp, SendRequest, Status};
use dcp_pair::MR_VA;
use dcp_pipeline::{FaultConfig, LoadBalance, PipelineConfig};
use dcp_switch::topology::{Description, LinkDescription, NetworkConfig, SwitchDescription, Topology};

use crate::network::Network;

/// Both links together, in Gb/s.
const CAPACITY_GBPS: f64 = 10.0;
const MESSAGE: u32 = 1 << 20;
const MESSAGES: u64 = 64;
const WINDOW: u32 = 1 << 20;
/// A second: more than enough.
const END: Instant = Instant::from_ns(1_000_000_000);
const CLIENT: usize = 0;
const SERVER: usize = 1;

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

fn network(weights: [u32; 2], base: PipelineConfig) -> Network {
    let topology = Topology::new(&description(weights), 0.0).expect("a legal topology");
    let config = NetworkConfig { base, balance: LoadBalance::Adaptive, host_faults: FaultConfig::NONE };
    let mut network = Network::new(topology, &config, 0, MESSAGE as usize);
    let qp = QpConfig {
        mtu: 4096,
        send_depth: 128,
        cc: CongestionControl::Window { bytes: WINDOW },
        ..QpConfig::new(PdId(0), CqId(0))
    };
    network.connect(CLIENT, SERVER, qp);
    network
}

/// Goodput in Gb/s of messages of any bytes, which must arrive.
fn transfer(network: &mut Network) -> f64 {
    let rkey = network.hosts[SERVER].keys.rkey;
    let client = &mut network.hosts[CLIENT];
    client
        .memory
        .iter_mut()
        .zip(0u32..)
        .for_each(|(byte, at)| *byte = at.wrapping_mul(0x9E37_79B1).to_le_bytes()[3]);
    for number in 0..MESSAGES {
        let sges = [client.sge(0, MESSAGE)];
        let request = SendRequest::new(number, SendOp::Write(Remote { va: MR_VA, rkey }), &sges);
        client.endpoint.post_send(client.qps[0], &request).expect("room in the queue");
    }
    while (network.hosts[CLIENT].completions.len() as u64) < MESSAGES {
        network.step(END);
        network.hosts[CLIENT].collect();
        assert!(network.now < END, "it stands still");
    }
    let [client, server] = &network.hosts[..] else { panic!("two hosts") };
    let done: Vec<_> = client.completions.iter().map(|it| (it.wr_id, it.status)).collect();
    let expected: Vec<_> = (0..MESSAGES).map(|number| (number, Status::Success)).collect();
    assert_eq!(done, expected);
    assert!(server.memory == client.memory);
    let bits = MESSAGES as f64 * f64::from(MESSAGE) * 8.0;
    bits / network.now.ns() as f64
}

// Figure 11: links of 1:1, 1:4 and 1:10.
#[test]
fn adaptive_routing_fills_two_unequal_links_without_a_timeout() {
    for weights in [[1, 1], [1, 4], [1, 10]] {
        for threshold in [1 << 20, 64 << 10] {
            let base = PipelineConfig { trim_threshold_bytes: threshold, ..PipelineConfig::new(1) };
            let mut network = network(weights, base);
            let gbps = transfer(&mut network);
            let (counters, trimmed) = (network.counters(CLIENT), network.egress().trimmed);
            let case = format!("{weights:?}, {threshold} bytes: {gbps} Gb/s, {counters:?}");
            println!(
                "{weights:?}, threshold {threshold}: {gbps:.2} of {CAPACITY_GBPS} Gb/s, {trimmed} trimmed"
            );
            assert!(gbps >= 0.95 * CAPACITY_GBPS, "{case}");
            assert_eq!(counters.timeouts + counters.window_timeouts, 0, "{case}");
            assert_eq!(counters.retransmitted, trimmed, "{case}");
            assert_eq!(trimmed > 0, threshold < WINDOW, "{case}");
        }
    }
}
