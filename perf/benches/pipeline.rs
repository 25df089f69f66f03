//! What the switch's pipeline costs per frame, without any driver: receive, decide, queue, schedule, send.
//!
//! `cargo bench -p dcp-perf --bench pipeline`. Every case moves bursts of 32 frames through a switch of eight ports;
//! throughput is in frames.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dcp_pipeline::{
    Classified, EditRefused, FaultConfig, Frame, GroupConfig, GroupId, LinkConfig, LinkRate, LoadBalance,
    Pipeline, PipelineConfig, PortId, Probability, RedConfig,
};
use dcp_wire::{
    Data, DataOp, Ecn, Generation, Headers, Ipv4Addr, Kind, MacAddr, Msn, PKey, PacketName, Part, Path, Psn,
    Qpn, RegionKey, Reth, SERVICE_PORT,
};

const BURST: usize = 32;
const PORTS: u16 = 8;
/// Where every frame goes.
const TO: PortId = PortId(1);

/// Headers in a box of their own and a length, as an mbuf is to the switch.
#[derive(Clone)]
struct HeadFrame {
    head: Box<[u8; 128]>,
    len: u32,
}

impl Frame for HeadFrame {
    fn classify(&self, service_ports: &[u16]) -> Option<Classified> {
        dcp_wire::classify(&self.head[..], service_ports)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn trim(&mut self) -> Result<(), EditRefused> {
        let len = dcp_wire::trim(&mut self.head[..]).map_err(|_| EditRefused::NotDcp)?;
        self.len = u32::try_from(len).map_err(|_| EditRefused::NotDcp)?;
        Ok(())
    }

    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        dcp_wire::mark_ce(&mut self.head[..]).map_err(|_| EditRefused::NotDcp)
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

fn host(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([2, 0, 0, 0, high, low])
}

/// A WRITE of MTU 1024 from one of many flows.
fn write(flow: u16, to: MacAddr) -> HeadFrame {
    let path = Path {
        src_mac: host(0),
        dst_mac: to,
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC000 | flow,
        dst_port: SERVICE_PORT,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let name = PacketName { msn: Msn::ZERO, psn: Psn::from_low_bits(1), generation: Generation::ZERO };
    let op = DataOp::Write { reth: Reth { va: 0, rkey: RegionKey(1), dma_len: 1 << 20 }, part: Part::Middle };
    let kind = Kind::Data(Data { name, ack_req: false, solicited: false, op });
    let headers = Headers { path, dest_qpn: Qpn::from_low_bits(1), pkey: PKey(7), kind };
    let mut head = Box::new([0; 128]);
    dcp_wire::emit(&headers, 1024, &mut head[..]);
    HeadFrame { head, len: 1097 }
}

fn burst() -> Vec<HeadFrame> {
    (0u16..).take(BURST).map(|flow| write(flow, host(TO.0))).collect()
}

fn config() -> PipelineConfig {
    PipelineConfig {
        static_macs: (0..PORTS).map(|port| (host(port), PortId(port))).collect(),
        ..PipelineConfig::new(PORTS)
    }
}

/// A switch whose hosts other than the first are behind a group of four links.
fn balanced(balance: LoadBalance) -> PipelineConfig {
    PipelineConfig {
        static_macs: vec![(host(0), PortId(0))],
        groups: vec![GroupConfig::equal((4..PORTS).map(PortId), balance)],
        group_macs: vec![(host(TO.0), GroupId(0))],
        ..config()
    }
}

/// Bursts come in and leave by whatever port they were sent to.
fn case(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, config: PipelineConfig, frames: &[HeadFrame]) {
    let Ok(mut switch) = Pipeline::new(config) else { panic!("{name}: a legal switch") };
    let mut now = 0;
    group.bench_function(name, |b| {
        b.iter_batched(
            || frames.to_vec(),
            |frames| {
                // Time enough for a burst on a link of 100 Gb/s.
                now += 10_000;
                let mut sent = Vec::with_capacity(2 * BURST);
                for frame in frames {
                    switch.handle_frame(now, PortId(0), frame);
                }
                switch.handle_timeout(now);
                for port in (0..PORTS).map(PortId).filter(|&port| port.0 > 0) {
                    if switch.has_queued(port) {
                        switch.poll_transmit(now, port, &mut sent);
                    }
                }
                sent
            },
            BatchSize::SmallInput,
        );
    });
}

fn pipeline(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(BURST as u64));
    let data = burst();
    case(&mut group, "forward/known", config(), &data);
    let learning = PipelineConfig { static_macs: vec![(host(TO.0), TO)], ..config() };
    case(&mut group, "forward/learning", learning, &data);
    let mut others = data.clone();
    others.iter_mut().for_each(|frame| frame.head[36..38].copy_from_slice(&4791u16.to_be_bytes()));
    case(&mut group, "forward/not_dcp", config(), &others);
    case(&mut group, "trim/31_of_32", PipelineConfig { trim_threshold_bytes: 0, ..config() }, &data);
    // Every other frame is a header: both queues are in use.
    let mut mixed = data.clone();
    for frame in mixed.iter_mut().step_by(2) {
        frame.trim().ok();
    }
    case(&mut group, "wrr/half_headers", config(), &mixed);
    for (name, balance) in [
        ("balance/ecmp", LoadBalance::Ecmp),
        ("balance/spray", LoadBalance::SprayRoundRobin),
        ("balance/adaptive", LoadBalance::Adaptive),
    ] {
        case(&mut group, name, balanced(balance), &data);
    }
    let red = RedConfig { min_bytes: 0, max_bytes: 64 << 10, at_max: Probability::from_ppm(200_000) };
    case(&mut group, "ecn/red", PipelineConfig { ecn: Some(red), ..config() }, &data);
    let link = LinkConfig::of_rate(LinkRate::from_mbps(100_000));
    case(&mut group, "link/100_gbps", PipelineConfig { links: vec![link; 8], ..config() }, &data);
    let faults = FaultConfig { drop: Probability::from_ppm(1000), ..FaultConfig::NONE };
    case(&mut group, "faults/drop", PipelineConfig { faults: vec![faults; 8], ..config() }, &data);
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
