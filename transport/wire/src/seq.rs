//! 24-bit numbers of the protocol: serial ones ([`Msn`], [`Ssn`]) and the packet index ([`Psn`]).

/// Number of values of a 24-bit field.
pub const SPACE_24: u32 = 1 << 24;
const MASK_24: u32 = SPACE_24 - 1;

macro_rules! serial24 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
        pub struct $name(u32);

        impl $name {
            /// The number zero.
            pub const ZERO: Self = Self(0);

            /// The number, or `None` if `value` does not fit in 24 bits.
            #[inline]
            pub const fn new(value: u32) -> Option<Self> {
                if value < SPACE_24 { Some(Self(value)) } else { None }
            }

            /// The low 24 bits of `value`.
            #[inline]
            pub const fn from_low_bits(value: u32) -> Self {
                Self(value & MASK_24)
            }

            /// The number as an integer below 2^24.
            #[inline]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The number `steps` after this one, modulo 2^24.
            #[inline]
            #[must_use]
            pub const fn plus(self, steps: u32) -> Self {
                Self(self.0.wrapping_add(steps) & MASK_24)
            }

            /// The next number, modulo 2^24.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// Signed serial distance `self - origin`, in −2^23 ..= 2^23 − 1.
            #[inline]
            pub const fn since(self, origin: Self) -> i32 {
                ((self.0.wrapping_sub(origin.0) << 8) as i32) >> 8
            }

            /// Whether this number comes before `other`, serially.
            #[inline]
            pub const fn is_before(self, other: Self) -> bool {
                self.since(other) < 0
            }

            /// Steps from `start` if this number lies in the window `[start, start + length)`.
            #[inline]
            pub const fn index_in(self, start: Self, length: u32) -> Option<u32> {
                let steps = self.0.wrapping_sub(start.0) & MASK_24;
                if steps < length { Some(steps) } else { None }
            }
        }
    };
}

serial24! {
    /// Message sequence number: the order of messages in one stream. Serial, modulo 2^24.
    Msn
}

serial24! {
    /// Send sequence number: counts two-sided messages and names the receive request they consume.
    Ssn
}

/// Packet sequence number: the index of a packet inside its message, from 0. Never wraps inside a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Psn(u32);

impl Psn {
    /// The first packet of a message.
    pub const ZERO: Self = Self(0);

    /// The index, or `None` if `value` does not fit in 24 bits.
    #[inline]
    pub const fn new(value: u32) -> Option<Self> {
        if value < SPACE_24 { Some(Self(value)) } else { None }
    }

    /// The low 24 bits of `value`.
    #[inline]
    pub const fn from_low_bits(value: u32) -> Self {
        Self(value & MASK_24)
    }

    /// The index as an integer below 2^24.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twin: a 24-bit number is a point on a circle; walk it with wide integers.
    #[test]
    fn c1_serial_numbers_agree_with_wide_integers() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let half = i64::from(SPACE_24) / 2;
        for _ in 0..200_000 {
            let (origin, number) = (Msn::from_low_bits(draw()), Msn::from_low_bits(draw()));
            // Half of the pairs lie close together, many of them across the wrap.
            let number = if draw() % 2 == 0 { number } else { origin.plus(draw() % 64).plus(SPACE_24 - 32) };
            let ahead = (i64::from(number.get()) - i64::from(origin.get())).rem_euclid(i64::from(SPACE_24));
            let distance = if ahead < half { ahead } else { ahead - i64::from(SPACE_24) };
            assert_eq!(i64::from(number.since(origin)), distance, "{number:?} since {origin:?}");
            assert_eq!(number.is_before(origin), distance < 0);
            let length = draw() % 100;
            let inside = u32::try_from(ahead).ok().filter(|&ahead| ahead < length);
            assert_eq!(number.index_in(origin, length), inside);
            let steps = draw();
            let sum = (i64::from(origin.get()) + i64::from(steps)).rem_euclid(i64::from(SPACE_24));
            assert_eq!(i64::from(origin.plus(steps).get()), sum);
        }
    }

    #[test]
    fn c1_golden_distances() {
        let golden = [(0, 0xFF_FFFF, 1), (0xFF_FFFF, 0, -1), (5, 0xFF_FFFE, 7)];
        let far = [(0x7F_FFFF, 0, 8_388_607), (0x80_0000, 0, -8_388_608)];
        for (number, origin, distance) in golden.into_iter().chain(far) {
            assert_eq!(Ssn::from_low_bits(number).since(Ssn::from_low_bits(origin)), distance);
        }
    }
}
