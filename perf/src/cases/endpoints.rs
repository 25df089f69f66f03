//! Two connected endpoints, and the frames between them as headers and lengths: the bytes are a driver's business.

use std::hint::black_box;

use dcp_core::{
    Access, AtomicOp, Completion, CqId, Endpoint, EndpointConfig, Instant, MrAttr, MrKeys, Peer, Prefetch,
    QpConfig, QpId, RegionId, Remote, RunSink, RxPacket, RxSink, Segment, SendOp, SendRequest, Sge, Status,
    Stretch, TxFrame, TxSink,
};
use dcp_wire::{Data, DataOp, Ipv4Addr, Kind, Msn, PKey, Packet, Part, Psn, Ssn};

use super::frames::mac;

/// Frames of a burst.
pub(super) const BURST: usize = 32;
/// Messages that a queue pair may have outstanding.
const DEPTH: u32 = 128;
/// Time of a round, in nanoseconds.
const ROUND_NS: u64 = 1000;

/// Frames on their way.
pub(super) struct Frames(Vec<Packet>);

impl Prefetch for Frames {}

impl TxSink for Frames {
    fn capacity(&self) -> usize {
        BURST - self.0.len()
    }

    fn push(&mut self, frame: TxFrame<'_>) {
        let header = u16::try_from(frame.headers.len()).unwrap_or(u16::MAX);
        let payload_len = u16::try_from(frame.payload_len).unwrap_or(u16::MAX);
        let ip_len = header - 14 + payload_len;
        self.0.push(Packet { headers: *frame.headers, ip_len, payload_offset: header, payload_len });
    }
}

struct Nowhere;

impl RunSink for Nowhere {
    fn go_on(&mut self) {}
}

impl RxSink for Nowhere {
    fn place(&mut self, offset: u32, to: Segment) {
        black_box((offset, to));
    }

    fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
        0
    }

    fn store(&mut self, _: Segment, _: u64) {}
}

struct Host {
    endpoint: Endpoint,
    qps: Vec<QpId>,
    cq: CqId,
    keys: MrKeys,
}

impl Host {
    fn new(number: u8, qps: u32) -> Self {
        let config = EndpointConfig {
            qps_max: qps,
            ..EndpointConfig::new(mac(number.into()), Ipv4Addr::new(10, 0, 0, number))
        };
        let mut endpoint = Endpoint::new(config);
        let pd = endpoint.create_pd();
        let cq = endpoint.create_cq((qps * DEPTH) as usize).expect("a legal depth");
        let attr = MrAttr { pd, region: RegionId(0), offset: 0, va: 0, len: 1 << 30, access: Access::ALL };
        let keys = endpoint.register(attr).expect("a legal range");
        let config = QpConfig { send_depth: DEPTH, ..QpConfig::new(pd, cq) };
        let qps = (0..qps).map(|_| endpoint.create_qp(config).expect("a legal queue pair")).collect();
        Self { endpoint, qps, cq, keys }
    }

    fn connect(&mut self, peer: &Self) {
        let there = *peer.endpoint.config();
        for (&qp, &peer_qp) in self.qps.iter().zip(&peer.qps) {
            let peer = Peer {
                qpn: peer.endpoint.qpn(peer_qp),
                pkey: PKey(7),
                mac: there.mac,
                ip: there.ip,
                service_port: there.service_port,
                start_msn: Msn::ZERO,
                start_ssn: Ssn::ZERO,
            };
            self.endpoint.modify_to_init(qp).expect("a fresh queue pair");
            self.endpoint.modify_to_rtr(qp, peer).expect("a fresh queue pair");
            self.endpoint.modify_to_rts(qp).expect("a connected queue pair");
        }
    }

    /// Takes in a burst; where it `follows` what follows what, as a driver does.
    fn handle(&mut self, now: Instant, frames: &Frames, follows: bool) {
        let mut run = None;
        let mut rest = &frames.0[..];
        while let Some((packet, others)) = rest.split_first() {
            if let Some(run) = &run
                && let Some((first, count)) = stretch(rest)
            {
                let (taken, _) = black_box(self.endpoint.handle_followers(
                    now,
                    run,
                    Stretch { first, count, ack_req: false },
                    &mut Nowhere,
                ));
                rest = &rest[taken as usize..];
                if taken > 0 {
                    continue;
                }
            }
            let rx = RxPacket { packet, arrived: now };
            let _ = black_box(self.endpoint.handle_packet(now, &rx, &mut Nowhere));
            run = if follows { self.endpoint.run_after(&rx) } else { None };
            rest = others;
        }
    }
}

/// What stands for a driver's comparison of headers: the number of the first of these packets, and how many are numbered
/// from there on.
fn stretch(packets: &[Packet]) -> Option<(Psn, u32)> {
    let first = number(packets.first()?)?;
    let is_next =
        |(packet, steps): &(&Packet, u32)| number(packet).is_some_and(|psn| psn.get() == first.get() + steps);
    let count = packets.iter().zip(0..).take_while(is_next).count();
    Some((first, u32::try_from(count).unwrap_or(u32::MAX)))
}

/// What stands for a driver's comparison of headers: the number of a packet that is no message's last.
fn number(packet: &Packet) -> Option<Psn> {
    match &packet.headers.kind {
        Kind::Data(Data { name, ack_req: false, op: DataOp::Write { part: Part::Middle, .. }, .. }) => {
            Some(name.psn)
        }
        _ => None,
    }
}

/// A client that WRITEs into a server.
pub(super) struct Endpoints {
    client: Host,
    server: Host,
    /// Bytes of a message.
    len: u32,
    now: u64,
    /// From client to server.
    data: Frames,
    /// From server to client.
    answers: Frames,
    done: Vec<Completion>,
}

impl Endpoints {
    /// So many queue pairs, with nothing posted.
    pub(super) fn new(qps: u32, len: u32) -> Self {
        let (mut client, mut server) = (Host::new(1, qps), Host::new(2, qps));
        client.connect(&server);
        server.connect(&client);
        let frames = || Frames(Vec::with_capacity(BURST));
        let done = vec![Completion::BLANK; DEPTH as usize];
        Self { client, server, len, now: 0, data: frames(), answers: frames(), done }
    }

    /// The same, with every send queue full.
    pub(super) fn full(qps: u32, len: u32) -> Self {
        let mut endpoints = Self::new(qps, len);
        for index in 0..endpoints.client.qps.len() {
            (0..DEPTH).for_each(|_| endpoints.post(endpoints.client.qps[index]));
        }
        endpoints
    }

    /// Posts a WRITE on the first queue pair.
    pub(super) fn post_one(&mut self) {
        self.post(self.client.qps[0]);
    }

    fn post(&mut self, qp: QpId) {
        let sges = [Sge { va: 0, len: self.len, lkey: self.client.keys.lkey }];
        let op = SendOp::Write(Remote { va: 0, rkey: self.server.keys.rkey });
        self.client.endpoint.post_send(qp, &SendRequest::new(1, op, &sges)).expect("room in the send queue");
    }

    fn now(&self) -> Instant {
        Instant::from_ns(self.now)
    }

    /// A while later, with the last bursts gone.
    pub(super) fn pass_time(&mut self) {
        self.now += ROUND_NS;
        self.data.0.clear();
        self.answers.0.clear();
    }

    /// The client's turn to send; how many frames that made.
    pub(super) fn client_sends(&mut self) -> usize {
        self.client.endpoint.poll_transmit(self.now(), &mut self.data);
        self.data.0.len()
    }

    /// The server takes in what the client has sent; where it `follows`, knowing what follows what.
    pub(super) fn server_receives(&mut self, follows: bool) {
        self.server.handle(self.now(), &self.data, follows);
    }

    /// The server's turn to send; how many frames that made.
    pub(super) fn server_sends(&mut self) -> usize {
        self.server.endpoint.poll_transmit(self.now(), &mut self.answers);
        self.answers.0.len()
    }

    /// The client takes in what the server has sent.
    pub(super) fn client_receives(&mut self) {
        self.client.handle(self.now(), &self.answers, false);
    }

    /// The client's completions, up to what a send queue holds.
    pub(super) fn completions(&mut self) -> usize {
        self.client.endpoint.poll_completions(self.client.cq, &mut self.done)
    }

    /// Posts again what has completed.
    pub(super) fn repost(&mut self) {
        let count = self.completions();
        for index in 0..count {
            assert_eq!(self.done[index].status, Status::Success, "nothing is lost here");
            self.post(self.done[index].qp);
        }
    }
}
