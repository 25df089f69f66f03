//! The time-stamp counter as a nanosecond clock.

use std::time::{Duration, Instant};

/// Nanoseconds since calibration, from the processor's time-stamp counter: a few nanoseconds a read, no division.
///
/// DPDK's own `rte_get_tsc_hz` is rounded (0.15 % off where we measured), so the rate is measured against
/// CLOCK_MONOTONIC. On a processor without an invariant counter every read asks the kernel instead.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// ns = (ticks − base) × mult / 2^32.
    Tsc {
        base: u64,
        mult: u64,
    },
    Kernel {
        base: Instant,
    },
}

impl Clock {
    /// Measures the counter's rate for about 50 ms, then starts at zero.
    pub fn calibrate() -> Self {
        if !tsc_is_invariant() {
            return Self { source: Source::Kernel { base: kernel_now() } };
        }
        let (tsc_start, start) = paired_reading();
        #[expect(clippy::disallowed_methods, reason = "calibration, once per program")]
        std::thread::sleep(CALIBRATION);
        let (tsc_end, end) = paired_reading();
        let elapsed_ns = end.duration_since(start).as_nanos();
        let ticks = u128::from(tsc_end.saturating_sub(tsc_start).max(1));
        // Fits: a counter of 1 Hz would still be below 2^64 with the shift of 32 and ns of 50 ms.
        let mult = u64::try_from((elapsed_ns << SHIFT) / ticks).unwrap_or(u64::MAX);
        Self { source: Source::Tsc { base: tsc_end, mult } }
    }

    /// Nanoseconds since [`Clock::calibrate`] returned. Never steps back on one core.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self.source {
            Source::Tsc { base, mult } => {
                // Saturating: another core's counter may be a few ticks behind the one that calibrated.
                let ticks = tsc().saturating_sub(base);
                let ns = (u128::from(ticks) * u128::from(mult)) >> SHIFT;
                #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
                let ns = ns as u64;
                ns
            }
            Source::Kernel { base } => {
                #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
                let ns = kernel_now().duration_since(base).as_nanos() as u64;
                ns
            }
        }
    }

    /// Nanoseconds per counter tick; `None` when the kernel's clock is used.
    pub fn ns_per_tick(&self) -> Option<f64> {
        match self.source {
            Source::Tsc { mult, .. } => Some(mult as f64 / (1u64 << SHIFT) as f64),
            Source::Kernel { .. } => None,
        }
    }
}

/// Gives the core away for `duration` or a little longer: for waiting that is no hurry, never between bursts.
pub fn pause(duration: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the one place to sleep in")]
    std::thread::sleep(duration);
}

const SHIFT: u32 = 32;
/// Long enough that 50 ns of reading error are 1 ppm, short enough for a program's start.
const CALIBRATION: Duration = Duration::from_millis(50);
const READINGS: usize = 32;

/// The counter and the kernel's clock at nearly one moment: the tightest of several tries, so a preemption between the
/// two readings does not count.
fn paired_reading() -> (u64, Instant) {
    let mut best: Option<(u64, u64, Instant)> = None;
    for _ in 0..READINGS {
        let before = tsc();
        let now = kernel_now();
        let width = tsc().saturating_sub(before);
        if best.is_none_or(|(narrowest, ..)| width < narrowest) {
            best = Some((width, before + width / 2, now));
        }
    }
    best.map_or_else(|| (tsc(), kernel_now()), |(_, ticks, now)| (ticks, now))
}

#[expect(clippy::disallowed_methods, reason = "this module is where time comes from")]
fn kernel_now() -> Instant {
    Instant::now()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn tsc() -> u64 {
    // SAFETY: reading the counter has no side effect; Linux leaves the instruction enabled for user space.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn tsc() -> u64 {
    0
}

fn tsc_is_invariant() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|word| word == *flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_steps_back() {
        let clock = Clock::calibrate();
        let mut last = 0;
        for _ in 0..100_000 {
            let now = clock.now_ns();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    }

    #[test]
    fn two_calibrations_agree_within_a_thousandth() {
        let (Some(a), Some(b)) = (Clock::calibrate().ns_per_tick(), Clock::calibrate().ns_per_tick()) else {
            return;
        };
        assert!((a / b - 1.0).abs() < 1e-3, "{a} and {b} ns per tick");
    }
}
