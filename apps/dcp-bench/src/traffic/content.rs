//! What lies in the buffers of a run: made before it, compared after it.

use std::ops::Range;

use dcp::dpdk::Region;

use super::layout::{GUARD, Layout};
use super::tally::Done;
use crate::op::Op;
use crate::outcome::Verification;
use crate::pattern::Pattern;
use crate::plan::{Length, Plan};
use crate::sizes::SizeDist;

/// Bytes made or compared at a time.
const CHUNK: usize = 4096;
/// Bits of a message's number that its data depends on.
const MESSAGE_BITS: u32 = 40;

/// Keeps sizes apart from the data of the same seed.
const SIZES: u64 = 0x7369_7A65_735F_6F66;
/// Number of the server, where that sends messages too; clients are numbered from 1.
pub(crate) const SERVER: u32 = 0;

/// How far a queue pair came.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Count {
    /// Messages posted.
    pub(crate) posted: u64,
    /// Messages completed.
    pub(crate) completed: u64,
    /// Messages whose data has been compared already, and need not be again.
    pub(crate) checked: u64,
}

/// The data of one client's messages, at either side. The same seed makes the same everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) op: Op,
    pub(crate) layout: Layout,
    seed: u64,
    /// Number of the client.
    number: u32,
    /// Every message is compared, so each has a buffer to itself until then.
    pub(crate) each: bool,
    /// Every message ends with a byte of its own, by which it is told from the one that was in its buffer before.
    marked: bool,
    /// What sizes are drawn from; else all are the layout's.
    size_dist: Option<SizeDist>,
    /// Buffers that are used at all.
    slots_used: u64,
}

impl Content {
    pub(crate) fn new(plan: &Plan, layout: Layout, number: u32) -> Self {
        let limit = match plan.length {
            Length::Iterations(count) => count.get(),
            Length::Duration(_) => u64::MAX,
        };
        Self {
            op: plan.op,
            layout,
            seed: plan.seed,
            number,
            each: plan.verify_each,
            marked: plan.is_rally(),
            size_dist: plan.load.size_dist,
            slots_used: layout.slots.min(limit),
        }
    }

    /// Fills the client's buffers with what it sends, unless each message is to bring its own. False: stopped.
    pub(crate) fn prepare_client(&self, region: &Region, stopped: &impl Fn() -> bool) -> bool {
        self.op.is_answered() || self.each || self.fill_slots(region, self.slots_used, stopped)
    }

    /// Fills the server's buffers with what a client reads, or with the first value of an atomic. False: stopped.
    pub(crate) fn prepare_server(&self, region: &Region, stopped: &impl Fn() -> bool) -> bool {
        match self.op {
            Op::Read => self.fill_slots(region, self.slots_used, stopped),
            Op::Cas | Op::Faa => self.fill_slots(region, 1, stopped),
            Op::Write | Op::WriteImm | Op::Send | Op::SendImm => true,
        }
    }

    fn fill_slots(&self, region: &Region, slots: u64, stopped: &impl Fn() -> bool) -> bool {
        (0..self.layout.qps)
            .all(|flow| (0..slots).all(|slot| self.fill(region, flow, slot, self.layout.size, stopped)))
    }

    /// Readies the client's buffer for a message that is to be compared when it completes. False: stopped.
    pub(crate) fn prepare_message(
        &self,
        region: &Region,
        flow: usize,
        index: u64,
        stopped: &impl Fn() -> bool,
    ) -> bool {
        if self.op.is_answered() {
            // What an earlier message left is no proof of this one.
            let start = self.layout.offset(flow, index);
            region.fill(start, self.len(flow, index), 0).expect("the layout fits the region");
            return !stopped();
        }
        self.fill(region, flow, index, self.len(flow, index), stopped)
    }

    /// Bytes of a message.
    #[inline]
    pub(crate) fn len(&self, flow: usize, index: u64) -> usize {
        match self.size_dist {
            None => self.layout.size,
            Some(dist) => {
                let mut random = [0; 8];
                let pattern = self.numbered(flow, index);
                Pattern { seed: pattern.seed ^ SIZES, ..pattern }.fill(&mut random);
                usize::try_from(dist.size(u64::from_le_bytes(random))).unwrap_or(usize::MAX)
            }
        }
    }

    /// The same, as work requests count them.
    #[inline]
    pub(crate) fn request_len(&self, flow: usize, index: u64) -> u32 {
        u32::try_from(self.len(flow, index)).unwrap_or(u32::MAX)
    }

    /// Bytes of a range of messages.
    #[inline]
    pub(crate) fn bytes_of(&self, flow: usize, numbers: Range<u64>) -> u64 {
        match self.size_dist {
            None => (numbers.end - numbers.start) * self.layout.size as u64,
            Some(_) => numbers.map(|index| self.len(flow, index) as u64).sum(),
        }
    }

    /// The messages that have completed.
    pub(crate) fn done(&self, counts: &[Count]) -> Done {
        let mut done = Done::default();
        for (flow, count) in counts.iter().enumerate() {
            done.add(count.completed, self.bytes_of(flow, 0..count.completed));
        }
        done
    }

    /// Whether it came to the end of the buffer before it was stopped.
    fn fill(
        &self,
        region: &Region,
        flow: usize,
        index: u64,
        size: usize,
        stopped: &impl Fn() -> bool,
    ) -> bool {
        let start = self.layout.offset(flow, index);
        let mut chunk = [0; CHUNK];
        for at in (0..size).step_by(CHUNK) {
            if stopped() {
                return false;
            }
            let chunk = &mut chunk[..CHUNK.min(size - at)];
            self.make(flow, index, at as u64, chunk);
            region.write(start + at as u64, chunk).expect("the layout fits the region");
        }
        true
    }

    /// The bytes of a message from `at` on.
    fn make(&self, flow: usize, index: u64, at: u64, chunk: &mut [u8]) {
        if self.op.is_atomic() {
            chunk.copy_from_slice(&self.value(flow, index).to_ne_bytes()[..chunk.len()]);
        } else {
            self.pattern(flow, index).fill_from(at, chunk);
            if self.marked && at + chunk.len() as u64 == self.layout.size as u64 {
                chunk.last_mut().map(|last| *last = mark(index)).unwrap_or_default();
            }
        }
    }

    /// Makes the end of a message whose other bytes are there.
    pub(crate) fn write_mark(&self, region: &Region, flow: usize, index: u64) {
        if let Some(at) = self.mark_offset(flow, index) {
            region.write(at, &[mark(index)]).expect("the layout fits the region");
        }
    }

    /// Whether a message is there, to its last byte.
    #[inline]
    pub(crate) fn has_mark(&self, region: &Region, flow: usize, index: u64) -> bool {
        let mut last = [0];
        self.mark_offset(flow, index).is_some_and(|at| {
            region.read(at, &mut last).expect("the layout fits the region");
            last == [mark(index)]
        })
    }

    fn mark_offset(&self, flow: usize, index: u64) -> Option<u64> {
        Some(self.layout.offset(flow, index) + (self.layout.size as u64).checked_sub(1)?)
    }

    fn pattern(&self, flow: usize, index: u64) -> Pattern {
        // A reader's source stays as it is; others that are compared one by one differ one by one.
        let by_message = self.each && self.op != Op::Read;
        self.numbered(flow, if by_message { index } else { index % self.layout.slots })
    }

    fn numbered(&self, flow: usize, index: u64) -> Pattern {
        let place = u64::from(self.number) << 16 | flow as u64;
        Pattern { seed: self.seed, message: place << MESSAGE_BITS | index & ((1 << MESSAGE_BITS) - 1) }
    }

    /// What the 8 bytes of a queue pair hold when so many atomics have run.
    pub(crate) fn value(&self, flow: usize, count: u64) -> u64 {
        let word = |index| {
            let mut bytes = [0; 8];
            self.numbered(flow, index).fill(&mut bytes);
            u64::from_ne_bytes(bytes)
        };
        match self.op {
            // Odd, so that no value comes back before 2^64 atomics.
            Op::Faa => word(0).wrapping_add((word(1) | 1).wrapping_mul(count)),
            _ => word(count),
        }
    }

    /// Offset in the server's memory that a message names.
    pub(crate) fn remote_offset(&self, flow: usize, index: u64) -> u64 {
        self.layout.offset(flow, if self.op.is_atomic() { 0 } else { index })
    }

    /// Compares what completed messages left in the client's memory, as long as it is not `enough`.
    pub(crate) fn check_client(
        &self,
        region: &Region,
        counts: &[Count],
        enough: &impl Fn() -> bool,
    ) -> Verification {
        if self.op.is_answered() { self.check_buffers(region, counts, enough) } else { Verification::Passed }
    }

    /// Compares what completed messages left in the server's memory, as long as it is not `enough`.
    pub(crate) fn check_server(
        &self,
        region: &Region,
        counts: &[Count],
        enough: &impl Fn() -> bool,
    ) -> Verification {
        if !self.op.is_atomic() {
            return self.check_buffers(region, counts, enough);
        }
        all(counts.iter().enumerate().map(|(flow, count)| self.check_cell(region, flow, count)))
    }

    /// Compares every buffer that a completed message has filled.
    fn check_buffers(&self, region: &Region, counts: &[Count], enough: &impl Fn() -> bool) -> Verification {
        all(counts.iter().enumerate().map(|(flow, count)| {
            // Where messages differ, a buffer may hold a part of the next one already: a stopped run left it.
            let differ = self.each || self.marked || self.op.is_atomic();
            let reused = if differ { count.posted } else { count.completed };
            let first = reused.saturating_sub(self.layout.slots).max(count.checked);
            all((first..count.completed).map(|number| self.check(region, flow, number, enough)))
        }))
    }

    /// Compares a completed message.
    pub(crate) fn check(
        &self,
        region: &Region,
        flow: usize,
        number: u64,
        enough: &impl Fn() -> bool,
    ) -> Verification {
        let (start, size) = (self.layout.offset(flow, number), self.len(flow, number));
        let (mut expected, mut found) = ([0; CHUNK], [0; CHUNK]);
        for at in (0..size).step_by(CHUNK) {
            if enough() {
                return Verification::NotChecked;
            }
            let len = CHUNK.min(size - at);
            let (expected, found) = (&mut expected[..len], &mut found[..len]);
            self.make(flow, number, at as u64, expected);
            region.read(start + at as u64, found).expect("the layout fits the region");
            if let Some(index) = crate::pattern::first_difference(expected, found) {
                let offset = at + index;
                return self.failed(flow, &format!("message {number}, offset {offset} of {size}"));
            }
        }
        self.check_guard(region, flow, number)
    }

    fn check_guard(&self, region: &Region, flow: usize, number: u64) -> Verification {
        let end = self.layout.offset(flow, number) + self.layout.size as u64;
        let mut guard = [0; GUARD];
        region.read(end, &mut guard).expect("guards are in the region");
        if guard.iter().all(|&byte| byte == 0) {
            return Verification::Passed;
        }
        self.failed(flow, &format!("message {number}: bytes behind its buffer changed"))
    }

    /// An atomic that is not known to have completed may have run all the same.
    fn check_cell(&self, region: &Region, flow: usize, count: &Count) -> Verification {
        let mut bytes = [0; 8];
        region.read(self.layout.offset(flow, 0), &mut bytes).expect("the layout fits the region");
        let found = u64::from_ne_bytes(bytes);
        if (count.completed..=count.posted).any(|ran| self.value(flow, ran) == found) {
            return self.check_guard(region, flow, 0);
        }
        let (completed, expected) = (count.completed, self.value(flow, count.completed));
        self.failed(flow, &format!("its counter is {found:#x} after {completed} atomics, not {expected:#x}"))
    }

    fn failed(&self, flow: usize, what: &str) -> Verification {
        Verification::Failed(format!("{}, queue pair {flow}, {what}", name(self.number)))
    }
}

/// Who sends, for people.
pub(super) fn name(number: u32) -> String {
    match number {
        SERVER => "the server".to_owned(),
        number => format!("client {number}"),
    }
}

/// Last byte of a message: no zero at first, and another one than that of any message it may replace.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
const fn mark(index: u64) -> u8 {
    (index as u8).wrapping_add(1)
}

/// The first that is not passed, or passed.
fn all(mut parts: impl Iterator<Item = Verification>) -> Verification {
    parts.find(|part| *part != Verification::Passed).unwrap_or(Verification::Passed)
}

#[cfg(test)]
mod tests {
    use dcp::dpdk::HugePreference;

    use super::*;

    fn never() -> bool {
        false
    }

    fn content(plan: &Plan) -> (Content, Region) {
        let layout = Layout::new(plan);
        let region = Region::alloc(layout.bytes(), HugePreference::Never).unwrap();
        region.fill(0, layout.bytes(), 0).unwrap();
        (Content::new(plan, layout, 1), region)
    }

    fn flip(region: &Region, at: u64) {
        let mut byte = [0];
        region.read(at, &mut byte).unwrap();
        region.write(at, &[byte[0] ^ 1]).unwrap();
    }

    // I4
    #[test]
    fn flipped_byte_of_any_buffer_is_found_where_it_is() {
        for size in [1, 4096, 10_000] {
            let plan = Plan { size, qps: 2, tx_depth: 3, ..Plan::default() };
            let (content, region) = content(&plan);
            assert!(content.prepare_client(&region, &never));
            let counts = [Count { posted: 3, completed: 3, checked: 0 }; 2];
            assert_eq!(content.check_server(&region, &counts, &never), Verification::Passed);
            for offset in [0, size / 2, size - 1] {
                let at = content.layout.offset(1, 2) + offset;
                flip(&region, at);
                let found = content.check_server(&region, &counts, &never);
                let place = format!("queue pair 1, message 2, offset {offset} of {size}");
                assert!(matches!(found, Verification::Failed(text) if text.ends_with(&place)));
                flip(&region, at);
            }
        }
    }

    #[test]
    fn counter_of_atomics_must_stand_where_they_left_it() {
        for op in [Op::Cas, Op::Faa] {
            let (content, region) = content(&Plan { op, size: 8, ..Plan::default() });
            assert!(content.prepare_server(&region, &never));
            let check = |completed, posted| {
                content.check_server(&region, &[Count { posted, completed, checked: 0 }], &never)
            };
            assert_eq!(check(0, 0), Verification::Passed);
            region.write(0, &content.value(0, 7).to_ne_bytes()).unwrap();
            assert_eq!([check(7, 7), check(5, 9)], [Verification::Passed, Verification::Passed]);
            assert!([check(6, 6), check(8, 9)].iter().all(|it| matches!(it, Verification::Failed(_))));
        }
    }

    #[test]
    fn answer_that_a_stopped_run_did_not_wait_for_is_no_mismatch() {
        let (content, region) = content(&Plan { op: Op::Faa, size: 8, tx_depth: 3, ..Plan::default() });
        for number in 0..5 {
            let at = content.layout.offset(0, number);
            region.write(at, &content.value(0, number).to_ne_bytes()).unwrap();
        }
        let check = |completed| {
            let counts = [Count { posted: 5, completed, checked: 0 }];
            content.check_client(&region, &counts, &never)
        };
        assert_eq!([check(3), check(5)], [Verification::Passed, Verification::Passed]);
        flip(&region, content.layout.offset(0, 2));
        assert!(matches!(check(3), Verification::Failed(_)));
    }

    #[test]
    fn comparison_that_is_stopped_says_nothing() {
        let (content, region) = content(&Plan::default());
        let counts = [Count { posted: 1, completed: 1, checked: 0 }];
        assert_eq!(content.check_server(&region, &counts, &|| true), Verification::NotChecked);
    }

    #[test]
    fn buffers_compared_already_are_not_compared_again() {
        let (content, region) = content(&Plan { verify_each: true, ..Plan::default() });
        let counts = |checked| [Count { posted: 1, completed: 1, checked }];
        assert!(matches!(content.check_server(&region, &counts(0), &never), Verification::Failed(_)));
        assert_eq!(content.check_server(&region, &counts(1), &never), Verification::Passed);
    }
}
