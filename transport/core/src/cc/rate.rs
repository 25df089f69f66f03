//! Rates and fractions, as integers.

use core::fmt;

/// Bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// As fast as it goes: not paced at all.
    pub const UNLIMITED: Self = Self(u64::MAX);
    /// The slowest pace that is kept: 100 kb/s.
    pub const MIN: Self = Self(100_000);

    /// `bits` per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `mbps` × 10^6 bits per second; stays at the largest rate.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps.saturating_mul(1_000_000))
    }

    /// `gbps` × 10^9 bits per second; stays at the largest rate.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps.saturating_mul(1_000_000_000))
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Whether this is no limit.
    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// Time of a byte in 2^-32 ns.
    #[expect(clippy::cast_possible_truncation, reason = "80 µs at most, by the slowest rate")]
    pub(crate) const fn byte_time(self) -> u64 {
        if self.is_unlimited() {
            return 0;
        }
        let bits = if self.0 < Self::MIN.0 { Self::MIN.0 } else { self.0 };
        let time = (8_000_000_000_u128 << 32) / bits as u128;
        time as u64
    }

    /// The rate times `part`; stays at the largest rate.
    #[must_use]
    pub(crate) fn scaled(self, part: Fraction) -> Self {
        let scaled = (u128::from(self.0) * u128::from(part.0)) >> Fraction::BITS;
        Self(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// The rate halfway to another.
    #[must_use]
    pub(crate) const fn midway(self, other: Self) -> Self {
        Self(self.0 / 2 + other.0 / 2 + (self.0 & other.0 & 1))
    }

    #[must_use]
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("unlimited"),
            bits if bits >= 1_000_000_000 => {
                write!(f, "{}.{:03} Gb/s", bits / 1_000_000_000, bits / 1_000_000 % 1000)
            }
            bits => write!(f, "{}.{:03} Mb/s", bits / 1_000_000, bits / 1000 % 1000),
        }
    }
}

/// A number from 0 to 2^8, in steps of 2^-24.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fraction(u32);

impl Fraction {
    /// Bits behind the point.
    pub(crate) const BITS: u32 = 24;
    /// 1.
    pub const ONE: Self = Self(1 << Self::BITS);

    /// `part` / `whole`, rounded down.
    ///
    /// # Panics
    /// `whole` is 0, or the quotient is 256 or more.
    #[expect(clippy::cast_possible_truncation, reason = "checked in the line before")]
    pub const fn new(part: u32, whole: u32) -> Self {
        let quotient = ((part as u64) << Self::BITS) / whole as u64;
        assert!(quotient <= u32::MAX as u64, "a fraction below 256");
        Self(quotient as u32)
    }

    /// A fraction in its own steps of 2^-24.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// In steps of 2^-24.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_takes_its_time_to_one_part_in_a_million() {
        for bps in [100_000, 1_000_000, 10_000_000_000, 100_000_000_000, 400_000_000_000] {
            let time = Rate::from_bps(bps).byte_time() as f64 / 2f64.powi(32);
            let right = 8e9 / bps as f64;
            assert!((time / right - 1.0).abs() < 1e-6, "{bps}: {time} instead of {right}");
        }
        assert_eq!(Rate::UNLIMITED.byte_time(), 0);
        assert_eq!(Rate::from_bps(0).byte_time(), Rate::MIN.byte_time());
    }

    #[test]
    fn rates_scale_and_meet_midway() {
        assert_eq!(Rate::from_gbps(100).scaled(Fraction::new(1, 2)), Rate::from_gbps(50));
        assert_eq!(Rate::from_gbps(100).midway(Rate::from_gbps(50)), Rate::from_gbps(75));
        assert_eq!(Rate(u64::MAX).midway(Rate(u64::MAX)), Rate(u64::MAX));
        assert_eq!(Rate::UNLIMITED.scaled(Fraction::new(5, 4)), Rate::UNLIMITED);
    }
}
