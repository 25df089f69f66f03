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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mixer, PdId};
    use std::collections::BTreeMap;

    const START: u32 = 0xFF_FFF8;
    const WINDOW: u32 = 8;

    fn receive(wr_id: u64) -> Receive {
        Receive { wr_id, segments: SegmentList::new(), capacity: 0, fault: None, arrived: Arrived::NOTHING }
    }

    fn start(srq: Option<SrqId>) -> RecvQueue {
        let mut queue = RecvQueue::new(16, srq);
        queue.start(Ssn::from_low_bits(START));
        queue
    }

    /// The receive that an SSN finds, by wr_id.
    fn find(queue: &mut RecvQueue, ahead: i64, next: u64, srqs: &mut [Srq]) -> Result<u64, Lookup> {
        let next = Ssn::from_low_bits(START).plus(u32::try_from(next).expect("few messages"));
        let ahead = i32::try_from(ahead).expect("few steps");
        let ssn = next.plus(ahead.cast_unsigned());
        match queue.lookup(ssn, WINDOW, srqs) {
            Lookup::Found(index) => Ok(queue.found(index).wr_id),
            other => Err(other),
        }
    }

    #[test]
    fn r4_receives_are_found_by_ssn_as_in_a_map_across_the_wrap() {
        for seed in 0..200u64 {
            let mut queue = start(None);
            // The n-th receive posted belongs to the n-th two-sided message, whatever order packets come in.
            let (mut map, mut posted, mut next) = (BTreeMap::new(), 0u64, 0u64);
            for step in 0..300 {
                let draw = Mixer::mix(seed << 16 | step);
                match draw % 4 {
                    0 if map.len() < 16 => {
                        assert!(!queue.is_full());
                        queue.post(receive(draw));
                        map.insert(posted, draw);
                        posted += 1;
                    }
                    1 if !map.is_empty() => {
                        assert_eq!(queue.take_next().map(|it| it.wr_id), map.remove(&next), "seed {seed}");
                        next += 1;
                    }
                    _ => {
                        let ahead = (draw >> 8) as i64 % 24 - 4;
                        let found = find(&mut queue, ahead, next, &mut []);
                        let index = next.checked_add_signed(ahead);
                        let expected = match index {
                            _ if ahead < 0 => Err(Lookup::Behind),
                            Some(index) => map.get(&index).copied().ok_or(Lookup::Beyond),
                            None => Err(Lookup::Behind),
                        };
                        assert_eq!(found, expected, "seed {seed} step {step}");
                    }
                }
                assert_eq!(queue.len(), map.len());
            }
        }
    }

    #[test]
    fn r16_shared_receives_are_bound_in_the_order_of_first_packets_and_stay_bound() {
        for seed in 0..200u64 {
            let mut queues = [start(Some(SrqId(0))), start(Some(SrqId(0)))];
            let mut srqs = [Srq::new(PdId(0), 64)];
            let mut pool = std::collections::VecDeque::new();
            let mut bound = [BTreeMap::new(), BTreeMap::new()];
            let mut next = [0u64; 2];
            for step in 0..300 {
                let draw = Mixer::mix(seed << 16 | step);
                let side = (draw >> 50) as usize % 2;
                match draw % 4 {
                    0 if !srqs[0].is_full() => {
                        srqs[0].post(receive(draw));
                        pool.push_back(draw);
                    }
                    1 if bound[side].contains_key(&next[side]) => {
                        let taken = queues[side].take_next().map(|it| it.wr_id);
                        assert_eq!(taken, bound[side].remove(&next[side]), "seed {seed}");
                        next[side] += 1;
                    }
                    _ => {
                        let ahead = (draw >> 8) as i64 % 11 - 2;
                        let found = find(&mut queues[side], ahead, next[side], &mut srqs);
                        let index = next[side].wrapping_add_signed(ahead);
                        if ahead < 0 || ahead >= i64::from(WINDOW) {
                            assert_eq!(found, Err(Lookup::Behind), "seed {seed} step {step}");
                            continue;
                        }
                        if !bound[side].contains_key(&index)
                            && let Some(wr_id) = pool.pop_front()
                        {
                            bound[side].insert(index, wr_id);
                        }
                        let expected = bound[side].get(&index).copied().ok_or(Lookup::Beyond);
                        assert_eq!(found, expected, "seed {seed} step {step}");
                    }
                }
                assert_eq!(srqs[0].len(), pool.len());
            }
        }
    }
}
