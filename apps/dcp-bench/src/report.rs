//! The table, in perftest's columns.

use std::fmt::Write;

use crate::congestion::Scheme;
use crate::fairness::Fairness;
use crate::measure;
use crate::net::NetCounters;
use crate::outcome::{Interval, Outcome, Verification};
use crate::plan::{Device, Mode, Plan, Trigger};
use crate::stats::LatencySummary;

const WIDTH: usize = 87;

/// Unit of the bandwidth columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Mebibytes per second.
    Mebibytes,
    /// Gigabits per second.
    Gigabits,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Mebibytes => "MiB/sec",
            Self::Gigabits => "Gb/sec",
        }
    }

    fn of(self, bytes_per_second: f64) -> f64 {
        match self {
            Self::Mebibytes => measure::mib_per_second(bytes_per_second),
            Self::Gigabits => measure::gbps(bytes_per_second),
        }
    }
}

/// What is going to run, and the heads of the columns.
pub fn banner(plan: &Plan, unit: Unit, several: bool) -> String {
    let rule = rule();
    let kind = if plan.mode == Mode::Latency { "Latency" } else { "BW" };
    let both = if plan.bidirectional { " Bidirectional" } else { "" };
    let title = format!("{}{both} {kind} Test", plan.op.title());
    let mut text = format!("{rule}{title:^WIDTH$}", rule = rule);
    text.truncate(text.trim_end().len());
    text.push('\n');
    if plan.device != Device::Loop {
        let role = plan.device.role().map_or_else(String::new, |role| format!(" ({role})"));
        line(&mut text, &format!(" {:<15} : {}{role}", "Device", plan.device.name()));
    }
    for [(left, left_value), (right, right_value)] in pairs(plan) {
        line(&mut text, &format!(" {left:<15} : {left_value:<14} {right:<15} : {right_value}"));
    }
    if plan.inline_bytes > 0 {
        line(&mut text, &format!(" {:<15} : {}[B]", "Max inline data", plan.inline_bytes));
    }
    if let Some(trigger) = plan.trigger() {
        let sentence = match trigger {
            Trigger::LastByte if several => Trigger::LAST_BYTE_OR_IMMEDIATE,
            _ => trigger.sentence(),
        };
        line(&mut text, &format!(" {:<15} : {sentence}", "Latency"));
        text.push_str(&rule);
        line(&mut text, &latency_line("#bytes", "#iterations", &LATENCY_HEADS.map(str::to_owned)));
        return text;
    }
    text.push_str(&rule);
    let (peak, average) = (format!("BW peak[{}]", unit.name()), format!("BW average[{}]", unit.name()));
    line(
        &mut text,
        &format!(" {:<10} {:<14} {peak:<18} {average:<21} MsgRate[Mpps]", "#bytes", "#iterations"),
    );
    text
}

const LATENCY_HEADS: [&str; 7] = [
    "t_min[usec]",
    "t_max[usec]",
    "t_typical[usec]",
    "t_avg[usec]",
    "t_stdev[usec]",
    "99% percentile[usec]",
    "99.9% percentile[usec]",
];

/// A line of a latency table, with values under heads.
fn latency_line(size: &str, iterations: &str, values: &[String; 7]) -> String {
    let mut text = format!(" {size:<10} {iterations:<14}");
    for (head, value) in LATENCY_HEADS.iter().zip(values) {
        write!(text, " {value:<width$}", width = head.len() + 1).expect("a String takes any text");
    }
    text.truncate(text.trim_end().len());
    text
}

/// The row of a latency test; a side that answers measures nothing.
pub fn latency_row(size: u64, outcome: &Outcome) -> String {
    let values = match outcome.details.latency {
        Some(lat) => {
            [lat.min, lat.max, lat.p50, lat.avg, lat.stdev, lat.p99, lat.p999].map(|us| format!("{us:.2}"))
        }
        None => LATENCY_HEADS.map(|_| "-".to_owned()),
    };
    latency_line(&size.to_string(), &outcome.iterations.to_string(), &values) + "\n"
}

/// What there is to know of a run, two to a line.
fn pairs(plan: &Plan) -> Vec<[(&'static str, String); 2]> {
    let bytes = |count: u64| format!("{count}[B]");
    let threads = ("Threads", plan.threads.name().to_owned());
    let qps = ("Number of qps", plan.qps.to_string());
    let transport = ("Transport type", "DCP".to_owned());
    let connection = ("Connection type", "RC".to_owned());
    let (tx_depth, rx_depth) =
        (("TX depth", plan.tx_depth.to_string()), ("RX depth", plan.rx_depth.to_string()));
    let window = match (plan.congestion.scheme, plan.congestion.rhcc.is_some()) {
        (Scheme::Window, false) => ("Window", bytes(plan.window_bytes)),
        (scheme, false) => ("Rate control", scheme.name().to_owned()),
        (scheme, true) => ("Rate control", format!("{}, rhcc", scheme.name())),
    };
    let moderation = ("CQ Moderation", plan.cq_mod.to_string());
    let (mtu, seed) = (("Mtu", bytes(plan.mtu.into())), ("Seed", plan.seed.to_string()));
    if plan.device != Device::Loop {
        return vec![
            [qps, transport],
            [connection, threads],
            [tx_depth, rx_depth],
            [moderation, window],
            [mtu, seed],
        ];
    }
    vec![
        [("Device", plan.device.name()), threads],
        [qps, transport],
        [connection, ("Hosts", plan.hosts.to_string())],
        [tx_depth, window],
        [
            moderation,
            (
                "Trim threshold",
                if plan.has_switch() { bytes(plan.threshold_bytes) } else { "no switch".to_owned() },
            ),
        ],
        [mtu, seed],
    ]
}

/// The row of one message size. A peak that was not measured is 0.00, as in perftest.
pub fn row(size: u64, outcome: &Outcome, unit: Unit) -> String {
    let peak = unit.of(outcome.peak_bytes_per_second.unwrap_or(0.0));
    let average = unit.of(outcome.throughput().bytes_per_second());
    let rate = outcome.throughput().mpps();
    format!(" {size:<10} {:<14} {peak:<18.2} {average:<21.2} {rate:.6}\n", outcome.iterations)
}

/// A piece of a run: when it was, and the columns of a row.
pub fn interval_row(interval: &Interval, unit: Unit) -> String {
    let per_second = |count: u64| if interval.seconds > 0.0 { count as f64 / interval.seconds } else { 0.0 };
    let (start, end) = (interval.start, interval.start + interval.seconds);
    let (rate, average) = (per_second(interval.messages) / 1e6, unit.of(per_second(interval.bytes)));
    let when = format!("{start:.2}-{end:.2}s");
    format!(" {when:<10} {:<14} {:<18} {average:<21.2} {rate:.6}\n", interval.messages, "")
}

/// What a load's messages took from their times on, and how evenly queue pairs shared the way.
pub fn remarks(outcome: &Outcome, mode: Mode) -> String {
    let mut text = String::new();
    let details = &outcome.details;
    if let (Some(lat), Mode::Bandwidth) = (&details.latency, mode) {
        let LatencySummary { min, p50, avg, p99, p999, max, .. } = lat;
        line(
            &mut text,
            &format!(
                " latency from the intended time of sending [usec]: min {min:.2}, typical {p50:.2}, avg {avg:.2}, \
                 99% {p99:.2}, 99.9% {p999:.2}, max {max:.2}"
            ),
        );
    }
    if let Some(burden) = &details.burden {
        line(&mut text, &format!(" host: {burden}"));
    }
    if let Some(Fairness { qps, min_over_mean, jain }) = details.fairness {
        line(
            &mut text,
            &format!(" fairness of {qps} queue pairs: min/mean {min_over_mean:.3}, Jain's index {jain:.3}"),
        );
    }
    text
}

/// What follows the rows: what the network did, and whether the data was right.
pub fn footer(net: &NetCounters, verification: &Verification) -> String {
    let data = match verification {
        Verification::NotChecked => "not checked",
        Verification::Passed => "verified",
        Verification::Failed(_) => "WRONG",
    };
    format!("{} network: {net}; data {data}\n", rule())
}

fn rule() -> String {
    format!("{}\n", "-".repeat(WIDTH))
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Details;

    fn outcome() -> Outcome {
        Outcome {
            iterations: 5000,
            bytes: 5000 * 65536,
            elapsed_ns: 100_000_000,
            peak_bytes_per_second: None,
            verification: Verification::Passed,
            net: NetCounters { data_packets: 80_000, ..NetCounters::default() },
            cores: 1,
            mtu: 4096,
            interrupted: false,
            notes: Vec::new(),
            details: Details::default(),
        }
    }

    fn fields(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn row_is_in_mebibytes_unless_asked_otherwise() {
        let mebibytes = row(65536, &outcome(), Unit::Mebibytes);
        assert_eq!(fields(&mebibytes), ["65536", "5000", "0.00", "3125.00", "0.050000"]);
        let gigabits = row(65536, &outcome(), Unit::Gigabits);
        assert_eq!(fields(&gigabits), ["65536", "5000", "0.00", "26.21", "0.050000"]);
    }

    #[test]
    fn values_stand_under_their_heads() {
        let banner = banner(&Plan::default(), Unit::Mebibytes, false);
        let heads = banner.lines().last().unwrap();
        let peak = Outcome { peak_bytes_per_second: Some(4e9), ..outcome() };
        let row = row(65536, &peak, Unit::Mebibytes);
        for (head, value) in [
            ("#bytes", "65536"),
            ("#iterations", "5000"),
            ("BW peak[MiB/sec]", "3814.70"),
            ("BW average[MiB/sec]", "3125.00"),
            ("MsgRate[Mpps]", "0.050000"),
        ] {
            assert_eq!(heads.find(head), row.find(value), "{head}");
        }
    }

    #[test]
    fn latencies_stand_under_perftests_heads() {
        let mut latencies = crate::stats::Latencies::default();
        [1000, 1400, 1800].into_iter().for_each(|ns| latencies.record(ns));
        let measured = Outcome {
            details: Details { latency: latencies.summary(), ..Details::default() },
            iterations: 3,
            ..outcome()
        };
        let plan = Plan { mode: Mode::Latency, size: 2, ..Plan::default() };
        let banner = banner(&plan, Unit::Mebibytes, false);
        assert!(banner.contains("RDMA_Write Latency Test\n") && banner.contains("last byte is seen"));
        let heads = banner.lines().last().unwrap();
        let row = latency_row(2, &measured);
        assert_eq!(fields(&row), ["2", "3", "1.00", "1.80", "1.40", "1.40", "0.33", "1.80", "1.80"]);
        for (head, value) in [("t_min[usec]", "1.00"), ("t_max[usec]", "1.80"), ("t_stdev[usec]", "0.33")] {
            assert_eq!(heads.find(head), row.find(value), "{head}");
        }
        assert_eq!(fields(&latency_row(2, &outcome()))[2..], ["-"; 7]);
    }

    #[test]
    fn banner_names_the_test_and_has_no_trailing_blanks() {
        let text = banner(&Plan::default(), Unit::Gigabits, false);
        assert!(text.contains("RDMA_Write BW Test\n"));
        assert!(text.contains("BW average[Gb/sec]"));
        assert!(text.lines().all(|line| line == line.trim_end() && line.len() <= WIDTH));
    }

    #[test]
    fn footer_has_one_line_under_the_rule() {
        let text = footer(&outcome().net, &Verification::Passed);
        assert_eq!(text.lines().count(), 2);
        assert!(text.ends_with("0 CNPs; data verified\n"));
    }
}
