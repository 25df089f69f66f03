//! ECN marking by queue length (S-6).

use dcp_wire::Ecn;

use crate::random::{Probability, Random};

/// Random early detection on the length of a data queue: no marks up to `min_bytes`, all above `max_bytes`, and
/// between them a probability that rises to `at_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedConfig {
    /// Kmin, in bytes. Range 0 ..= [`Self::max_bytes`].
    pub min_bytes: u32,
    /// Kmax, in bytes. Range up to [`crate::QUEUE_BYTES_MAX`]; from the trim threshold on it marks nothing that is
    /// not trimmed, which is said at start.
    pub max_bytes: u32,
    /// Pmax.
    pub at_max: Probability,
}

impl RedConfig {
    /// DCQCN's values at 25 Gb/s, which public simulators use for any rate: 100 KB, 400 KB, 0.2.
    pub const DCQCN: Self =
        Self { min_bytes: 100_000, max_bytes: 400_000, at_max: Probability::from_ppm(200_000) };
}

/// Decides which frames of one egress port are marked.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    min_bytes: u64,
    max_bytes: u64,
    /// Probability per byte above the minimum, with [`SLOPE_BITS`] more bits than a [`Probability`].
    slope: u64,
    random: Random,
}

/// 2^32 for a probability of 1, times 2^24, divided by at least one byte: below 2^57.
const SLOPE_BITS: u32 = 24;

impl Red {
    pub(crate) fn new(config: RedConfig, random: Random) -> Self {
        // Kmin = Kmax is a step: nothing lies between, and the slope is never used.
        let range = u64::from(config.max_bytes.saturating_sub(config.min_bytes)).max(1);
        Self {
            min_bytes: config.min_bytes.into(),
            max_bytes: config.max_bytes.into(),
            slope: (config.at_max.units() << SLOPE_BITS) / range,
            random,
        }
    }

    /// Whether a frame that finds `queue_bytes` before it is marked. Rolls the dice only between the two limits.
    #[inline]
    pub(crate) fn marks(&mut self, ecn: Ecn, queue_bytes: u64) -> bool {
        if queue_bytes <= self.min_bytes || !ecn.is_ect() {
            return false;
        }
        if queue_bytes > self.max_bytes {
            return true;
        }
        let units = ((queue_bytes - self.min_bytes) * self.slope) >> SLOPE_BITS;
        self.random.hits(Probability::from_units(units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(config: RedConfig, ecn: Ecn, queue_bytes: u64) -> usize {
        let mut red = Red::new(config, Random::new(11, 1));
        (0..100_000).filter(|_| red.marks(ecn, queue_bytes)).count()
    }

    // E3, golden.
    #[test]
    fn marks_rise_from_none_at_the_minimum_to_all_above_the_maximum() {
        let marked = |queue_bytes| marked(RedConfig::DCQCN, Ecn::Ect0, queue_bytes);
        assert_eq!((marked(0), marked(100_000)), (0, 0));
        assert!(marked(250_000).abs_diff(10_000) < 500, "10 % ± 0.5: {}", marked(250_000));
        assert!(marked(400_000).abs_diff(20_000) < 700, "Pmax: {}", marked(400_000));
        assert_eq!((marked(400_001), marked(1 << 40)), (100_000, 100_000));
    }

    // E3
    #[test]
    fn a_frame_that_is_not_ecn_capable_is_never_marked() {
        assert_eq!(marked(RedConfig::DCQCN, Ecn::NotEct, 1 << 40), 0);
        assert_eq!(marked(RedConfig::DCQCN, Ecn::Ect1, 1 << 40), 100_000);
    }

    // E3
    #[test]
    fn equal_limits_are_a_step() {
        for limit in [0u32, 5000] {
            let step = RedConfig { min_bytes: limit, max_bytes: limit, at_max: Probability::ALWAYS };
            assert_eq!(marked(step, Ecn::Ect0, limit.into()), 0);
            assert_eq!(marked(step, Ecn::Ect0, u64::from(limit) + 1), 100_000);
        }
    }

    #[test]
    fn the_widest_and_steepest_slopes_do_not_overflow() {
        let all = crate::QUEUE_BYTES_MAX;
        for (min_bytes, max_bytes) in [(0, 1), (0, all), (all - 1, all)] {
            let config = RedConfig { min_bytes, max_bytes, at_max: Probability::ALWAYS };
            assert_eq!(marked(config, Ecn::Ect0, max_bytes.into()), 100_000);
        }
    }
}
