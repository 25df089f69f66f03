//! The protocol without IO: parse, emit, the timer wheel, and WRITEs between two endpoints.
//!
//! `cargo bench -p dcp-perf --bench core`.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

#[path = "../../transport/core/src/wheel.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the core's own source with its tests, measured where it is private"
)]
mod wheel;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dcp_core::{
    Access, AtomicOp, Completion, CqId, Endpoint, EndpointConfig, Instant, MrAttr, MrKeys, Peer, QpConfig,
    QpId, RegionId, Remote, RxPacket, RxSink, Segment, SendOp, SendRequest, Sge, TxFrame, TxSink,
};
use dcp_wire::{
    Data, DataOp, Ecn, Generation, Headers, Ipv4Addr, Kind, MacAddr, Msn, PKey, Packet, PacketName,
    ParseOptions, Part, Path, Psn, Qpn, RegionKey, Reth, Ssn,
};
use wheel::Wheel;

#[cfg(test)]
use dcp_core::Mixer;

const MTU: u32 = 4096;

fn write_headers() -> Headers {
    let path = Path {
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC000,
        dst_port: 17791,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let name = PacketName { msn: Msn::ZERO, psn: Psn::from_low_bits(1), generation: Generation::ZERO };
    let op = DataOp::Write { reth: Reth { va: 0, rkey: RegionKey(1), dma_len: 1 << 20 }, part: Part::Middle };
    let kind = Kind::Data(Data { name, ack_req: false, solicited: false, op });
    Headers { path, dest_qpn: Qpn::from_low_bits(1), pkey: PKey(7), kind }
}

fn wire(c: &mut Criterion) {
    let headers = write_headers();
    let mut frame = vec![0; headers.len() + MTU as usize];
    let mut group = c.benchmark_group("wire");
    group.throughput(Throughput::Elements(1));
    group.bench_function("emit/write", |b| {
        b.iter(|| dcp_wire::emit(black_box(&headers), MTU as usize, black_box(&mut frame)));
    });
    dcp_wire::emit(&headers, MTU as usize, &mut frame);
    group.bench_function("parse/write", |b| {
        b.iter(|| dcp_wire::parse_frame(ParseOptions::default(), black_box(&frame)).is_ok());
    });
    group.finish();
}

/// Every timer is armed and runs out once.
fn timers(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel");
    for count in [64u32, 4096] {
        group.throughput(Throughput::Elements(count.into()));
        group.bench_with_input(BenchmarkId::new("arm_and_fire", count), &count, |b, &count| {
            let mut wheel = Wheel::new();
            wheel.grow(count as usize);
            let (mut now, mut due) = (0u64, Vec::with_capacity(count as usize));
            b.iter(|| {
                for timer in 0..count {
                    wheel.arm_by(timer, Instant::from_ns(now + 67_000_000 + u64::from(timer) * 997));
                }
                now = wheel.next_timeout().map_or(now, Instant::ns) + 67_000_000;
                due.clear();
                wheel.advance(Instant::from_ns(now), &mut due);
                assert_eq!(due.len(), count as usize);
                due.len()
            });
        });
    }
    group.finish();
}

struct Host {
    endpoint: Endpoint,
    qp: QpId,
    cq: CqId,
    keys: MrKeys,
}

/// Frames as headers and lengths: the bytes are the driver's business.
struct Frames(Vec<Packet>);

impl TxSink for Frames {
    fn capacity(&self) -> usize {
        32 - self.0.len()
    }

    fn push(&mut self, frame: TxFrame<'_>) {
        let header = u16::try_from(frame.headers.len()).expect("headers are short");
        let payload_len = u16::try_from(frame.payload_len).expect("payloads are at most an MTU");
        let ip_len = header - 14 + payload_len;
        self.0.push(Packet { headers: *frame.headers, ip_len, payload_offset: header, payload_len });
    }
}

struct Nowhere;

impl RxSink for Nowhere {
    fn place(&mut self, offset: u32, to: Segment) {
        black_box((offset, to));
    }

    fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
        0
    }

    fn store(&mut self, _: Segment, _: u64) {}
}

fn host(number: u8) -> Host {
    let config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, number]), Ipv4Addr::new(10, 0, 0, number));
    let mut endpoint = Endpoint::new(config);
    let pd = endpoint.create_pd();
    let cq = endpoint.create_cq(1024).expect("a legal depth");
    let attr = MrAttr { pd, region: RegionId(0), offset: 0, va: 0, len: 1 << 30, access: Access::ALL };
    let keys = endpoint.register(attr).expect("a legal range");
    let qp = endpoint.create_qp(QpConfig::new(pd, cq)).expect("a legal queue pair");
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
    Host { endpoint, qp, cq, keys }
}

/// One burst from a host to the other; false if there was none.
fn burst(from: &mut Host, to: &mut Host, frames: &mut Frames, now: Instant) -> bool {
    frames.0.clear();
    from.endpoint.poll_transmit(now, frames);
    for &packet in &frames.0 {
        let _ = to.endpoint.handle_packet(now, &RxPacket { packet, arrived: now }, &mut Nowhere);
    }
    !frames.0.is_empty()
}

fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("pair");
    for len in [64u32, 64 << 10, 1 << 20] {
        group.throughput(Throughput::Elements(len.div_ceil(MTU).into()));
        let (mut client, mut server) = (host(1), host(2));
        let sges = [Sge { va: 0, len, lkey: client.keys.lkey }];
        let op = SendOp::Write(Remote { va: 0, rkey: server.keys.rkey });
        let (mut frames, mut now) = (Frames(Vec::with_capacity(32)), 0);
        let mut done: Vec<Completion> = Vec::with_capacity(1);
        group.bench_with_input(BenchmarkId::new("write", len), &len, |b, _| {
            b.iter(|| {
                client.endpoint.post_send(client.qp, &SendRequest::new(1, op, &sges)).expect("room");
                loop {
                    now += 1000;
                    let now = Instant::from_ns(now);
                    let sent = burst(&mut client, &mut server, &mut frames, now);
                    if !burst(&mut server, &mut client, &mut frames, now) && !sent {
                        break;
                    }
                }
                completions(&mut client, &mut done)
            });
        });
    }
    group.finish();
}

fn completions(host: &mut Host, out: &mut Vec<Completion>) -> usize {
    const NOTHING: Completion = Completion {
        wr_id: 0,
        qp: QpId(0),
        status: dcp_core::Status::Flushed,
        operation: dcp_core::Operation::Write,
        byte_len: 0,
        imm: None,
        solicited: false,
    };
    out.resize(8, NOTHING);
    let count = host.endpoint.poll_completions(host.cq, out);
    assert_eq!(count, 1, "one WRITE, one completion");
    count
}

criterion_group!(benches, wire, timers, write);
criterion_main!(benches);
