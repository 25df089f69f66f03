//! Tracking: the cost of a packet at reordering degrees from 0 to 448, for a counting slot and for bitmaps.
//!
//! `cargo bench -p dcp-perf --bench track`; docs/TRACKING.md has a table of it.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

mod bitmap;
mod chunks;
#[path = "../../../transport/core/src/maps.rs"]
#[allow(dead_code, unused_imports, reason = "the core's own source; only what the slot needs is used")]
mod maps;
#[path = "../../../transport/core/src/mix.rs"]
#[allow(unused_imports, unreachable_pub, reason = "the core's own source with its tests")]
mod mix;
#[path = "../../../transport/core/src/slot.rs"]
#[allow(dead_code, unused_imports, reason = "the core's own source, measured where it is private")]
mod slot;

use std::hint::black_box;

use bitmap::Bitmap;
use chunks::Chunks;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slot::{Counted, Slot};

/// Packets between the place of a packet and its arrival, as in the paper's Figure 7.
const DEGREES: [u32; 8] = [0, 1, 16, 64, 128, 256, 384, 448];
/// Packets of the message, about.
const PACKETS: u32 = 4096;

/// In every block of `degree + 1` packets the first one comes last.
fn order(degree: u32) -> Vec<u32> {
    let block = degree + 1;
    let starts = (0..PACKETS.div_ceil(block)).map(|index| index * block);
    starts.flat_map(|start| (start + 1..start + block).chain([start])).collect()
}

fn slot(order: &[u32]) -> u32 {
    let mut slot = Slot::default();
    slot.set_expected(u32::try_from(order.len()).expect("a short message"));
    let mut complete = 0;
    for &psn in order {
        complete += u32::from(slot.count(black_box(psn)) == Counted::Complete);
    }
    complete
}

fn track(c: &mut Criterion) {
    let mut group = c.benchmark_group("track");
    for degree in DEGREES {
        let order = order(degree);
        group.throughput(Throughput::Elements(order.len() as u64));
        assert_eq!(slot(&order), 1);
        group.bench_with_input(BenchmarkId::new("slot", degree), &order, |b, order| {
            b.iter(|| slot(black_box(order)));
        });
        let mut bitmap = Bitmap::new();
        assert_eq!(bitmap.track(&order) as usize, order.len());
        group.bench_with_input(BenchmarkId::new("bdp_bitmap", degree), &order, |b, order| {
            b.iter(|| bitmap.track(black_box(order)));
        });
        let mut chunks = Chunks::new();
        assert_eq!(chunks.track(&order) as usize, order.len());
        group.bench_with_input(BenchmarkId::new("linked_chunks", degree), &order, |b, order| {
            b.iter(|| chunks.track(black_box(order)));
        });
    }
    group.finish();
}

criterion_group!(benches, track);
criterion_main!(benches);
