//! The packets of dcp-bench's messages in memory, and the clock and the core that moving them is measured with.

use dpdk_ffi::{Clock, HugePreference, Region, RegionError, pin};

use super::{Point, core};

/// Memory of the messages on each side while they fit, as in dcp-bench: small enough for a cache.
const CACHED_BYTES: u64 = 2 << 20;
/// Bytes between two messages, as in dcp-bench.
const GUARD: u64 = 64;

/// Who has messages under way, as dcp-bench is told with `--qp` and `--tx-depth`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueuePairs {
    /// How many there are.
    pub(crate) count: u32,
    /// Messages that each may have outstanding.
    pub(crate) depth: u32,
}

impl QueuePairs {
    /// What dcp-bench has when nothing is said.
    pub(crate) const USUAL: Self = Self { count: 1, depth: 128 };
}

/// Messages in memory, cut into packets: where each packet lies, one after the other for ever. The messages of all queue
/// pairs have the places that dcp-bench gives them, and come in the order of these.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    size: u64,
    mtu: u64,
    stride: u64,
    slots: u64,
    slot: u64,
    offset: u64,
}

impl Blocks {
    /// At the first.
    pub(crate) fn new(point: Point, queue_pairs: QueuePairs) -> Self {
        let (size, mtu) = (point.size, u64::from(point.mtu));
        let (count, depth) = (u64::from(queue_pairs.count), u64::from(queue_pairs.depth));
        let stride = size.next_multiple_of(GUARD) + GUARD;
        let slots = count * (CACHED_BYTES / (stride * count)).clamp(1, depth);
        Self { size, mtu, stride, slots, slot: 0, offset: 0 }
    }

    /// Bytes of memory that they lie in.
    pub(crate) fn bytes(&self) -> u64 {
        self.stride * self.slots
    }

    /// How many there are until they start again.
    pub(crate) fn count(&self) -> u64 {
        self.slots * self.size.div_ceil(self.mtu)
    }

    /// Memory for them; every page of it is there.
    ///
    /// # Errors
    /// It cannot be had.
    pub(crate) fn memory(&self) -> Result<Region, RegionError> {
        let len = usize::try_from(self.bytes()).unwrap_or(usize::MAX);
        let region = Region::alloc(len, HugePreference::Auto)?;
        region.fill(0, len, 1).unwrap_or_else(|error| panic!("it has so many: {error}"));
        Ok(region)
    }

    /// Offset and length of the next block.
    #[inline]
    pub(crate) fn next(&mut self) -> (u64, usize) {
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

/// How long something is repeated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Span {
    /// At least so many.
    pub(crate) seconds: f64,
    /// And until so much is done.
    pub(crate) done_min: u64,
}

/// Repeats `step`, which does some and tells how much that was; how much was done in a nanosecond.
///
/// # Errors
/// Those of `step`.
pub(crate) fn timed(
    clock: Clock,
    span: Span,
    mut step: impl FnMut() -> Result<u64, String>,
) -> Result<f64, String> {
    let start = clock.now_ns();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a minute at most")]
    let end = start + (span.seconds * 1e9) as u64;
    let mut done = 0;
    loop {
        done += step()?;
        let now = clock.now_ns();
        if now >= end && done >= span.done_min {
            return Ok(done as f64 / (now - start) as f64);
        }
    }
}

/// Runs `body` on a thread of its own, pinned to the core that all contenders take, because pinning lasts.
///
/// # Errors
/// Those of `body`, or it cannot be pinned.
pub(crate) fn on_core<T: Send, E: From<String> + Send>(
    body: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    std::thread::scope(|scope| {
        let pinned = || {
            pin(core()).map_err(|error| error.to_string())?;
            body()
        };
        scope.spawn(pinned).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_message_and_start_again() {
        let mut blocks = Blocks::new(Point { mtu: 1024, size: 2500 }, QueuePairs::USUAL);
        assert_eq!((blocks.slots, blocks.count()), (128, 3 * 128));
        let first: Vec<_> = (0..4).map(|_| blocks.next()).collect();
        assert_eq!(first, [(0, 1024), (1024, 1024), (2048, 452), (blocks.stride, 1024)]);
        let rest = (0..3 * 128 - 4).map(|_| blocks.next()).last();
        assert_eq!(rest, Some((127 * blocks.stride + 2048, 452)));
        assert_eq!(blocks.next(), (0, 1024));
    }

    #[test]
    fn message_that_no_cache_holds_has_one_place() {
        let blocks = Blocks::new(Point { mtu: 4096, size: 64 << 20 }, QueuePairs::USUAL);
        assert_eq!(blocks.slots, 1);
    }

    /// The same numbers are in dcp-bench's test of its layout.
    #[test]
    fn messages_lie_where_dcp_bench_has_them() {
        for (size, count, depth, slots, bytes) in [
            (64 << 10, 1, 8, 8, 524_800),
            (64 << 10, 4, 8, 7, 1_836_800),
            (64 << 10, 256, 8, 1, 16_793_600),
            (64 << 10, 10_000, 8, 1, 656_000_000),
            (4 << 10, 1, 128, 128, 532_480),
            (4 << 10, 64, 128, 7, 1_863_680),
            (4 << 10, 1024, 128, 1, 4_259_840),
            (2500, 3, 128, 128, 1_007_616),
        ] {
            let blocks = Blocks::new(Point { mtu: 4096, size }, QueuePairs { count, depth });
            let of_each = blocks.slots / u64::from(count);
            assert_eq!((of_each, blocks.bytes()), (slots, bytes), "{count} queue pairs of {size}");
        }
    }

    #[test]
    fn blocks_of_all_queue_pairs_come_in_the_order_of_memory_and_none_twice() {
        let mut blocks = Blocks::new(Point { mtu: 4096, size: 64 << 10 }, QueuePairs { count: 4, depth: 8 });
        assert_eq!(blocks.count(), 4 * 7 * 16);
        let all: Vec<_> = (0..blocks.count()).map(|_| blocks.next()).collect();
        assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 <= pair[1].0));
        assert!(all.iter().all(|&(_, len)| len == 4096));
        assert_eq!(all.last().map(|&(at, len)| at + len as u64), Some(blocks.bytes() - GUARD));
        assert_eq!(blocks.next(), (0, 4096));
    }

    #[test]
    fn what_has_to_be_done_is_done_whatever_the_time() {
        let mut steps = 0;
        let step = || {
            steps += 1;
            Ok(10)
        };
        let rate = timed(Clock::calibrate(), Span { seconds: 0.0, done_min: 95 }, step);
        assert!(rate.is_ok_and(|rate| rate > 0.0));
        assert_eq!(steps, 10);
    }
}
