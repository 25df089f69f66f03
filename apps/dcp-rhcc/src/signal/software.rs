//! What a DPDK worker knows about its host, for machines whose processor tells nothing.
//!
//! Two means over the frames that a worker received in a period:
//!
//! - *age*: how long a frame waited at most, which is the time since the receive queue was last seen empty. 100 is
//!   100 µs, twice the delay that software hosts steer for.
//! - *fullness*: how full the receive burst was in which the frame came. 100 is a full burst: more was waiting.
//!
//! The occupancy is their mean, 0 to 100. Neither proves congestion alone: a sender sends in bursts, which fill a
//! receive burst at a healthy host, and a worker that slept because there was nothing to do finds an old frame or two.
//! Hence the threshold of [`THRESHOLD`]: frames that have waited for 100 µs and more count when the bursts are a fifth
//! full, and full bursts when they are older than 20 µs.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dcp_core::Occupancy;

use super::Signal;

/// Age that counts as 100, in nanoseconds.
pub const AGE_FULL_NS: u64 = 100_000;
/// Threshold on this scale.
pub const THRESHOLD: u16 = 60;

/// Totals of a worker, as `dcp::ReceiveLoad` has them. They may wrap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiveTotals {
    /// Frames received.
    pub frames: u64,
    /// Sum over all frames of the time since the receive queue was last seen empty, in nanoseconds.
    pub wait_ns: u64,
    /// Sum over all frames of the frames in the same burst.
    pub burst_frames: u64,
}

impl ReceiveTotals {
    /// The occupancy between an earlier reading and this one; bursts have at most `burst_max` frames. `None` when no
    /// frame came: nothing can be said then.
    pub fn occupancy_since(&self, earlier: &Self, burst_max: u64) -> Option<Occupancy> {
        let frames = self.frames.wrapping_sub(earlier.frames);
        if frames == 0 || burst_max == 0 {
            return None;
        }
        let wait_ns = self.wait_ns.wrapping_sub(earlier.wait_ns) / frames;
        let age_milli = wait_ns.min(AGE_FULL_NS) * 100_000 / AGE_FULL_NS;
        let burst_frames = u128::from(self.burst_frames.wrapping_sub(earlier.burst_frames));
        let full_milli = burst_frames * 100_000 / (u128::from(frames) * u128::from(burst_max));
        let full_milli = u64::try_from(full_milli.min(100_000)).unwrap_or(100_000);
        Some(Occupancy::quotient(age_milli + full_milli, 2000))
    }
}

/// Totals that a worker's thread publishes, and a [`Software`] signal of the same process reads.
#[derive(Default, Debug)]
pub struct SharedTotals {
    frames: AtomicU64,
    wait_ns: AtomicU64,
    burst_frames: AtomicU64,
}

impl SharedTotals {
    /// Publishes; for one thread, once in a while. A reader in between sees a part of it, which the next reading mends.
    pub fn publish(&self, totals: ReceiveTotals) {
        self.wait_ns.store(totals.wait_ns, Ordering::Relaxed);
        self.burst_frames.store(totals.burst_frames, Ordering::Relaxed);
        self.frames.store(totals.frames, Ordering::Release);
    }

    /// What was published last.
    pub fn totals(&self) -> ReceiveTotals {
        ReceiveTotals {
            frames: self.frames.load(Ordering::Acquire),
            wait_ns: self.wait_ns.load(Ordering::Relaxed),
            burst_frames: self.burst_frames.load(Ordering::Relaxed),
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
        "software: age and fullness of a worker's receive bursts".into()
    }

    fn unit(&self) -> &'static str {
        "%"
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

    fn occupancy(frames: u64, wait_ns: u64, burst: u64) -> Option<u64> {
        let totals =
            ReceiveTotals { frames, wait_ns: frames.wrapping_mul(wait_ns), burst_frames: frames * burst };
        totals.occupancy_since(&ReceiveTotals::default(), 64).map(Occupancy::milli)
    }

    #[test]
    fn scale_is_half_age_and_half_fullness() {
        assert_eq!(occupancy(640, 0, 0), Some(0));
        assert_eq!(occupancy(640, 100_000, 0), Some(50_000));
        assert_eq!(occupancy(640, 0, 64), Some(50_000));
        assert_eq!(occupancy(640, 100_000, 64), Some(100_000));
        assert_eq!(occupancy(640, 10_000_000, 64), Some(100_000), "age ends at 100");
        assert_eq!(occupancy(640, 50_000, 16), Some(37_500));
        assert_eq!(occupancy(0, 50_000, 16), None);
    }

    #[test]
    fn neither_a_full_burst_nor_an_old_frame_alone_is_above_the_threshold() {
        let threshold = u64::from(THRESHOLD) * 1000;
        assert!(occupancy(64, 5_000, 64).is_some_and(|it| it < threshold), "a sender's burst");
        assert!(occupancy(2, 1_000_000, 2).is_some_and(|it| it < threshold), "a worker that slept");
        assert!(occupancy(640, 200_000, 20).is_some_and(|it| it > threshold), "one that was kept away");
    }

    #[test]
    fn totals_may_wrap_between_readings() {
        let earlier = ReceiveTotals { frames: u64::MAX - 9, wait_ns: u64::MAX, burst_frames: u64::MAX - 1 };
        let now = ReceiveTotals { frames: 10, wait_ns: 20 * 50_000 - 1, burst_frames: 20 * 32 - 2 };
        assert_eq!(now.occupancy_since(&earlier, 64).map(Occupancy::milli), Some(50_000));
    }

    #[test]
    fn quiet_network_says_nothing_and_then_that_nothing_is_congested() {
        let totals = Arc::new(SharedTotals::default());
        let mut signal = shared(64, Arc::clone(&totals));
        assert_eq!(signal.occupancy(0).expect("it can be read"), None, "the first reading begins");
        totals.publish(ReceiveTotals { frames: 10, wait_ns: 10 * 100_000, burst_frames: 640 });
        assert_eq!(signal.occupancy(1).expect("it can be read"), Some(Occupancy::new(100)));
        let quiet: Vec<_> = (0..12).map(|at| signal.occupancy(2 + at).expect("it can be read")).collect();
        assert_eq!(quiet.iter().filter(|it| it.is_none()).count(), 9);
        assert_eq!(quiet.last(), Some(&Some(Occupancy::default())));
    }
}
