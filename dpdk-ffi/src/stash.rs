//! Mbufs in hand, and zero-copy transmit: a header mbuf with segments behind it that point into a region.

use std::fmt;
use std::ptr::{self, NonNull};

use dpdk_sys::{rte_mbuf, rte_mbuf_ext_shared_info};

use crate::mbuf::Mbuf;
use crate::pool::Pool;
use crate::region::{AttachSlot, Region, RegionRangeError};
use crate::segment::Segment;

/// Header and payload mbufs taken from their pools in bulk and handed out one by one.
///
/// One per worker. What it says it has, it has: a frame built from it cannot fail half-way.
#[derive(Debug)]
pub struct MbufStash {
    headers: Shelf,
    payloads: Shelf,
    slot: AttachSlot,
}

impl MbufStash {
    /// Mbufs of each kind in a full stash.
    pub const CAPACITY: usize = 128;

    /// An empty stash over two pools; call [`refill`](Self::refill) before use.
    ///
    /// # Panics
    /// When the pools are exchanged: the first must have data room, the second none.
    pub fn new(header_pool: &Pool, payload_pool: &Pool) -> Self {
        assert!(!header_pool.is_payload(), "the header pool has no data room: exchange the two pools");
        assert!(
            payload_pool.is_payload(),
            "the payload pool has data room: make it with PoolConfig::payload"
        );
        Self {
            headers: Shelf::new(header_pool),
            payloads: Shelf::new(payload_pool),
            slot: AttachSlot::take(),
        }
    }

    /// Fills up from the pools, as far as they go. Cheap when less than half is gone.
    #[inline]
    pub fn refill(&mut self) {
        self.headers.refill();
        self.payloads.refill();
    }

    /// Header mbufs in hand.
    #[inline]
    pub fn headers(&self) -> usize {
        self.headers.len
    }

    /// Payload mbufs in hand.
    #[inline]
    pub fn payloads(&self) -> usize {
        self.payloads.len
    }

    /// Frames of one header and at most `segments` payload segments that can be built from what is in hand.
    #[inline]
    pub fn available(&self, segments: usize) -> usize {
        match segments {
            0 => self.headers.len,
            1 => self.headers.len.min(self.payloads.len),
            // Off the usual path: gather lists with several entries.
            _ => self.headers.len.min(self.payloads.len / segments),
        }
    }

    /// How often a pool did not have what a [`refill`](Self::refill) asked for.
    pub fn exhausted(&self) -> u64 {
        self.headers.exhausted + self.payloads.exhausted
    }

    /// An empty frame of one header mbuf, to be filled with [`Mbuf::grow_head`].
    #[inline]
    pub fn take_header(&mut self) -> Option<Mbuf> {
        let head = self.headers.take()?;
        // SAFETY: fresh from the pool and in nobody else's hands.
        let mbuf = unsafe { Mbuf::from_raw(head) };
        make_head(mbuf.first(), 1, 0, 0);
        Some(mbuf)
    }

    /// A frame of `header_len` bytes of headers, to be written with [`Mbuf::head_mut`], and a segment behind them that
    /// points to `len` bytes of `region` at `offset`: what [`take_header`](Self::take_header), [`Mbuf::grow_head`] and
    /// [`attach`](Self::attach) do, in fewer steps. `len` is not zero.
    ///
    /// # Errors
    /// [`AttachError`]; nothing is taken then.
    ///
    /// # Panics
    /// When the header pool's mbufs have no such room.
    #[inline(always)]
    pub fn take_frame(
        &mut self,
        header_len: u16,
        region: &Region,
        offset: u64,
        len: usize,
    ) -> Result<Mbuf, AttachError> {
        let Ok(len16) = u16::try_from(len) else { return Err(AttachError::TooLong { len }) };
        let data = region.range(offset, len).map_err(AttachError::Range)?;
        assert!(self.headers.data_room >= header_len, "header mbufs have no room for {header_len} bytes");
        if self.payloads.len == 0 {
            return Err(AttachError::NoMbuf);
        }
        let Some(head) = self.headers.take() else { return Err(AttachError::NoMbuf) };
        let Some(payload) = self.payloads.take() else { unreachable!("there was one") };
        // SAFETY: fresh from the pool, and ours until it is in the chain, which lives as long as its head.
        let segment = unsafe { Segment::new(payload) };
        point_to(segment, data, len16, region);
        region.counters().count_attached(&self.slot);
        // SAFETY: as in `take_header`.
        let mbuf = unsafe { Mbuf::from_raw(head) };
        make_head(mbuf.first(), 2, header_len, u32::from(len16));
        mbuf.first().set_next_ptr(segment.as_ptr());
        Ok(mbuf)
    }

    /// Chains a segment behind `frame` that points to `len` bytes of `region` at `offset`: no byte is copied. The region
    /// counts it as in flight until the frame is freed. Zero bytes attach nothing.
    ///
    /// # Errors
    /// [`AttachError`]; the frame is unchanged then.
    #[inline]
    pub fn attach(
        &mut self,
        frame: &mut Mbuf,
        region: &Region,
        offset: u64,
        len: usize,
    ) -> Result<(), AttachError> {
        if len == 0 {
            return Ok(());
        }
        // buf_len is 16 bits, so the buffer is the payload itself, not the region that it lies in.
        let Ok(len16) = u16::try_from(len) else { return Err(AttachError::TooLong { len }) };
        let data = region.range(offset, len).map_err(AttachError::Range)?;
        let head = frame.first();
        let Some(segments) = head.nb_segs().checked_add(1) else { return Err(AttachError::TooManySegments) };
        let Some(mbuf) = self.payloads.take() else { return Err(AttachError::NoMbuf) };
        // SAFETY: the mbuf is ours until it is in the chain, which lives as long as `frame`.
        let segment = unsafe { Segment::new(mbuf) };
        point_to(segment, data, len16, region);
        region.counters().count_attached(&self.slot);
        frame.last().set_next_ptr(segment.as_ptr());
        head.set_nb_segs(segments);
        head.set_pkt_len(head.pkt_len() + u32::from(len16));
        Ok(())
    }
}

/// Makes `segment`, fresh from a payload pool, an external buffer of `len` bytes at `data`.
#[inline]
fn point_to(segment: Segment<'_>, data: *mut u8, len: u16, region: &Region) {
    let info = segment.private_info();
    let shared = rte_mbuf_ext_shared_info {
        free_cb: Some(dpdk_sys::dcpshim_count_free),
        fcb_opaque: region.counters().freed_ptr(),
        // The one reference is this segment, so freeing it takes no atomic.
        refcnt: 1,
    };
    // SAFETY: every pool of ours has a private area of that size and alignment behind the mbuf.
    unsafe { info.write(shared) };
    segment.set_shared_info(info);
    segment.set_buf_addr(data);
    // Cards read by virtual addresses, where they read it at all ([`Region::map_for`]).
    segment.set_iova(data.addr() as u64);
    segment.set_buf_len(len);
    segment.rearm(0, 1);
    segment.set_data_len(len);
    segment.set_pkt_len(u32::from(len));
    segment.set_flags(dpdk_sys::DCP_MBUF_F_EXTERNAL);
}

/// Makes `head`, fresh from a header pool, the head of a frame: `data_len` bytes of its own, and `behind` more in the other
/// segments.
#[inline]
fn make_head(head: Segment<'_>, segments: u16, data_len: u16, behind: u32) {
    head.rearm(HEADROOM, segments);
    head.set_flags(0);
    head.set_packet_type(0);
    head.set_pkt_len(u32::from(data_len) + behind);
    head.set_data_len(data_len);
    head.set_tx_offload(0);
}

/// Bytes in front of a frame's headers.
#[expect(clippy::cast_possible_truncation, reason = "128")]
const HEADROOM: u16 = dpdk_sys::RTE_PKTMBUF_HEADROOM as u16;

/// Mbufs of one pool, as their last user left them: single ones, but for that all that matters is set when they are used.
#[derive(Debug)]
struct Shelf {
    mbufs: [*mut rte_mbuf; MbufStash::CAPACITY],
    len: usize,
    exhausted: u64,
    /// Bytes that fit into one, behind the headroom.
    data_room: u16,
    pool: Pool,
}

// SAFETY: owns its mbufs like so many `Mbuf`s, which are `Send`.
unsafe impl Send for Shelf {}

impl Shelf {
    fn new(pool: &Pool) -> Self {
        let mbufs = [ptr::null_mut(); MbufStash::CAPACITY];
        Self { mbufs, len: 0, exhausted: 0, data_room: pool.config().data_room, pool: pool.clone() }
    }

    #[inline]
    fn take(&mut self) -> Option<NonNull<rte_mbuf>> {
        self.len = self.len.checked_sub(1)?;
        NonNull::new(self.mbufs[self.len])
    }

    #[inline]
    fn refill(&mut self) {
        if self.len > MbufStash::CAPACITY / 2 {
            return;
        }
        let wanted = MbufStash::CAPACITY - self.len;
        if !self.alloc(wanted) {
            self.refill_by_halves(wanted / 2);
        }
    }

    /// DPDK gives all or nothing: when the pool runs low, ask for less and less.
    #[cold]
    fn refill_by_halves(&mut self, mut wanted: usize) {
        self.exhausted += 1;
        while wanted > 0 {
            if !self.alloc(wanted) {
                wanted /= 2;
            }
            wanted = wanted.min(MbufStash::CAPACITY - self.len);
        }
    }

    #[inline]
    fn alloc(&mut self, count: usize) -> bool {
        let room = &mut self.mbufs[self.len..self.len + count];
        #[expect(clippy::cast_possible_truncation, reason = "at most CAPACITY")]
        let wanted = count as u32;
        // SAFETY: the pool is alive, and `room` holds `count` pointers.
        let code =
            unsafe { dpdk_sys::dcpshim_alloc_bare_bulk(self.pool.as_ptr(), room.as_mut_ptr(), wanted) };
        if code == 0 {
            self.len += count;
        }
        code == 0
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "at most CAPACITY")]
        let count = self.len as u32;
        // SAFETY: the first `len` are mbufs of ours, and this is their last use.
        unsafe { dpdk_sys::dcpshim_free_bulk(self.mbufs.as_mut_ptr(), count) };
    }
}

/// Why a segment could not be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The bytes are not in the region.
    Range(RegionRangeError),
    /// A segment's length is 16 bits.
    TooLong {
        /// Bytes asked for.
        len: usize,
    },
    /// The frame has as many segments as it can.
    TooManySegments,
    /// No payload mbuf in hand.
    NoMbuf,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(error) => error.fmt(f),
            Self::TooLong { len } => {
                write!(f, "{len} bytes do not fit a segment: attach at most 65535 at a time")
            }
            Self::TooManySegments => f.write_str("the frame has 65535 segments: send it in several frames"),
            Self::NoMbuf => {
                f.write_str("no payload mbuf is in hand: refill the stash, or wait until frames are freed")
            }
        }
    }
}

impl std::error::Error for AttachError {}
