//! Every piece of the hot path, timed alone.
//!
//! `cargo bench -p dcp-perf --bench hot`; a word behind `--` chooses, such as `-- requester`. Throughput is in packets or
//! timers. `make gate` counts the instructions of the same pieces.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dcp_perf::cases::{self, Case};

/// The time of so many rounds, without what comes between them.
fn rounds(case: &mut dyn Case, count: u64) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..count {
        case.prepare();
        #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
        let start = std::time::Instant::now();
        case.run();
        total += start.elapsed();
    }
    total
}

fn hot(c: &mut Criterion) {
    for entry in cases::all() {
        let (group, name) = entry.name.split_once('/').unwrap_or((entry.name, ""));
        let mut group = c.benchmark_group(group);
        group.throughput(Throughput::Elements(entry.elements));
        group.bench_function(name, |b| {
            let mut case = (entry.make)();
            b.iter_custom(|count| rounds(&mut *case, count));
        });
        group.finish();
    }
}

criterion_group!(benches, hot);
criterion_main!(benches);
