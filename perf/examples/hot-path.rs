//! WRITEs between two endpoints with every header emitted and parsed, and nothing else: no device, no payload bytes.
//!
//! For instruction counts: `valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/hot-path
//! MESSAGE_BYTES MTU QUEUE_PAIRS MESSAGES DEPTH`.
#![forbid(unsafe_code)]

use std::hint::black_box;

use dcp_core::{
    Access, AtomicOp, Completion, CqId, Endpoint, EndpointConfig, Instant, MrAttr, MrKeys, Peer, Prefetch,
    QpConfig, QpId, RegionId, Remote, RxPacket, RxSink, Segment, SendOp, SendRequest, Sge, Status, TxFrame,
    TxSink,
};
use dcp_wire::{Ipv4Addr, MacAddr, Msn, PARSE_LEN, PKey, ParseOptions, Ssn};

/// Frames that a poll may send, like a burst.
const BURST: usize = 64;
/// Bytes of each side's memory.
const REGION: u64 = 1 << 30;

struct Host {
    endpoint: Endpoint,
    qps: Vec<QpId>,
    cq: CqId,
    keys: MrKeys,
}

/// What a run is about.
#[derive(Clone, Copy)]
struct Load {
    len: u32,
    mtu: u32,
    qps: u32,
    messages: u64,
    depth: u32,
}

/// The first bytes of each frame, and its length.
struct Wire {
    heads: Vec<[u8; PARSE_LEN]>,
    lengths: [usize; BURST],
    used: usize,
}

impl Prefetch for Wire {}

impl TxSink for Wire {
    #[inline]
    fn capacity(&self) -> usize {
        BURST - self.used
    }

    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) {
        let header_len = frame.emit_headers(&mut self.heads[self.used]);
        self.lengths[self.used] = header_len + frame.payload_len as usize;
        self.used += 1;
        black_box(frame.segments);
    }
}

struct Nowhere;

impl RxSink for Nowhere {
    #[inline]
    fn place(&mut self, offset: u32, to: Segment) {
        black_box((offset, to));
    }

    fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
        0
    }

    fn store(&mut self, _: Segment, _: u64) {}
}

fn host(number: u8, load: Load) -> Host {
    let config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, number]), Ipv4Addr::new(10, 0, 0, number));
    let mut endpoint = Endpoint::new(config);
    let pd = endpoint.create_pd();
    let cq = endpoint.create_cq(1 << 20).expect("a legal depth");
    let attr = MrAttr { pd, region: RegionId(0), offset: 0, va: 0, len: REGION, access: Access::ALL };
    let keys = endpoint.register(attr).expect("a legal range");
    let qps = (0..load.qps)
        .map(|_| {
            let config = QpConfig { mtu: load.mtu, ..QpConfig::new(pd, cq) };
            let qp = endpoint.create_qp(config).expect("a legal queue pair");
            endpoint.modify_to_init(qp).expect("a fresh queue pair");
            let peer = Peer {
                qpn: endpoint.qpn(qp),
                pkey: PKey(7),
                mac: MacAddr([2, 0, 0, 0, 0, 3 - number]),
                ip: Ipv4Addr::new(10, 0, 0, 3 - number),
                service_port: 17791,
                start_msn: Msn::ZERO,
                start_ssn: Ssn::ZERO,
            };
            endpoint.modify_to_rtr(qp, peer).expect("a fresh queue pair");
            endpoint.modify_to_rts(qp).expect("a connected queue pair");
            qp
        })
        .collect();
    Host { endpoint, qps, cq, keys }
}

/// One burst from a host to the other; answers how many frames.
fn burst(from: &mut Host, to: &mut Host, wire: &mut Wire, now: Instant) -> usize {
    wire.used = 0;
    from.endpoint.poll_transmit(now, wire);
    for (head, &len) in wire.heads[..wire.used].iter().zip(&wire.lengths) {
        let Ok(packet) = &dcp_wire::parse(ParseOptions::default(), head, len, || true) else {
            panic!("an endpoint made an illegal frame");
        };
        let _ = to.endpoint.handle_packet(now, &RxPacket { packet, arrived: now }, &mut Nowhere);
    }
    wire.used
}

/// Keeps `depth` messages outstanding on every queue pair until all are done; returns the polls.
#[inline(never)]
fn measured(client: &mut Host, server: &mut Host, wire: &mut Wire, load: Load, now: &mut u64) -> u64 {
    let sges = [Sge { va: 0, len: load.len, lkey: client.keys.lkey }];
    let op = SendOp::Write(Remote { va: 0, rkey: server.keys.rkey });
    let (mut posted, mut done, mut polls) = (0, 0, 0);
    let mut completions = [Completion::BLANK; 32];
    for _ in 0..load.depth {
        for &qp in &client.qps {
            client.endpoint.post_send(qp, &SendRequest::new(1, op, &sges)).expect("room");
            posted += 1;
        }
    }
    while done < load.messages {
        *now += 1000;
        polls += 1;
        let now = Instant::from_ns(*now);
        burst(client, server, wire, now);
        burst(server, client, wire, now);
        server.endpoint.handle_timeout(now);
        client.endpoint.handle_timeout(now);
        let count = client.endpoint.poll_completions(client.cq, &mut completions);
        for completion in &completions[..count] {
            assert_eq!(completion.status, Status::Success, "nothing is lost here");
            done += 1;
            if posted < load.messages {
                client.endpoint.post_send(completion.qp, &SendRequest::new(1, op, &sges)).expect("room");
                posted += 1;
            }
        }
    }
    polls
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse().expect("numbers"));
    let mut next = |default: u64| numbers.next().unwrap_or(default);
    let narrow = |number: u64| u32::try_from(number).expect("below 2^32");
    let (len, mtu, qps) = (narrow(next(1 << 20)), narrow(next(1024)), narrow(next(1)));
    let load = Load { len, mtu, qps, messages: next(100), depth: narrow(next(16)) };
    let (mut client, mut server) = (host(1, load), host(2, load));
    let mut wire = Wire { heads: vec![[0; PARSE_LEN]; BURST], lengths: [0; BURST], used: 0 };
    let mut now = 0;
    let polls = measured(&mut client, &mut server, &mut wire, load, &mut now);
    let packets = client.endpoint.counters().data_packets;
    let acks = server.endpoint.counters().acks;
    println!("{packets} packets, {acks} ACKs, {polls} polls");
}
