//! Congestion between many hosts at one switch, in virtual time: the core and the pipeline as they are, a link made up.
#![forbid(unsafe_code)]

mod star;

use dcp::core::{CongestionControl, DcqcnConfig, QpConfig, Rate, SwiftConfig};
use dcp_pipeline::{PipelineConfig, Probability, RedConfig};
use star::{Star, StarConfig};

const MS: u64 = 1_000_000;
/// Payload's part of the wire: 1024 of payload, 73 of headers, 24 of check, preamble and gap.
const PAYLOAD: f64 = 1024.0 / (1024.0 + 73.0 + 24.0);

/// Jain's index of fairness.
fn jain(bytes: &[u64]) -> f64 {
    let sum: f64 = bytes.iter().map(|&it| it as f64).sum();
    let squares: f64 = bytes.iter().map(|&it| (it as f64).powi(2)).sum();
    sum * sum / (bytes.len() as f64 * squares)
}

/// Marks between 100 and 400 KB, up to a fifth; trims above 512 KiB.
fn marking(config: &mut PipelineConfig) {
    config.ecn =
        Some(RedConfig { min_bytes: 40_000, max_bytes: 160_000, at_max: Probability::from_ppm(200_000) });
}

fn dcqcn(line: Rate) -> QpConfig {
    QpConfig {
        rate_max: line,
        cc: CongestionControl::Dcqcn(DcqcnConfig::paper(line)),
        ..StarConfig::default().qp
    }
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
        let of_port = sum as f64 * 8.0 / (20 * MS) as f64 / PAYLOAD / 10.0;
        let mean = sum as f64 / bytes.len() as f64;
        let least = bytes.iter().copied().min().unwrap_or_default() as f64 / mean.max(1.0);
        let shares = Self { of_port, jain: jain(bytes), least };
        let totals = star.switch.totals().egress;
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
    let qp = dcqcn(Rate::from_gbps(10));
    let mut star = Star::new(StarConfig { qp, switch: marking, ..StarConfig::default() });
    star.run(20 * MS);
    let bytes = star.run(20 * MS);
    let shares = Shares::of("2 DCQCN flows after 20 ms", &bytes, &star);
    assert!(shares.of_port >= 0.95 && shares.jain >= 0.95);
    assert_eq!(star.counters(0).timeouts, 0);
}

// C-2
#[test]
fn incast_of_32_dcqcn_flows_starves_nobody() {
    let qp = dcqcn(Rate::from_gbps(10));
    let mut star = Star::new(StarConfig { clients: 32, qp, switch: marking, ..StarConfig::default() });
    star.run(10 * MS);
    let bytes = star.run(20 * MS);
    let shares = Shares::of("32 DCQCN flows after 10 ms", &bytes, &star);
    assert!(shares.of_port >= 0.75 && shares.least >= 0.5);
    assert_eq!(star.counters(0).timeouts, 0);
}

#[test]
fn delay_based_windows_fill_a_port_and_share_it_at_any_incast() {
    let qp = QpConfig { cc: CongestionControl::Swift(SwiftConfig::new()), ..StarConfig::default().qp };
    for clients in [2, 12, 32] {
        let mut star = Star::new(StarConfig { clients, qp, ..StarConfig::default() });
        star.run(20 * MS);
        let trimmed = star.switch.totals().egress.trimmed;
        let bytes = star.run(20 * MS);
        let shares = Shares::of(&format!("{clients} delay-based flows after 20 ms"), &bytes, &star);
        assert!(shares.of_port >= 0.95 && shares.jain >= 0.95 && shares.least >= 0.5);
        assert_eq!(star.switch.totals().egress.trimmed, trimmed, "no queue fills up any more");
    }
}

// S-3: a window each, and nothing that sees the network: the price of DCP without congestion control.
#[test]
fn static_windows_beyond_the_weights_range_waste_the_port_on_headers() {
    let qp = QpConfig {
        cc: CongestionControl::Window { bytes: 256 << 10 },
        timeout_exponent: 10,
        ..StarConfig::default().qp
    };
    let mut star = Star::new(StarConfig { clients: 32, qp, ..StarConfig::default() });
    let bytes = star.run(2 * MS);
    let shares = Shares::of("32 static windows", &bytes, &star);
    let totals = star.switch.totals();
    assert!(shares.of_port < 0.5 && totals.egress.trimmed > 10_000);
}
