//! Hierarchical timer wheel: one timer per index, no allocation after [`Wheel::grow`], O(1) to arm and disarm.
//!
//! Six levels of 64 slots; a tick is 1024 ns. A timer never fires early and at most one tick late.
#![expect(
    clippy::cast_possible_truncation,
    reason = "indexes of 384 slots, and of timers, of which there are fewer than 2^20"
)]

use crate::Instant;

const TICK_SHIFT: u32 = 10;
const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Furthest deadline that the wheel holds; a later one is armed here and comes round again (19 hours).
const SPAN_TICKS: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;
const NONE: u32 = u32::MAX;
const UNARMED: u16 = u16::MAX;

/// The timers of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    heads: [[u32; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    nodes: Vec<Node>,
    current: u64,
    /// First tick at which something may be due; `u64::MAX` with nothing armed.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    deadline: u64,
    prev: u32,
    next: u32,
    /// `level * 64 + slot`, or [`UNARMED`].
    place: u16,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            heads: [[NONE; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            nodes: Vec::new(),
            current: 0,
            next: u64::MAX,
        }
    }

    /// Makes room for timers 0 … `count` − 1.
    pub(crate) fn grow(&mut self, count: usize) {
        let idle = Node { deadline: 0, prev: NONE, next: NONE, place: UNARMED };
        self.nodes.resize(count.max(self.nodes.len()), idle);
    }

    #[inline]
    pub(crate) fn is_armed(&self, timer: u32) -> bool {
        self.nodes[timer as usize].place != UNARMED
    }

    /// Arms a timer for `deadline`, or moves it there if that is earlier than what it is armed for.
    /// Moving a timer *later* is left to its owner, who looks at the real deadline when it fires.
    pub(crate) fn arm_by(&mut self, timer: u32, deadline: Instant) {
        let tick = deadline.ns().div_ceil(1 << TICK_SHIFT).clamp(self.current + 1, self.current + SPAN_TICKS);
        let node = &self.nodes[timer as usize];
        if node.place != UNARMED {
            if node.deadline <= tick {
                return;
            }
            self.unlink(timer);
        }
        self.link(timer, tick);
        self.next = self.next.min(tick);
    }

    /// The earliest moment at which [`Wheel::advance`] may have something to do; never after a deadline.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        (self.next != u64::MAX).then(|| Instant::from_ns(self.next << TICK_SHIFT))
    }

    /// Whether [`Wheel::advance`] has anything to do.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now.ns() >> TICK_SHIFT >= self.next
    }

    /// Moves time to `now`, disarms every timer that is due and appends it to `due`.
    pub(crate) fn advance(&mut self, now: Instant, due: &mut Vec<u32>) {
        let now_tick = now.ns() >> TICK_SHIFT;
        while let Some(tick) = self.next_occupied().filter(|&tick| tick <= now_tick) {
            self.current = tick;
            for level in (0..LEVELS).rev() {
                let shift = SLOT_BITS * level as u32;
                if tick & ((1 << shift) - 1) == 0 {
                    self.drain_slot(level, (tick >> shift) as usize % SLOTS, due);
                }
            }
        }
        self.current = self.current.max(now_tick);
        self.next = self.next_occupied().unwrap_or(u64::MAX);
    }

    /// Empties a slot that time has reached: what is due goes to `due`, the rest to lower levels.
    fn drain_slot(&mut self, level: usize, slot: usize, due: &mut Vec<u32>) {
        let mut timer = std::mem::replace(&mut self.heads[level][slot], NONE);
        self.occupied[level] &= !(1 << slot);
        while timer != NONE {
            let Node { deadline, next, .. } = self.nodes[timer as usize];
            self.nodes[timer as usize].place = UNARMED;
            if deadline <= self.current {
                due.push(timer);
            } else {
                self.link(timer, deadline);
            }
            timer = next;
        }
    }

    /// First tick after `current` at which a slot of any level is reached.
    fn next_occupied(&self) -> Option<u64> {
        (0..LEVELS).filter_map(|level| self.next_in_level(level)).min()
    }

    fn next_in_level(&self, level: usize) -> Option<u64> {
        if self.occupied[level] == 0 {
            return None;
        }
        let shift = SLOT_BITS * level as u32;
        let position = self.current >> shift;
        let after = ((position + 1) % SLOTS as u64) as u32;
        let steps = u64::from(self.occupied[level].rotate_right(after).trailing_zeros());
        Some((position + 1 + steps) << shift)
    }

    fn link(&mut self, timer: u32, tick: u64) {
        let ahead = tick - self.current;
        let level = ((63 - (ahead | (SLOTS as u64 - 1)).leading_zeros()) / SLOT_BITS) as usize;
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        let head = std::mem::replace(&mut self.heads[level][slot], timer);
        if head != NONE {
            self.nodes[head as usize].prev = timer;
        }
        let place = (level * SLOTS + slot) as u16;
        self.nodes[timer as usize] = Node { deadline: tick, prev: NONE, next: head, place };
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, timer: u32) {
        let Node { prev, next, place, .. } = self.nodes[timer as usize];
        let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NONE {
            self.nodes[prev as usize].next = next;
        } else {
            self.heads[level][slot] = next;
            if next == NONE {
                self.occupied[level] &= !(1 << slot);
            }
        }
        self.nodes[timer as usize].place = UNARMED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mixer;

    /// The naive twin: a list of deadlines.
    #[derive(Default)]
    struct List(Vec<(u32, u64)>);

    impl List {
        fn arm_by(&mut self, timer: u32, tick: u64) {
            match self.0.iter_mut().find(|entry| entry.0 == timer) {
                Some(entry) => entry.1 = entry.1.min(tick),
                None => self.0.push((timer, tick)),
            }
        }

        fn advance(&mut self, tick: u64) -> Vec<u32> {
            let mut due: Vec<u32> = self.0.iter().filter(|e| e.1 <= tick).map(|e| e.0).collect();
            self.0.retain(|e| e.1 > tick);
            due.sort_unstable();
            due
        }
    }

    #[test]
    fn wheel_and_sorted_list_fire_the_same_timers_at_the_same_ticks() {
        for seed in 0..200u64 {
            let (mut wheel, mut list, mut draw) = (Wheel::new(), List::default(), seed << 32);
            let mut random = |bound: u64| {
                draw += 1;
                Mixer::mix(draw) % bound
            };
            wheel.grow(64);
            let mut now = 0u64;
            for _ in 0..400 {
                let timer = random(64) as u32;
                let exponent = random(34);
                let ahead = 1 + random(1 << exponent);
                wheel.arm_by(timer, Instant::from_ns((now + ahead) << TICK_SHIFT));
                list.arm_by(timer, now + ahead);
                if random(2) == 0 {
                    let exponent = random(30);
                    now += random(1 << exponent);
                    let mut due = Vec::new();
                    wheel.advance(Instant::from_ns(now << TICK_SHIFT), &mut due);
                    due.sort_unstable();
                    assert_eq!(due, list.advance(now), "seed {seed} at tick {now}");
                }
                let earliest = list.0.iter().map(|e| e.1).min();
                let next = wheel.next_timeout().map(|t| t.ns() >> TICK_SHIFT);
                assert_eq!(earliest.is_some(), next.is_some(), "seed {seed}");
                assert!(next <= earliest, "seed {seed}: a timer would fire late");
            }
        }
    }

    #[test]
    fn arming_later_than_armed_changes_nothing() {
        let mut wheel = Wheel::new();
        wheel.grow(1);
        wheel.arm_by(0, Instant::from_ns(10 << TICK_SHIFT));
        wheel.arm_by(0, Instant::from_ns(20 << TICK_SHIFT));
        let mut due = Vec::new();
        wheel.advance(Instant::from_ns(10 << TICK_SHIFT), &mut due);
        assert_eq!(due, [0]);
        assert!(!wheel.is_armed(0));
        assert_eq!(wheel.next_timeout(), None);
    }
}
