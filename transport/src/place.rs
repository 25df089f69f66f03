//! Payload from a received frame to registered memory: the one copy.

use dcp_core::{RxSink, Segment};
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
}
