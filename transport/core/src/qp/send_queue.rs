//! The send queue: work requests from post to retirement.

use smallvec::SmallVec;

use crate::{Segment, Status};

/// Gather list of one work request; two segments need no allocation.
pub(super) type SegmentList = SmallVec<[Segment; 2]>;

/// What a work request does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SendOp {
    /// RDMA WRITE to the peer's memory.
    Write {
        /// Address in the peer's registered range.
        remote_va: u64,
        /// The peer's key for it.
        rkey: dcp_wire::RegionKey,
    },
}

/// A posted work request.
#[derive(Clone, Hash, Debug)]
pub(super) struct Wqe {
    pub(super) wr_id: u64,
    pub(super) op: SendOp,
    pub(super) len: u32,
    /// Packets of the message: at least 1.
    pub(super) packets: u32,
    pub(super) signalled: bool,
    /// Found wrong when posted; completes with this instead of leaving.
    pub(super) fault: Option<Status>,
    pub(super) segments: SegmentList,
}

/// A ring of work requests. Positions run on modulo 2^32: head (oldest not retired) … entered (next to enter the
/// window) … tail (next to post).
#[derive(Clone, Hash, Debug)]
pub(super) struct SendQueue {
    ring: Vec<Wqe>,
    mask: u32,
    depth: u32,
    /// Oldest slot that the application still holds: unsignalled ones wait for the next signalled one.
    held: u32,
    head: u32,
    entered: u32,
    tail: u32,
}

impl SendQueue {
    pub(super) fn new(depth: u32) -> Self {
        let size = depth.next_power_of_two();
        let empty = Wqe {
            wr_id: 0,
            op: SendOp::Write { remote_va: 0, rkey: dcp_wire::RegionKey(0) },
            len: 0,
            packets: 0,
            signalled: false,
            fault: None,
            segments: SegmentList::new(),
        };
        Self {
            ring: vec![empty; size as usize],
            mask: size - 1,
            depth,
            held: 0,
            head: 0,
            entered: 0,
            tail: 0,
        }
    }

    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) const fn is_full(&self) -> bool {
        self.tail.wrapping_sub(self.held) >= self.depth
    }

    pub(super) const fn outstanding(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// The slot to fill next; [`SendQueue::commit`] posts it.
    pub(super) fn vacant(&mut self) -> &mut Wqe {
        &mut self.ring[(self.tail & self.mask) as usize]
    }

    pub(super) fn commit(&mut self) {
        self.tail = self.tail.wrapping_add(1);
    }

    /// The work request `steps` after the oldest one.
    #[inline]
    pub(super) fn at(&self, steps: u32) -> &Wqe {
        &self.ring[(self.head.wrapping_add(steps) & self.mask) as usize]
    }

    /// The next one to enter the window.
    #[inline]
    pub(super) fn waiting(&self) -> Option<&Wqe> {
        (self.entered != self.tail).then(|| &self.ring[(self.entered & self.mask) as usize])
    }

    #[inline]
    pub(super) fn enter(&mut self) {
        self.entered = self.entered.wrapping_add(1);
    }

    /// Retires the oldest work request. `frees`: it completed, so its slot and all before it are the application's.
    #[inline]
    pub(super) fn retire(&mut self, frees: bool) {
        self.head = self.head.wrapping_add(1);
        if frees {
            self.held = self.head;
        }
    }

    /// After the last work request was retired, entered or not.
    pub(super) fn restart_empty(&mut self) {
        debug_assert_eq!(self.head, self.tail);
        self.entered = self.tail;
    }
}
