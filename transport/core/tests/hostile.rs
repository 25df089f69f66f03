//! Frames that no honest peer sends: forged, stale, foreign, out of range (A3, A4, C6, C9, C11).
#![forbid(unsafe_code)]

mod common;

use common::*;
use dcp_core::{DropReason, QpConfig, QpState, SendOp, Status};
use dcp_pair::{Lossless, MR_VA, Pair, PairConfig, Side, WriteRange, fate};
use dcp_wire::{
    Ack, Data, DataOp, DataOpcode, Generation, HeaderOnly, Headers, Kind, Msn, Nak, NakCode, PKey, Packet,
    PacketName, Part, Psn, Qpn, RegionKey, Reth, Stream,
};

const MTU: u32 = 1024;

fn small() -> Pair {
    let qp: fn(&mut QpConfig) = |qp| {
        qp.mtu = MTU;
        qp.window = 8;
    };
    pair(PairConfig { qp, ..PairConfig::default() })
}

/// Headers of a legal frame from the client's queue pair to the server's, taken off the wire.
fn genuine(pair: &mut Pair) -> Headers {
    let mut seen = None;
    let mut script = |from: Side, packet: &Packet| {
        if from == Side::Client && seen.is_none() {
            seen = Some(packet.headers);
        }
        fate::deliver()
    };
    write_and_check(pair, 1, &mut script);
    pair.host_mut(Side::Client).completions.clear();
    pair.host_mut(Side::Server).memory.fill(0xA5);
    seen.expect("a frame was sent")
}

/// Hands the server a frame with these headers.
fn inject(pair: &mut Pair, to: Side, headers: Headers, payload: usize) {
    let mut frame = vec![0; headers.len() + payload];
    dcp_wire::emit(&headers, payload, &mut frame);
    let now = pair.now;
    let _ = pair.host_mut(to).receive(now, frame);
}

fn reversed(headers: Headers, pair: &Pair) -> Headers {
    let mut back = headers;
    std::mem::swap(&mut back.path.src_ip, &mut back.path.dst_ip);
    std::mem::swap(&mut back.path.src_mac, &mut back.path.dst_mac);
    back.dest_qpn = pair.host(Side::Client).endpoint.qpn(pair.host(Side::Client).qps[0]);
    back
}

fn write_kind(name: PacketName, reth: Reth, part: Part<dcp_wire::WriteImm>) -> Kind {
    Kind::Data(Data { name, ack_req: false, solicited: false, op: DataOp::Write { reth, part } })
}

fn name(msn: u32, psn: u32) -> PacketName {
    PacketName { msn: Msn::from_low_bits(msn), psn: Psn::from_low_bits(psn), generation: Generation::ZERO }
}

fn drops(pair: &Pair, side: Side, reason: DropReason) -> u64 {
    pair.host(side).endpoint.counters().dropped(reason)
}

#[test]
fn p2_frames_of_strangers_change_nothing() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let hash = pair.host(Side::Server).endpoint.state_hash(pair.now);
    let mut other_key = headers;
    other_key.pkey = PKey(headers.pkey.0 ^ 1);
    let mut other_host = headers;
    other_host.path.src_ip = dcp_wire::Ipv4Addr::new(10, 9, 9, 9);
    let strangers = [0, 1, 0xFF_FFFF, headers.dest_qpn.get() + 1, headers.dest_qpn.get() - 1];
    for number in strangers {
        inject(&mut pair, Side::Server, Headers { dest_qpn: Qpn::from_low_bits(number), ..headers }, 1);
    }
    inject(&mut pair, Side::Server, other_key, 1);
    inject(&mut pair, Side::Server, other_host, 1);
    assert_eq!(drops(&pair, Side::Server, DropReason::UnknownQp), 5);
    assert_eq!(drops(&pair, Side::Server, DropReason::WrongKey), 1);
    assert_eq!(drops(&pair, Side::Server, DropReason::WrongSource), 1);
    assert_eq!(pair.host(Side::Server).endpoint.state_hash(pair.now), hash);
}

#[test]
fn a4_payloads_that_do_not_fit_mtu_and_message_are_dropped_without_a_nak() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let rkey = pair.host(Side::Server).keys.rkey;
    let reth = |psn: u32, dma_len: u32| Reth { va: MR_VA + u64::from(psn * MTU), rkey, dma_len };
    let long = 4 * MTU;
    let cases = [
        (write_kind(name(1, 0), reth(0, long), Part::First), MTU - 1),
        (write_kind(name(1, 0), reth(0, long), Part::First), MTU + 1),
        (write_kind(name(1, 1), reth(1, long), Part::Middle), MTU - 1),
        (write_kind(name(1, 1), reth(1, long), Part::Middle), MTU + 1),
        (write_kind(name(1, 3), reth(3, long), Part::Middle), MTU),
        (write_kind(name(1, 3), reth(3, long), Part::Last(None)), 0),
        (write_kind(name(1, 3), reth(3, long + 1), Part::Last(None)), MTU + 1),
        (write_kind(name(1, 2), reth(2, long), Part::Last(None)), MTU),
        (write_kind(name(1, 0), reth(0, MTU + 1), Part::Only(None)), MTU + 1),
        (write_kind(name(1, 0), reth(0, 10), Part::Only(None)), 9),
        (write_kind(name(1, 0), reth(0, MTU), Part::First), MTU),
    ];
    for (kind, payload) in cases {
        inject(&mut pair, Side::Server, Headers { kind, ..headers }, payload as usize);
    }
    assert_eq!(drops(&pair, Side::Server, DropReason::BadLength), cases.len() as u64);
    let server = pair.host(Side::Server).endpoint.counters();
    assert_eq!((server.naks, pair.state(Side::Server, 0)), (0, QpState::Rts));
    assert!(pair.host(Side::Server).memory.iter().all(|&byte| byte == 0xA5));
    write_and_check(&mut pair, 3 * MTU + 5, &mut Lossless);
}

#[test]
fn a3_message_numbers_outside_the_window_are_dropped() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let rkey = pair.host(Side::Server).keys.rkey;
    let reth = Reth { va: MR_VA, rkey, dma_len: 1 };
    for msn in [9, 10, 0x7F_FFFF, 0x80_0001, 0] {
        inject(
            &mut pair,
            Side::Server,
            Headers { kind: write_kind(name(msn, 0), reth, Part::Only(None)), ..headers },
            1,
        );
    }
    assert_eq!(drops(&pair, Side::Server, DropReason::BeyondWindow), 3);
    assert_eq!(drops(&pair, Side::Server, DropReason::OldMessage), 2);
    assert!(pair.host(Side::Server).memory.iter().all(|&byte| byte == 0xA5));
}

#[test]
fn c6_forged_acks_never_complete_a_request() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let back = reversed(headers, &pair);
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 2 * MTU }).unwrap();
    pair.write(Side::Client, 0, 2, WriteRange { from: 0, to: 0, len: 2 * MTU }).unwrap();
    // One packet of two has left: even an ACK for this very message is a forgery.
    let sent = pair.host_mut(Side::Client).transmit(dcp_core::Instant::from_ns(1), 1);
    assert_eq!(sent.len(), 1);
    for emsn in [2, 3, 4, 0, 1 << 23, (1 << 23) + 1, 0xFF_FFFF] {
        let ack =
            Ack { stream: Stream::Requests, emsn: Msn::from_low_bits(emsn), received: 1 << 20, nak: None };
        inject(&mut pair, Side::Client, Headers { kind: Kind::Ack(ack), ..back }, 0);
    }
    pair.host_mut(Side::Client).collect();
    assert!(pair.statuses(Side::Client).is_empty());
    assert_eq!(drops(&pair, Side::Client, DropReason::BadAck), 7);
}

#[test]
fn c6_forged_headers_and_naks_resend_and_fail_nothing() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let back = reversed(headers, &pair);
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 4 * MTU }).unwrap();
    let sent = pair.host_mut(Side::Client).transmit(dcp_core::Instant::from_ns(1), 2);
    assert_eq!(sent.len(), 2);
    let returned = |name| {
        let opcode = DataOpcode::WriteMiddle;
        Kind::HeaderOnly(HeaderOnly { name, opcode, returned: true, ack_req: false, solicited: false })
    };
    let mut generation = name(1, 1);
    generation.generation = Generation::from_low_bits(1);
    let forged = [name(1, 2), name(1, 0xFF_FFFF), name(2, 1), name(0xFF_FFFF, 1), generation];
    for forged in forged {
        inject(&mut pair, Side::Client, Headers { kind: returned(forged), ..back }, 0);
    }
    assert_eq!(drops(&pair, Side::Client, DropReason::StaleHeaderOnly), 5);
    for code in [NakCode::Resync, NakCode::RemoteAccess, NakCode::RemoteOperational] {
        let nak = Some(Nak { code, msn: Msn::from_low_bits(5), generation: Generation::ZERO });
        let ack = Ack { stream: Stream::Requests, emsn: Msn::from_low_bits(1), received: 0, nak };
        inject(&mut pair, Side::Client, Headers { kind: Kind::Ack(ack), ..back }, 0);
    }
    assert_eq!(drops(&pair, Side::Client, DropReason::StaleNak), 3);
    assert_eq!(pair.state(Side::Client, 0), QpState::Rts);
    assert_eq!(pair.host(Side::Client).endpoint.counters().retransmitted, 0);
}

#[test]
fn c9_ten_copies_of_a_header_cause_bounded_resends() {
    let mut pair = small();
    let mut script = |_: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(data) if data.name.psn.get() == 1 && !data.ack_req => fate::trim(),
        Kind::HeaderOnly(header) if header.returned => std::iter::repeat_n(fate::deliver()[0], 10).collect(),
        _ => fate::deliver(),
    };
    write_and_check(&mut pair, 4 * MTU, &mut script);
    let client = pair.host(Side::Client).endpoint.counters();
    assert!(client.retransmitted <= 10 + 2 * 4, "{} resends", client.retransmitted);
    assert_at_rest(&pair);
}

#[test]
fn c11_ack_that_overtakes_a_queued_resend_leaves_nothing_in_flight() {
    let mut pair = small();
    // T-7: the header of packet 0 is bounced twice, and the second copy comes when the message is done.
    let mut trimmed = false;
    let mut script = |_: Side, packet: &Packet| match packet.headers.kind {
        Kind::Data(data) if data.name.psn.get() == 0 && !std::mem::replace(&mut trimmed, true) => {
            fate::trim()
        }
        Kind::HeaderOnly(header) if header.returned => {
            [fate::deliver()[0], fate::late(5_000_000)[0]].into_iter().collect()
        }
        _ => fate::deliver(),
    };
    write_and_check(&mut pair, 4 * MTU, &mut script);
    assert_at_rest(&pair);
}

#[test]
fn b7_bad_key_on_the_fifth_of_sixteen_writes_ends_in_order() {
    let mut pair = small();
    let client_lkey = pair.host(Side::Client).keys.lkey;
    let good = pair.host(Side::Server).keys.rkey;
    let id = pair.host(Side::Client).qps[0];
    for wr_id in 0..16 {
        let rkey = if wr_id == 4 { RegionKey(good.0 ^ 0x8000_0000) } else { good };
        let request = dcp_core::SendRequest {
            wr_id,
            op: dcp_core::SendOp::Write(dcp_core::Remote { va: MR_VA + wr_id * 8192, rkey }),
            sges: &[dcp_core::Sge { va: MR_VA, len: 3000, lkey: client_lkey }],
            signalled: false,
            solicited: false,
            fence: false,
        };
        pair.host_mut(Side::Client).endpoint.post_send(id, &request).unwrap();
    }
    assert!(pair.run(&mut Lossless, LONG));
    let mut expected: Vec<_> = vec![(4, Status::RemoteAccess)];
    expected.extend((5..16).map(|id| (id, Status::Flushed)));
    assert_eq!(pair.statuses(Side::Client), expected);
    assert_eq!((pair.state(Side::Client, 0), pair.state(Side::Server, 0)), (QpState::Error, QpState::Error));
    assert!(pair.host(Side::Server).memory[4 * 8192..5 * 8192].iter().all(|&byte| byte == 0xA5));
    // R-17, B10: later work is flushed, and what still reaches the server is answered with its NAK.
    pair.write(Side::Client, 0, 99, WriteRange { from: 0, to: 0, len: 1 }).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client).last(), Some(&(99, Status::Flushed)));
}

#[test]
fn b8_bad_local_key_fails_its_own_request_after_the_earlier_ones() {
    let mut pair = small();
    let rkey = pair.host(Side::Server).keys.rkey;
    let id = pair.host(Side::Client).qps[0];
    pair.write(Side::Client, 0, 0, WriteRange { from: 0, to: 0, len: 5000 }).unwrap();
    let request = dcp_core::SendRequest {
        wr_id: 1,
        op: dcp_core::SendOp::Write(dcp_core::Remote { va: MR_VA, rkey }),
        sges: &[dcp_core::Sge { va: MR_VA, len: 10, lkey: rkey }],
        signalled: true,
        solicited: false,
        fence: false,
    };
    pair.host_mut(Side::Client).endpoint.post_send(id, &request).unwrap();
    pair.write(Side::Client, 0, 2, WriteRange { from: 0, to: 0, len: 1 }).unwrap();
    assert!(pair.run(&mut Lossless, LONG));
    let expected = [(0, Status::Success), (1, Status::LocalProtection), (2, Status::Flushed)];
    assert_eq!(pair.statuses(Side::Client), expected);
}

#[test]
fn b5_full_queue_names_itself_and_harms_nothing() {
    let mut pair = Pair::new(PairConfig { qp: |qp| qp.send_depth = 16, ..PairConfig::default() });
    let range = WriteRange { from: 0, to: 0, len: 100 };
    for wr_id in 0..16 {
        pair.write(Side::Client, 0, wr_id, range).unwrap();
    }
    assert_eq!(pair.write(Side::Client, 0, 16, range), Err(dcp_core::PostError::QueueFull { depth: 16 }));
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), (0..16).map(|id| (id, Status::Success)).collect::<Vec<_>>());
}

#[test]
fn b6_unsignalled_requests_hold_their_slots_until_a_signalled_one_completes() {
    let mut pair = Pair::new(PairConfig { qp: |qp| qp.send_depth = 8, ..PairConfig::default() });
    let (lkey, rkey) = (pair.host(Side::Client).keys.lkey, pair.host(Side::Server).keys.rkey);
    let id = pair.host(Side::Client).qps[0];
    let post = |pair: &mut Pair, signalled| {
        let request = dcp_core::SendRequest {
            wr_id: u64::MAX,
            op: dcp_core::SendOp::Write(dcp_core::Remote { va: MR_VA, rkey }),
            sges: &[dcp_core::Sge { va: MR_VA, len: 8, lkey }],
            signalled,
            solicited: false,
            fence: false,
        };
        pair.host_mut(Side::Client).endpoint.post_send(id, &request)
    };
    for _ in 0..1000 {
        for _ in 0..7 {
            post(&mut pair, false).unwrap();
        }
        post(&mut pair, true).unwrap();
        assert!(pair.run(&mut Lossless, LONG));
    }
    assert_eq!(pair.statuses(Side::Client), vec![(u64::MAX, Status::Success); 1000]);
    for _ in 0..8 {
        post(&mut pair, false).unwrap();
    }
    assert!(pair.run(&mut Lossless, LONG));
    assert!(post(&mut pair, true).is_err(), "eight unsignalled requests fill the queue for good");
}

#[test]
fn t9_resync_before_the_last_packet_was_sent_restarts_the_message() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let back = reversed(headers, &pair);
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 4 * MTU }).unwrap();
    let sent = pair.host_mut(Side::Client).transmit(dcp_core::Instant::from_ns(1), 2);
    assert_eq!(sent.len(), 2);
    let nak = Some(Nak { code: NakCode::Resync, msn: Msn::from_low_bits(1), generation: Generation::ZERO });
    let ack = Ack { stream: Stream::Requests, emsn: Msn::from_low_bits(1), received: 0, nak };
    inject(&mut pair, Side::Client, Headers { kind: Kind::Ack(ack), ..back }, 0);
    assert_eq!(pair.host(Side::Client).endpoint.counters().resyncs, 1);
}

#[test]
fn t9_restart_requests_without_end_end_the_queue_pair_and_panic_nothing() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let back = reversed(headers, &pair);
    let range = WriteRange { from: 0, to: 64, len: 4 * MTU };
    pair.write(Side::Client, 0, 7, range).unwrap();
    let now = pair.now;
    assert_eq!(pair.host_mut(Side::Client).transmit(now, 2).len(), 2);
    let opcode = DataOpcode::WriteFirst;
    let returned = HeaderOnly { name: name(1, 0), opcode, returned: true, ack_req: false, solicited: false };
    inject(&mut pair, Side::Client, Headers { kind: Kind::HeaderOnly(returned), ..back }, 0);
    for round in 0..4096 {
        let generation = Generation::from_low_bits(round);
        let nak = Some(Nak { code: NakCode::Resync, msn: Msn::from_low_bits(1), generation });
        let ack = Ack { stream: Stream::Requests, emsn: Msn::from_low_bits(1), received: 0, nak };
        inject(&mut pair, Side::Client, Headers { kind: Kind::Ack(ack), ..back }, 0);
    }
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(7, Status::RetryExceeded)]);
    assert_eq!(pair.host(Side::Client).endpoint.counters().resyncs, 257);
}

#[test]
fn r9_words_about_the_other_stream_do_not_touch_requests() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let back = reversed(headers, &pair);
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 1 }).unwrap();
    assert_eq!(pair.host_mut(Side::Client).transmit(dcp_core::Instant::from_ns(1), 1).len(), 1);
    for nak in [
        None,
        Some(Nak { code: NakCode::RemoteAccess, msn: Msn::from_low_bits(1), generation: Generation::ZERO }),
    ] {
        let ack = Ack { stream: Stream::Answers, emsn: Msn::from_low_bits(2), received: 0, nak };
        inject(&mut pair, Side::Client, Headers { kind: Kind::Ack(ack), ..back }, 0);
    }
    let opcode = DataOpcode::ReadResponseOnly;
    let returned = HeaderOnly { name: name(1, 0), opcode, returned: true, ack_req: false, solicited: false };
    inject(&mut pair, Side::Client, Headers { kind: Kind::HeaderOnly(returned), ..back }, 0);
    pair.host_mut(Side::Client).collect();
    assert!(pair.statuses(Side::Client).is_empty());
    assert_eq!(pair.state(Side::Client, 0), QpState::Rts);
    assert_eq!(pair.host(Side::Client).endpoint.counters().ho_returned, 0);
}

#[test]
fn r17_queue_pair_in_error_does_not_answer_what_breaks_a_rule() {
    let mut pair = small();
    let headers = genuine(&mut pair);
    let rkey = pair.host(Side::Server).keys.rkey;
    let host = pair.host_mut(Side::Server);
    let id = host.qps[0];
    host.endpoint.modify_to_error(id).unwrap();
    let reth = Reth { va: MR_VA, rkey, dma_len: 4 * MTU };
    inject(
        &mut pair,
        Side::Server,
        Headers { kind: write_kind(name(1, 0), reth, Part::First), ..headers },
        5,
    );
    let now = pair.now;
    assert!(pair.host_mut(Side::Server).transmit(now, 8).is_empty());
    inject(
        &mut pair,
        Side::Server,
        Headers { kind: write_kind(name(1, 0), reth, Part::First), ..headers },
        MTU as usize,
    );
    assert_eq!(pair.host_mut(Side::Server).transmit(now, 8).len(), 1);
}

#[test]
fn t8_gap_puts_off_every_message_under_way() {
    let mut pair = small();
    for wr_id in 0..4 {
        pair.write(Side::Client, 0, wr_id, WriteRange { from: 0, to: 0, len: 100 }).unwrap();
    }
    let now = pair.now;
    let frames = pair.host_mut(Side::Client).transmit(now, 8);
    pair.now = now.after(1_000_000_000);
    let late = pair.now;
    let host = pair.host_mut(Side::Client);
    host.endpoint.handle_gap(late, 1_000_000_000);
    host.endpoint.handle_timeout(late);
    for frame in frames {
        pair.fly(Side::Client, frame, &mut Lossless);
    }
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.host(Side::Client).endpoint.counters().timeouts, 0);
}

#[test]
fn t8_device_that_takes_nothing_ends_the_queue_pair() {
    let mut pair = small();
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 8 * MTU }).unwrap();
    // The first packets leave and arrive; then nothing is taken any more.
    let start = pair.now;
    let frames = pair.host_mut(Side::Client).transmit(start, 3);
    assert_eq!(frames.len(), 3);
    let host = pair.host_mut(Side::Client);
    let mut now = dcp_core::Instant::from_ns(1);
    for _ in 0..100 {
        now = now.after(10_000_000);
        host.endpoint.handle_timeout(now);
    }
    host.collect();
    assert_eq!(pair.statuses(Side::Client), [(1, Status::RetryExceeded)], "within a second");
}

#[test]
fn t8_loss_is_mended_although_the_host_is_preempted_again_and_again() {
    let mut pair = small();
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 100 }).unwrap();
    let mut now = pair.now;
    let lost = pair.host_mut(Side::Client).transmit(now, 8);
    assert_eq!(lost.len(), 1);
    // It runs for 2 ms and is away for 20, with a timeout of 67.
    let host = pair.host_mut(Side::Client);
    for _ in 0..40 {
        now = now.after(20_000_000);
        host.endpoint.handle_gap(now, 20_000_000);
        host.endpoint.handle_timeout(now);
        now = now.after(2_000_000);
        host.endpoint.handle_timeout(now);
    }
    assert_eq!(host.endpoint.counters().timeouts, 1, "after 67 of the 80 ms that it ran");
}

#[test]
fn t15_time_that_a_host_did_not_run_is_no_silence_of_its_peer() {
    let mut pair = small();
    let place = pair.remote(Side::Client, 0);
    pair.post(Side::Client, 0, 1, SendOp::Read(place), (100_000, 64)).unwrap();
    // The request is acknowledged, and its answer lost.
    let mut script = |from: Side, packet: &Packet| {
        let is_answer = from == Side::Server && matches!(packet.headers.kind, Kind::Data(_));
        if is_answer { fate::lose() } else { fate::deliver() }
    };
    assert!(!pair.run(&mut script, 1_000_000));
    let away = 10_000_000_000;
    pair.now = pair.now.after(away);
    let late = pair.now;
    let host = pair.host_mut(Side::Client);
    host.endpoint.handle_gap(late, away);
    host.endpoint.handle_timeout(late);
    assert!(pair.run(&mut Lossless, LONG));
    assert_eq!(pair.statuses(Side::Client), [(1, Status::Success)]);
}

#[test]
fn clones_have_equal_hashes_and_diverge_with_their_inputs() {
    let mut pair = small();
    pair.write(Side::Client, 0, 1, WriteRange { from: 0, to: 0, len: 4 * MTU }).unwrap();
    let mut twin = pair.clone();
    let hash = |pair: &Pair| pair.host(Side::Client).endpoint.state_hash(pair.now);
    assert_eq!(hash(&pair), hash(&twin));
    let _ = twin.host_mut(Side::Client).transmit(dcp_core::Instant::from_ns(1), 1);
    assert_ne!(hash(&pair), hash(&twin));
}
