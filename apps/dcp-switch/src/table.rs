//! Counters for people.

use std::fmt::Write;

use crate::report::{PortReport, Report};

const RULE: usize = 132;

/// The table of a report. Rates are since `earlier`, or since the start.
pub fn table(report: &Report, earlier: Option<&Report>) -> String {
    let since_ns = earlier.map_or(0, |earlier| earlier.at_ns);
    let seconds = (report.at_ns - since_ns) as f64 / 1e9;
    let mut text = format!(
        "{:-<RULE$}\n{:>9.1}s {:<24} {:<4} {:>11} {:>8} {:>11} {:>8} {:>9} {:>8} {:>7} {:>7} {:>10} {:>10}\n",
        "",
        report.at_ns as f64 / 1e9,
        "device",
        "link",
        "rx frames",
        "rx Gb/s",
        "tx frames",
        "tx Gb/s",
        "trimmed",
        "HO lost",
        "marked",
        "dropped",
        "data q[B]",
        "control q",
    );
    for (number, port) in report.ports.iter().enumerate() {
        let earlier = earlier.and_then(|earlier| earlier.ports.get(number));
        text.push_str(&row(number, port, earlier, seconds));
    }
    text
}

fn row(number: usize, port: &PortReport, earlier: Option<&PortReport>, seconds: f64) -> String {
    let (ingress, egress) = (&port.counters.ingress, &port.counters.egress);
    let before = earlier.map(|earlier| earlier.counters).unwrap_or_default();
    let gbps = |now: u64, before: u64| {
        if seconds > 0.0 { (now - before) as f64 * 8.0 / 1e9 / seconds } else { 0.0 }
    };
    format!(
        "port {number:<4}  {:<24} {:<4} {:>11} {:>8.3} {:>11} {:>8.3} {:>9} {:>8} {:>7} {:>7} {:>10} {:>10}\n",
        short(&port.uri),
        if port.is_up { "up" } else { "down" },
        ingress.received,
        gbps(ingress.received_bytes, before.ingress.received_bytes),
        port.device.sent,
        gbps(egress.forwarded_bytes, before.egress.forwarded_bytes),
        egress.trimmed,
        egress.ho_lost(),
        egress.marked,
        port.dropped(),
        port.queued.data_bytes,
        port.queued.control_bytes,
    )
}

/// The end of a long name tells more than its beginning.
fn short(uri: &str) -> String {
    let uri = uri.replace(",role=server", "");
    let len = uri.chars().count();
    if len <= 24 { uri } else { format!("…{}", uri.chars().skip(len - 23).collect::<String>()) }
}

/// What follows the last table.
pub fn footer(report: &Report) -> String {
    let mut text = format!("{:-<RULE$}\n", "");
    for (number, port) in report.ports.iter().enumerate() {
        let egress = &port.counters.egress;
        let data = egress.forwarded + egress.trimmed_forwarded - egress.control_forwarded;
        let _ = writeln!(
            text,
            " port {number}: data queue {data} frames, {} bytes, peak {}; control queue {} frames, {} bytes, peak {}",
            egress.forwarded_bytes - egress.control_forwarded_bytes,
            egress.data_bytes_peak,
            egress.control_forwarded,
            egress.control_forwarded_bytes,
            egress.control_bytes_peak,
        );
    }
    for (number, port) in report.ports.iter().enumerate().filter(|(_, port)| port.device.cut > 0) {
        let _ = writeln!(
            text,
            " port {number}: {} frames came cut: the interface at the other end makes frames longer than its MTU; there, run \
             'ethtool -K IFACE tso off gso off' or 'ip link set IFACE gso_max_segs 1'",
            port.device.cut
        );
    }
    let losses: Vec<String> = report.losses().map(|(reason, frames)| format!("{reason} {frames}")).collect();
    let losses = if losses.is_empty() { "none".to_owned() } else { losses.join(", ") };
    let accounts =
        if report.balances() { "every frame is accounted for" } else { "THE COUNTERS DO NOT BALANCE" };
    let _ = writeln!(text, " lost: {losses}; weight {}; {accounts}", report.weight);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(short("tap:t0"), "tap:t0");
        assert_eq!(short("memif:/var/run/dcp/switch.sock,id=12,role=server"), "…n/dcp/switch.sock,id=12");
    }
}
