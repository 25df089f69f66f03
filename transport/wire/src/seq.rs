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
