//! Fault cases B and C of other systems' users that have no home elsewhere.
#![forbid(unsafe_code)]

mod common;

use common::*;
use dcp_core::{
    Access, CongestionControl, Instant, MrAttr, QpConfig, QpState, RegionId, Remote, SendOp, SendRequest,
    Sge, Status,
};
use dcp_pair::{Copies, Lossless, MR_VA, Pair, PairConfig, Random, Rates, Side, Step, WriteRange, fate};
use dcp_wire::{ImmData, Kind, Msn, Packet};

const MTU: u32 = 1024;

fn small() -> Pair {
    let qp: fn(&mut QpConfig) = |qp| qp.mtu = MTU;
    pair(PairConfig { qp, ..PairConfig::default() })
}

fn ok(count: u64) -> Vec<(u64, Status)> {
    (0..count).map(|wr_id| (wr_id, Status::Success)).collect()
}

// C2
#[test]
fn c2_message_and_receive_numbers_wrap_together() {
    for (start, count) in [(0xFF_FFFE, 5), (0xFF_FFF0, 100)] {
        let qp: fn(&mut QpConfig) = |qp| qp.mtu = MTU;
        let start_msn = Msn::from_low_bits(start);
        let mut pair = pair(PairConfig { start_msn, qp, ..PairConfig::default() });
        for wr_id in 0..count {
            pair.receive(Side::Server, 0, wr_id, (wr_id * 8192, 3000)).unwrap();
            pair.post(Side::Client, 0, wr_id, SendOp::Send, (wr_id * 8192, 2500)).unwrap();
        }
        let rates = Rates { drop: 10_000, trim: 10_000, jitter_ns: 20_000, ..Rates::default() };
        assert!(pair.run(&mut Random::new(2, rates), LONG));
        assert_eq!((pair.statuses(Side::Client), pair.statuses(Side::Server)), (ok(count), ok(count)));
        for wr_id in 0..count {
            assert_landed(&pair, WriteRange { from: wr_id * 8192, to: wr_id * 8192, len: 2500 });
        }
        assert_at_rest(&pair);
    }
}

fn is_ack(from: Side, packet: &Packet) -> bool {
    from == Side::Server && matches!(packet.headers.kind, Kind::Ack(_))
}

/// Twenty SENDs under `script`: each is delivered once.
fn twenty_sends(script: &mut impl dcp_pair::Script) -> Pair {
    let mut pair = small();
    for wr_id in 0..20 {
        pair.receive(Side::Server, 0, wr_id, (wr_id * 4096, 4096)).expect("room");
        pair.post(Side::Client, 0, wr_id, SendOp::Send, (wr_id * 4096, 3 * MTU)).expect("room");
    }
    assert!(pair.run(script, LONG));
    assert_eq!((pair.statuses(Side::Client), pair.statuses(Side::Server)), (ok(20), ok(20)));
    assert_at_rest(&pair);
    pair
}

// C3
#[test]
fn c3_losing_the_last_ack_once_costs_one_probe() {
    let mut lost = false;
    let pair = twenty_sends(&mut |from: Side, packet: &Packet| match packet.headers.kind {
        Kind::Ack(ack) if is_ack(from, packet) && ack.emsn.get() == 20 && !lost => {
            lost = true;
            fate::lose()
        }
        _ => fate::deliver(),
    });
    let client = pair.host(Side::Client).endpoint.counters();
    assert_eq!((client.retransmitted, client.timeouts, client.probes), (0, 0, 1));
}

// C3
#[test]
fn c3_losing_one_ack_in_a_hundred_or_all_for_three_timeouts_delivers_once() {
    let mut acks = 0;
    twenty_sends(&mut |from: Side, packet: &Packet| {
        acks += u32::from(is_ack(from, packet));
        if is_ack(from, packet) && acks % 100 == 1 { fate::lose() } else { fate::deliver() }
    });
    let mut pair = small();
    let silence = 3 * (4096 << 14);
    pair.receive(Side::Server, 0, 0, (0, 4096)).unwrap();
    pair.post(Side::Client, 0, 0, SendOp::Send, (0, 3 * MTU)).unwrap();
    let mut no_words = |from: Side, packet: &Packet| match packet.headers.kind {
        Kind::Ack(_) | Kind::ProbeAck(_) if from == Side::Server => fate::lose(),
        _ => fate::deliver(),
    };
    assert!(!pair.run(&mut no_words, silence));
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!((pair.statuses(Side::Client), pair.statuses(Side::Server)), (ok(1), ok(1)));
    assert_at_rest(&pair);
}

// C5
#[test]
fn c5_last_packet_first_completes_without_a_restart() {
    for op in [SendOp::Send, SendOp::SendImm(ImmData(3))] {
        let mut pair = small();
        pair.receive(Side::Server, 0, 0, (64, 16 * MTU)).unwrap();
        pair.post(Side::Client, 0, 0, op, (0, 9 * MTU)).unwrap();
        let mut script = |_: Side, packet: &Packet| match packet.headers.kind {
            Kind::Data(data) if data.name.psn.get() < 8 => fate::late(50_000),
            _ => fate::deliver(),
        };
        assert!(pair.run(&mut script, LONG));
        assert_eq!((pair.statuses(Side::Client), pair.statuses(Side::Server)), (ok(1), ok(1)));
        assert_landed(&pair, WriteRange { from: 0, to: 64, len: 9 * MTU });
        assert_eq!(pair.host(Side::Client).endpoint.counters().retransmitted, 0);
    }
}

// C5
#[test]
fn c5_one_packet_in_a_hundred_twice_on_long_messages_finishes() {
    let mut pair = small();
    for wr_id in 0..3 {
        let at = wr_id << 20;
        pair.write(Side::Client, 0, wr_id, WriteRange { from: at, to: at, len: 1 << 20 }).unwrap();
    }
    let rates = Rates { duplicate: 10_000, jitter_ns: 5000, ..Rates::default() };
    assert!(pair.run(&mut Random::new(7, rates), LONG));
    assert_eq!(pair.statuses(Side::Client), ok(3));
    assert_landed(&pair, WriteRange { from: 0, to: 0, len: 3 << 20 });
    assert_at_rest(&pair);
}

// C9, T-3, T-12: what comes back leaves again only as awin allows, like new data.
#[test]
fn c9_a_thousand_headers_leave_at_the_rate_of_new_data() {
    const WINDOW: u32 = 64 << 10;
    let qp: fn(&mut QpConfig) = |qp| {
        qp.mtu = MTU;
        qp.cc = CongestionControl::Window { bytes: WINDOW };
    };
    let mut pair = pair(PairConfig { qp, ..PairConfig::default() });
    let range = WriteRange { from: 0, to: 64, len: 1000 * MTU };
    pair.write(Side::Client, 0, 7, range).unwrap();
    let mut script = |_: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(data) if !data.ack_req => fate::trim(),
        _ => fate::deliver(),
    };
    let id = pair.host(Side::Client).qps[0];
    while pair.step(&mut script, Instant::from_ns(LONG)) == Step::Moved {
        let client = &pair.host(Side::Client).endpoint;
        assert!(client.in_flight(id) <= WINDOW.into(), "{} in flight", client.in_flight(id));
        assert!(client.in_flight(id) == 0 || client.has_timer(id), "C11");
    }
    assert_landed(&pair, range);
    let client = pair.host(Side::Client).endpoint.counters();
    assert!(client.ho_returned > 900, "{} came back", client.ho_returned);
    assert!(client.retransmitted <= client.ho_returned && client.timeouts == 0);
    assert_at_rest(&pair);
}

// C10
#[test]
fn c10_one_ack_for_the_third_completes_all_three_in_order() {
    let mut pair = small();
    pair.receive(Side::Server, 0, 9, (50_000, 64)).unwrap();
    let to = pair.remote(Side::Client, 0);
    for (wr_id, op) in [SendOp::Write(to), SendOp::Send, SendOp::Write(to)].into_iter().enumerate() {
        pair.post(Side::Client, 0, wr_id as u64, op, (0, 64)).unwrap();
    }
    let mut acks = 0;
    let mut script = |from: Side, packet: &Packet| -> Copies {
        if let Kind::Ack(ack) = packet.headers.kind
            && is_ack(from, packet)
        {
            if ack.emsn.get() < 3 {
                return fate::lose();
            }
            acks += 1;
        }
        fate::deliver()
    };
    assert!(pair.run(&mut script, LONG));
    assert_eq!(acks, 1);
    assert_eq!(pair.statuses(Side::Client), ok(3));
}

/// A second region at each host's end that belongs elsewhere, or lacks rights; both keys of it.
fn other_region(pair: &mut Pair, side: Side, own_pd: bool) -> dcp_core::MrKeys {
    let host = pair.host_mut(side);
    let pd = if own_pd { host.pd } else { host.endpoint.create_pd() };
    let access = if own_pd { Access::default() } else { Access::ALL };
    let attr = MrAttr { pd, region: RegionId(0), offset: 0, va: MR_VA, len: 65_536, access };
    host.endpoint.register(attr).expect("there is room")
}

// B7
#[test]
fn b7_wrong_domain_or_missing_right_on_the_fifth_of_sixteen_ends_in_order() {
    for own_pd in [false, true] {
        for bad in ["write", "read"] {
            let mut pair = small();
            let bad_key = other_region(&mut pair, Side::Server, own_pd).rkey;
            for wr_id in 0..16 {
                let at = pair.remote(Side::Client, wr_id * 2048);
                let bad_at = Remote { rkey: bad_key, ..at };
                let op = match (wr_id, bad) {
                    (4, "read") => SendOp::Read(bad_at),
                    (4, _) => SendOp::Write(bad_at),
                    _ => SendOp::Write(at),
                };
                pair.post(Side::Client, 0, wr_id, op, (100_000, 1500)).unwrap();
            }
            assert!(pair.run(&mut Lossless, LONG));
            let mut expected = ok(4);
            expected.push((4, Status::RemoteAccess));
            expected.extend((5..16).map(|wr_id| (wr_id, Status::Flushed)));
            assert_eq!(pair.statuses(Side::Client), expected, "{bad}, own domain {own_pd}");
            let memory = &pair.host(Side::Server).memory;
            assert!(memory[4 * 2048..5 * 2048].iter().all(|&byte| byte == 0xA5));
            assert_eq!(pair.state(Side::Server, 0), QpState::Error);
        }
    }
}

// B8
#[test]
fn b8_local_bytes_outside_the_region_or_of_another_domain_never_reach_the_wire() {
    for outside in [true, false] {
        let mut pair = small();
        let foreign = other_region(&mut pair, Side::Client, false).lkey;
        let to = pair.remote(Side::Client, 0);
        let host = pair.host_mut(Side::Client);
        let sge = match outside {
            true => Sge { va: MR_VA + (4 << 20) - 5, ..host.sge(0, 6) },
            false => Sge { lkey: foreign, ..host.sge(0, 6) },
        };
        let request = SendRequest::new(1, SendOp::Write(to), std::slice::from_ref(&sge));
        host.endpoint.post_send(host.qps[0], &request).unwrap();
        assert!(pair.run(&mut Lossless, LONG));
        assert_eq!(pair.statuses(Side::Client), [(1, Status::LocalProtection)]);
        assert_eq!(pair.host(Side::Client).endpoint.counters().data_packets, 0);
    }
}

// B11
#[test]
fn b11_every_operation_gives_its_number_back_unchanged() {
    for wr_id in [0, 1 << 63, u64::MAX] {
        let mut pair = small();
        let remote = pair.remote(Side::Client, 8);
        let ops = [
            SendOp::Send,
            SendOp::SendImm(ImmData(1)),
            SendOp::Write(remote),
            SendOp::WriteImm(remote, ImmData(2)),
            SendOp::Read(remote),
            SendOp::CmpSwap { remote, compare: 1, swap: 2 },
            SendOp::FetchAdd { remote, add: 1 },
        ];
        for op in ops {
            pair.receive(Side::Server, 0, wr_id, (4096, 8)).unwrap();
            pair.post(Side::Client, 0, wr_id, op, (0, 8)).unwrap();
        }
        assert!(pair.run(&mut Lossless, LONG));
        assert_eq!(pair.statuses(Side::Client), vec![(wr_id, Status::Success); 7]);
        assert_eq!(pair.statuses(Side::Server), vec![(wr_id, Status::Success); 3]);
    }
}

// P_Key: what the old connection sent does not reach the new one, even with the same numbers.
#[test]
fn frames_of_a_destroyed_host_change_nothing_at_its_successor_s_peer() {
    let mut pair = small();
    pair.write(Side::Client, 0, 0, WriteRange { from: 0, to: 0, len: 8 * MTU }).unwrap();
    let mut late = |_: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(_) => fate::late(3_000_000),
        _ => fate::deliver(),
    };
    assert!(!pair.run(&mut late, 1_000_000));
    pair.restart(Side::Client);
    fill(&mut pair, 4711);
    let range = WriteRange { from: 0, to: 100, len: 20 };
    pair.write(Side::Client, 0, 1, range).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::Success)]);
    assert_landed(&pair, range);
    assert_guard(&pair, range);
    assert_eq!(pair.host(Side::Server).endpoint.counters().dropped(dcp_core::DropReason::WrongKey), 8);
}
