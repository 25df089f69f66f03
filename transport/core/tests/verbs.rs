//! Operations, receives, statuses: the stories of `B` in the fault cases.
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]

mod common;

use common::*;
use dcp_core::{Operation, PostError, QpConfig, QpState, RecvRequest, SendOp, SendRequest, Sge, Status};
use dcp_pair::{Lossless, MR_VA, Pair, PairConfig, Random, Rates, Side, WriteRange, fate};
use dcp_wire::{ImmData, Kind, Packet, RegionKey, RnrTimer};

const MTU: u32 = 1024;

fn small() -> Pair {
    let qp: fn(&mut QpConfig) = |qp| qp.mtu = MTU;
    pair(PairConfig { qp, ..PairConfig::default() })
}

/// wr_id, status, operation, bytes and immediate of a side's completions.
fn completions(pair: &Pair, side: Side) -> Vec<(u64, Status, Operation, u32, Option<u32>)> {
    let all = pair.host(side).completions.iter();
    all.map(|c| (c.wr_id, c.status, c.operation, c.byte_len, c.imm.map(|imm| imm.0))).collect()
}

#[test]
fn every_operation_completes_with_its_bytes() {
    let mut pair = small();
    pair.receive(Side::Server, 0, 100, (100_000, 5000)).unwrap();
    pair.receive(Side::Server, 0, 101, (110_000, 5000)).unwrap();
    pair.receive(Side::Server, 0, 102, (120_000, 0)).unwrap();
    let (to, read, atomic) = (
        pair.remote(Side::Client, 0),
        pair.remote(Side::Client, 200_000),
        pair.remote(Side::Client, 300_000),
    );
    pair.host_mut(Side::Server).memory[200_000..203_000].fill(7);
    pair.host_mut(Side::Server).memory[300_000..300_008].copy_from_slice(&41u64.to_ne_bytes());
    let ops = [
        (SendOp::Send, (0, 3000)),
        (SendOp::SendImm(ImmData(0xdead_beef)), (3000, 1)),
        (SendOp::WriteImm(to, ImmData(9)), (0, 2500)),
        (SendOp::Read(read), (500_000, 3000)),
        (SendOp::FetchAdd { remote: atomic, add: 1 }, (600_000, 8)),
        (SendOp::CmpSwap { remote: atomic, compare: 42, swap: 1 << 63 }, (600_008, 8)),
    ];
    for (wr_id, (op, from)) in ops.into_iter().enumerate() {
        pair.post(Side::Client, 0, wr_id as u64, op, from).unwrap();
    }
    assert!(pair.run(&mut Lossless, LONG));
    let ok = Status::Success;
    let sent = [
        (0, ok, Operation::Send, 3000, None),
        (1, ok, Operation::Send, 1, None),
        (2, ok, Operation::Write, 2500, None),
        (3, ok, Operation::Read, 3000, None),
        (4, ok, Operation::FetchAdd, 8, None),
        (5, ok, Operation::CmpSwap, 8, None),
    ];
    assert_eq!(completions(&pair, Side::Client), sent);
    let received = [
        (100, ok, Operation::Receive, 3000, None),
        (101, ok, Operation::Receive, 1, Some(0xdead_beef)),
        (102, ok, Operation::ReceiveWriteImm, 2500, Some(9)),
    ];
    assert_eq!(completions(&pair, Side::Server), received);
    let (client, server) = (&pair.host(Side::Client).memory, &pair.host(Side::Server).memory);
    assert_eq!(client[..3000], server[100_000..103_000]);
    assert_eq!(client[..2500], server[..2500]);
    assert!(client[500_000..503_000].iter().all(|&byte| byte == 7));
    let word = |memory: &[u8], at: usize| u64::from_ne_bytes(memory[at..at + 8].try_into().unwrap());
    assert_eq!((word(client, 600_000), word(client, 600_008)), (41, 42));
    assert_eq!(word(server, 300_000), 1 << 63);
    assert_at_rest(&pair);
}

#[test]
fn b1_late_receive_delays_a_send_by_no_more_than_its_timer() {
    let mut pair = small();
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 3 * MTU)).unwrap();
    pair.post(Side::Client, 0, 2, SendOp::Write(pair.remote(Side::Client, 0)), (0, 10)).unwrap();
    assert!(!pair.run(&mut Lossless, 50_000_000));
    pair.receive(Side::Server, 0, 5, (100_000, 3 * MTU)).unwrap();
    let posted = pair.now.ns();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(completions(&pair, Side::Server), [(5, Status::Success, Operation::Receive, 3 * MTU, None)]);
    assert_eq!(
        pair.host(Side::Client).memory[..3 * MTU as usize],
        pair.host(Side::Server).memory[100_000..][..3 * MTU as usize]
    );
    assert!(pair.now.ns() - posted < 1_000_000, "waited {} ns", pair.now.ns() - posted);
    let client = pair.host(Side::Client).endpoint.counters();
    assert_eq!(client.timeouts, 0, "an RNR wait is no loss");
    assert_at_rest(&pair);
}

#[test]
fn b1_work_behind_a_long_send_without_receive_waits_and_does_not_spin() {
    let mut pair = small();
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 64 * MTU)).unwrap();
    pair.post(Side::Client, 0, 2, SendOp::Write(pair.remote(Side::Client, 0)), (0, 10)).unwrap();
    assert!(!pair.run(&mut Lossless, 5_000_000), "T-10: the rest of the SEND waits, and the WRITE behind it");
    pair.receive(Side::Server, 0, 5, (100_000, 64 * MTU)).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::Success), (2, Status::Success)]);
    assert_at_rest(&pair);
}

/// T-5: the SEND waits for a receive with both its packets, and the RetransQ fills up meanwhile.
#[test]
fn t5_refused_packets_that_find_no_room_after_the_wait_are_left_to_the_timer() {
    let qp: fn(&mut QpConfig) = |qp| {
        qp.mtu = MTU;
        qp.retrans_max = 2;
    };
    let mut pair = pair(PairConfig { qp, ..PairConfig::default() });
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 2 * MTU)).unwrap();
    pair.post(Side::Client, 0, 2, SendOp::Write(pair.remote(Side::Client, 0)), (0, 2 * MTU)).unwrap();
    let now = pair.now;
    let mut frames = pair.host_mut(Side::Client).transmit(now, 8);
    for frame in &mut frames[2..] {
        let len = dcp_wire::trim(frame).unwrap();
        frame.truncate(len);
    }
    for (index, frame) in frames.into_iter().enumerate() {
        let returned = pair.host_mut(Side::Server).receive(now, frame).expect("it comes back");
        assert!(pair.host_mut(Side::Client).receive(now, returned).is_none());
        if index == 1 {
            let nak = pair.host_mut(Side::Server).transmit(now, 8).remove(0);
            assert!(pair.host_mut(Side::Client).receive(now, nak).is_none());
        }
    }
    pair.now = pair.now.after(1_000_000);
    let client = &mut pair.host_mut(Side::Client).endpoint;
    client.handle_timeout(dcp_core::Instant::from_ns(1_000_000));
    assert_eq!(client.counters().dropped(dcp_core::DropReason::RetransFull), 2);
    pair.receive(Side::Server, 0, 5, (100_000, 2 * MTU)).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::Success), (2, Status::Success)]);
    assert_at_rest(&pair);
}

/// an answer that is complete already, behind one that is not, is counted as received all the same.
#[test]
fn r1_copies_of_an_answer_out_of_turn_count_as_received() {
    let mut pair = small();
    let place = pair.remote(Side::Client, 0);
    pair.post(Side::Client, 0, 0, SendOp::Read(place), (100_000, 64)).unwrap();
    pair.post(Side::Client, 0, 1, SendOp::Read(place), (101_000, 64)).unwrap();
    let (mut lost, mut arrived, mut told) = (false, 0, 0);
    let mut script = |from: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(data) if from == Side::Server && data.name.msn.get() == 0 && !lost => {
            lost = true;
            fate::lose()
        }
        Kind::Data(data) if from == Side::Server => {
            let copies = if data.name.msn.get() == 1 { fate::twice() } else { fate::deliver() };
            arrived += copies.len() as u32 * u32::from(packet.ip_len);
            copies
        }
        Kind::Ack(ack) if from == Side::Client => {
            told = ack.received;
            fate::deliver()
        }
        _ => fate::deliver(),
    };
    assert!(pair.run(&mut script, LONG));
    assert_eq!(told, arrived);
    assert_at_rest(&pair);
}

#[test]
fn r17_failed_peer_ends_a_read_that_it_acknowledged() {
    let mut pair = small();
    let place = pair.remote(Side::Client, 0);
    pair.post(Side::Client, 0, 1, SendOp::Read(place), (100_000, 64)).unwrap();
    pair.post(Side::Client, 0, 2, SendOp::Write(place), (0, 8)).unwrap();
    let mut no_answers = |from: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(_) if from == Side::Server => fate::lose(),
        _ => fate::deliver(),
    };
    assert!(!pair.run(&mut no_answers, 1_000_000));
    let server = pair.host_mut(Side::Server);
    server.endpoint.modify_to_error(server.qps[0]).unwrap();
    assert!(pair.run(&mut Lossless, 1_000_000_000), "T-11: its NAK ends what waits for an answer");
    assert_eq!(pair.statuses(Side::Client), [(1, Status::RemoteOperation), (2, Status::Flushed)]);
    assert_eq!(pair.state(Side::Client, 0), QpState::Error);
}

#[test]
fn b1_rnr_retry_counts_transmissions() {
    for (rnr_retry, transmissions) in [(0, 1), (3, 4)] {
        let mut pair = small_with_rnr(rnr_retry);
        let mut sent = 0;
        let mut script = |from: Side, packet: &Packet| {
            sent += u32::from(from == Side::Client && matches!(packet.headers.kind, Kind::Data(_)));
            fate::deliver()
        };
        pair.post(Side::Client, 0, 1, SendOp::Send, (0, 10)).unwrap();
        assert!(pair.run(&mut script, LONG));
        assert_eq!(pair.statuses(Side::Client), [(1, Status::RnrRetryExceeded)]);
        assert_eq!(sent, transmissions);
    }
    let mut pair = small_with_rnr(7);
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 10)).unwrap();
    assert!(!pair.run(&mut Lossless, 20_000_000_000));
    assert!(pair.statuses(Side::Client).is_empty());
}

fn small_with_rnr(rnr_retry: u8) -> Pair {
    let qp: fn(&mut QpConfig) = match rnr_retry {
        0 => |qp| qp.rnr_retry = 0,
        3 => |qp| qp.rnr_retry = 3,
        _ => |qp| qp.rnr_retry = 7,
    };
    pair(PairConfig { qp, ..PairConfig::default() })
}

#[test]
fn b1_timer_code_zero_is_the_longest_wait() {
    let qp: fn(&mut QpConfig) = |qp| qp.rnr_timer = RnrTimer::new(0).unwrap();
    let mut pair = pair(PairConfig { qp, ..PairConfig::default() });
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 10)).unwrap();
    assert!(!pair.run(&mut Lossless, 1_000_000));
    pair.receive(Side::Server, 0, 5, (0, 10)).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert!((655_360_000..656_500_000).contains(&pair.now.ns()), "{} ns", pair.now.ns());
}

#[test]
fn b2_receive_one_byte_too_small_fails_both_sides_and_spares_what_lies_behind() {
    for len in [100, 3 * MTU] {
        let mut pair = small();
        pair.receive(Side::Server, 0, 9, (1000, len - 1)).unwrap();
        pair.post(Side::Client, 0, 1, SendOp::Send, (0, len)).unwrap();
        assert!(pair.run(&mut Lossless, LONG));
        assert_eq!(pair.statuses(Side::Client), [(1, Status::RemoteInvalidRequest)]);
        assert_eq!(pair.statuses(Side::Server), [(9, Status::LocalLength)]);
        let memory = &pair.host(Side::Server).memory;
        assert!(memory[1000 + len as usize - 1..].iter().all(|&byte| byte == 0xA5));
        assert_eq!(
            (pair.state(Side::Client, 0), pair.state(Side::Server, 0)),
            (QpState::Error, QpState::Error)
        );
    }
}

#[test]
fn b3_empty_messages_and_empty_elements_are_messages() {
    let mut pair = small();
    let to = pair.remote(Side::Client, 50_000);
    let nowhere = dcp_core::Remote { va: 0, rkey: RegionKey(0) };
    pair.receive(Side::Server, 0, 9, (0, 0)).unwrap();
    let host = pair.host_mut(Side::Client);
    let (first, empty, last) = (host.sge(0, 4096), host.sge(1, 0), host.sge(8192, 17));
    let three = [first, empty, last];
    let requests = [
        SendRequest::new(0, SendOp::Write(to), &[]),
        SendRequest::new(1, SendOp::Write(nowhere), std::slice::from_ref(&empty)),
        SendRequest::new(2, SendOp::Send, &[]),
        SendRequest::new(3, SendOp::Write(to), &three),
        SendRequest::new(4, SendOp::Read(nowhere), &[]),
    ];
    let qp = host.qps[0];
    host.endpoint.post_send_list(qp, &requests).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    let expected: Vec<_> = (0..5).map(|id| (id, Status::Success)).collect();
    assert_eq!(pair.statuses(Side::Client), expected);
    assert_eq!(pair.statuses(Side::Server), [(9, Status::Success)]);
    let (client, server) = (&pair.host(Side::Client).memory, &pair.host(Side::Server).memory);
    assert_eq!(client[..4096], server[50_000..54_096]);
    assert_eq!(client[8192..8209], server[54_096..54_113]);
}

#[test]
fn b4_immediate_without_a_receive_waits_and_is_not_lost() {
    let mut pair = small();
    let to = pair.remote(Side::Client, 0);
    pair.post(Side::Client, 0, 1, SendOp::WriteImm(to, ImmData(77)), (0, 2 * MTU)).unwrap();
    assert!(!pair.run(&mut Lossless, 5_000_000));
    let host = pair.host_mut(Side::Server);
    host.endpoint.post_recv(host.qps[0], &RecvRequest { wr_id: 3, sges: &[] }).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    let expected = [(3, Status::Success, Operation::ReceiveWriteImm, 2 * MTU, Some(77))];
    assert_eq!(completions(&pair, Side::Server), expected);
    assert!(pair.host(Side::Server).endpoint.counters().rnr_naks > 0);
    assert_at_rest(&pair);
}

#[test]
fn b5_list_of_twenty_into_sixteen_slots_names_the_seventeenth() {
    let mut pair = Pair::new(PairConfig { qp: |qp| qp.send_depth = 16, ..PairConfig::default() });
    let to = pair.remote(Side::Client, 0);
    let host = pair.host_mut(Side::Client);
    let sge = [host.sge(0, 8)];
    let requests: Vec<_> = (0..20).map(|id| SendRequest::new(id, SendOp::Write(to), &sge)).collect();
    let error = host.endpoint.post_send_list(host.qps[0], &requests);
    assert_eq!(error, Err((16, PostError::QueueFull { depth: 16 })));
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client).len(), 16);
}

#[test]
fn b7_access_without_right_or_out_of_bounds_is_refused_by_the_peer() {
    let cases: [fn(&Pair) -> SendOp; 4] = [
        |pair| SendOp::Write(dcp_core::Remote { va: MR_VA + (4 << 20) - 5, ..pair.remote(Side::Client, 0) }),
        |pair| SendOp::Read(dcp_core::Remote { rkey: RegionKey(5), ..pair.remote(Side::Client, 0) }),
        |pair| SendOp::Read(dcp_core::Remote { va: u64::MAX - 3, ..pair.remote(Side::Client, 0) }),
        |pair| SendOp::FetchAdd {
            remote: dcp_core::Remote { va: 8, ..pair.remote(Side::Client, 0) },
            add: 1,
        },
    ];
    for case in cases {
        let mut pair = small();
        let op = case(&pair);
        pair.post(Side::Client, 0, 0, SendOp::Write(pair.remote(Side::Client, 0)), (0, 4)).unwrap();
        pair.post(Side::Client, 0, 1, op, (0, 8)).unwrap();
        pair.post(Side::Client, 0, 2, SendOp::Write(pair.remote(Side::Client, 64)), (0, 4)).unwrap();
        assert!(pair.run(&mut Lossless, LONG));
        let expected = [(0, Status::Success), (1, Status::RemoteAccess), (2, Status::Flushed)];
        assert_eq!(pair.statuses(Side::Client), expected, "{op:?}");
    }
}

#[test]
fn atomic_on_an_odd_address_is_an_invalid_request() {
    let mut pair = small();
    let op = SendOp::FetchAdd { remote: pair.remote(Side::Client, 4), add: 1 };
    pair.post(Side::Client, 0, 1, op, (0, 8)).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::RemoteInvalidRequest)]);
}

#[test]
fn atomic_with_a_buffer_of_another_size_fails_here() {
    let mut pair = small();
    let op = SendOp::FetchAdd { remote: pair.remote(Side::Client, 8), add: 1 };
    pair.post(Side::Client, 0, 1, op, (0, 4)).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::LocalLength)]);
    assert_eq!(pair.host(Side::Client).endpoint.counters().data_packets, 0);
}

#[test]
fn b9_overflowing_completion_queue_says_so() {
    let mut pair = small();
    let host = pair.host_mut(Side::Client);
    assert!(host.endpoint.create_cq(0).is_err());
    for (depth, lost) in [(1, 4), (4, 1)] {
        let mut pair = small();
        let host = pair.host_mut(Side::Client);
        let cq = host.endpoint.create_cq(depth).unwrap();
        let qp = QpConfig { mtu: MTU, ..QpConfig::new(host.pd, cq) };
        let id = host.endpoint.create_qp(qp).unwrap();
        host.endpoint.modify_to_init(id).unwrap();
        host.endpoint.modify_to_error(id).unwrap();
        for wr_id in 0..5 {
            let request = RecvRequest { wr_id, sges: &[] };
            host.endpoint.post_recv(id, &request).unwrap();
        }
        assert!(host.endpoint.cq_overflowed(cq));
        assert_eq!(host.endpoint.counters().completions_lost, lost);
    }
}

#[test]
fn b10_everything_outstanding_at_an_error_completes_once() {
    let mut pair = small();
    for wr_id in 0..9 {
        pair.receive(Side::Client, 0, 100 + wr_id, (0, 64)).unwrap();
    }
    for wr_id in 0..7 {
        pair.post(Side::Client, 0, wr_id, SendOp::Send, (0, 64)).unwrap();
    }
    let host = pair.host_mut(Side::Client);
    let id = host.qps[0];
    host.endpoint.modify_to_error(id).unwrap();
    for wr_id in 7..10 {
        pair.post(Side::Client, 0, wr_id, SendOp::Send, (0, 64)).unwrap();
    }
    pair.host_mut(Side::Client).collect();
    let mut statuses = pair.statuses(Side::Client);
    assert_eq!(statuses.len(), 19);
    assert!(statuses.iter().all(|status| status.1 == Status::Flushed));
    statuses.sort_unstable_by_key(|status| status.0);
    statuses.dedup();
    assert_eq!(statuses.len(), 19, "none twice");
}

#[test]
fn t17_failed_requests_complete_when_no_frame_refers_to_their_buffers() {
    let mut pair = small();
    pair.post(Side::Client, 0, 1, SendOp::Send, (0, 64)).unwrap();
    let host = pair.host_mut(Side::Client);
    let (id, cq) = (host.qps[0], host.cq);
    host.endpoint.modify_to_error(id).unwrap();
    let blank = dcp_core::Completion {
        wr_id: 0,
        qp: id,
        status: Status::Success,
        operation: Operation::Send,
        byte_len: 0,
        imm: None,
        solicited: false,
    };
    let mut out = [blank; 4];
    assert!(host.endpoint.needs_drain());
    assert_eq!(host.endpoint.poll_completions(cq, &mut out), 0);
    host.endpoint.handle_drained();
    assert_eq!(host.endpoint.poll_completions(cq, &mut out), 1);
    assert_eq!(out[0].status, Status::Flushed);
}

#[test]
fn f4_regions_are_referred_to_while_work_is_outstanding() {
    let mut pair = small();
    let region = dcp_core::RegionId(0);
    let refers = |pair: &Pair, side: Side| pair.host(side).endpoint.refers_to(region);
    assert!(!refers(&pair, Side::Client) && !refers(&pair, Side::Server));
    pair.receive(Side::Server, 0, 1, (0, 64)).unwrap();
    pair.post(Side::Client, 0, 2, SendOp::Send, (0, 64)).unwrap();
    assert!(refers(&pair, Side::Client) && refers(&pair, Side::Server));
    assert!(pair.run(&mut Lossless, LONG));
    assert!(!refers(&pair, Side::Client) && !refers(&pair, Side::Server));
}

#[test]
fn destroyed_queue_pairs_are_used_again_oldest_first() {
    let mut pair = small();
    let host = pair.host_mut(Side::Client);
    let config = QpConfig::new(host.pd, host.cq);
    let ids: Vec<_> = (0..3).map(|_| host.endpoint.create_qp(config).unwrap()).collect();
    host.endpoint.destroy_qp(ids[1]);
    host.endpoint.destroy_qp(ids[0]);
    host.endpoint.destroy_qp(ids[0]);
    assert_eq!(host.endpoint.create_qp(config), Ok(ids[1]));
    assert_eq!(host.endpoint.create_qp(config), Ok(ids[0]));
    assert_eq!(host.endpoint.qp_state(ids[0]), QpState::Reset);
}

#[test]
fn b11_reset_queue_pair_starts_again_from_nothing() {
    let mut pair = small();
    for round in 0..3 {
        pair.receive(Side::Server, 0, round, (0, 4 * MTU)).unwrap();
        pair.post(Side::Client, 0, u64::MAX, SendOp::Send, (0, 3 * MTU)).unwrap();
        pair.post(Side::Client, 0, 1 << 63, SendOp::Read(pair.remote(Side::Client, 9)), (0, MTU)).unwrap();
        assert!(pair.run(&mut Lossless, LONG));
        assert_eq!(pair.statuses(Side::Client), [(u64::MAX, Status::Success), (1 << 63, Status::Success)]);
        for side in [Side::Client, Side::Server] {
            let host = pair.host_mut(side);
            host.completions.clear();
            let peer = *host.endpoint.peer(host.qps[0]).unwrap();
            let id = host.qps[0];
            host.endpoint.modify_to_reset(id);
            assert_eq!(host.endpoint.qp_state(id), QpState::Reset);
            assert!(host.endpoint.modify_to_rts(id).is_err());
            host.endpoint.modify_to_init(id).unwrap();
            host.endpoint.modify_to_rtr(id, peer).unwrap();
            host.endpoint.modify_to_rts(id).unwrap();
        }
    }
}

#[test]
fn r16_messages_bind_shared_receives_at_their_first_packet() {
    let mut pair = Pair::new(PairConfig { qps: 0, ..PairConfig::default() });
    let (srq_pd, cq) = (pair.host(Side::Server).pd, pair.host(Side::Server).cq);
    let server = pair.host_mut(Side::Server);
    let srq = server.endpoint.create_srq(srq_pd, 8).unwrap();
    let sge = server.sge(0, 64);
    assert!(server.endpoint.create_srq(srq_pd, 0).is_err());
    for wr_id in 0..8 {
        server.endpoint.post_srq_recv(srq, &RecvRequest { wr_id, sges: &[sge] }).unwrap();
    }
    let full = server.endpoint.post_srq_recv(srq, &RecvRequest { wr_id: 8, sges: &[sge] });
    assert_eq!(full, Err(PostError::QueueFull { depth: 8 }));
    let config = QpConfig { srq: Some(srq), ..QpConfig::new(srq_pd, cq) };
    let id = server.endpoint.create_qp(config).unwrap();
    server.endpoint.modify_to_init(id).unwrap();
    let own = server.endpoint.post_recv(id, &RecvRequest { wr_id: 0, sges: &[] });
    assert_eq!(own, Err(PostError::SharedQueue));
}

#[test]
fn t16_fenced_write_waits_for_the_read_before_it() {
    let mut pair = small();
    let place = pair.remote(Side::Client, 0);
    pair.host_mut(Side::Server).memory[..4096].fill(1);
    pair.post(Side::Client, 0, 1, SendOp::Read(place), (100_000, 4096)).unwrap();
    let host = pair.host_mut(Side::Client);
    let sges = [host.sge(0, 4096)];
    let request = SendRequest { fence: true, ..SendRequest::new(2, SendOp::Write(place), &sges) };
    host.endpoint.post_send(host.qps[0], &request).unwrap();
    let mut answers = 0;
    let mut writes_before_the_answer = 0;
    let mut script = |from: Side, packet: &Packet| {
        if let Kind::Data(data) = packet.headers.kind {
            answers += u32::from(from == Side::Server);
            writes_before_the_answer += u32::from(data.name.msn.get() == 1 && answers < 4);
        }
        fate::deliver()
    };
    assert!(pair.run(&mut script, LONG));
    assert_eq!(writes_before_the_answer, 0);
    assert!(pair.host(Side::Client).memory[100_000..104_096].iter().all(|&byte| byte == 1));
    assert_at_rest(&pair);
}

#[test]
fn t15_unanswered_reads_are_bounded_and_a_dead_peer_is_noticed() {
    let mut pair = small();
    let place = pair.remote(Side::Client, 0);
    for wr_id in 0..100 {
        pair.post(Side::Client, 0, wr_id, SendOp::Read(place), (100_000, 64)).unwrap();
    }
    let mut requests = 0;
    let mut script = |from: Side, packet: &Packet| {
        requests += u32::from(from == Side::Client && matches!(packet.headers.kind, Kind::Data(_)));
        // Requests arrive and are acknowledged; answers are lost.
        if from == Side::Server && matches!(packet.headers.kind, Kind::Data(_)) {
            fate::lose()
        } else {
            fate::deliver()
        }
    };
    assert!(!pair.run(&mut script, 1_000_000));
    assert_eq!(requests, 16);
    assert!(pair.run(&mut |_: Side, _: &Packet| fate::lose(), LONG));
    let statuses = pair.statuses(Side::Client);
    assert_eq!((statuses.len(), statuses[0]), (100, (0, Status::RetryExceeded)));
    assert!(statuses[1..].iter().all(|status| status.1 == Status::Flushed));
}

#[test]
fn r9_lost_and_trimmed_answers_come_again_and_atomics_run_once() {
    for seed in 0..50 {
        let mut pair = small();
        let place = pair.remote(Side::Client, 8);
        pair.host_mut(Side::Server).memory[8..16].copy_from_slice(&0u64.to_ne_bytes());
        for wr_id in 0..40 {
            pair.post(Side::Client, 0, wr_id, SendOp::FetchAdd { remote: place, add: 1 }, (8 * wr_id, 8))
                .unwrap();
            let read = SendOp::Read(pair.remote(Side::Client, 65_536));
            pair.post(Side::Client, 0, 100 + wr_id, read, (65_536, 3 * MTU)).unwrap();
        }
        let rates = Rates {
            drop: 20_000,
            trim: 100_000,
            duplicate: 50_000,
            lose_control: 100_000,
            jitter_ns: 10_000,
            ..Rates::default()
        };
        assert!(pair.run(&mut Random::new(seed, rates), LONG));
        assert!(pair.statuses(Side::Client).iter().all(|status| status.1 == Status::Success), "seed {seed}");
        let memory = &pair.host(Side::Client).memory;
        for wr_id in 0..40u64 {
            let at = 8 * wr_id as usize;
            assert_eq!(u64::from_ne_bytes(memory[at..at + 8].try_into().unwrap()), wr_id, "seed {seed}");
        }
        assert_eq!(
            memory[65_536..65_536 + 3 * MTU as usize],
            pair.host(Side::Server).memory[65_536..][..3 * MTU as usize]
        );
        assert_at_rest(&pair);
    }
}

#[test]
fn c10_one_ack_completes_what_it_covers_in_posting_order() {
    let mut pair = small();
    pair.receive(Side::Server, 0, 9, (50_000, 64)).unwrap();
    let to = pair.remote(Side::Client, 0);
    for (wr_id, op) in [SendOp::Write(to), SendOp::Send, SendOp::Write(to)].into_iter().enumerate() {
        pair.post(Side::Client, 0, wr_id as u64, op, (0, 64)).unwrap();
    }
    let mut script = |from: Side, packet: &Packet| match packet.headers.kind {
        Kind::Ack(ack) if from == Side::Server && ack.emsn.get() < 3 => fate::lose(),
        _ => fate::deliver(),
    };
    assert!(pair.run(&mut script, LONG));
    assert_eq!(
        pair.statuses(Side::Client),
        [(0, Status::Success), (1, Status::Success), (2, Status::Success)]
    );
}

#[test]
fn icrc_catches_corruption_and_the_message_still_arrives() {
    let qp: fn(&mut QpConfig) = |qp| {
        qp.mtu = MTU;
        qp.icrc = true;
    };
    let mut pair = pair(PairConfig { qp, ..PairConfig::default() });
    write_and_check(&mut pair, 5 * MTU + 3, &mut Lossless);
    let range = WriteRange { from: 0, to: 64, len: 10 };
    pair.write(Side::Client, 0, 8, range).unwrap();
    let now = pair.now;
    let mut frame = pair.host_mut(Side::Client).transmit(now, 1).remove(0);
    let payload = frame.len() - 8;
    frame[payload] ^= 0x40;
    assert!(pair.host_mut(Side::Server).receive(now, frame).is_none());
    assert_eq!(pair.host(Side::Server).unparsed, 1);
    assert!(pair.run(&mut Lossless, LONG), "the coarse timer recovers");
    assert_landed(&pair, range);
}

#[test]
fn sges_of_odd_sizes_gather_and_scatter() {
    let mut pair = small();
    let lens = [1, 0, 17, 1023, 1024, 1, 4096, 3, 0, 511, 2, 64, 100, 1, 1, 7];
    let total: u32 = lens.iter().sum();
    let lay = |host: &dcp_pair::Host, at: u64, reverse: bool| -> Vec<Sge> {
        let mut order: Vec<u32> = lens.to_vec();
        if reverse {
            order.reverse();
        }
        let mut start = at;
        order
            .into_iter()
            .map(|len| {
                let sge = host.sge(start, len);
                start += u64::from(len) + 5;
                sge
            })
            .collect()
    };
    let scatter = lay(pair.host(Side::Server), 100_000, true);
    let host = pair.host_mut(Side::Server);
    host.endpoint.post_recv(host.qps[0], &RecvRequest { wr_id: 1, sges: &scatter }).unwrap();
    let gather = lay(pair.host(Side::Client), 0, false);
    let host = pair.host_mut(Side::Client);
    host.endpoint.post_send(host.qps[0], &SendRequest::new(2, SendOp::Send, &gather)).unwrap();
    let rates = Rates { trim: 200_000, duplicate: 100_000, jitter_ns: 9000, ..Rates::default() };
    assert!(pair.run(&mut Random::new(5, rates), LONG));
    let bytes = |memory: &[u8], list: &[Sge]| -> Vec<u8> {
        list.iter().flat_map(|sge| memory[(sge.va - MR_VA) as usize..][..sge.len as usize].to_vec()).collect()
    };
    let sent = bytes(&pair.host(Side::Client).memory, &gather);
    assert_eq!(sent.len(), total as usize);
    assert_eq!(sent, bytes(&pair.host(Side::Server).memory, &scatter));
    let host = pair.host_mut(Side::Client);
    let long = [gather[0]; 17];
    let error = host.endpoint.post_send(host.qps[0], &SendRequest::new(2, SendOp::Send, &long));
    assert_eq!(error, Err(PostError::TooManySges { count: 17, limit: 16 }));
}
