//! Seeded randomness: one small stream per purpose, so that a run is its seed.

/// A 64-bit Weyl sequence behind a mixer. Fast, and good enough for faults and tie breaks; not for keys.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

/// From one state to the next.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// The stream of `seed` for one `purpose`, a number that the caller uses once.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut random = Self { state: seed ^ purpose.wrapping_mul(0xA076_1D64_78BD_642F) };
        // The first output of neighbouring purposes is already far apart; its state is not.
        random.state = random.next_u64();
        random
    }

    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Takes back the last `draws`.
    pub(crate) fn step_back(&mut self, draws: u32) {
        self.state = self.state.wrapping_sub(STEP.wrapping_mul(u64::from(draws)));
    }

    /// 32 random bits.
    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Whether an event of this probability happens now.
    #[inline]
    pub(crate) fn hits(&mut self, probability: Probability) -> bool {
        (self.next_u64() >> 32) < probability.0
    }
}

/// A probability in units of 2^-32, so that no float is touched per packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Probability(u64);

impl Probability {
    const ONE: u64 = 1 << 32;
    /// Never happens.
    pub const NEVER: Self = Self(0);
    /// Always happens.
    pub const ALWAYS: Self = Self(Self::ONE);

    /// In units of 2^-32.
    #[inline]
    pub(crate) const fn units(self) -> u64 {
        self.0
    }

    /// From units of 2^-32; 2^32 and more means always.
    #[inline]
    pub(crate) const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// From parts per million; more than a million counts as always.
    pub const fn from_ppm(ppm: u32) -> Self {
        let ppm = if ppm > 1_000_000 { 1_000_000 } else { ppm };
        Self((ppm as u64 * Self::ONE) / 1_000_000)
    }

    /// From a number in 0 ..= 1; `None` for any other.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked first")]
    pub fn new(value: f64) -> Option<Self> {
        // 2^32 is exact in an f64.
        (0.0..=1.0).contains(&value).then(|| Self((value * 4_294_967_296.0).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_is_met_within_its_spread() {
        let mut random = Random::new(7, 1);
        let p = Probability::from_ppm(10_000);
        let hits = (0..1_000_000).filter(|_| random.hits(p)).count();
        // 10 000 ± 5 standard deviations of 99.5.
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }

    #[test]
    fn never_and_always_mean_it() {
        let mut random = Random::new(7, 1);
        assert!((0..10_000).all(|_| !random.hits(Probability::NEVER) && random.hits(Probability::ALWAYS)));
    }

    #[test]
    fn only_numbers_between_zero_and_one_are_probabilities() {
        for refused in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::new(refused), None);
        }
        assert_eq!(Probability::new(1.0), Some(Probability::ALWAYS));
        assert_eq!(Probability::new(0.0), Some(Probability::NEVER));
        assert_eq!(Probability::new(0.25), Some(Probability(1 << 30)));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let draws = |purpose| {
            let mut random = Random::new(7, purpose);
            [(); 4].map(|()| random.next_u64())
        };
        assert_ne!(draws(0), draws(1));
        assert_eq!(draws(1), draws(1));
    }
}
