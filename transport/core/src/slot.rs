//! The tracking slot of one message: 16 bytes, whatever the degree of reordering.
#![expect(
    clippy::cast_possible_truncation,
    reason = "each field is masked to its width, or was put in with it"
)]

use dcp_wire::Generation;

use crate::maps::MapId;
use crate::mix::Mixer;

/// Packed: generation 12, counter 24, expected 24, state 3 and receive 1 bits; then the fingerprint, a map or a code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Slot {
    word: u64,
    detail: u64,
}

const _: () = assert!(size_of::<Slot>() == 16);

/// What a slot knows of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SlotState {
    /// Counting packets of one generation; a fresh slot has counted none.
    Counting = 0,
    /// A packet came twice while another is missing; waits for a restart.
    Poisoned = 1,
    /// Tracked exactly since its first restart; `detail` is the map.
    Mapped = 2,
    /// All packets are placed.
    Complete = 3,
    /// A check failed; `detail` is the code.
    Failed = 4,
    /// A READ or ATOMIC request, which is run when emsn reaches it.
    Request = 5,
}

/// Operations whose packets may not meet in one message (P-2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Write,
    Send,
}

/// Answer of [`Slot::count`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    More,
    Complete,
    /// As many as expected, but not the right ones.
    Torn,
}

const GENERATION_SHIFT: u32 = 0;
const COUNTER_SHIFT: u32 = 12;
const EXPECTED_SHIFT: u32 = 36;
const STATE_SHIFT: u32 = 60;
const STATE_MASK: u64 = 7;
/// By the number in the word; the last two are those of a SEND.
const STATES: [SlotState; 8] = [
    SlotState::Counting,
    SlotState::Poisoned,
    SlotState::Mapped,
    SlotState::Complete,
    SlotState::Failed,
    SlotState::Request,
    SlotState::Counting,
    SlotState::Poisoned,
];
/// Counting, of a SEND.
const COUNTING_SEND: u64 = 6;
/// Poisoned, of a SEND.
const POISONED_SEND: u64 = 7;
/// In the detail of a mapped slot: the message is a SEND.
const MAPPED_SEND: u64 = 1 << 32;
/// The message consumes a receive (the paper's CQE flag).
const RECEIVE: u64 = 1 << 63;
const MASK_12: u64 = (1 << 12) - 1;
const MASK_24: u64 = (1 << 24) - 1;

impl Slot {
    #[inline]
    pub(crate) const fn state(&self) -> SlotState {
        STATES[(self.word >> STATE_SHIFT & STATE_MASK) as usize]
    }

    /// Whether it counts packets of WRITEs of that generation, or counted nothing yet.
    #[inline]
    pub(crate) const fn counts_writes_of(&self, generation: Generation) -> bool {
        let state_and_generation = STATE_MASK << STATE_SHIFT | MASK_12 << GENERATION_SHIFT;
        self.word & state_and_generation == (generation.get() as u64) << GENERATION_SHIFT
    }

    #[inline]
    pub(crate) const fn generation(&self) -> Generation {
        Generation::from_low_bits((self.word >> GENERATION_SHIFT & MASK_12) as u16)
    }

    #[inline]
    pub(crate) const fn counter(&self) -> u32 {
        (self.word >> COUNTER_SHIFT & MASK_24) as u32
    }

    /// Packets of the message; 0 while unknown.
    #[inline]
    pub(crate) const fn expected(&self) -> u32 {
        (self.word >> EXPECTED_SHIFT & MASK_24) as u32
    }

    #[inline]
    pub(crate) fn set_expected(&mut self, packets: u32) {
        self.word = self.word & !(MASK_24 << EXPECTED_SHIFT) | u64::from(packets) << EXPECTED_SHIFT;
    }

    #[inline]
    fn set_state(&mut self, state: SlotState) {
        self.word = self.word & !(STATE_MASK << STATE_SHIFT) | (state as u64) << STATE_SHIFT;
    }

    #[inline]
    pub(crate) fn complete(&mut self) {
        self.set_state(SlotState::Complete);
    }

    /// The operation family of its packets; `None` while there were none.
    #[inline]
    pub(crate) const fn family(&self) -> Option<Family> {
        match self.word >> STATE_SHIFT & STATE_MASK {
            COUNTING_SEND | POISONED_SEND => Some(Family::Send),
            2 if self.detail & MAPPED_SEND != 0 => Some(Family::Send),
            0 if self.counter() == 0 && self.generation().get() == 0 => None,
            _ => Some(Family::Write),
        }
    }

    /// Notes the family at the message's first packet.
    #[inline]
    pub(crate) fn set_family(&mut self, family: Family) {
        if matches!(family, Family::Send) && self.state() as u64 == 0 {
            self.word = self.word & !(STATE_MASK << STATE_SHIFT) | COUNTING_SEND << STATE_SHIFT;
        }
    }

    #[inline]
    pub(crate) fn request(&mut self) {
        self.set_state(SlotState::Request);
    }

    /// Whether the message consumes a receive: known for a SEND from its first packet, for a WRITE from its immediate.
    #[inline]
    pub(crate) const fn consumes_receive(&self) -> bool {
        self.word & RECEIVE != 0
    }

    #[inline]
    pub(crate) fn set_consumes_receive(&mut self) {
        self.word |= RECEIVE;
    }

    pub(crate) fn poison(&mut self) {
        match self.family() {
            Some(Family::Send) => self.word |= POISONED_SEND << STATE_SHIFT,
            _ => self.set_state(SlotState::Poisoned),
        }
    }

    pub(crate) fn fail(&mut self, code: u8) {
        self.set_state(SlotState::Failed);
        self.detail = u64::from(code);
    }

    /// Code of a failed slot.
    pub(crate) const fn failure(&self) -> u8 {
        self.detail as u8
    }

    /// Starts counting afresh in a newer generation; what is expected and consumed, and the family, stay known.
    pub(crate) fn restart(&mut self, generation: Generation) {
        let send = matches!(self.family(), Some(Family::Send));
        let kept = self.word & (MASK_24 << EXPECTED_SHIFT | RECEIVE);
        let state = if send { COUNTING_SEND } else { 0 };
        self.word = kept | state << STATE_SHIFT | u64::from(generation.get()) << GENERATION_SHIFT;
        self.detail = 0;
    }

    /// Hands tracking over to a map, which ignores generations.
    pub(crate) fn track_exactly(&mut self, map: MapId) {
        let send = matches!(self.family(), Some(Family::Send));
        self.set_state(SlotState::Mapped);
        self.detail = u64::from(map.0) | if send { MAPPED_SEND } else { 0 };
    }

    /// Map of a mapped slot.
    pub(crate) const fn map(&self) -> MapId {
        MapId(self.detail as u32)
    }

    /// counts packet `psn` of the slot's generation. With h the mixer, the fingerprint is the sum of
    /// h(psn) − h(counter): zero exactly when the packets counted are 0 … n − 1, but for 2^-64.
    #[inline]
    pub(crate) fn count(&mut self, psn: u32) -> Counted {
        let counter = self.counter();
        if psn != counter {
            let moved = Mixer::mix(u64::from(psn)).wrapping_sub(Mixer::mix(u64::from(counter)));
            self.detail = self.detail.wrapping_add(moved);
        }
        self.word += 1 << COUNTER_SHIFT;
        let expected = self.expected();
        if counter + 1 < expected {
            return Counted::More;
        }
        if expected == 0 {
            // So many copies of a message whose end never came: one more would spill into the next field.
            return if u64::from(counter) + 1 == MASK_24 { Counted::Torn } else { Counted::More };
        }
        if counter + 1 == expected && self.detail == 0 { Counted::Complete } else { Counted::Torn }
    }

    /// Counts packets `first`, `first + 1` …, which are not as many as still expected: [`Counted::More`] for each.
    ///
    /// The fingerprint moves by the sum of h over the packets' numbers less that over the counter's; numbers that are in
    /// both cancel out, and mostly all but a few are.
    #[inline]
    pub(crate) fn count_more(&mut self, first: u32, packets: u32) {
        let counter = self.counter();
        debug_assert!(counter + packets < self.expected());
        let apart = first.abs_diff(counter).min(packets);
        if apart > 0 {
            let behind = packets - apart;
            let (own, others) =
                if first > counter { (first + behind, counter) } else { (first, counter + behind) };
            for step in 0..apart {
                let moved =
                    Mixer::mix(u64::from(own + step)).wrapping_sub(Mixer::mix(u64::from(others + step)));
                self.detail = self.detail.wrapping_add(moved);
            }
        }
        self.word += u64::from(packets) << COUNTER_SHIFT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Twin: one by one.
    #[test]
    fn r7_packets_counted_together_are_like_packets_counted_one_by_one() {
        for (first, before, packets) in
            (0..12).flat_map(|a| (0..12).flat_map(move |b| (1..12).map(move |c| (a, b, c))))
        {
            let mut together = Slot::default();
            together.set_expected(100);
            for psn in 0..before {
                let _ = together.count(psn * 7);
            }
            let mut single = together;
            for psn in first..first + packets {
                assert_eq!(single.count(psn), Counted::More);
            }
            together.count_more(first, packets);
            assert_eq!(together, single, "{packets} from {first} on, after {before}");
        }
    }

    fn shuffled(n: u32, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..n as usize).rev() {
            order.swap(i, Mixer::mix(seed << 20 | i as u64) as usize % (i + 1));
        }
        order
    }

    #[test]
    fn any_order_of_all_packets_completes_at_the_last_one() {
        for seed in 0..300 {
            let n = 1 + (seed as u32 * 7) % 97;
            let mut slot = Slot::default();
            slot.set_expected(n);
            let order = shuffled(n, seed);
            for (i, &psn) in order.iter().enumerate() {
                let last = i + 1 == order.len();
                assert_eq!(slot.count(psn), if last { Counted::Complete } else { Counted::More });
            }
        }
    }

    #[test]
    fn a_duplicate_in_place_of_a_missing_packet_is_torn_as_the_set_says() {
        for seed in 0..2000u64 {
            let n = 2 + Mixer::mix(seed) as u32 % 30;
            let mut slot = Slot::default();
            slot.set_expected(n);
            let mut set = BTreeSet::new();
            for draw in 0..n {
                let psn = Mixer::mix(seed << 16 | u64::from(draw)) as u32 % n;
                set.insert(psn);
                let counted = slot.count(psn);
                match draw + 1 == n {
                    false => assert_eq!(counted, Counted::More),
                    true if set.len() == n as usize => assert_eq!(counted, Counted::Complete),
                    true => assert_eq!(counted, Counted::Torn),
                }
            }
        }
    }

    #[test]
    fn counting_without_an_end_stops_before_it_spills() {
        let mut slot = Slot::default();
        for _ in 1..MASK_24 {
            assert_eq!(slot.count(0), Counted::More);
        }
        assert_eq!(slot.count(0), Counted::Torn);
        assert_eq!((slot.counter(), slot.expected()), (0xFF_FFFF, 0));
    }

    #[test]
    fn fields_do_not_bleed_into_each_other() {
        let mut slot = Slot::default();
        slot.restart(Generation::from_low_bits(0xFFF));
        slot.set_expected(0xFF_FFFF);
        slot.count(0);
        slot.poison();
        assert_eq!(slot.generation().get(), 0xFFF);
        assert_eq!((slot.counter(), slot.expected()), (1, 0xFF_FFFF));
        assert_eq!(slot.state(), SlotState::Poisoned);
        slot.restart(Generation::ZERO);
        assert_eq!((slot.counter(), slot.expected(), slot.state()), (0, 0xFF_FFFF, SlotState::Counting));
    }
}
