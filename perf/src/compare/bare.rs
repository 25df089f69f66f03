//! The limits: copying alone, and mbufs alone.

use std::collections::VecDeque;

use dpdk_ffi::{
    Clock, Eal, EalConfig, FabricConfig, Mbuf, MbufBatch, MbufStash, Pool, PoolConfig, QueuePair, Region,
    create_links, register_thread,
};

use super::blocks::{Blocks, QueuePairs, Span, on_core, timed};
use super::{Contender, Name, Point, Sample};

/// Bytes under way, as in dcp-bench.
const WINDOW_BYTES: u64 = 256 << 10;
/// Bytes before the payload of a WRITE's packet.
const HEADER: usize = 70;
const RING_FRAMES: u32 = 1024;
const MBUFS: u32 = 8191;
/// Blocks between two looks at the clock.
const BLOCKS_PER_LOOK: u64 = 256;

/// Moves blocks by `step`, which tells how many bytes that was, for a while.
fn moved(clock: Clock, seconds: f64, step: impl FnMut() -> Result<u64, String>) -> Result<Sample, String> {
    let bytes_per_ns = timed(clock, Span { seconds, done_min: 0 }, step)?;
    Ok(Sample { gbps: bytes_per_ns * 8.0, cores: 1.0 })
}

/// Where the messages of a turn lie, and their memory.
fn memory(point: Point) -> Result<(Region, Blocks), String> {
    let blocks = Blocks::new(point, QueuePairs::USUAL);
    Ok((blocks.memory().map_err(|error| error.to_string())?, blocks))
}

/// The same blocks copied in the same memory.
pub(super) struct Memcpy;

impl Contender for Memcpy {
    fn name(&self) -> Name {
        Name::Memcpy
    }

    fn measure(&mut self, point: Point, seconds: f64) -> Result<Option<Sample>, String> {
        on_core(|| {
            let ((from, mut blocks), (to, _)) = (memory(point)?, memory(point)?);
            let copy = || {
                let mut bytes = 0;
                for _ in 0..BLOCKS_PER_LOOK {
                    let (at, len) = blocks.next();
                    to.copy_from(at, &from, at, len).map_err(|error| error.to_string())?;
                    bytes += len as u64;
                }
                Ok(bytes)
            };
            moved(Clock::calibrate(), seconds, copy).map(Some)
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
            moved(this.clock, seconds, || (0..16).map(|_| line.round()).sum()).map(Some)
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
        Ok(Self {
            stash: MbufStash::new(&mbufs.headers, &mbufs.payloads),
            ends: [sender, near, far, receiver],
            sending: MbufBatch::new(),
            fifo: VecDeque::with_capacity(RING_FRAMES as usize),
            forwarding: MbufBatch::new(),
            received: MbufBatch::new(),
            from: memory(point)?,
            to: memory(point)?,
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
