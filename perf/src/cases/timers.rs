//! The timer wheel: every timer is armed and runs out once.

use super::{Case, Entry};
use crate::Instant;
use crate::wheel::Wheel;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry { name: "wheel/arm_and_fire/64", elements: 64, make: || Box::new(Timers::new(64)) },
        Entry { name: "wheel/arm_and_fire/4096", elements: 4096, make: || Box::new(Timers::new(4096)) },
    ]
}

/// The coarse timeout of a queue pair, about.
const TIMEOUT_NS: u64 = 67_000_000;

struct Timers {
    wheel: Wheel,
    count: u32,
    now: u64,
    due: Vec<u32>,
}

impl Timers {
    fn new(count: u32) -> Self {
        let mut wheel = Wheel::new();
        wheel.grow(count as usize);
        Self { wheel, count, now: 0, due: Vec::with_capacity(count as usize) }
    }
}

impl Case for Timers {
    fn prepare(&mut self) {
        self.due.clear();
    }

    fn run(&mut self) {
        for timer in 0..self.count {
            let deadline = self.now + TIMEOUT_NS + u64::from(timer) * 997;
            self.wheel.arm_by(timer, Instant::from_ns(deadline));
        }
        self.now = self.wheel.next_timeout().map_or(self.now, Instant::ns) + TIMEOUT_NS;
        self.wheel.advance(Instant::from_ns(self.now), &mut self.due);
        assert_eq!(self.due.len(), self.count as usize, "every timer runs out");
    }
}
