//! One story for each rule that others only pass by.
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]

mod common;

use std::collections::BTreeSet;

use common::*;
use dcp_core::{CongestionControl, DcqcnConfig, Instant, QpConfig, QpState, Rate, SendOp, Status};
use dcp_pair::{Lossless, MR_VA, Pair, PairConfig, Side, WriteRange, fate};
use dcp_wire::{
    Data, DataOp, Generation, Headers, Kind, Msn, Packet, PacketName, Part, Probe, Psn, RegionKey, Reth,
    Stream, Timestamp,
};

const MTU: u32 = 1024;

fn with(qps: usize, qp: fn(&mut QpConfig)) -> Pair {
    pair(PairConfig { qps, qp, ..PairConfig::default() })
}

fn small() -> Pair {
    with(1, |qp| qp.mtu = MTU)
}

fn post_writes(pair: &mut Pair, qp: usize, count: u64, len: u32) {
    for wr_id in 0..count {
        pair.write(Side::Client, qp, wr_id, WriteRange { from: 0, to: 0, len }).expect("room in the queue");
    }
}

/// Everything that the client sends in one poll, parsed.
fn burst(pair: &mut Pair) -> Vec<Packet> {
    let now = pair.now;
    let frames = pair.host_mut(Side::Client).transmit(now, 1000);
    frames.iter().map(|frame| pair.host(Side::Client).view(frame)).collect()
}

fn data(packet: &Packet) -> Data {
    match packet.headers.kind {
        Kind::Data(data) => data,
        other => panic!("{other:?} is no data"),
    }
}

// T-1.
#[test]
fn no_more_than_w_messages_are_under_way() {
    let mut pair = with(1, |qp| {
        qp.window = 4;
        qp.mtu = MTU;
    });
    post_writes(&mut pair, 0, 10, 2 * MTU);
    let sent: BTreeSet<u32> = burst(&mut pair).iter().map(|packet| data(packet).name.msn.get()).collect();
    assert_eq!(sent, (0..4).collect());
}

/// Lengths of the turns that two queue pairs take, in packets, when each has `count` WRITEs of `len` bytes.
fn turns(qp: fn(&mut QpConfig), count: u64, len: u32) -> Vec<usize> {
    let mut pair = with(2, qp);
    // Idle for long enough to begin with a whole burst.
    pair.now = pair.now.after(1_000_000);
    for qp in 0..2 {
        post_writes(&mut pair, qp, count, len);
    }
    let owners: Vec<u32> = burst(&mut pair).iter().map(|packet| packet.headers.dest_qpn.get() & 1).collect();
    owners.chunk_by(|a, b| a == b).map(<[u32]>::len).collect()
}

// T-2.
#[test]
fn queue_pairs_take_turns_of_sixty_four_kib_and_eight_requests() {
    assert_eq!(turns(|qp| qp.mtu = MTU, 1, 160 << 10), [64, 64, 64, 64, 32, 32]);
    assert_eq!(turns(|qp| qp.mtu = MTU, 20, 1), [8, 8, 8, 8, 4, 4]);
}

// T-2, C-5: the paper's 16 KiB, which is the burst that an idle one may begin with, too.
#[test]
fn queue_pairs_with_congestion_control_take_turns_of_sixteen_kib() {
    let paced = turns(
        |qp| {
            qp.mtu = MTU;
            qp.rate_max = Rate::from_gbps(100);
            qp.cc = CongestionControl::Dcqcn(DcqcnConfig::hpcc(qp.rate_max));
        },
        1,
        160 << 10,
    );
    assert_eq!(paced, [16, 16]);
}

/// Probes of a client that sent 7 packets of a long message and then heard nothing for a quarter of the timeout.
fn probes_after_silence(qp: fn(&mut QpConfig)) -> u64 {
    const QUARTER_NS: u64 = (4096 << 14) / 4;
    let mut pair = with(1, qp);
    post_writes(&mut pair, 0, 1, 64 * MTU);
    let start = pair.now;
    let client = pair.host_mut(Side::Client);
    assert_eq!(client.transmit(start, 7).len(), 7);
    let later = start.after(QUARTER_NS + 2048);
    client.endpoint.handle_timeout(later);
    client.transmit(later, 1000);
    client.endpoint.counters().probes
}

// T-14: thousands of queue pairs whose turn takes that long would leave each other no time for data.
#[test]
fn no_probe_asks_about_a_message_that_waits_for_its_turn() {
    assert_eq!(probes_after_silence(|qp| qp.mtu = MTU), 0);
    let of_a_full_window = probes_after_silence(|qp| {
        qp.mtu = MTU;
        qp.ack_bytes = 2048;
        qp.cc = CongestionControl::Window { bytes: 8192 };
    });
    assert_eq!(of_a_full_window, 1);
}

// T-3, C-1.
#[test]
fn resends_are_charged_like_new_data() {
    const WINDOW: u64 = 8192;
    let mut pair = with(1, |qp| {
        qp.mtu = MTU;
        qp.ack_bytes = 2048;
        qp.cc = CongestionControl::Window { bytes: WINDOW as u32 };
    });
    let mut count = 0;
    let mut script = |_: Side, packet: &Packet| {
        count += 1;
        if matches!(packet.headers.kind, Kind::Data(_)) && count % 3 == 0 {
            fate::trim()
        } else {
            fate::deliver()
        }
    };
    post_writes(&mut pair, 0, 4, 100 * MTU);
    let qp = pair.host(Side::Client).qps[0];
    while !pair.run(&mut script, 500) {
        assert!(pair.host(Side::Client).endpoint.in_flight(qp) <= WINDOW);
    }
    assert!(pair.host(Side::Client).endpoint.counters().retransmitted > 100);
    assert_eq!(pair.statuses(Side::Client).len(), 4);
}

// T-11.
#[test]
fn a_fatal_nak_retires_what_is_before_the_offender_and_flushes_the_rest() {
    let mut pair = small();
    post_writes(&mut pair, 0, 1, 3 * MTU);
    let remote = dcp_core::Remote { va: MR_VA, rkey: RegionKey(0xBAD) };
    pair.post(Side::Client, 0, 1, SendOp::Write(remote), (0, 10)).unwrap();
    post_writes(&mut pair, 0, 1, 10);
    assert!(pair.run(&mut Lossless, LONG));
    let expected = [(0, Status::Success), (1, Status::RemoteAccess), (0, Status::Flushed)];
    assert_eq!(pair.statuses(Side::Client), expected);
    assert_eq!(pair.state(Side::Client, 0), QpState::Error);
}

// T-13.
#[test]
fn ack_is_requested_by_the_last_packet_and_by_every_resend() {
    let mut pair = small();
    let mut asked = Vec::new();
    let mut script = |from: Side, packet: &Packet| {
        let Kind::Data(data) = packet.headers.kind else { return fate::deliver() };
        let first = from == Side::Client && asked.len() < 8;
        asked.push((data.name.psn.get(), data.ack_req));
        if first && data.name.psn.get() == 2 { fate::trim() } else { fate::deliver() }
    };
    post_writes(&mut pair, 0, 2, 4 * MTU);
    assert!(pair.run(&mut script, LONG));
    let plain =
        [(0, false), (1, false), (2, false), (3, false), (0, false), (1, false), (2, false), (3, true)];
    assert_eq!(asked[..8], plain);
    assert_eq!(asked[8..], [(2, true), (2, true)]);
}

// T-18.
#[test]
fn source_port_stays_until_the_path_looks_dead_and_varies_with_spraying() {
    let ports = |pair: &mut Pair, lose: u32| {
        let (mut ports, mut sent) = (Vec::new(), 0);
        let mut script = |from: Side, packet: &Packet| {
            if from == Side::Client && matches!(packet.headers.kind, Kind::Data(_)) {
                ports.push(packet.headers.path.src_port);
                sent += 1;
            }
            if sent <= lose { fate::lose() } else { fate::deliver() }
        };
        post_writes(pair, 0, 1, 8 * MTU);
        assert!(pair.run(&mut script, LONG));
        ports
    };
    let distinct = |ports: &[u16]| ports.iter().collect::<BTreeSet<_>>().len();
    let steady = ports(&mut small(), 8);
    assert_eq!((steady.len(), distinct(&steady[..8]), distinct(&steady[8..])), (16, 1, 1));
    assert_ne!(steady[7], steady[8], "a coarse expiry changes the path");
    let sprayed = ports(&mut with(1, |qp| (qp.mtu, qp.spray) = (MTU, true)), 0);
    assert!(distinct(&sprayed) > 4, "{sprayed:?}");
}

//
#[test]
fn received_counts_every_packet_that_arrives_duplicates_too() {
    let mut pair = small();
    let (mut sent, mut told) = (0, 0);
    let mut script = |from: Side, packet: &Packet| {
        match packet.headers.kind {
            Kind::Data(_) if from == Side::Client => sent += u32::from(packet.ip_len),
            Kind::Ack(ack) => told = ack.received,
            _ => {}
        }
        if matches!(packet.headers.kind, Kind::Data(_)) { fate::twice() } else { fate::deliver() }
    };
    post_writes(&mut pair, 0, 1, 1);
    assert!(pair.run(&mut script, LONG));
    assert_eq!(told, 2 * sent);
}

//
#[test]
fn contradicting_lengths_of_a_message_end_it_as_an_invalid_request() {
    let mut pair = small();
    post_writes(&mut pair, 0, 1, 4 * MTU);
    let first = burst(&mut pair)[0].headers;
    let rkey = pair.host(Side::Server).keys.rkey;
    let packet = |psn: u32, part, packets: u32| {
        let name = PacketName { msn: Msn::ZERO, psn: Psn::from_low_bits(psn), generation: Generation::ZERO };
        let reth = Reth { va: MR_VA + u64::from(psn * MTU), rkey, dma_len: packets * MTU };
        let op = DataOp::Write { reth, part };
        Headers { kind: Kind::Data(Data { name, ack_req: false, solicited: false, op }), ..first }
    };
    for headers in [packet(0, Part::First, 4), packet(1, Part::Middle, 5)] {
        let mut frame = vec![0; headers.len() + MTU as usize];
        dcp_wire::emit(&headers, MTU as usize, &mut frame);
        let now = pair.now;
        assert_eq!(pair.host_mut(Side::Server).receive(now, frame), None);
    }
    assert_eq!(pair.state(Side::Server, 0), QpState::Error);
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(0, Status::RemoteInvalidRequest)]);
}

//
#[test]
fn acks_come_by_bytes_received_or_never_before_the_message_is_whole() {
    let acks = |qp: fn(&mut QpConfig)| {
        let mut pair = with(1, qp);
        post_writes(&mut pair, 0, 1, 100 * MTU);
        assert!(pair.run(&mut Lossless, LONG));
        pair.host(Side::Server).endpoint.counters().acks
    };
    assert_eq!(acks(|qp| (qp.mtu, qp.ack_bytes) = (MTU, 0)), 1);
    // 100 packets of 1083 bytes, one ACK after each 8 of them; the last four end the message.
    assert_eq!(acks(|qp| (qp.mtu, qp.ack_bytes) = (MTU, 8 * 1083)), 13);
}

//
#[test]
fn a_probe_is_answered_with_its_own_time_its_arrival_and_a_fresh_clock_read() {
    let mut pair = small();
    post_writes(&mut pair, 0, 1, 10);
    let headers = burst(&mut pair)[0].headers;
    let kind = Kind::Probe(Probe { stream: Stream::Requests, t1: Timestamp(0xFFFF_FFFE) });
    let headers = Headers { kind, ..headers };
    let mut frame = vec![0; headers.len()];
    dcp_wire::emit(&headers, 0, &mut frame);
    let arrived = Instant::from_ns((7 << 32) + 5);
    assert_eq!(pair.host_mut(Side::Server).receive(arrived, frame), None);
    let frames = pair.host_mut(Side::Server).transmit(arrived.after(300), 8);
    let [frame] = &frames[..] else { panic!("{} frames", frames.len()) };
    let Kind::ProbeAck(answer) = pair.host(Side::Server).view(frame).headers.kind else {
        panic!("no answer")
    };
    assert_eq!((answer.t1, answer.t2, answer.t3), (Timestamp(0xFFFF_FFFE), Timestamp(5), Timestamp(305)));
}
