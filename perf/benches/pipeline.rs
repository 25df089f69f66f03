//! What the switch's pipeline costs per frame, without any driver: receive, decide, queue, schedule, send.
//!
//! `cargo bench -p dcp-perf --bench pipeline`. Every case moves bursts of 32 frames through a switch of eight ports;
//! throughput is in frames.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dcp_perf::cases::Case;
use dcp_perf::cases::frames::mac;
use dcp_perf::cases::switch::{BURST, Forward, HeadFrame, PORTS, TO, burst, burst_of_two_kinds, config};
use dcp_pipeline::{
    FaultConfig, Frame, GroupConfig, GroupId, LinkConfig, LinkRate, LoadBalance, PipelineConfig, PortId,
    Probability, RedConfig,
};

/// A switch whose hosts other than the first are behind a group of four links.
fn balanced(balance: LoadBalance) -> PipelineConfig {
    PipelineConfig {
        static_macs: vec![(mac(0), PortId(0))],
        groups: vec![GroupConfig::equal((4..PORTS).map(PortId), balance)],
        group_macs: vec![(mac(TO.0), GroupId(0))],
        ..config()
    }
}

/// Bursts come in and leave by whatever port they were sent to.
fn case(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, config: PipelineConfig, frames: &[HeadFrame]) {
    let mut forward = Forward::new(config, frames.to_vec());
    group.bench_function(name, |b| {
        b.iter_custom(|count| {
            let mut total = Duration::ZERO;
            for _ in 0..count {
                forward.prepare();
                #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
                let start = std::time::Instant::now();
                forward.run();
                total += start.elapsed();
            }
            total
        });
    });
}

fn pipeline(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(BURST as u64));
    let data = burst();
    case(&mut group, "forward/known", config(), &data);
    case(&mut group, "forward/two_kinds", config(), &burst_of_two_kinds());
    let learning = PipelineConfig { static_macs: vec![(mac(TO.0), TO)], ..config() };
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
