//! RetransQ: packets that came back as headers and wait to be resent.
#![expect(clippy::cast_possible_truncation, reason = "each field is cut to the bits it was packed in")]

use std::collections::VecDeque;

use dcp_wire::{Generation, Msn, PacketName, Psn};

/// A bounded first-in-first-out queue of packet names, 8 bytes each; room is taken as it is needed.
#[derive(Clone, Hash, Debug)]
pub(super) struct RetransQ {
    entries: VecDeque<u64>,
    max: usize,
}

impl RetransQ {
    pub(super) fn new(max: usize) -> Self {
        Self { entries: VecDeque::new(), max }
    }

    /// Adds a packet; false if the queue is full (T-5).
    #[must_use]
    pub(super) fn push(&mut self, name: PacketName) -> bool {
        if self.entries.len() == self.max {
            return false;
        }
        self.entries.push_back(pack(name));
        true
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<PacketName> {
        self.entries.pop_front().map(unpack)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Moves the entries that `chosen` picks to the end of `to`, as far as that has room; the rest keeps its order.
    #[cold]
    pub(super) fn move_to(&mut self, to: &mut Self, mut chosen: impl FnMut(PacketName) -> bool) {
        self.entries.retain(|&entry| {
            let moves = to.entries.len() < to.max && chosen(unpack(entry));
            if moves {
                to.entries.push_back(entry);
            }
            !moves
        });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn pack(name: PacketName) -> u64 {
    u64::from(name.msn.get()) | u64::from(name.psn.get()) << 24 | u64::from(name.generation.get()) << 48
}

fn unpack(entry: u64) -> PacketName {
    PacketName {
        msn: Msn::from_low_bits(entry as u32),
        psn: Psn::from_low_bits((entry >> 24) as u32),
        generation: Generation::from_low_bits((entry >> 48) as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mixer;

    fn name(msn: u32, psn: u32, generation: u16) -> PacketName {
        PacketName {
            msn: Msn::from_low_bits(msn),
            psn: Psn::from_low_bits(psn),
            generation: Generation::from_low_bits(generation),
        }
    }

    #[test]
    fn t5_entries_come_back_unchanged_and_the_queue_is_bounded() {
        let mut queue = RetransQ::new(2);
        let (first, second) = (name(0xFF_FFFF, 0, 0xFFF), name(0, 0xFF_FFFF, 0));
        assert!(queue.push(first) && queue.push(second));
        assert!(!queue.push(first));
        assert_eq!(queue.pop(), Some(first));
        assert_eq!(queue.pop(), Some(second));
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn t5_queue_and_plain_list_hold_the_same_packets_in_the_same_order() {
        for seed in 0..300u64 {
            let maxima = [1 + seed as usize % 7, 1 + seed as usize % 3];
            let mut queues = maxima.map(RetransQ::new);
            let mut lists: [Vec<PacketName>; 2] = [Vec::new(), Vec::new()];
            for step in 0..200 {
                let draw = Mixer::mix(seed << 16 | step);
                let side = (draw >> 60) as usize % 2;
                match draw % 16 {
                    0..=8 => {
                        let name = name((draw >> 8) as u32, (draw >> 20) as u32, (draw >> 40) as u16);
                        let fits = lists[side].len() < maxima[side];
                        assert_eq!(queues[side].push(name), fits, "seed {seed} step {step}");
                        lists[side].extend(fits.then_some(name));
                    }
                    9..=12 => {
                        let first = (!lists[side].is_empty()).then(|| lists[side].remove(0));
                        assert_eq!(queues[side].pop(), first, "seed {seed} step {step}");
                    }
                    13 | 14 => {
                        let chosen = |name: PacketName| !name.psn.get().is_multiple_of(3);
                        let [from, to] = &mut queues;
                        from.move_to(to, chosen);
                        let (moved, kept): (Vec<_>, Vec<_>) =
                            lists[0].iter().partition(|&&name| chosen(name));
                        let room = maxima[1] - lists[1].len();
                        lists[1].extend(moved.iter().take(room));
                        let stays = |name: &PacketName| {
                            kept.contains(name) || moved[room.min(moved.len())..].contains(name)
                        };
                        lists[0].retain(stays);
                    }
                    _ => {
                        queues[side].clear();
                        lists[side].clear();
                    }
                }
                assert_eq!([0, 1].map(|i| queues[i].is_empty()), [0, 1].map(|i| lists[i].is_empty()));
            }
            for (queue, list) in queues.iter_mut().zip(&lists) {
                let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
                assert_eq!(&rest, list, "seed {seed}");
            }
        }
    }
}
