//! Frames from the core to mbufs: headers written, payload attached without a copy.

use dcp_core::{Prefetch, Segment, TxFrame, TxSink, WriteFrame};
use dcp_wire::{Headers, Kind, Template};
use dpdk_ffi::{Mbuf, MbufBatch, MbufStash, Region};

/// Builds frames at the end of a batch.
pub(crate) struct FrameBuilder<'a> {
    pub(crate) stash: &'a mut MbufStash,
    pub(crate) batch: &'a mut MbufBatch,
    pub(crate) regions: &'a [Region],
    /// Payload segments that a frame may have.
    pub(crate) segments_max: usize,
    /// Whether payload is copied behind the header, for devices that send one segment.
    pub(crate) linear: bool,
    /// Whether frames may need a second header mbuf, for an ICRC.
    pub(crate) icrc: bool,
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Prefetch for FrameBuilder<'_> {
    #[inline]
    fn prefetch<T: ?Sized>(&self, it: &T) {
        dpdk_ffi::prefetch(it);
    }
}

impl TxSink for FrameBuilder<'_> {
    #[inline]
    fn capacity(&self) -> usize {
        let segments_max = if self.linear { 0 } else { self.segments_max };
        let frames = self.batch.room().min(self.stash.available(segments_max));
        if self.icrc { frames.min(self.stash.headers() / 2) } else { frames }
    }

    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) {
        let (mut mbuf, header_len) = (self.take_header(), frame.headers.len());
        frame.emit_headers(grow(&mut mbuf, header_len));
        self.finish(mbuf, frame.segments, frame.icrc);
    }

    #[inline(always)]
    fn push_write(&mut self, frame: WriteFrame<'_>, _: impl FnOnce(Kind) -> Headers) {
        let segment = frame.segment;
        if self.linear || frame.icrc || segment.len == 0 {
            let mut mbuf = self.take_header();
            frame.emit_headers(grow(&mut mbuf, Template::WRITE_LEN));
            self.finish(mbuf, &[segment], frame.icrc);
            return;
        }
        let region = &self.regions[segment.region.index()];
        let mut mbuf = self
            .stash
            .take_frame(WRITE_LEN, region, segment.offset, segment.len as usize)
            .expect("capacity() counted the mbufs, and posting checked the range");
        frame.emit_headers(mbuf.head_mut().expect("nobody else has a fresh frame"));
        self.batch.push(mbuf).expect("capacity() counted it");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "73")]
const WRITE_LEN: u16 = Template::WRITE_LEN as u16;

#[inline]
fn grow(mbuf: &mut Mbuf, header_len: usize) -> &mut [u8] {
    mbuf.grow_head(header_len).expect("header mbufs have room for every header")
}

fn copy_behind(frame: &mut Mbuf, region: &Region, offset: u64, len: usize) {
    let room = frame.grow_head(len).expect("the pool of a linear device has room for every frame");
    region.read(offset, room).expect("posting checked the range");
}

impl FrameBuilder<'_> {
    #[inline]
    fn take_header(&mut self) -> Mbuf {
        self.stash.take_header().expect("capacity() counted it")
    }

    /// Adds the payload behind the headers, and the frame to the batch.
    #[inline]
    fn finish(&mut self, mut mbuf: Mbuf, segments: &[Segment], icrc: bool) {
        for segment in segments {
            let region = &self.regions[segment.region.index()];
            if self.linear {
                copy_behind(&mut mbuf, region, segment.offset, segment.len as usize);
                continue;
            }
            self.stash
                .attach(&mut mbuf, region, segment.offset, segment.len as usize)
                .expect("capacity() counted the segments, and posting checked their ranges");
        }
        if icrc {
            self.append_icrc(&mut mbuf);
        }
        self.batch.push(mbuf).expect("capacity() counted it");
    }

    /// The ICRC is a last segment of four bytes behind payload that nobody copied.
    #[cold]
    fn append_icrc(&mut self, frame: &mut Mbuf) {
        self.scratch.resize(frame.frame_len(), 0);
        frame.copy_to_slice(0, self.scratch).expect("as long as the frame");
        let icrc = dcp_wire::icrc(self.scratch, []).expect("frames have whole headers");
        if self.linear {
            let room =
                frame.grow_head(icrc.len()).expect("the pool of a linear device has room for every frame");
            room.copy_from_slice(&icrc);
            return;
        }
        let mut tail = self.stash.take_header().expect("capacity() counted two");
        tail.grow_head(icrc.len()).expect("four bytes fit").copy_from_slice(&icrc);
        frame.append(tail).expect("far from 2^16 segments");
    }
}
