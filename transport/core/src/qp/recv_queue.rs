//! Receives: posted ones, found by SSN, and those of a shared receive queue.

use std::collections::VecDeque;

use dcp_wire::{ImmData, Ssn};

use super::send_queue::SegmentList;
use crate::{Operation, RegionId, SrqId, Status};

/// A posted receive.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    pub(crate) segments: SegmentList,
    /// Bytes of its buffer.
    pub(crate) capacity: u32,
    /// Found wrong when posted; the message that binds it fails.
    pub(crate) fault: Option<Status>,
    /// What arrived, once its last packet did.
    pub(crate) arrived: Arrived,
}

impl Receive {
    fn refers_to(&self, region: RegionId) -> bool {
        self.segments.iter().any(|segment| segment.region == region)
    }
}

/// What a completed receive says.
#[derive(Clone, Copy, Hash, Debug)]
pub(crate) struct Arrived {
    pub(crate) operation: Operation,
    pub(crate) len: u32,
    pub(crate) imm: Option<ImmData>,
    pub(crate) solicited: bool,
}

impl Arrived {
    pub(crate) const NOTHING: Self =
        Self { operation: Operation::Receive, len: 0, imm: None, solicited: false };
}

/// A shared receive queue: receives that any of its queue pairs may bind.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Srq {
    posted: VecDeque<Receive>,
    depth: usize,
    pub(crate) pd: crate::PdId,
}

impl Srq {
    pub(crate) fn new(pd: crate::PdId, depth: usize) -> Self {
        Self { posted: VecDeque::with_capacity(depth), depth, pd }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.posted.len() == self.depth
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn post(&mut self, receive: Receive) {
        self.posted.push_back(receive);
    }

    pub(crate) fn refers_to(&self, region: RegionId) -> bool {
        self.posted.iter().any(|receive| receive.refers_to(region))
    }

    fn bind(&mut self) -> Option<Receive> {
        self.posted.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.posted.len()
    }
}

/// A queue pair's receives in the order of their SSNs: the first belongs to `next`.
///
/// With a shared queue, an entry is empty until the first packet of its message binds one.
#[derive(Clone, Hash, Debug)]
pub(super) struct RecvQueue {
    entries: VecDeque<Option<Receive>>,
    next: Ssn,
    depth: u32,
    pub(super) srq: Option<SrqId>,
}

/// Where an SSN stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookup {
    /// Its receive is the entry so far behind the first.
    Found(usize),
    /// Behind what is to be completed next: the peer breaks a rule.
    Behind,
    /// No receive is posted for it.
    Beyond,
}

impl RecvQueue {
    pub(super) fn new(depth: u32, srq: Option<SrqId>) -> Self {
        Self { entries: VecDeque::new(), next: Ssn::ZERO, depth, srq }
    }

    pub(super) fn start(&mut self, ssn: Ssn) {
        self.next = ssn;
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.depth as usize
    }

    pub(super) fn post(&mut self, receive: Receive) {
        self.entries.push_back(Some(receive));
    }

    pub(super) fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// The receive of an SSN, binding one of the shared queue if need be. `window`: messages under way at most.
    pub(super) fn lookup(&mut self, ssn: Ssn, window: u32, srqs: &mut [Srq]) -> Lookup {
        if ssn.is_before(self.next) {
            return Lookup::Behind;
        }
        let ahead = ssn.index_in(self.next, dcp_wire::SPACE_24).unwrap_or(u32::MAX) as usize;
        if let Some(srq) = self.srq {
            if ahead >= window as usize {
                return Lookup::Behind;
            }
            if self.entries.len() <= ahead {
                self.entries.resize(ahead + 1, None);
            }
            if self.entries[ahead].is_none() {
                self.entries[ahead] = srqs[srq.index()].bind();
            }
        }
        match self.entries.get(ahead) {
            Some(Some(_)) => Lookup::Found(ahead),
            _ => Lookup::Beyond,
        }
    }

    /// An entry that [`RecvQueue::lookup`] found.
    #[inline]
    pub(super) fn found(&mut self, index: usize) -> &mut Receive {
        self.entries[index].as_mut().expect("lookup found it")
    }

    /// Takes the receive that is to be completed next.
    pub(super) fn take_next(&mut self) -> Option<Receive> {
        let receive = self.entries.pop_front().flatten();
        self.next = self.next.next();
        receive
    }

    pub(super) fn refers_to(&self, region: RegionId) -> bool {
        self.entries.iter().flatten().any(|receive| receive.refers_to(region))
    }

    /// Takes everything that is left, in order.
    pub(super) fn drain(&mut self) -> Option<Receive> {
        while let Some(entry) = self.entries.pop_front() {
            if entry.is_some() {
                return entry;
            }
        }
        None
    }
}
