//! Payload from a received frame to registered memory: the one copy.

use std::sync::atomic::{AtomicU64, Ordering};

use dcp_core::{AtomicOp, RxSink, Segment};
use dpdk_ffi::{Mbuf, Region};

/// Places the payload of one frame.
pub(crate) struct Placer<'a> {
    pub(crate) frame: &'a Mbuf,
    pub(crate) payload_offset: usize,
    pub(crate) regions: &'a [Region],
}

impl RxSink for Placer<'_> {
    #[inline]
    fn place(&mut self, payload_offset: u32, to: Segment) {
        let from = self.payload_offset + payload_offset as usize;
        let region = &self.regions[to.region.index()];
        // The core checked the range against the registration, and the parser the payload against the frame.
        self.frame
            .copy_out(from, region, to.offset, to.len as usize)
            .expect("ranges inside the frame and the registered region");
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
