//! Twin of runs: the same turn, packet by packet.

use dcp_wire::{DataOpcode, HeaderOnly, Headers, Ipv4Addr, Kind, MacAddr, PKey, Qpn, Ssn};

use super::*;
use crate::cc::DcqcnConfig;
use crate::completion::Cq;
use crate::maps::MapPool;
use crate::memory::Memory;
use crate::qp::{Progress, SendRequest, Sge};
use crate::{
    Access, CongestionControl, Counters, CqId, EndpointConfig, Mixer, MrAttr, PdId, Peer, Prefetch, QpConfig,
    QpCounters, Rate, RegionId, Segment, TxFrame, WriteFrame,
};

const MTU: u32 = 256;

/// What left, and room for more.
#[derive(Clone, Debug)]
struct Frames {
    room: usize,
    out: Vec<(Headers, u32, Vec<Segment>)>,
    /// Those whose headers were prepared for a run.
    middles: u64,
}

impl Prefetch for Frames {}

impl TxSink for Frames {
    fn capacity(&self) -> usize {
        self.room - self.out.len()
    }

    fn push(&mut self, frame: TxFrame<'_>) {
        self.out.push((*frame.headers, frame.payload_len, frame.segments.to_vec()));
    }

    fn push_write(&mut self, frame: WriteFrame<'_>, headers: impl FnOnce(Kind) -> Headers) {
        let WriteFrame { packet, template, middles, segment, icrc } = frame;
        let headers = headers(Kind::Data(packet.data()));
        let longer =
            TxFrame { headers: &headers, template, payload_len: segment.len, segments: &[segment], icrc };
        let (mut here, mut there) = ([0; 96], [0; 96]);
        let lens = (frame.emit_headers(&mut here), longer.emit_headers(&mut there));
        assert_eq!((lens.0, here), (lens.1, there), "{packet:?}");
        self.middles += u64::from(middles.is_some());
        self.push(longer);
    }
}

fn sender(cc: CongestionControl, rate_max: Rate) -> (Qp, Shared, dcp_wire::RegionKey) {
    let config = EndpointConfig {
        round_quota: 5 * MTU,
        paced_quota: 3 * MTU,
        ..EndpointConfig::new(MacAddr([2; 6]), Ipv4Addr::new(10, 0, 0, 1))
    };
    let mut memory = Memory::new();
    let (pd, region) = (PdId(0), RegionId(0));
    let keys =
        memory.register(MrAttr { pd, region, offset: 0, va: 0, len: 1 << 20, access: Access::ALL }).unwrap();
    let mut shared = Shared {
        config,
        memory,
        maps: MapPool::new(0),
        cqs: vec![Cq::new(1 << 16)],
        srqs: Vec::new(),
        draining: false,
        counters: Counters::default(),
        by_qp: vec![QpCounters::default()],
    };
    let config =
        QpConfig { mtu: MTU, window: 16, send_depth: 32, cc, rate_max, ..QpConfig::new(pd, CqId(0)) };
    let mut qp = Qp::new(QpId(0), Qpn::default(), config, &shared.config);
    let peer = Peer {
        qpn: Qpn::from_low_bits(7),
        pkey: PKey(7),
        mac: MacAddr([3; 6]),
        ip: Ipv4Addr::new(10, 0, 0, 2),
        service_port: 17791,
        start_msn: Msn::ZERO,
        start_ssn: Ssn::ZERO,
    };
    qp.enter_init().unwrap();
    qp.enter_rtr(peer).unwrap();
    qp.enter_rts().unwrap();
    shared.counters = Counters::default();
    (qp, shared, keys.lkey)
}

/// A turn without the shortcut.
fn longer_turn(qp: &mut Qp, now: Instant, shared: &mut Shared, sink: &mut Frames) -> TurnEnd {
    let (bytes, wqes) = (qp.quota(&shared.config), shared.config.round_wqes);
    let mut budget = Budget { bytes, wqes, now, sent: Sent::default() };
    if let Some(controller) = &mut qp.controller {
        controller.begin_turn(now, bytes);
    }
    for _ in 0..shared.config.round_retrans {
        if !qp.has_room(&budget, sink) {
            break;
        }
        let Some(PacketName { msn, psn, .. }) = qp.requests.pop_returned() else { break };
        qp.send(
            Next { stream: Stream::Requests, msn, psn: psn.get(), resend: true },
            &mut budget,
            shared,
            sink,
        );
    }
    while qp.has_room(&budget, sink) {
        let Some(msn) = qp.unsent_request().or_else(|| qp.enter_next(&mut budget, shared)) else { break };
        qp.send_next(Stream::Requests, msn, &mut budget, shared, sink);
    }
    shared.count_sent(qp.id, &budget.sent);
    let end = if qp.wants_turn() { TurnEnd::More } else { TurnEnd::Rest };
    qp.end_turn(now, end)
}

fn post(qp: &mut Qp, shared: &mut Shared, lkey: dcp_wire::RegionKey, mut draw: impl FnMut(u64) -> u64) {
    let sges: Vec<Sge> = (0..1 + draw(6) / 5)
        .map(|_| {
            let len = [0, 1, MTU, MTU + 1, 4 * MTU, 9 * MTU - 1][usize::try_from(draw(6)).unwrap()];
            Sge { va: draw(1 << 16), len, lkey }
        })
        .collect();
    let remote = Remote { va: draw(1 << 40), rkey: dcp_wire::RegionKey(9) };
    let op = match draw(8) {
        0 => SendOp::WriteImm(remote, dcp_wire::ImmData(1)),
        1 => SendOp::Send,
        _ => SendOp::Write(remote),
    };
    let request =
        SendRequest { solicited: draw(2) == 0, fence: draw(16) == 0, ..SendRequest::new(1, op, &sges) };
    let _ = qp.post_send(&request, shared);
}

/// Some packets come back trimmed.
fn see_returned(qp: &mut Qp, now: Instant, shared: &mut Shared, mut draw: impl FnMut(u64) -> u64) {
    for _ in 0..draw(3) {
        let window = &qp.requests.window;
        if window.is_empty() {
            return;
        }
        let msn = window.una.plus(u32::try_from(draw(window.len().into())).unwrap());
        let message = *window.message(msn);
        if message.next_psn > 0 {
            let psn = Psn::from_low_bits(u32::try_from(draw(message.next_psn.into())).unwrap());
            let name = PacketName { msn, psn, generation: message.generation };
            let opcode = DataOpcode::WriteMiddle;
            let header = HeaderOnly { name, opcode, returned: true, ack_req: false, solicited: false };
            let _ = qp.handle_returned(now, &header, shared);
        }
    }
}

/// The peer acknowledges some messages that were sent whole, and some bytes; or the oldest message starts again.
fn hear(qp: &mut Qp, now: Instant, shared: &mut Shared, mut draw: impl FnMut(u64) -> u64) {
    let window = &qp.requests.window;
    if draw(12) == 0 && !window.is_empty() {
        let una = window.una;
        return qp.requests.window.restart(una, now);
    }
    let whole = (0..window.len())
        .take_while(|&steps| {
            let message = window.message(window.una.plus(steps));
            message.sent_once == message.packets
        })
        .count();
    let done = u32::try_from(draw(whole as u64 + 1)).unwrap();
    let received = u32::try_from(shared.counters.data_bytes / (1 + draw(3))).unwrap();
    let progress = Progress { stream: Stream::Requests, emsn: window.una.plus(done), received };
    let _ = qp.handle_ack(now, progress, shared);
}

#[test]
fn runs_send_what_is_sent_packet_by_packet() {
    let window = CongestionControl::Window { bytes: 3000 };
    let dcqcn = CongestionControl::Dcqcn(DcqcnConfig::connectx());
    let (mut packets, mut resent, mut middles) = (0, 0, 0);
    let paced = Rate::from_mbps(10_000);
    let (none, any) = (CongestionControl::None, Rate::UNLIMITED);
    let kinds = [(none, any), (window, any), (none, paced), (window, paced), (dcqcn, paced)];
    for (seed, (cc, rate_max)) in (0..50u64).zip(kinds.into_iter().cycle()) {
        let (mut qp, mut shared, lkey) = sender(cc, rate_max);
        let mut step = seed << 32;
        let mut draw = |bound: u64| {
            step += 1;
            Mixer::mix(step) % bound
        };
        for round in 0..500u64 {
            let now = Instant::from_ns(1 + round * 700);
            for _ in 0..draw(3) {
                post(&mut qp, &mut shared, lkey, &mut draw);
            }
            let (mut twin, mut twin_shared) = (qp.clone(), shared.clone());
            let frames = Frames { room: usize::try_from(1 + draw(9)).unwrap(), out: Vec::new(), middles: 0 };
            let (mut here, mut there) = (frames.clone(), frames);
            let end = qp.turn(now, &mut shared, &mut here);
            let expected = longer_turn(&mut twin, now, &mut twin_shared, &mut there);
            let context = format!("seed {seed} round {round}");
            assert_eq!((end, &here.out), (expected, &there.out), "{context}");
            middles += here.middles;
            assert_eq!(hash(&qp, now), hash(&twin, now), "{context}");
            assert_eq!(shared.counters, twin_shared.counters, "{context}");
            assert_eq!(shared.by_qp, twin_shared.by_qp, "{context}");
            see_returned(&mut qp, now, &mut shared, &mut draw);
            hear(&mut qp, now, &mut shared, &mut draw);
        }
        packets += shared.counters.data_packets;
        resent += shared.counters.retransmitted;
    }
    let sent = format!("{packets} packets, {resent} of them resent, {middles} in runs");
    assert!(packets > 10_000 && resent > 100 && middles > 1000, "{sent}");
}

fn hash(qp: &Qp, now: Instant) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    qp.state_hash(now, &mut hasher);
    hasher.finish()
}
