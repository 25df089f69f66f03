//! Why a frame is not taken.

/// Reason why [`crate::parse`] refuses a frame. Counted by the caller, never answered (P-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ParseError {
    /// Too few bytes for the smallest frame, or fewer in hand than the headers need.
    TooShort,
    /// EtherType is not IPv4: ARP, IPv6, a second VLAN tag, noise.
    EtherType,
    /// IP version is not 4, or the IP header has options.
    IpHeader,
    /// IP protocol is not UDP.
    NotUdp,
    /// A fragment, or flags other than "don't fragment".
    Fragment,
    /// UDP destination port is not the service port.
    OtherPort,
    /// Wrong IP header checksum.
    IpChecksum,
    /// IP total length larger than the frame.
    IpLength,
    /// UDP length disagrees with the IP total length.
    UdpLength,
    /// Wrong UDP checksum that is not 0.
    UdpChecksum,
    /// DCP tag `00`, or opcode unknown or of another tag.
    TagOpcode,
    /// BTH transport version is not 0.
    TransportVersion,
    /// BTH PadCnt is not 0.
    PadCount,
    /// A reserved bit, or a bit that this kind of frame does not have, is set.
    ReservedBits,
    /// UDP length ends inside a header, or is not 23 in a header-only packet.
    HeaderLength,
    /// Payload in a frame whose kind has none.
    Payload,
    /// PSN disagrees with the opcode: a FIRST or ONLY that is not 0, a MIDDLE or LAST that is.
    PsnOpcode,
    /// DMALen above [`crate::MESSAGE_BYTES_MAX`].
    MessageLength,
    /// AETH syndrome unknown, or negative in a PROBE_ACK.
    Syndrome,
    /// Wrong ICRC. Never returned by `parse`: for the driver that checks it.
    Icrc,
}

impl ParseError {
    /// Number of reasons: the length of an array of counters.
    pub const COUNT: usize = Self::Icrc as usize + 1;

    /// Every reason, in index order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::TooShort,
        Self::EtherType,
        Self::IpHeader,
        Self::NotUdp,
        Self::Fragment,
        Self::OtherPort,
        Self::IpChecksum,
        Self::IpLength,
        Self::UdpLength,
        Self::UdpChecksum,
        Self::TagOpcode,
        Self::TransportVersion,
        Self::PadCount,
        Self::ReservedBits,
        Self::HeaderLength,
        Self::Payload,
        Self::PsnOpcode,
        Self::MessageLength,
        Self::Syndrome,
        Self::Icrc,
    ];

    /// Position in an array of [`Self::COUNT`] counters.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the frame is not ours at all (noise), rather than a broken DCP frame.
    pub const fn is_noise(self) -> bool {
        matches!(
            self,
            Self::TooShort
                | Self::EtherType
                | Self::IpHeader
                | Self::NotUdp
                | Self::Fragment
                | Self::OtherPort
        )
    }

    /// Name of the counter, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "too_short",
            Self::EtherType => "ether_type",
            Self::IpHeader => "ip_header",
            Self::NotUdp => "not_udp",
            Self::Fragment => "fragment",
            Self::OtherPort => "other_port",
            Self::IpChecksum => "ip_checksum",
            Self::IpLength => "ip_length",
            Self::UdpLength => "udp_length",
            Self::UdpChecksum => "udp_checksum",
            Self::TagOpcode => "tag_opcode",
            Self::TransportVersion => "transport_version",
            Self::PadCount => "pad_count",
            Self::ReservedBits => "reserved_bits",
            Self::HeaderLength => "header_length",
            Self::Payload => "payload",
            Self::PsnOpcode => "psn_opcode",
            Self::MessageLength => "message_length",
            Self::Syndrome => "syndrome",
            Self::Icrc => "icrc",
        }
    }
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for ParseError {}
