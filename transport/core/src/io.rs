//! What crosses the border between the core and its driver.

use dcp_wire::{BounceRewrite, Headers, ICRC_LEN, Kind, Middles, Packet, Template, WritePacket};

use crate::{DropReason, Instant, RegionId};

/// A range of memory that the driver knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// The block of memory.
    pub region: RegionId,
    /// Offset of the first byte in it.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// A received frame: parsed headers, never bytes.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// What the frame says.
    pub packet: &'a Packet,
    /// R-14's t2: when the NIC received it, or the last time the receive queue was seen empty.
    pub arrived: Instant,
}

/// What the driver must do with the frame after [`crate::Endpoint::handle_packet`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RxVerdict {
    /// Used up: free it.
    Done,
    /// Rewrite it in place and send it back.
    Bounce(BounceRewrite),
    /// Cut it to its header first ([`dcp_wire::trim`]), then rewrite it and send it back.
    Return(BounceRewrite),
    /// Free it; the reason is counted already.
    Drop(DropReason),
}

/// Where the bytes of a received frame go.
pub trait RxSink {
    /// Copies `to.len` payload bytes from `payload_offset` on into `to`. Called once per segment touched, only
    /// with ranges inside a registered region.
    fn place(&mut self, payload_offset: u32, to: Segment);

    /// Runs an atomic on the 8 bytes of `at`, in the host's byte order, and returns the value before. All places
    /// called for before are done first. `at` is aligned in the peer's address space, so align regions likewise.
    fn atomic(&mut self, at: Segment, op: AtomicOp) -> u64;

    /// Stores the answer of an atomic in the 8 bytes of `at`, in the host's byte order.
    fn store(&mut self, at: Segment, value: u64);
}

/// Where the bytes of several frames go that follow each other ([`crate::Endpoint::handle_followers`]).
pub trait RunSink: RxSink {
    /// What is placed from now on is of the next frame.
    fn go_on(&mut self);
}

/// What an atomic does to its 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Replaces `compare` by `swap`, and nothing else.
    CmpSwap {
        /// Value it must be.
        compare: u64,
        /// Value it becomes then.
        swap: u64,
    },
    /// Adds, modulo 2^64.
    FetchAdd(u64),
}

impl AtomicOp {
    /// The value after, given the one before.
    pub const fn apply(self, before: u64) -> u64 {
        match self {
            Self::CmpSwap { compare, swap } if compare == before => swap,
            Self::CmpSwap { .. } => before,
            Self::FetchAdd(add) => before.wrapping_add(add),
        }
    }
}

/// A frame to send: its headers and the segments that make up its payload, in order.
#[derive(Clone, Copy, Debug)]
pub struct TxFrame<'a> {
    /// Everything before the payload.
    pub headers: &'a Headers,
    /// The same as bytes, as far as the connection's packets have it in common.
    pub template: &'a Template,
    /// Payload bytes: the sum of the segments' lengths.
    pub payload_len: u32,
    /// Payload.
    pub segments: &'a [Segment],
    /// Whether an ICRC of 4 bytes follows the payload; emit the headers for that much more.
    pub icrc: bool,
}

impl TxFrame<'_> {
    /// Writes the headers and returns their length.
    ///
    /// # Panics
    /// If `out` is shorter than [`Headers::len`].
    #[inline]
    pub fn emit_headers(&self, out: &mut [u8]) -> usize {
        let trailer = if self.icrc { ICRC_LEN } else { 0 };
        self.template.emit(self.headers, self.payload_len as usize + trailer, out)
    }
}

/// A frame of a WRITE without immediate, out of one piece of memory: what most frames are.
#[derive(Clone, Copy, Debug)]
pub struct WriteFrame<'a> {
    /// What its headers have of their own.
    pub packet: &'a WritePacket,
    /// What they have in common with all of the connection.
    pub template: &'a Template,
    /// What they have in common with others of this WRITE; that is all but PSN, AckReq and address then.
    pub middles: Option<&'a Middles>,
    /// Payload.
    pub segment: Segment,
    /// As in [`TxFrame`].
    pub icrc: bool,
}

impl WriteFrame<'_> {
    /// Writes the headers, [`Template::WRITE_LEN`] bytes.
    ///
    /// # Panics
    /// If `out` is shorter.
    #[inline]
    pub fn emit_headers(&self, out: &mut [u8]) -> usize {
        let packet = self.packet;
        if let Some(middles) = self.middles {
            return middles.emit(packet.name.psn, packet.reth.va, packet.ack_req, out);
        }
        let trailer = if self.icrc { ICRC_LEN } else { 0 };
        self.template.emit_write(packet, self.segment.len as usize + trailer, out)
    }
}

/// Where frames go.
pub trait TxSink: Prefetch {
    /// Frames that can be pushed now: their buffers, all segments, are already in hand.
    fn capacity(&self) -> usize;

    /// Takes a frame. Called at most [`TxSink::capacity`] times; cannot fail.
    fn push(&mut self, frame: TxFrame<'_>);

    /// Takes a frame of a WRITE; `headers` makes of a kind what [`TxFrame`] has. Counts as a [`TxSink::push`], and a sink
    /// that knows no shorter way makes one of it.
    #[inline]
    fn push_write(&mut self, frame: WriteFrame<'_>, headers: impl FnOnce(Kind) -> Headers) {
        let WriteFrame { packet, template, segment, icrc, .. } = frame;
        let headers = headers(Kind::Data(packet.data()));
        let payload_len = segment.len;
        self.push(TxFrame { headers: &headers, template, payload_len, segments: &[segment], icrc });
    }
}

/// Brings memory near before it is used, and does not wait: a driver can, and safe code cannot. Changes nothing but time.
pub trait Prefetch {
    /// Asks for the cache lines of `it`; who cannot does nothing.
    #[inline]
    fn prefetch<T: ?Sized>(&self, it: &T) {
        let _ = it;
    }
}
