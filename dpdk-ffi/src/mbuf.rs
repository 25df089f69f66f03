//! A frame: an owned chain of mbufs.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ptr::{self, NonNull};
use std::slice;

use dpdk_sys::rte_mbuf;

use crate::pool::Pool;
use crate::region::{Region, RegionRangeError};
use crate::segment::Segment;
use crate::streaming::Streaming;

/// A frame in one or more segments. Dropping it gives all of them back to their pools, one call per frame: on the hot
/// path, push what is to be freed to an [`MbufBatch`](crate::MbufBatch), which frees in bulk.
///
/// Never handed to a device: a batch holds bare pointers, and transmit takes from it what it sent.
#[repr(transparent)]
pub struct Mbuf {
    head: NonNull<rte_mbuf>,
    _owns: PhantomData<rte_mbuf>,
}

// SAFETY: a frame belongs to its handle alone, and its pools are safe to free to from any thread. Not `Sync`: reads
// through `&Mbuf` and the writes of `Segment` assume one thread.
unsafe impl Send for Mbuf {}

impl Mbuf {
    /// Copies `bytes` into a fresh mbuf of `pool`; `None` when the pool is empty or its room too small. For tests and
    /// the odd control frame; the hot path uses an [`MbufStash`](crate::MbufStash).
    pub fn from_bytes(pool: &Pool, bytes: &[u8]) -> Option<Self> {
        if pool.is_payload() {
            return None;
        }
        let mut raw = [ptr::null_mut()];
        // SAFETY: the pool is alive, and `raw` has room for the one mbuf asked for.
        let code = unsafe { dpdk_sys::dcpshim_alloc_bulk(pool.as_ptr(), raw.as_mut_ptr(), 1) };
        if code != 0 {
            return None;
        }
        // SAFETY: a fresh mbuf that nobody else has.
        let mut mbuf = NonNull::new(raw[0]).map(|head| unsafe { Self::from_raw(head) })?;
        mbuf.grow_head(bytes.len())?.copy_from_slice(bytes);
        Some(mbuf)
    }

    /// # Safety
    /// `head` must be the head of a valid chain that belongs to the caller.
    #[inline]
    pub(crate) unsafe fn from_raw(head: NonNull<rte_mbuf>) -> Self {
        Self { head, _owns: PhantomData }
    }

    /// The pointer, which the caller must free or pass on.
    #[inline]
    pub(crate) fn into_raw(self) -> *mut rte_mbuf {
        let head = self.head.as_ptr();
        mem::forget(self);
        head
    }

    #[inline]
    pub(crate) fn first(&self) -> Segment<'_> {
        // SAFETY: the chain is ours for as long as `self` is borrowed.
        unsafe { Segment::new(self.head) }
    }

    #[inline]
    fn chain(&self) -> impl Iterator<Item = Segment<'_>> {
        std::iter::successors(Some(self.first()), |segment| segment.next())
    }

    #[inline]
    pub(crate) fn last(&self) -> Segment<'_> {
        let mut last = self.first();
        while let Some(next) = last.next() {
            last = next;
        }
        last
    }

    /// Bytes in all segments.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.first().pkt_len() as usize
    }

    /// Number of segments.
    #[inline]
    pub fn segments(&self) -> usize {
        usize::from(self.first().nb_segs())
    }

    /// Whether the first segment's bytes are also someone else's: referenced twice, or outside memory. Such a frame must
    /// not be changed in place.
    #[inline]
    pub fn is_shared(&self) -> bool {
        !self.first().is_exclusive()
    }

    /// Bytes in the first segment.
    #[inline]
    pub fn head_len(&self) -> usize {
        self.first().len()
    }

    /// The first segment's bytes; empty when it [is shared](Self::is_shared), since then another party may be writing
    /// them: copy with [`header_into`](Self::header_into) instead, also when this is shorter than the headers.
    #[inline]
    pub fn head(&self) -> &[u8] {
        let first = self.first();
        if !first.is_exclusive() {
            return &[];
        }
        // SAFETY: the segment's own buffer, which only this handle can reach, holds `len` bytes from `data` on.
        unsafe { slice::from_raw_parts(first.data(), first.len()) }
    }

    /// The first segment's bytes, to be changed in place; `None` when it [is shared](Self::is_shared).
    #[inline]
    pub fn head_mut(&mut self) -> Option<&mut [u8]> {
        let first = self.first();
        if !first.is_exclusive() {
            return None;
        }
        // SAFETY: as in `head`, and `self` is borrowed exclusively.
        Some(unsafe { slice::from_raw_parts_mut(first.data(), first.len()) })
    }

    /// Makes the first segment `len` bytes longer and returns those bytes, whose content is arbitrary; `None` when it is
    /// shared or has no such room.
    #[inline]
    pub fn grow_head(&mut self, len: usize) -> Option<&mut [u8]> {
        let first = self.first();
        let used = usize::from(first.data_off()) + first.len();
        if !first.is_exclusive() || usize::from(first.buf_len()).saturating_sub(used) < len {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "not above buf_len, which is a u16")]
        let grown = (first.len() + len) as u16;
        let start = first.data().wrapping_add(first.len());
        first.set_data_len(grown);
        // Cannot overflow: the sum of u16 lengths of at most 2^16 segments.
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        first.set_pkt_len(first.pkt_len() + len as u32);
        // SAFETY: inside the segment's own buffer, as just checked; pool memory is zeroed or was written before.
        Some(unsafe { slice::from_raw_parts_mut(start, len) })
    }

    /// Copies the frame's first bytes into `header`, over as many segments as it takes, and returns how many there were.
    #[inline]
    pub fn header_into<const N: usize>(&self, header: &mut [u8; N]) -> usize {
        let mut filled = 0;
        for segment in self.chain() {
            let take = segment.len().min(N - filled);
            // SAFETY: `take` bytes are in the segment, and in `header` behind `filled`; the two do not overlap.
            unsafe {
                ptr::copy_nonoverlapping(segment.data(), header.as_mut_ptr().wrapping_add(filled), take)
            };
            filled += take;
            if filled == N {
                break;
            }
        }
        filled
    }

    /// Copies `to.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// [`FrameRangeError`] when the frame ends before; `to` is then partly written.
    pub fn copy_to_slice(&self, offset: usize, to: &mut [u8]) -> Result<(), FrameRangeError> {
        // SAFETY: `to` is ours and as long as what is copied.
        unsafe { self.copy_to_ptr(offset, to.as_mut_ptr(), to.len(), None) }
    }

    /// Copies `len` bytes from `offset` on straight into `region` at `region_offset`: the one copy of received payload.
    ///
    /// # Errors
    /// [`CopyError`] when the frame or the region is too short; nothing outside the range is touched.
    #[inline]
    pub fn copy_out(
        &self,
        offset: usize,
        region: &Region,
        region_offset: u64,
        len: usize,
    ) -> Result<(), CopyError> {
        let to = region.range(region_offset, len).map_err(CopyError::Region)?;
        // SAFETY: the region vouches for `len` bytes at `to`.
        unsafe { self.copy_to_ptr(offset, to, len, None) }.map_err(CopyError::Frame)
    }

    /// The same past the caches, for memory that is not in them.
    ///
    /// # Errors
    /// As [`copy_out`](Self::copy_out).
    #[inline]
    pub fn stream_out(
        &self,
        offset: usize,
        region: &Region,
        region_offset: u64,
        len: usize,
        streaming: &Streaming,
    ) -> Result<(), CopyError> {
        let to = region.range(region_offset, len).map_err(CopyError::Region)?;
        // SAFETY: the region vouches for `len` bytes at `to`.
        unsafe { self.copy_to_ptr(offset, to, len, Some(streaming)) }.map_err(CopyError::Frame)
    }

    /// # Safety
    /// `to` must be writable for `len` bytes.
    #[inline]
    unsafe fn copy_to_ptr(
        &self,
        offset: usize,
        to: *mut u8,
        len: usize,
        streaming: Option<&Streaming>,
    ) -> Result<(), FrameRangeError> {
        let head = self.first();
        // What most frames are: headers in the first segment, all payload in the second.
        if offset == head.len()
            && let Some(payload) = head.next()
            && payload.len() == len
        {
            // SAFETY: the segment has `len` bytes, and `to` room for them.
            unsafe { copy(payload.data(), to, len, streaming) };
            return Ok(());
        }
        let mut skip = offset;
        let mut done = 0;
        for segment in self.chain() {
            if skip >= segment.len() && done < len {
                skip -= segment.len();
                continue;
            }
            let take = (segment.len().saturating_sub(skip)).min(len - done);
            // SAFETY: `take` bytes are in the segment behind `skip`, and `to` has room for them behind `done`.
            unsafe { copy(segment.data().wrapping_add(skip), to.wrapping_add(done), take, streaming) };
            done += take;
            skip = 0;
            if done == len {
                break;
            }
        }
        if done == len { Ok(()) } else { Err(FrameRangeError { offset, len, frame_len: self.frame_len() }) }
    }

    /// Cuts the frame to `len` bytes; segments behind the cut go back to their pools. No byte is changed, and a longer
    /// `len` does nothing.
    ///
    /// # Errors
    /// [`SharedError`] when the head, or the segment that the cut goes through, has a second reference.
    pub fn truncate(&mut self, len: usize) -> Result<(), SharedError> {
        let head = self.first();
        if len >= self.frame_len() {
            return Ok(());
        }
        let mut before = 0;
        let mut kept = 1;
        let mut cut = head;
        while before + cut.len() < len {
            before += cut.len();
            kept += 1;
            let Some(next) = cut.next() else { return Ok(()) };
            cut = next;
        }
        if head.refcnt() != 1 || cut.refcnt() != 1 {
            return Err(SharedError);
        }
        let tail = cut.next_ptr();
        cut.set_next_ptr(ptr::null_mut());
        #[expect(clippy::cast_possible_truncation, reason = "not above cut.len(), which is a u16")]
        cut.set_data_len((len - before) as u16);
        head.set_nb_segs(kept);
        #[expect(clippy::cast_possible_truncation, reason = "below frame_len, which is a u32")]
        head.set_pkt_len(len as u32);
        if let Some(tail) = NonNull::new(tail) {
            // SAFETY: cut off just now, so the rest of the chain is nobody else's.
            drop(unsafe { Self::from_raw(tail) });
        }
        Ok(())
    }

    /// Chains `tail` behind this frame.
    ///
    /// # Errors
    /// Gives `tail` back when the sum of segments would not fit 16 bits.
    pub fn append(&mut self, tail: Self) -> Result<(), Self> {
        let head = self.first();
        let Some(segments) = head.nb_segs().checked_add(tail.first().nb_segs()) else { return Err(tail) };
        let Some(len) = head.pkt_len().checked_add(tail.first().pkt_len()) else { return Err(tail) };
        head.set_nb_segs(segments);
        head.set_pkt_len(len);
        let last = self.last();
        last.set_next_ptr(tail.into_raw());
        Ok(())
    }

    /// A copy of the first `len` bytes in mbufs of the first segment's own pool; `None` when that runs out.
    pub fn private_copy(&self, len: usize) -> Option<Self> {
        let len = u32::try_from(len).ok()?.min(self.first().pkt_len());
        // SAFETY: the chain is ours while `self` is borrowed, and a segment's pool outlives the segment.
        let copy = unsafe { dpdk_sys::dcpshim_copy_head(self.head.as_ptr(), len) };
        // SAFETY: a fresh chain that nobody else has.
        NonNull::new(copy).map(|head| unsafe { Self::from_raw(head) })
    }

    /// A copy of all bytes in mbufs of `pool` (several, when they do not fit one); `None` when the pool runs out.
    pub fn copy(&self, pool: &Pool) -> Option<Self> {
        if pool.is_payload() {
            return None;
        }
        // SAFETY: source and pool are alive; the source is only read.
        let copy = unsafe { dpdk_sys::rte_pktmbuf_copy(self.head.as_ptr(), pool.as_ptr(), 0, u32::MAX) };
        // SAFETY: a fresh chain that nobody else has.
        NonNull::new(copy).map(|head| unsafe { Self::from_raw(head) })
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        let mut raw = self.head.as_ptr();
        // SAFETY: the chain is ours, and this is its last use.
        unsafe { dpdk_sys::dcpshim_free_bulk(&raw mut raw, 1) };
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf")
            .field("frame_len", &self.frame_len())
            .field("segments", &self.segments())
            .field("is_shared", &self.is_shared())
            .finish()
    }
}

/// A range that the frame does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRangeError {
    /// First byte asked for.
    pub offset: usize,
    /// Bytes asked for.
    pub len: usize,
    /// Bytes that the frame has.
    pub frame_len: usize,
}

impl fmt::Display for FrameRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} are not inside a frame of {}", self.len, self.offset, self.frame_len)
    }
}

impl std::error::Error for FrameRangeError {}

/// Why a copy from a frame into a region was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The frame is too short.
    Frame(FrameRangeError),
    /// The region is too short.
    Region(RegionRangeError),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Region(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CopyError {}

/// A segment has a second owner and must not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedError;

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the frame has a second owner: copy it before changing it")
    }
}

impl std::error::Error for SharedError {}

/// Over net_ring the payload may lie in the very region that it is written to, so the two may overlap.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize, streaming: Option<&Streaming>) {
    match streaming {
        // SAFETY: as the caller promised.
        Some(streaming) => unsafe { streaming.copy(from, to, len) },
        // SAFETY: as the caller promised.
        None => unsafe { ptr::copy(from, to, len) },
    }
}
