//! The send queue: work requests from post to completion.

use dcp_wire::{ImmData, RegionKey};
use smallvec::SmallVec;

use crate::{Operation, Segment, Status};

/// Gather list of one work request; two segments need no allocation.
pub(super) type SegmentList = SmallVec<[Segment; 2]>;

/// What a work request does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SendOp {
    /// SEND to a receive of the peer's.
    Send,
    /// SEND with immediate data.
    SendImm(ImmData),
    /// RDMA WRITE to the peer's memory.
    Write(Remote),
    /// RDMA WRITE that consumes a receive of the peer's.
    WriteImm(Remote, ImmData),
    /// RDMA READ from the peer's memory into the gather list.
    Read(Remote),
    /// Atomic compare and swap of 8 bytes at the peer's; the value before lands in the one SGE of 8 bytes.
    CmpSwap {
        /// The 8 bytes; their address is a multiple of 8.
        remote: Remote,
        /// Value they must have.
        compare: u64,
        /// Value they get then.
        swap: u64,
    },
    /// Atomic fetch and add of 8 bytes at the peer's; the value before lands in the one SGE of 8 bytes.
    FetchAdd {
        /// The 8 bytes; their address is a multiple of 8.
        remote: Remote,
        /// What is added, modulo 2^64.
        add: u64,
    },
}

/// A place in the peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remote {
    /// Address in the peer's registered range.
    pub va: u64,
    /// The peer's key for it.
    pub rkey: RegionKey,
}

impl SendOp {
    /// Whether it consumes a receive at the peer, and so has an SSN.
    #[inline]
    pub(super) const fn is_two_sided(self) -> bool {
        matches!(self, Self::Send | Self::SendImm(_) | Self::WriteImm(..))
    }

    /// Whether the peer answers it with data.
    #[inline]
    pub(super) const fn is_answered(self) -> bool {
        matches!(self, Self::Read(_) | Self::CmpSwap { .. } | Self::FetchAdd { .. })
    }

    /// Whether it is an atomic.
    #[inline]
    pub(super) const fn is_atomic(self) -> bool {
        matches!(self, Self::CmpSwap { .. } | Self::FetchAdd { .. })
    }

    /// How its completion names it.
    #[must_use]
    pub const fn operation(self) -> Operation {
        match self {
            Self::Send | Self::SendImm(_) => Operation::Send,
            Self::Write(_) | Self::WriteImm(..) => Operation::Write,
            Self::Read(_) => Operation::Read,
            Self::CmpSwap { .. } => Operation::CmpSwap,
            Self::FetchAdd { .. } => Operation::FetchAdd,
        }
    }
}

/// A posted work request.
#[derive(Clone, Hash, Debug)]
pub(super) struct Wqe {
    pub(super) wr_id: u64,
    pub(super) op: SendOp,
    pub(super) len: u32,
    /// Packets of the message: at least 1.
    pub(super) packets: u32,
    /// Set when it enters the window, for two-sided operations.
    pub(super) ssn: dcp_wire::Ssn,
    pub(super) flags: WqeFlags,
    /// Found wrong when posted; completes with this instead of leaving.
    pub(super) fault: Option<Status>,
    pub(super) segments: SegmentList,
}

/// Yes-or-no properties of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct WqeFlags {
    pub(super) signalled: bool,
    pub(super) solicited: bool,
    pub(super) fence: bool,
    /// Nothing but the window keeps it from becoming a message: a right WRITE without immediate and fence.
    pub(super) unconditional: bool,
    /// The answer of a READ or ATOMIC is complete.
    pub(super) answered: bool,
}

/// A ring of work requests. Positions run on modulo 2^32:
/// head (oldest not completed) … acked (una) … entered (next to enter the window) … tail (next to post).
#[derive(Clone, Hash, Debug)]
pub(super) struct SendQueue {
    ring: Box<[Wqe]>,
    mask: u32,
    depth: u32,
    /// Oldest slot that the application still holds: unsignalled ones wait for the next signalled one.
    held: u32,
    head: u32,
    acked: u32,
    entered: u32,
    tail: u32,
}

impl SendQueue {
    pub(super) fn new(depth: u32) -> Self {
        let size = depth.next_power_of_two();
        let empty = Wqe {
            wr_id: 0,
            op: SendOp::Send,
            len: 0,
            packets: 0,
            ssn: dcp_wire::Ssn::ZERO,
            flags: WqeFlags::default(),
            fault: None,
            segments: SegmentList::new(),
        };
        let ring = vec![empty; size as usize].into();
        Self { ring, mask: size - 1, depth, held: 0, head: 0, acked: 0, entered: 0, tail: 0 }
    }

    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) const fn is_full(&self) -> bool {
        self.tail.wrapping_sub(self.held) >= self.depth
    }

    /// Slots that the application has back, modulo 2^32.
    pub(super) const fn freed(&self) -> u32 {
        self.held
    }

    /// Ring index of the next work request, for a driver that keeps inline bytes beside it.
    pub(super) const fn next_slot(&self) -> u32 {
        self.tail & self.mask
    }

    /// Work requests posted and not completed.
    pub(super) const fn outstanding(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Work requests acknowledged and not completed: READs and ATOMICs that wait for answers, and what waits behind.
    pub(super) const fn awaiting(&self) -> u32 {
        self.acked.wrapping_sub(self.head)
    }

    /// The slot to fill next; [`SendQueue::commit`] posts it.
    pub(super) fn vacant(&mut self) -> &mut Wqe {
        &mut self.ring[(self.tail & self.mask) as usize]
    }

    pub(super) const fn commit(&mut self) {
        self.tail = self.tail.wrapping_add(1);
    }

    /// The oldest one that is not completed.
    #[inline]
    pub(super) fn oldest(&self) -> &Wqe {
        &self.ring[(self.head & self.mask) as usize]
    }

    /// The work request of the message `steps` after una.
    #[inline]
    pub(super) fn at(&self, steps: u32) -> &Wqe {
        &self.ring[(self.acked.wrapping_add(steps) & self.mask) as usize]
    }

    /// The work request `steps` after the oldest one.
    #[inline]
    pub(super) fn behind_oldest(&mut self, steps: u32) -> &mut Wqe {
        &mut self.ring[(self.head.wrapping_add(steps) & self.mask) as usize]
    }

    /// The next one to enter the window.
    #[inline]
    pub(super) fn waiting(&self) -> Option<&Wqe> {
        (self.entered != self.tail).then(|| &self.ring[(self.entered & self.mask) as usize])
    }

    /// The next one enters the window, with the SSN it would get.
    #[inline]
    pub(super) fn enter(&mut self, ssn: dcp_wire::Ssn) {
        self.ring[(self.entered & self.mask) as usize].ssn = ssn;
        self.entered = self.entered.wrapping_add(1);
    }

    /// The oldest message in the window is acknowledged.
    #[inline]
    pub(super) const fn acknowledge(&mut self) {
        self.acked = self.acked.wrapping_add(1);
    }

    /// Whether the oldest work request may complete: acknowledged, and answered if it is to be.
    #[inline]
    pub(super) fn can_complete(&self) -> bool {
        let wqe = self.oldest();
        self.head != self.acked && (wqe.flags.answered || !wqe.op.is_answered())
    }

    /// Retires the oldest work request. `frees`: it completed, so its slot and all before it are the application's.
    #[inline]
    pub(super) const fn retire(&mut self, frees: bool) {
        self.head = self.head.wrapping_add(1);
        if frees {
            self.held = self.head;
        }
    }

    /// Whether an outstanding work request refers to a region.
    pub(super) fn refers_to(&self, region: crate::RegionId) -> bool {
        (0..self.outstanding()).any(|steps| {
            let wqe = &self.ring[(self.head.wrapping_add(steps) & self.mask) as usize];
            wqe.segments.iter().any(|segment| segment.region == region)
        })
    }

    /// After the last work request was retired, whatever state it was in.
    pub(super) fn restart_empty(&mut self) {
        debug_assert_eq!(self.head, self.tail);
        self.acked = self.tail;
        self.entered = self.tail;
    }
}
