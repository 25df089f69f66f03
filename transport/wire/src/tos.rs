//! The ToS byte: class, DCP tag, ECN.

use crate::{Ecn, Kind, Tag};

impl Tag {
    const SHIFT: u8 = 2;
    pub(crate) const MASK: u8 = 0b11 << Self::SHIFT;

    /// The tag in a ToS byte. Means something only in a DCP frame (S-0).
    #[inline]
    pub const fn from_tos(tos: u8) -> Self {
        match (tos >> Self::SHIFT) & 0b11 {
            0b00 => Self::NotDcp,
            0b01 => Self::Ack,
            0b10 => Self::Data,
            _ => Self::HeaderOnly,
        }
    }

    /// The tag's bits in a ToS byte.
    #[inline]
    pub const fn tos_bits(self) -> u8 {
        (self as u8) << Self::SHIFT
    }
}

impl Ecn {
    pub(crate) const MASK: u8 = 0b11;

    /// The ECN field of a ToS byte.
    #[inline]
    pub const fn from_tos(tos: u8) -> Self {
        match tos & Self::MASK {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a switch may mark the frame instead of dropping it (CE stays CE).
    #[inline]
    pub const fn is_ect(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

impl Kind {
    /// DCP tag of a frame of this kind.
    #[inline]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Data(_) => Tag::Data,
            Self::HeaderOnly(_) => Tag::HeaderOnly,
            Self::Ack(_) | Self::Cnp | Self::Probe(_) | Self::ProbeAck(_) => Tag::Ack,
        }
    }
}
