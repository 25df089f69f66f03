//! What queue pairs take: memory at rest, and none at all while packets come in any order.
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]

use std::alloc::System;
use std::sync::Mutex;

use dcp_core::{
    Access, AtomicOp, Endpoint, EndpointConfig, Instant, MrAttr, Peer, QpConfig, QpId, RecvRequest, RegionId,
    RxPacket, RxSink, RxVerdict, Segment, Sge,
};
use dcp_wire::{
    Data, DataOp, Ecn, Generation, Headers, Ipv4Addr, Kind, MacAddr, Msn, PKey, Packet, PacketName, Part,
    Path, Psn, RegionKey, Reth, Ssn,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const QPS: u32 = 10_000;
/// Bytes that they may take.
const QPS_BYTES_MAX: usize = 64 << 20;
const DEPTH: u32 = 8;
const MTU: u32 = 1024;
const MR_LEN: u64 = 1 << 30;

fn endpoint() -> (Endpoint, QpConfig, RegionKey, RegionKey) {
    let mut config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
    config.qps_max = QPS;
    let mut endpoint = Endpoint::new(config);
    let pd = endpoint.create_pd();
    let cq = endpoint.create_cq(1024).expect("a legal depth");
    let attr = MrAttr { pd, region: RegionId(0), offset: 0, va: 0, len: MR_LEN, access: Access::ALL };
    let keys = endpoint.register(attr).expect("a legal range");
    let mut qp = QpConfig::new(pd, cq);
    (qp.window, qp.send_depth, qp.recv_depth, qp.mtu) = (8, DEPTH, DEPTH, MTU);
    (endpoint, qp, keys.lkey, keys.rkey)
}

fn connect(endpoint: &mut Endpoint, qp: QpId) {
    let peer = Peer {
        qpn: endpoint.qpn(qp),
        pkey: PKey(7),
        mac: MacAddr([2, 0, 0, 0, 0, 2]),
        ip: Ipv4Addr::new(10, 0, 0, 2),
        service_port: 17791,
        start_msn: Msn::ZERO,
        start_ssn: Ssn::ZERO,
    };
    endpoint.modify_to_init(qp).expect("a fresh queue pair");
    endpoint.modify_to_rtr(qp, peer).expect("a fresh queue pair");
    endpoint.modify_to_rts(qp).expect("a connected queue pair");
}

#[test]
fn ten_thousand_idle_queue_pairs_fit_in_64_mib() {
    let _alone = ALONE.lock().unwrap();
    let (mut endpoint, config, lkey, _) = endpoint();
    let before = Region::new(ALLOCATOR);
    for _ in 0..QPS {
        let qp = endpoint.create_qp(config).unwrap();
        connect(&mut endpoint, qp);
    }
    let connected = in_use(&before);
    let sges = [Sge { va: 0, len: 64, lkey }, Sge { va: 64, len: 64, lkey }];
    for qp in (0..QPS).map(QpId) {
        for wr_id in 0..u64::from(DEPTH) {
            endpoint.post_recv(qp, &RecvRequest { wr_id, sges: &sges }).unwrap();
        }
    }
    let posted = in_use(&before);
    println!(
        "{QPS} idle queue pairs, W 8, depths {DEPTH}: {connected} B, {} B each; with {DEPTH} receives of 2 SGEs \
         posted: {posted} B, {} B each",
        connected / QPS as usize,
        posted / QPS as usize,
    );
    assert!(posted <= QPS_BYTES_MAX, "{posted} B");
}

fn in_use(since: &Region<'_, System>) -> usize {
    let change = since.change();
    let grown =
        change.bytes_allocated as isize + change.bytes_reallocated - change.bytes_deallocated as isize;
    usize::try_from(grown).expect("more than before")
}

struct Nowhere;

impl RxSink for Nowhere {
    fn place(&mut self, _: u32, _: Segment) {}

    fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
        0
    }

    fn store(&mut self, _: Segment, _: u64) {}
}

/// Packet `psn` of the WRITE `msn` of `packets` packets.
fn write(endpoint: &Endpoint, rkey: RegionKey, msn: u32, psn: u32, packets: u32) -> Packet {
    let part = match psn {
        0 => Part::First,
        _ if psn + 1 == packets => Part::Last(None),
        _ => Part::Middle,
    };
    let name = PacketName {
        msn: Msn::from_low_bits(msn),
        psn: Psn::from_low_bits(psn),
        generation: Generation::ZERO,
    };
    let reth = Reth { va: u64::from(psn * MTU), rkey, dma_len: packets * MTU };
    let path = Path {
        src_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        dst_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 2),
        dst_ip: Ipv4Addr::new(10, 0, 0, 1),
        src_port: 0xC000,
        dst_port: 17791,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let kind = Kind::Data(Data { name, ack_req: false, solicited: false, op: DataOp::Write { reth, part } });
    let headers = Headers { path, dest_qpn: endpoint.qpn(QpId(0)), pkey: PKey(7), kind };
    let (ip_len, payload_len) = ((MTU + 59) as u16, MTU as u16);
    Packet { headers, ip_len, payload_offset: 73, payload_len }
}

fn handle(endpoint: &mut Endpoint, packet: &Packet) -> RxVerdict {
    let rx = RxPacket { packet, arrived: Instant::ZERO };
    endpoint.handle_packet(Instant::ZERO, &rx, &mut Nowhere)
}

// no memory is taken for packets out of order, however far.
#[test]
fn packets_in_any_order_of_a_full_window_allocate_nothing() {
    let _alone = ALONE.lock().unwrap();
    let (mut endpoint, config, _, rkey) = endpoint();
    let qp = endpoint.create_qp(config).unwrap();
    connect(&mut endpoint, qp);
    let packets = 449;
    let first = write(&endpoint, rkey, 0, 0, packets);
    assert_eq!(handle(&mut endpoint, &first), RxVerdict::Done);
    let frames: Vec<Packet> = (0..packets)
        .rev()
        .flat_map(|psn| (0..config.window).rev().map(move |msn| (msn, psn)))
        .filter(|&at| at != (0, 0))
        .map(|(msn, psn)| write(&endpoint, rkey, msn, psn, packets))
        .collect();
    let before = Region::new(ALLOCATOR);
    for frame in &frames {
        assert_eq!(handle(&mut endpoint, frame), RxVerdict::Done);
    }
    let change = before.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{change:?}");
    let counters = endpoint.counters();
    assert_eq!((counters.placed, counters.dropped_total()), (u64::from(packets * 8), 0));
}
