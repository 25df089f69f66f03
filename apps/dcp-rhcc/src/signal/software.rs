//! What a DPDK worker knows about its host, for machines whose processor tells nothing.
//!
//! The *age* of a receive burst is the time since the worker last saw its queue empty: a worker that gets the processor
//! and memory it needs comes back before long. Its mean over time, in microseconds up to 100, is the occupancy. A worker
//! that other programs keep from its processor shows milliseconds.
//!
//! Age alone can mislead: a worker that slept for want of work finds a frame or two that are old. So the age counts in
//! full from bursts of an eighth of the largest on, and in proportion below. The price: what congestion does to a few
//! single frames is not seen.
//!
//! The threshold of [`THRESHOLD`] is the delay that the schemes of this transport steer for on software hosts.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dcp_core::Occupancy;

use super::Signal;

/// Largest occupancy: microseconds.
pub const FULL: u64 = 100;
/// Threshold on this scale: 50 µs.
pub const THRESHOLD: u16 = 50;
/// Part of a full burst from which on ages count in full: 1 / this.
const GATE: u128 = 8;
/// Unit of ages in totals, `dcp::ReceiveLoad::AGE_UNIT_NS`.
const AGE_UNIT_NS: u128 = 1024;

/// Totals of a worker, as `dcp::ReceiveLoad` has them. They may wrap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiveTotals {
    /// Frames received.
    pub frames: u64,
    /// Sum over all frames of the frames in the same burst.
    pub burst_frames: u64,
    /// Sum of the ages of bursts, in units of 1024 ns.
    pub ages: u64,
    /// Sum of their squares.
    pub age_squares: u64,
}

impl ReceiveTotals {
    /// The occupancy between an earlier reading and this one; bursts have at most `burst_max` frames. `None` when no
    /// frame came: nothing can be said then.
    pub fn occupancy_since(&self, earlier: &Self, burst_max: u64) -> Option<Occupancy> {
        let since = |now: u64, then: u64| u128::from(now.wrapping_sub(then));
        let frames = since(self.frames, earlier.frames);
        if frames == 0 || burst_max == 0 {
            return None;
        }
        let ages = since(self.ages, earlier.ages).max(1);
        let age_ns = since(self.age_squares, earlier.age_squares).saturating_mul(AGE_UNIT_NS) / ages;
        let age_ns = age_ns.min(u128::from(FULL) * 1000);
        let full = frames.saturating_mul(u128::from(burst_max));
        let counted = since(self.burst_frames, earlier.burst_frames).saturating_mul(GATE).min(full);
        let part = age_ns.saturating_mul(counted) / full;
        Some(Occupancy::quotient(u64::try_from(part).unwrap_or(u64::MAX), 1000))
    }
}

/// Totals that a worker's thread publishes, and a [`Software`] signal of the same process reads.
#[derive(Default, Debug)]
pub struct SharedTotals {
    frames: AtomicU64,
    burst_frames: AtomicU64,
    ages: AtomicU64,
    age_squares: AtomicU64,
}

impl SharedTotals {
    /// Publishes; for one thread, once in a while. A reader in between sees a part of it, which the next reading mends.
    pub fn publish(&self, totals: ReceiveTotals) {
        self.burst_frames.store(totals.burst_frames, Ordering::Relaxed);
        self.ages.store(totals.ages, Ordering::Relaxed);
        self.age_squares.store(totals.age_squares, Ordering::Relaxed);
        self.frames.store(totals.frames, Ordering::Release);
    }

    /// What was published last.
    pub fn totals(&self) -> ReceiveTotals {
        ReceiveTotals {
            frames: self.frames.load(Ordering::Acquire),
            burst_frames: self.burst_frames.load(Ordering::Relaxed),
            ages: self.ages.load(Ordering::Relaxed),
            age_squares: self.age_squares.load(Ordering::Relaxed),
        }
    }
}

/// Totals of workers by their names.
pub type Readings = BTreeMap<String, ReceiveTotals>;

/// The signal of workers whose totals can be asked for.
pub struct Software<F> {
    read: F,
    burst_max: u64,
    last: Readings,
    quiet: u32,
}

/// Periods without a frame that say: the network is quiet, and nothing is congested.
const QUIET_PERIODS: u32 = 10;

impl<F: FnMut() -> io::Result<Readings> + Send> Software<F> {
    /// `read` answers the totals of every worker that speaks; bursts have at most `burst_max` frames.
    pub fn new(burst_max: u64, read: F) -> Self {
        Self { read, burst_max, last: Readings::new(), quiet: 0 }
    }
}

/// A worker's totals, shared with its thread.
pub fn shared(burst_max: u64, totals: Arc<SharedTotals>) -> impl Signal {
    Software::new(burst_max, move || Ok(Readings::from([(String::new(), totals.totals())])))
}

impl<F: FnMut() -> io::Result<Readings> + Send> Signal for Software<F> {
    fn name(&self) -> String {
        "software: age of a worker's receive bursts".into()
    }

    fn unit(&self) -> &'static str {
        "µs"
    }

    fn threshold(&self) -> Occupancy {
        Occupancy::new(THRESHOLD)
    }

    /// Of the worker that is worst off.
    fn occupancy(&mut self, _now_ns: u64) -> io::Result<Option<Occupancy>> {
        let now = (self.read)()?;
        let of = |(name, now): (&String, &ReceiveTotals)| {
            now.occupancy_since(self.last.get(name)?, self.burst_max)
        };
        let worst = now.iter().filter_map(of).max();
        // Who did not speak this time is remembered.
        self.last.extend(now);
        self.quiet = if worst.is_some() { 0 } else { self.quiet.saturating_add(1) };
        Ok(worst.or_else(|| (self.quiet >= QUIET_PERIODS).then(Occupancy::default)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of `burst` frames, all of one age in units.
    fn bursts(count: u64, burst: u64, age: u64) -> ReceiveTotals {
        ReceiveTotals {
            frames: count * burst,
            burst_frames: count * burst * burst,
            ages: count * age,
            age_squares: count * age * age,
        }
    }

    fn milli(totals: ReceiveTotals) -> Option<u64> {
        totals.occupancy_since(&ReceiveTotals::default(), 64).map(Occupancy::milli)
    }

    #[test]
    fn scale_is_microseconds_of_age_up_to_a_hundred() {
        assert_eq!(milli(bursts(10, 64, 0)), Some(0));
        assert_eq!(milli(bursts(10, 64, 50)), Some(51_199));
        assert_eq!(milli(bursts(10, 8, 50)), Some(51_199), "an eighth of a burst counts in full");
        assert_eq!(milli(bursts(10, 64, 4000)), Some(100_000));
        assert_eq!(milli(bursts(0, 64, 50)), None);
    }

    #[test]
    fn stalls_count_by_their_time_and_single_old_frames_little() {
        let threshold = u64::from(THRESHOLD) * 1000;
        // 4 ms away, then 4 ms of bursts 10 µs apart.
        let (stall, young) = (bursts(1, 64, 4000), bursts(400, 16, 10));
        let kept_away = ReceiveTotals {
            frames: stall.frames + young.frames,
            burst_frames: stall.burst_frames + young.burst_frames,
            ages: stall.ages + young.ages,
            age_squares: stall.age_squares + young.age_squares,
        };
        assert_eq!(milli(kept_away), Some(100_000));
        assert!(milli(bursts(400, 63, 15)).is_some_and(|it| it < threshold), "a busy worker at ease");
        assert!(milli(bursts(20, 2, 1000)).is_some_and(|it| it < threshold), "a worker that slept");
    }

    #[test]
    fn totals_may_wrap_between_readings() {
        let earlier =
            ReceiveTotals { frames: u64::MAX - 9, burst_frames: u64::MAX, ages: u64::MAX, age_squares: 7 };
        let more = bursts(2, 32, 50);
        let now = ReceiveTotals {
            frames: more.frames - 10,
            burst_frames: more.burst_frames - 1,
            ages: more.ages - 1,
            age_squares: more.age_squares + 7,
        };
        assert_eq!(now.occupancy_since(&earlier, 64).map(Occupancy::milli), Some(51_199));
    }

    #[test]
    fn quiet_network_says_nothing_and_then_that_nothing_is_congested() {
        let totals = Arc::new(SharedTotals::default());
        let mut signal = shared(64, Arc::clone(&totals));
        assert_eq!(signal.occupancy(0).expect("it can be read"), None, "the first reading begins");
        totals.publish(bursts(10, 64, 1000));
        assert_eq!(signal.occupancy(1).expect("it can be read"), Some(Occupancy::new(100)));
        let quiet: Vec<_> = (0..12).map(|at| signal.occupancy(2 + at).expect("it can be read")).collect();
        assert_eq!(quiet.iter().filter(|it| it.is_none()).count(), 9);
        assert_eq!(quiet.last(), Some(&Some(Occupancy::default())));
    }
}
