//! Frames from the core to mbufs: headers written, payload attached without a copy.

use dcp_core::{TxFrame, TxSink};
use dpdk_ffi::{MbufBatch, MbufStash, Region};

/// Builds frames at the end of a batch.
pub(crate) struct FrameBuilder<'a> {
    pub(crate) stash: &'a mut MbufStash,
    pub(crate) batch: &'a mut MbufBatch,
    pub(crate) regions: &'a [Region],
    /// Payload segments that a frame may have.
    pub(crate) segments_max: usize,
}

impl TxSink for FrameBuilder<'_> {
    #[inline]
    fn capacity(&self) -> usize {
        self.batch.room().min(self.stash.available(self.segments_max))
    }

    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) {
        let mut mbuf = self.stash.take_header().expect("capacity() counted it");
        let header_len = frame.headers.len();
        let head = mbuf.grow_head(header_len).expect("header mbufs have room for every header");
        dcp_wire::emit(frame.headers, frame.payload_len as usize, head);
        for segment in frame.segments {
            let region = &self.regions[segment.region.index()];
            self.stash
                .attach(&mut mbuf, region, segment.offset, segment.len as usize)
                .expect("capacity() counted the segments, and posting checked their ranges");
        }
        self.batch.push(mbuf).expect("capacity() counted it");
    }
}
