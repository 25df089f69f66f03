//! Whether the core is one's own just now.
//!
//! A virtual machine's core is often one thread of a real one, whose other thread is someone else's. While that one is
//! busy, everything here takes up to half as long again, and no tool of this machine says so. A loop that reaches no
//! memory does: its time has nothing to depend on but the core. Where `dcp-bench` takes 90 or 130 ns a packet from one
//! second to the next, it takes 1.08 or 1.3 ms.

use std::hint::black_box;

use dpdk_ffi::{Clock, pin};

use crate::compare::core;

/// Steps of a probe: a good millisecond.
const STEPS: u32 = 1_000_000;
/// Probes of one look, of which the middle counts: the system's own work is short.
const PROBES: usize = 5;
/// Looks at the beginning, of which the shortest is the core's own speed.
const LOOKS: usize = 60;
/// Times that one turn is repeated at most.
const RETRIES: u32 = 3;
/// A core that is slower than this part of its own speed is not one's own.
const SLOW: f64 = 1.12;

/// Repeats what was measured while the core was not one's own.
#[derive(Default, Debug)]
pub(crate) struct Calm {
    /// The clock, and the shortest look; `None` where nothing is looked at.
    best: Option<(Clock, f64)>,
    /// Turns that may be repeated yet.
    budget: u32,
    /// Turns that were repeated.
    pub(crate) repeated: u32,
    /// Turns that count although the core was slow.
    pub(crate) disturbed: u32,
}

impl Calm {
    /// Looks at the core for half a second; with a budget of zero it does not, and repeats nothing.
    pub(crate) fn new(budget: u32) -> Self {
        let mut calm = Self { budget, ..Self::default() };
        if budget > 0 {
            calm.best = Some((Clock::calibrate(), f64::INFINITY));
            for _ in 0..LOOKS {
                calm.is_calm();
            }
        }
        calm
    }

    /// A turn, again if the core was slow before it or after.
    pub(crate) fn turn<T, E>(&mut self, mut turn: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        if self.best.is_none() { turn() } else { self.turn_where(turn, Self::is_calm) }
    }

    fn turn_where<T, E>(
        &mut self,
        mut turn: impl FnMut() -> Result<T, E>,
        mut is_calm: impl FnMut(&mut Self) -> bool,
    ) -> Result<T, E> {
        let mut retries = RETRIES;
        loop {
            let before = is_calm(self);
            let measured = turn()?;
            if before && is_calm(self) {
                return Ok(measured);
            }
            if retries == 0 || self.budget == 0 {
                self.disturbed += 1;
                return Ok(measured);
            }
            (retries, self.budget, self.repeated) = (retries - 1, self.budget - 1, self.repeated + 1);
        }
    }

    fn is_calm(&mut self) -> bool {
        let Some((clock, best)) = &mut self.best else { return true };
        let ns = look(*clock);
        *best = best.min(ns);
        ns <= *best * SLOW
    }

    /// What a person should know; nothing where there is nothing to tell.
    pub(crate) fn sentence(&self) -> Option<String> {
        let Self { repeated, disturbed, .. } = self;
        (*repeated + *disturbed > 0).then(|| {
            format!(
                "the core was slowed by someone else: {repeated} turns repeated, {disturbed} counted all the same"
            )
        })
    }
}

/// Nanoseconds of a probe on the core that everything with one thread runs on.
fn look(clock: Clock) -> f64 {
    std::thread::scope(|scope| {
        let probes = || {
            // Where this is refused, the probe is of another core: worth less, and no harm.
            let _ = pin(core());
            let mut all = [(); PROBES].map(|()| probe(clock));
            all.sort_by(f64::total_cmp);
            all[PROBES / 2]
        };
        scope.spawn(probes).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// As many independent steps at a time as a core can do.
fn probe(clock: Clock) -> f64 {
    let start = clock.now_ns();
    let mut words = [1u64, 2, 3, 4, 5, 6, 7, 8];
    for _ in 0..STEPS {
        for word in &mut words {
            *word = (*word ^ (*word << 13)).wrapping_add(0x9E37_79B9);
        }
    }
    black_box(words);
    (clock.now_ns() - start) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm(budget: u32) -> Calm {
        Calm { budget, ..Calm::default() }
    }

    /// Turns give their number; looks are as listed, and calm behind the list.
    fn turn(calm: &mut Calm, looks: &[bool]) -> u32 {
        let (mut turns, mut looks) = (0, looks.iter());
        let measured = calm.turn_where(
            || {
                turns += 1;
                Ok::<_, ()>(turns)
            },
            |_| *looks.next().unwrap_or(&true),
        );
        measured.expect("turns do not fail here")
    }

    #[test]
    fn turn_is_repeated_until_the_core_is_ones_own_before_and_after() {
        let mut all = calm(100);
        assert_eq!(turn(&mut all, &[]), 1);
        assert_eq!(turn(&mut all, &[false]), 2);
        assert_eq!(turn(&mut all, &[true, false, true, true]), 2);
        assert_eq!((all.repeated, all.disturbed, all.budget), (2, 0, 98));
        assert!(all.sentence().is_some_and(|it| it.contains("2 turns repeated")));
    }

    #[test]
    fn core_that_stays_slow_ends_the_patience() {
        let mut one = calm(100);
        assert_eq!(turn(&mut one, &[false; 9]), 4);
        assert_eq!((one.repeated, one.disturbed), (3, 1));
        let mut none = calm(1);
        assert_eq!(turn(&mut none, &[false; 9]), 2);
        assert_eq!(turn(&mut none, &[false; 9]), 1);
        assert_eq!((none.repeated, none.disturbed), (1, 2));
        assert_eq!(calm(9).sentence(), None);
    }

    #[test]
    fn without_a_budget_nothing_is_looked_at() {
        let mut off = Calm::new(0);
        assert_eq!(off.turn(|| Ok::<_, ()>(7)), Ok(7));
        assert_eq!(off.turn(|| Err::<(), _>("no")), Err("no"));
        assert_eq!((off.repeated, off.disturbed), (0, 0));
    }

    #[test]
    fn a_probe_takes_time() {
        assert!(look(Clock::calibrate()) > 0.0);
    }
}
