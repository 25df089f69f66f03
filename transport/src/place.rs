//! Payload from a received frame to registered memory: the one copy.

use std::sync::atomic::{AtomicU64, Ordering};

use dcp_core::{AtomicOp, RunSink, RxSink, Segment};
use dcp_wire::Follower;
use dpdk_ffi::{Mbuf, Region, Streaming};

use crate::recency::{self, Recency};

/// Places the payload of one frame.
pub(crate) struct Placer<'a> {
    pub(crate) frame: &'a Mbuf,
    pub(crate) payload_offset: usize,
    pub(crate) regions: &'a [Region],
    pub(crate) recency: &'a mut Recency,
    pub(crate) streaming: &'a Streaming,
}

/// Places the payload of packets of one run, frame by frame.
pub(crate) struct RunPlacer<'a> {
    pub(crate) frames: std::slice::Iter<'a, Mbuf>,
    pub(crate) regions: &'a [Region],
    pub(crate) recency: &'a mut Recency,
    pub(crate) streaming: &'a Streaming,
}

impl RunPlacer<'_> {
    /// For the frame whose turn it is.
    #[inline(always)]
    fn placer(&mut self) -> Placer<'_> {
        let frame = self.frames.as_slice().first().expect("as many as were offered");
        let (regions, recency, streaming) = (self.regions, &mut *self.recency, self.streaming);
        Placer { frame, payload_offset: Follower::PAYLOAD_OFFSET, regions, recency, streaming }
    }
}

impl RunSink for RunPlacer<'_> {
    #[inline(always)]
    fn go_on(&mut self) {
        self.frames.next();
    }
}

impl RxSink for RunPlacer<'_> {
    #[inline(always)]
    fn place(&mut self, payload_offset: u32, to: Segment) {
        self.placer().place(payload_offset, to);
    }

    fn atomic(&mut self, at: Segment, op: AtomicOp) -> u64 {
        self.placer().atomic(at, op)
    }

    fn store(&mut self, at: Segment, value: u64) {
        self.placer().store(at, value);
    }
}

impl RxSink for Placer<'_> {
    #[inline(always)]
    fn place(&mut self, payload_offset: u32, to: Segment) {
        let from = self.payload_offset + payload_offset as usize;
        let (region, len) = (&self.regions[to.region.index()], to.len as usize);
        let placed = if len >= recency::LEN_MIN && !self.recency.note(address(region, to.offset), len) {
            self.frame.stream_out(from, region, to.offset, len, self.streaming)
        } else {
            self.frame.copy_out(from, region, to.offset, len)
        };
        // The core checked the range against the registration, and the parser the payload against the frame.
        placed.expect("ranges inside the frame and the registered region");
    }

    fn atomic(&mut self, at: Segment, op: AtomicOp) -> u64 {
        let cell = self.cell(at);
        match op {
            AtomicOp::FetchAdd(add) => cell.fetch_add(add, Ordering::AcqRel),
            AtomicOp::CmpSwap { compare, swap } => {
                match cell.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(before) | Err(before) => before,
                }
            }
        }
    }

    fn store(&mut self, at: Segment, value: u64) {
        let region = &self.regions[at.region.index()];
        region.write(at.offset, &value.to_ne_bytes()).expect("posting checked the range");
    }
}

impl Placer<'_> {
    fn cell(&self, at: Segment) -> &AtomicU64 {
        self.regions[at.region.index()]
            .atomic_u64(at.offset)
            .expect("registered on an 8-byte boundary, and aligned there")
    }
}

/// Where in memory: a number to remember it by, nothing is reached with it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an offset in memory")]
fn address(region: &Region, offset: u64) -> usize {
    region.as_ptr().addr().wrapping_add(offset as usize)
}
