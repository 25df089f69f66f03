//! What copying a packet's payload costs by itself: the memory's part of the growth.
//!
//! The copy is the one that a receiver makes, from the buffers of all queue pairs at one side to those at the other. More
//! queue pairs have more buffers, and what no cache holds is dearer to copy, whoever does it.

use dpdk_ffi::memory::{MemInfo, available_bytes};
use dpdk_ffi::{Clock, RegionError, RegionRangeError, Streaming};

use crate::compare::{Blocks, Point, QueuePairs, RunError, Span, on_core, timed};

/// Payload of a packet in bytes, as dcp-bench has it when nothing is said.
const MTU: u32 = 4096;
/// Copies past the caches with one fence, as in a burst, and blocks between two looks at the clock.
const BLOCKS_PER_BURST: u64 = 64;
/// The part of a point's seconds that each way of copying has.
const PART: f64 = 0.2;

/// The messages of an axis of queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Messages {
    /// Bytes of one.
    pub(super) size: u64,
    /// How many each queue pair may have outstanding.
    pub(super) depth: u32,
}

impl Messages {
    /// Nanoseconds for copying one packet's payload with so many queue pairs, on the core of everything with one thread:
    /// in the ordinary way or past the caches, whichever is quicker.
    ///
    /// # Errors
    /// Refused where the memory is not to be had.
    pub(super) fn copy_ns(self, queue_pairs: u32, clock: Clock, seconds: f64) -> Result<f64, RunError> {
        let queue_pairs = QueuePairs { count: queue_pairs, depth: self.depth };
        let blocks = Blocks::new(Point { mtu: MTU, size: self.size }, queue_pairs);
        check_memory(2 * blocks.bytes())?;
        on_core(|| {
            // Writing all of it brings every page, and as much of it into the caches as they hold.
            let (from, to) = (blocks.memory().map_err(refused)?, blocks.memory().map_err(refused)?);
            let ordinary =
                ns_per_block(clock, seconds, &blocks, |at, len, _| to.copy_from(at, &from, at, len))?;
            let past_caches = ns_per_block(clock, seconds, &blocks, |at, len, streaming| {
                to.stream_from(at, &from, at, len, streaming)
            })?;
            Ok(ordinary.min(past_caches))
        })
    }
}

/// One way of copying: a while, and all blocks at least once.
fn ns_per_block(
    clock: Clock,
    seconds: f64,
    blocks: &Blocks,
    copy: impl Fn(u64, usize, &Streaming) -> Result<(), RegionRangeError>,
) -> Result<f64, String> {
    let span = Span { seconds: seconds * PART, done_min: blocks.count() };
    let mut blocks = blocks.clone();
    let burst = || {
        let streaming = Streaming::begin();
        for _ in 0..BLOCKS_PER_BURST {
            let (at, len) = blocks.next();
            copy(at, len, &streaming).map_err(|error| error.to_string())?;
        }
        Ok(BLOCKS_PER_BURST)
    };
    timed(clock, span, burst).map(f64::recip)
}

/// Refuses what the machine cannot hold, before the kernel's memory killer does.
fn check_memory(needed: u64) -> Result<(), RunError> {
    let available = available_bytes().saturating_add(MemInfo::read().huge_free_bytes());
    if needed <= available {
        return Ok(());
    }
    let sentence =
        format!("{} MiB of memory are needed, and {} are available", needed >> 20, available >> 20);
    Err(RunError { is_refused: true, sentence })
}

fn refused(error: RegionError) -> RunError {
    RunError { is_refused: true, sentence: error.to_string() }
}

#[cfg(test)]
mod tests {
    use dcp_bench::plan::Plan;

    use super::*;

    const SMALL: Messages = Messages { size: 4 << 10, depth: 128 };

    #[test]
    fn packets_are_those_of_dcp_bench() {
        assert_eq!(Plan::default().mtu, MTU);
    }

    #[test]
    fn copy_of_any_number_of_queue_pairs_takes_time() {
        for queue_pairs in [1, 3, 100] {
            let ns = SMALL.copy_ns(queue_pairs, Clock::calibrate(), 0.001);
            assert!(ns.as_ref().is_ok_and(|ns| ns.is_finite() && *ns > 0.0), "{ns:?}");
        }
    }

    #[test]
    fn every_block_is_copied_at_least_once_and_only_blocks_are() {
        let queue_pairs = QueuePairs { count: 3, depth: SMALL.depth };
        let blocks = Blocks::new(Point { mtu: MTU, size: 5000 }, queue_pairs);
        let (from, to) = (blocks.memory().unwrap(), blocks.memory().unwrap());
        to.fill(0, to.len(), 0).unwrap();
        let copy = |at, len, streaming: &Streaming| to.stream_from(at, &from, at, len, streaming);
        assert!(ns_per_block(Clock::calibrate(), 0.0, &blocks, copy).is_ok_and(|ns| ns > 0.0));
        let mut expected = vec![1; 5000];
        expected.resize(5056 + 64, 0);
        for at in (0..blocks.bytes()).step_by(expected.len()) {
            assert_eq!(to.compare(at, &expected), Ok(None), "message at {at}");
        }
    }

    #[test]
    fn memory_that_no_machine_has_is_refused_with_a_sentence() {
        let refused = Messages { size: 64 << 10, depth: 8 }.copy_ns(u32::MAX, Clock::calibrate(), 0.001);
        let error = refused.expect_err("500 TiB");
        assert!(error.is_refused && error.sentence.contains("MiB of memory are needed"), "{error:?}");
    }
}
