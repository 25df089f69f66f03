//! Time as an argument.

use dcp_wire::Timestamp;

/// A moment of the driver's monotonic clock, in nanoseconds since an origin of its choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);

    /// The moment `ns` nanoseconds after the origin.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The moment `ns` later; stays at the end of time.
    #[inline]
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds since `earlier`; 0 if that lies ahead.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// What a frame carries of it: the low 32 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is what it means")]
    pub const fn timestamp(self) -> Timestamp {
        Timestamp(self.0 as u32)
    }
}
