//! Congestion control, pacing and RHCC's sender as a pair of hosts sees them, in virtual time.
#![forbid(unsafe_code)]

mod common;

use common::*;
use dcp_core::{CongestionControl, DcqcnConfig, QpConfig, Rate, RhccConfig, RhccThreshold, SwiftConfig};
use dcp_pair::{Lossless, Pair, PairConfig, Side, WriteRange, fate};
use dcp_wire::Packet;

const MTU: u32 = 1024;
const LEN: u32 = 64 << 10;
const MS: u64 = 1_000_000;

fn pair_of(qps: usize, qp: fn(&mut QpConfig)) -> Pair {
    pair(PairConfig { qps, qp, memory: 8 << 20, ..PairConfig::default() })
}

/// Keeps every queue pair of the client busy for `ns`; returns the bytes that each delivered.
fn keep_busy(pair: &mut Pair, script: &mut impl dcp_pair::Script, ns: u64) -> Vec<u64> {
    let end = pair.now.after(ns);
    let qps = pair.host(Side::Client).qps.len();
    let mut bytes = vec![0; qps];
    while pair.now < end {
        for qp in 0..qps {
            let host = pair.host(Side::Client);
            for _ in host.endpoint.outstanding(host.qps[qp])..16 {
                let range =
                    WriteRange { from: qp as u64 * u64::from(LEN), to: qp as u64 * u64::from(LEN), len: LEN };
                pair.write(Side::Client, qp, qp as u64, range).expect("room");
            }
        }
        let _ = pair.run(script, (ns / 200).max(2000));
        for completion in pair.host_mut(Side::Client).completions.drain(..) {
            assert_eq!(completion.status, dcp_core::Status::Success);
            bytes[usize::try_from(completion.wr_id).expect("small")] += u64::from(completion.byte_len);
        }
    }
    bytes
}

fn gbps(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 8.0 / ns as f64
}

/// Payload's part of what is paced: IP length.
const PAYLOAD: f64 = 1024.0 / 1083.0;

// C-5
#[test]
fn c5_queue_pairs_keep_the_pace_they_were_given_each_its_own() {
    let mut pair = pair_of(3, |qp| {
        qp.mtu = MTU;
        qp.rate_max = Rate::from_gbps(10);
    });
    let bytes = keep_busy(&mut pair, &mut Lossless, 20 * MS);
    for bytes in bytes {
        let rate = gbps(bytes, 20 * MS) / PAYLOAD;
        assert!((rate / 10.0 - 1.0).abs() < 0.01, "{rate} Gb/s");
    }
    assert!(pair.run(&mut Lossless, LONG));
    assert_at_rest(&pair);
}

// C-5, T-8
#[test]
fn c5_slow_pace_is_no_loss() {
    // A message takes half a second at 1 Mb/s, a timeout 67 ms.
    let mut pair = pair_of(1, |qp| {
        qp.mtu = MTU;
        qp.rate_max = Rate::from_mbps(1);
    });
    write_and_check(&mut pair, LEN, &mut Lossless);
    let seconds = pair.now.ns() as f64 / 1e9;
    let right = f64::from(LEN) / PAYLOAD * 8.0 / 1e6;
    // Idle time bought the first quota.
    assert!(seconds <= right && seconds > right * 0.7, "{seconds} s instead of {right} s");
    let counters = pair.host(Side::Client).endpoint.counters();
    assert_eq!((counters.timeouts, counters.window_timeouts, counters.retransmitted), (0, 0, 0));
}

// E2, R-13
#[test]
fn e2_marks_become_at_most_a_cnp_per_interval_for_each_queue_pair() {
    let mut pair = pair_of(2, |qp| qp.mtu = MTU);
    let mut all = |_: Side, _: &Packet| fate::mark();
    keep_busy(&mut pair, &mut all, MS);
    let server = *pair.host(Side::Server).endpoint.counters();
    assert!(server.ce_received > 2000, "{}", server.ce_received);
    assert!(server.cnps_sent > 38 && server.cnps_sent <= 2 * 21, "{} CNPs in 1 ms", server.cnps_sent);
    assert_eq!(pair.host(Side::Client).endpoint.counters().cnps, server.cnps_sent);
}

// C-2
#[test]
fn c2_marks_slow_a_dcqcn_sender_and_their_end_frees_it() {
    let mut pair = pair_of(1, |qp| {
        qp.mtu = MTU;
        qp.rate_max = Rate::from_gbps(10);
        qp.cc = CongestionControl::Dcqcn(DcqcnConfig::hpcc(Rate::from_gbps(10)));
    });
    let qp = pair.host(Side::Client).qps[0];
    keep_busy(&mut pair, &mut Lossless, MS);
    assert_eq!(pair.host(Side::Client).endpoint.rate(qp), Rate::from_gbps(10));
    let mut all = |_: Side, _: &Packet| fate::mark();
    keep_busy(&mut pair, &mut all, 10 * MS);
    let slowed = pair.host(Side::Client).endpoint.rate(qp);
    assert!(slowed < Rate::from_gbps(1), "{slowed}");
    keep_busy(&mut pair, &mut Lossless, 200 * MS);
    let freed = pair.host(Side::Client).endpoint.rate(qp);
    assert!(freed >= Rate::from_mbps(9900), "{freed}");
    assert!(pair.run(&mut Lossless, LONG));
    assert_at_rest(&pair);
}

// C-1
#[test]
fn c1_header_is_no_sign_of_congestion_unless_asked() {
    for header_cuts in [false, true] {
        let template = QpConfig {
            mtu: MTU,
            rate_max: Rate::from_gbps(50),
            cc: CongestionControl::Dcqcn(DcqcnConfig {
                header_cuts,
                ..DcqcnConfig::hpcc(Rate::from_gbps(50))
            }),
            ..PairConfig::default().template
        };
        let mut pair = pair(PairConfig { template, ..PairConfig::default() });
        let mut count = 0u32;
        let mut trims = |from: Side, packet: &Packet| {
            count += 1;
            let data = matches!(packet.headers.kind, dcp_wire::Kind::Data(_));
            if from == Side::Client && data && count.is_multiple_of(10) {
                fate::trim()
            } else {
                fate::deliver()
            }
        };
        keep_busy(&mut pair, &mut trims, MS);
        let qp = pair.host(Side::Client).qps[0];
        let full = pair.host(Side::Client).endpoint.rate(qp) == Rate::from_gbps(50);
        assert_eq!(full, !header_cuts);
    }
}

fn rhcc(threshold: RhccThreshold) -> QpConfig {
    QpConfig {
        mtu: MTU,
        rate_max: Rate::from_gbps(100),
        rhcc: Some(RhccConfig { threshold, ..RhccConfig::new() }),
        ..PairConfig::default().template
    }
}

// C-3
#[test]
fn c3_sender_settles_at_what_the_receiver_takes_in_and_recovers() {
    for (threshold, intake) in [(2000, 50), (5000, 20), (20_000, 50), (50_000, 10)] {
        let template = rhcc(RhccThreshold::Fixed(threshold));
        let mut pair = pair(PairConfig { template, memory: 8 << 20, ..PairConfig::default() });
        let qp = pair.host(Side::Client).qps[0];
        pair.host_mut(Side::Server).intake_gbps = intake;
        keep_busy(&mut pair, &mut Lossless, 20 * MS);
        // Settled: the goodput of every 2 ms is the receiver's, but for a tenth.
        for _ in 0..10 {
            let bytes = keep_busy(&mut pair, &mut Lossless, 2 * MS)[0];
            let taken = gbps(bytes, 2 * MS) / (1024.0 / 1097.0) / intake as f64;
            let rate = pair.host(Side::Client).endpoint.rate(qp).bps() as f64 / 1e9 / intake as f64;
            println!("D_thr {threshold} ns, intake {intake} Gb/s: taken {taken:.3}, rate {rate:.3}");
            assert!((0.9..=1.1).contains(&taken) && (0.9..=1.1).contains(&rate), "{taken}, {rate}");
        }
        pair.host_mut(Side::Server).intake_gbps = 0;
        keep_busy(&mut pair, &mut Lossless, 20 * MS);
        assert_eq!(pair.host(Side::Client).endpoint.rate(qp), Rate::from_gbps(100), "the cause is over");
    }
}

// C-3
#[test]
fn c3_threshold_finds_itself_where_probes_wait_for_software() {
    let template = rhcc(RhccThreshold::Auto);
    let mut pair = pair(PairConfig { template, memory: 8 << 20, ..PairConfig::default() });
    let qp = pair.host(Side::Client).qps[0];
    // Quiet: the host takes in all that comes, one frame after the other.
    pair.host_mut(Side::Server).intake_gbps = 130;
    keep_busy(&mut pair, &mut Lossless, 20 * MS);
    let quiet = keep_busy(&mut pair, &mut Lossless, 5 * MS)[0];
    pair.host_mut(Side::Server).intake_gbps = 30;
    keep_busy(&mut pair, &mut Lossless, 20 * MS);
    let slowed = pair.host(Side::Client).endpoint.rate(qp).bps() as f64 / 30e9;
    assert!((0.9..=1.1).contains(&slowed), "{slowed}");
    pair.host_mut(Side::Server).intake_gbps = 130;
    keep_busy(&mut pair, &mut Lossless, 20 * MS);
    let again = keep_busy(&mut pair, &mut Lossless, 5 * MS)[0];
    assert!(again as f64 >= 0.98 * quiet as f64, "{again} instead of {quiet}");
}

// C-3
#[test]
fn c3_probes_are_a_fivehundredth_of_the_bytes_at_most() {
    let template = rhcc(RhccThreshold::Fixed(5000));
    let mut pair = pair(PairConfig { template, memory: 8 << 20, ..PairConfig::default() });
    keep_busy(&mut pair, &mut Lossless, 10 * MS);
    let counters = *pair.host(Side::Client).endpoint.counters();
    // 60 bytes of probe, on the wire as its data is: with frame check, preamble and gap.
    let (probe, packet) = (60 + 24, u64::from(MTU) + 73 + 24);
    let part = (counters.probes * probe) as f64 / (counters.data_packets * packet) as f64;
    assert!(counters.probes > 1000 && part <= 0.0025, "{part}");
    let bytes = (counters.probes * 60) as f64 / counters.data_bytes as f64;
    assert!(bytes <= 0.002, "{bytes}");
}

// C-1
#[test]
fn c1_slower_of_both_rates_counts() {
    let mut template = rhcc(RhccThreshold::Fixed(5000));
    template.cc = CongestionControl::Dcqcn(DcqcnConfig::hpcc(Rate::from_gbps(100)));
    let mut pair = pair(PairConfig { template, memory: 8 << 20, ..PairConfig::default() });
    let qp = pair.host(Side::Client).qps[0];
    let mut all = |_: Side, _: &Packet| fate::mark();
    keep_busy(&mut pair, &mut all, 5 * MS);
    let marked = pair.host(Side::Client).endpoint.rate(qp);
    assert!(marked < Rate::from_gbps(2), "the network's: {marked}");
    pair.host_mut(Side::Server).intake_gbps = 20;
    keep_busy(&mut pair, &mut Lossless, 800 * MS);
    let taken = pair.host(Side::Client).endpoint.rate(qp).bps() as f64 / 20e9;
    assert!((0.9..=1.1).contains(&taken), "the host's: {taken}");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |change: fn(&mut QpConfig)| {
        let mut host = dcp_pair::Host::new(9, 4096, |_| {});
        let mut config =
            QpConfig { pd: host.pd, send_cq: host.cq, recv_cq: host.cq, ..QpConfig::new(host.pd, host.cq) };
        change(&mut config);
        host.endpoint.create_qp(config).expect_err("refused").to_string()
    };
    let line = refused(|qp| qp.cc = CongestionControl::Dcqcn(DcqcnConfig::connectx()));
    assert!(line.starts_with("DCQCN line rate"), "{line}");
    let line = refused(|qp| qp.rhcc = Some(RhccConfig::new()));
    assert!(line.starts_with("RHCC line rate"), "{line}");
    let line = refused(|qp| qp.rate_max = Rate::from_bps(1000));
    assert!(line.starts_with("pace in bits/s 1000"), "{line}");
    let line = refused(|qp| {
        qp.cc = CongestionControl::Swift(SwiftConfig { window_max: 4096, ..SwiftConfig::new() });
    });
    assert!(line.starts_with("Swift largest window 4096"), "{line}");
}
