//! Names of things that travel in frames: queue pairs, keys, generations, addresses.

pub use core::net::Ipv4Addr;

/// Queue pair number, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Qpn(u32);

impl Qpn {
    /// The number, or `None` if `value` does not fit in 24 bits.
    #[inline]
    pub const fn new(value: u32) -> Option<Self> {
        if value < crate::SPACE_24 { Some(Self(value)) } else { None }
    }

    /// The low 24 bits of `value`.
    #[inline]
    pub const fn from_low_bits(value: u32) -> Self {
        Self(value & (crate::SPACE_24 - 1))
    }

    /// The number as an integer below 2^24.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Key of one connection; a frame that carries another one belongs to a stale peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct PKey(pub u16);

/// Key of a memory region, as the peer (rkey) or the owner (lkey) names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct RegionKey(pub u32);

/// Immediate data; travels in network order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct ImmData(pub u32);

/// Low 32 bits of a host's monotonic clock, in nanoseconds; differences are taken modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Timestamp(pub u32);

/// Retry generation of a message (sRetryNo), 12 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Generation(u16);

impl Generation {
    /// The first transmission of a message.
    pub const ZERO: Self = Self(0);
    const MASK: u16 = 0xFFF;
    /// How far ahead a generation may be and still count as newer.
    const NEWER_MAX: u16 = 15;

    /// The generation, or `None` if `value` does not fit in 12 bits.
    #[inline]
    pub const fn new(value: u16) -> Option<Self> {
        if value <= Self::MASK { Some(Self(value)) } else { None }
    }

    /// The low 12 bits of `value`.
    #[inline]
    pub const fn from_low_bits(value: u16) -> Self {
        Self(value & Self::MASK)
    }

    /// The generation as an integer below 4096.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The following generation, modulo 4096.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self((self.0 + 1) & Self::MASK)
    }

    /// Whether this generation is 1 … 15 ahead of `other`; any other difference is older.
    #[inline]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0) & Self::MASK;
        ahead >= 1 && ahead <= Self::NEWER_MAX
    }
}

/// Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct MacAddr(pub [u8; 6]);

/// 802.1Q tag control information (priority, DEI, VLAN id), any 16-bit value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct VlanTag(pub u16);

/// ECN field of an IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not react to marks.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, codepoint 1.
    Ect1 = 0b01,
    /// ECN-capable, codepoint 0.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// DCP tag, bits 3-2 of the IPv4 ToS byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Tag {
    /// Not a DCP frame.
    NotDcp = 0b00,
    /// ACK, NAK, CNP, probe, probe ACK.
    Ack = 0b01,
    /// Data, trimmable.
    Data = 0b10,
    /// A header whose payload was cut off.
    HeaderOnly = 0b11,
}

/// Which of a QP's two message streams a control frame speaks of (bit M).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Stream {
    /// Messages that the sender's application posted.
    #[default]
    Requests,
    /// Answers to READ and ATOMIC requests.
    Answers,
}
