//! What a frame costs on this machine: `cargo run --release -p dpdk-ffi --example measure`.
//!
//! One thread, run to completion: the best of several rounds, in nanoseconds per frame. For changes in this crate; the
//! product's figures come from `perf`.

use std::error::Error;

use dpdk_ffi::{
    Clock, Eal, EalConfig, FabricConfig, HugePreference, MbufBatch, MbufStash, Pool, PoolConfig, Region,
    available_cores, create_links, pin, register_thread,
};

const ROUNDS: usize = 15;
const BURSTS: usize = 20_000;
const BURST: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let eal = Eal::start(EalConfig::default())?;
    println!("{} on {}", Eal::version(), eal.memory());
    if let Some(&core) = available_cores().last() {
        pin(core)?;
    }
    let _guard = register_thread(&eal)?;
    let headers = Pool::new(&eal, PoolConfig::header("headers", 4095))?;
    let payloads = Pool::new(&eal, PoolConfig::payload("payloads", 4095))?;
    let mut bench = Bench {
        clock: Clock::calibrate(),
        stash: MbufStash::new(&headers, &payloads),
        source: Region::alloc(1 << 20, HugePreference::Auto)?,
        target: Region::alloc(1 << 20, HugePreference::Auto)?,
        bin: MbufBatch::new(),
        batch: MbufBatch::new(),
    };
    bench.run("clock read", |b| {
        for _ in 0..BURST {
            std::hint::black_box(b.clock.now_ns());
        }
    });
    bench.run("header: take, free in bulk", |b| {
        b.build(0, 0);
        b.batch.free_all();
    });
    bench.run("header + payload: take, attach, free in bulk", |b| {
        b.build(1, 1024);
        b.batch.free_all();
    });
    bench.run("header + 2 payloads: take, attach, free in bulk", |b| {
        b.build(2, 1024);
        b.batch.free_all();
    });
    bench.run("header + payload: take, attach, drop one by one", |b| {
        b.build(1, 1024);
        while b.batch.pop().is_some() {}
    });
    let (mut host, mut switch) =
        create_links(&eal, FabricConfig { links: 1, ring_size: 1024 })?.pop().ok_or("no link")?;
    bench.build(0, 0);
    bench.run("bare link: tx burst, rx burst", |b| {
        host.tx.burst(&mut b.batch);
        switch.rx.burst(&mut b.batch);
    });
    assert_eq!(bench.batch.len(), BURST, "frames were lost on the link");
    bench.batch.free_all();
    for len in [1024usize, 4096, 8192] {
        let ns = bench.run(&format!("all of it, {len} B: build, link, copy, free"), |b| {
            b.transfer(len, &mut host, &mut switch)
        });
        println!("{:>60}", format!("{:.0} Gb/s", len as f64 * 8.0 / ns));
    }
    drop((host, switch, bench));
    assert_eq!((headers.in_use(), payloads.in_use()), (0, 0), "mbufs are missing");
    Ok(())
}

struct Bench {
    clock: Clock,
    stash: MbufStash,
    source: Region,
    target: Region,
    bin: MbufBatch,
    batch: MbufBatch,
}

impl Bench {
    /// Prints and returns ns per frame.
    fn run(&mut self, name: &str, mut burst: impl FnMut(&mut Self)) -> f64 {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = self.clock.now_ns();
            for _ in 0..BURSTS {
                burst(self);
            }
            let elapsed = self.clock.now_ns() - start;
            best = best.min(elapsed as f64 / (BURSTS * BURST) as f64);
        }
        println!("{name:<52} {best:>7.2} ns {:>8.1} M/s", 1e3 / best);
        best
    }

    /// A burst of frames with `segments` payload segments of `len` bytes.
    #[inline]
    fn build(&mut self, segments: u64, len: usize) {
        self.stash.refill();
        for number in 0..BURST as u64 {
            let Some(mut frame) = self.stash.take_header() else { return };
            if let Some(header) = frame.grow_head(64) {
                header.fill(0x5a);
            }
            for segment in 0..segments {
                let offset = (number + segment) * 8192;
                let attached = self.stash.attach(&mut frame, &self.source, offset, len);
                debug_assert!(attached.is_ok());
            }
            if self.batch.push(frame).is_err() {
                return;
            }
        }
    }

    #[inline]
    fn transfer(&mut self, len: usize, host: &mut dpdk_ffi::QueuePair, switch: &mut dpdk_ffi::QueuePair) {
        self.build(1, len);
        host.tx.burst(&mut self.batch);
        switch.rx.burst(&mut self.batch);
        for (number, frame) in (0u64..).zip(self.batch.drain()) {
            let copied = frame.copy_out(64, &self.target, number * 8192, len);
            debug_assert!(copied.is_ok());
            self.bin.discard(frame);
        }
        self.bin.free_all();
    }
}
