//! Opcodes of data packets: numbers, header lengths, place in the message.

use crate::layout::HO_LEN;
use crate::{Data, DataOp, DataOpcode, Headers, Kind, Part, Stream};

impl DataOpcode {
    const TABLE: [Option<Self>; 32] = {
        let mut table = [None; 32];
        let mut i = 0;
        while i < Self::ALL.len() {
            table[Self::ALL[i] as usize] = Some(Self::ALL[i]);
            i += 1;
        }
        table
    };

    /// Every opcode of a data packet.
    pub const ALL: [Self; 20] = [
        Self::SendFirst,
        Self::SendMiddle,
        Self::SendLast,
        Self::SendLastImm,
        Self::SendOnly,
        Self::SendOnlyImm,
        Self::WriteFirst,
        Self::WriteMiddle,
        Self::WriteLast,
        Self::WriteLastImm,
        Self::WriteOnly,
        Self::WriteOnlyImm,
        Self::ReadRequest,
        Self::ReadResponseFirst,
        Self::ReadResponseMiddle,
        Self::ReadResponseLast,
        Self::ReadResponseOnly,
        Self::AtomicAck,
        Self::CmpSwap,
        Self::FetchAdd,
    ];

    /// The opcode of that number, or `None`.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        if number < 32 { Self::TABLE[number as usize] } else { None }
    }

    /// The number on the wire.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Stream that the packet is part of.
    #[inline]
    pub const fn stream(self) -> Stream {
        match self {
            Self::ReadResponseFirst
            | Self::ReadResponseMiddle
            | Self::ReadResponseLast
            | Self::ReadResponseOnly
            | Self::AtomicAck => Stream::Answers,
            _ => Stream::Requests,
        }
    }

    /// Whether the packet is the first of its message (and so has PSN 0).
    #[inline]
    pub const fn is_first(self) -> bool {
        !matches!(
            self,
            Self::SendMiddle
                | Self::SendLast
                | Self::SendLastImm
                | Self::WriteMiddle
                | Self::WriteLast
                | Self::WriteLastImm
                | Self::ReadResponseMiddle
                | Self::ReadResponseLast
        )
    }

    /// Whether the packet is the last of its message.
    #[inline]
    pub const fn is_last(self) -> bool {
        !matches!(
            self,
            Self::SendFirst
                | Self::SendMiddle
                | Self::WriteFirst
                | Self::WriteMiddle
                | Self::ReadResponseFirst
                | Self::ReadResponseMiddle
        )
    }

    /// Whether the packet carries bytes of a message behind its headers.
    #[inline]
    pub const fn has_payload(self) -> bool {
        !matches!(self, Self::ReadRequest | Self::AtomicAck | Self::CmpSwap | Self::FetchAdd)
    }

    /// Bytes of extension headers behind the MSN.
    #[inline]
    pub const fn extension_len(self) -> usize {
        match self {
            Self::SendFirst
            | Self::SendMiddle
            | Self::SendLast
            | Self::SendOnly
            | Self::ReadResponseFirst
            | Self::ReadResponseMiddle
            | Self::ReadResponseLast
            | Self::ReadResponseOnly => 3,
            Self::SendLastImm | Self::SendOnlyImm => 7,
            Self::WriteFirst | Self::WriteMiddle | Self::WriteLast | Self::WriteOnly | Self::ReadRequest => {
                16
            }
            Self::WriteLastImm | Self::WriteOnlyImm => 23,
            Self::AtomicAck => 11,
            Self::CmpSwap | Self::FetchAdd => 28,
        }
    }
}

impl DataOp {
    /// Opcode of the packet.
    #[inline]
    pub const fn opcode(&self) -> DataOpcode {
        match self {
            Self::Send { part, .. } => match part {
                Part::First => DataOpcode::SendFirst,
                Part::Middle => DataOpcode::SendMiddle,
                Part::Last(None) => DataOpcode::SendLast,
                Part::Last(Some(_)) => DataOpcode::SendLastImm,
                Part::Only(None) => DataOpcode::SendOnly,
                Part::Only(Some(_)) => DataOpcode::SendOnlyImm,
            },
            Self::Write { part, .. } => match part {
                Part::First => DataOpcode::WriteFirst,
                Part::Middle => DataOpcode::WriteMiddle,
                Part::Last(None) => DataOpcode::WriteLast,
                Part::Last(Some(_)) => DataOpcode::WriteLastImm,
                Part::Only(None) => DataOpcode::WriteOnly,
                Part::Only(Some(_)) => DataOpcode::WriteOnlyImm,
            },
            Self::ReadRequest(_) => DataOpcode::ReadRequest,
            Self::CmpSwap(_) => DataOpcode::CmpSwap,
            Self::FetchAdd(_) => DataOpcode::FetchAdd,
            Self::ReadResponse { part, .. } => match part {
                Part::First => DataOpcode::ReadResponseFirst,
                Part::Middle => DataOpcode::ReadResponseMiddle,
                Part::Last(_) => DataOpcode::ReadResponseLast,
                Part::Only(_) => DataOpcode::ReadResponseOnly,
            },
            Self::AtomicAck { .. } => DataOpcode::AtomicAck,
        }
    }
}

impl Data {
    /// Opcode of the packet.
    #[inline]
    pub const fn opcode(&self) -> DataOpcode {
        self.op.opcode()
    }
}

impl Kind {
    /// Header bytes of a frame of this kind, from the Ethernet header on, without a VLAN tag.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        match self {
            Self::Data(data) => HO_LEN + data.opcode().extension_len(),
            Self::HeaderOnly(_) => HO_LEN,
            Self::Ack(_) => 62,
            Self::Cnp => 70,
            Self::Probe(_) => 60,
            Self::ProbeAck(_) => 74,
        }
    }
}

impl Headers {
    /// Header bytes of the frame, from the Ethernet header on, with its VLAN tag if it has one.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        let vlan = if self.path.vlan.is_some() { crate::layout::VLAN_LEN } else { 0 };
        self.kind.len() + vlan
    }
}
