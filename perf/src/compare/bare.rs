//! The limits: copying alone, and mbufs alone.

use std::collections::VecDeque;

use dpdk_ffi::{
    Clock, Eal, EalConfig, FabricConfig, HugePreference, Mbuf, MbufBatch, MbufStash, Pool, PoolConfig,
    QueuePair, Region, create_links, pin, register_thread,
};

use super::{Contender, Name, Point, Sample, core};

/// Messages under way at most, as many as dcp-bench has.
const DEPTH: u64 = 128;
/// Memory of the messages on each side while they fit, as in dcp-bench: small enough for a cache.
const CACHED_BYTES: u64 = 2 << 20;
/// Bytes between two messages, as in dcp-bench.
const GUARD: u64 = 64;
/// Bytes under way, as in dcp-bench.
const WINDOW_BYTES: u64 = 256 << 10;
/// Bytes before the payload of a WRITE's packet.
const HEADER: usize = 70;
const RING_FRAMES: u32 = 1024;
const MBUFS: u32 = 8191;
/// Blocks between two looks at the clock.
const BLOCKS_PER_LOOK: u64 = 256;

/// Messages in memory, cut into packets: where each packet lies, one after the other for ever.
struct Blocks {
    size: u64,
    mtu: u64,
    stride: u64,
    slots: u64,
    slot: u64,
    offset: u64,
}

impl Blocks {
    fn new(point: Point) -> Self {
        let (size, mtu) = (point.size, u64::from(point.mtu));
        let stride = size.next_multiple_of(GUARD) + GUARD;
        Self { size, mtu, stride, slots: (CACHED_BYTES / stride).clamp(1, DEPTH), slot: 0, offset: 0 }
    }

    fn memory(&self) -> Result<Region, String> {
        let len = usize::try_from(self.stride * self.slots).map_err(|error| error.to_string())?;
        let region = Region::alloc(len, HugePreference::Auto).map_err(|error| error.to_string())?;
        // Every page is there before the clock runs.
        region.fill(0, len, 1).map_err(|error| error.to_string())?;
        Ok(region)
    }

    /// Offset and length of the next block.
    #[inline]
    fn next(&mut self) -> (u64, usize) {
        let len = self.mtu.min(self.size - self.offset);
        let at = self.slot * self.stride + self.offset;
        self.offset += len;
        if self.offset == self.size {
            (self.offset, self.slot) = (0, self.slot + 1);
            if self.slot == self.slots {
                self.slot = 0;
            }
        }
        (at, usize::try_from(len).unwrap_or(usize::MAX))
    }
}

/// Repeats `blocks`, which moves some and tells how many bytes that was, for a while.
fn timed(
    clock: Clock,
    seconds: f64,
    mut blocks: impl FnMut() -> Result<u64, String>,
) -> Result<Sample, String> {
    let start = clock.now_ns();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a minute at most")]
    let end = start + (seconds * 1e9) as u64;
    let mut bytes = 0;
    loop {
        bytes += blocks()?;
        let now = clock.now_ns();
        if now >= end {
            return Ok(Sample { gbps: bytes as f64 * 8.0 / (now - start) as f64, cores: 1.0 });
        }
    }
}

/// Runs `body` on a thread of its own, pinned to the core that all contenders take, because pinning lasts.
fn on_core<T: Send>(body: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let pinned = || {
            pin(core()).map_err(|error| error.to_string())?;
            body()
        };
        scope.spawn(pinned).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same blocks copied in the same memory.
pub(super) struct Memcpy;

impl Contender for Memcpy {
    fn name(&self) -> Name {
        Name::Memcpy
    }

    fn measure(&mut self, point: Point, seconds: f64) -> Result<Option<Sample>, String> {
        on_core(|| {
            let mut blocks = Blocks::new(point);
            let (from, to) = (blocks.memory()?, blocks.memory()?);
            let copy = || {
                let mut bytes = 0;
                for _ in 0..BLOCKS_PER_LOOK {
                    let (at, len) = blocks.next();
                    to.copy_from(at, &from, at, len).map_err(|error| error.to_string())?;
                    bytes += len as u64;
                }
                Ok(bytes)
            };
            timed(Clock::calibrate(), seconds, copy).map(Some)
        })
    }
}

/// Mbufs over two links with a FIFO between them: attach and copy, no protocol.
pub(super) struct Mbufs {
    eal: Eal,
    clock: Clock,
    headers: Pool,
    payloads: Pool,
}

impl Mbufs {
    pub(super) fn new() -> Result<Self, String> {
        let config = EalConfig { telemetry: false, ..EalConfig::default() };
        let eal = Eal::start(config).map_err(|error| error.to_string())?;
        let pool = |config| Pool::new(&eal, config).map_err(|error| error.to_string());
        let headers = pool(PoolConfig::header("header", MBUFS))?;
        let payloads = pool(PoolConfig::payload("payload", MBUFS))?;
        Ok(Self { clock: Clock::calibrate(), headers, payloads, eal })
    }
}

impl Contender for Mbufs {
    fn name(&self) -> Name {
        Name::Mbufs
    }

    fn measure(&mut self, point: Point, seconds: f64) -> Result<Option<Sample>, String> {
        let this = &*self;
        on_core(|| {
            let _registered = register_thread(&this.eal).map_err(|error| error.to_string())?;
            let mut line = Line::new(this, point)?;
            timed(this.clock, seconds, || (0..16).map(|_| line.round()).sum()).map(Some)
        })
    }
}

/// Sender, FIFO and receiver, which take turns on one core.
struct Line {
    stash: MbufStash,
    /// Sender, its port, the receiver's port, receiver.
    ends: [QueuePair; 4],
    sending: MbufBatch,
    fifo: VecDeque<Mbuf>,
    forwarding: MbufBatch,
    received: MbufBatch,
    from: (Region, Blocks),
    to: (Region, Blocks),
    /// Frames that may be under way.
    window: u64,
    under_way: u64,
}

impl Line {
    fn new(mbufs: &Mbufs, point: Point) -> Result<Self, String> {
        let config = FabricConfig { links: 2, ring_size: RING_FRAMES };
        let links = create_links(&mbufs.eal, config).map_err(|error| error.to_string())?;
        let ends: Vec<QueuePair> = links.into_iter().flat_map(|(host, port)| [host, port]).collect();
        let [sender, near, receiver, far] =
            <[_; 4]>::try_from(ends).map_err(|_| "two links have four ends")?;
        let side = || {
            let blocks = Blocks::new(point);
            blocks.memory().map(|region| (region, blocks))
        };
        Ok(Self {
            stash: MbufStash::new(&mbufs.headers, &mbufs.payloads),
            ends: [sender, near, far, receiver],
            sending: MbufBatch::new(),
            fifo: VecDeque::with_capacity(RING_FRAMES as usize),
            forwarding: MbufBatch::new(),
            received: MbufBatch::new(),
            from: side()?,
            to: side()?,
            window: (WINDOW_BYTES / u64::from(point.mtu)).min(u64::from(RING_FRAMES) - 1),
            under_way: 0,
        })
    }

    /// A turn of each; bytes that have arrived.
    fn round(&mut self) -> Result<u64, String> {
        self.send()?;
        self.forward();
        self.receive()
    }

    fn send(&mut self) -> Result<(), String> {
        self.stash.refill();
        let header = [0; HEADER];
        while self.under_way < self.window && self.sending.room() > 0 && self.stash.available(1) > 0 {
            let mut frame = self.stash.take_header().ok_or("the stash has what it says it has")?;
            frame.grow_head(HEADER).ok_or("a header fits")?.copy_from_slice(&header);
            let (region, blocks) = &mut self.from;
            let (at, len) = blocks.next();
            self.stash.attach(&mut frame, region, at, len).map_err(|error| error.to_string())?;
            self.sending.push(frame).map_err(|_| "there was room")?;
            self.under_way += 1;
        }
        self.ends[0].tx.burst(&mut self.sending);
        Ok(())
    }

    fn forward(&mut self) {
        let mut arrived = MbufBatch::new();
        self.ends[1].rx.burst(&mut arrived);
        self.fifo.extend(arrived.drain());
        while self.forwarding.room() > 0
            && let Some(frame) = self.fifo.pop_front()
        {
            // It has room.
            let _ = self.forwarding.push(frame);
        }
        self.ends[2].tx.burst(&mut self.forwarding);
    }

    fn receive(&mut self) -> Result<u64, String> {
        self.ends[3].rx.burst(&mut self.received);
        let mut bytes = 0;
        for frame in self.received.iter() {
            let mut header = [0; HEADER];
            frame.header_into(&mut header);
            std::hint::black_box(&header);
            let (region, blocks) = &mut self.to;
            let (at, len) = blocks.next();
            frame.copy_out(HEADER, region, at, len).map_err(|error| error.to_string())?;
            bytes += len as u64;
            self.under_way -= 1;
        }
        self.received.free_all();
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_message_and_start_again() {
        let mut blocks = Blocks::new(Point { mtu: 1024, size: 2500 });
        assert_eq!(blocks.slots, DEPTH);
        let first: Vec<_> = (0..4).map(|_| blocks.next()).collect();
        assert_eq!(first, [(0, 1024), (1024, 1024), (2048, 452), (blocks.stride, 1024)]);
        let rest = (0..3 * DEPTH - 4).map(|_| blocks.next()).last();
        assert_eq!(rest, Some(((DEPTH - 1) * blocks.stride + 2048, 452)));
        assert_eq!(blocks.next(), (0, 1024));
    }

    #[test]
    fn message_that_no_cache_holds_has_one_place() {
        let blocks = Blocks::new(Point { mtu: 4096, size: 64 << 20 });
        assert_eq!(blocks.slots, 1);
    }
}
