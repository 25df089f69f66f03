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
        self.traits().first
    }

    /// Whether the packet is the last of its message.
    #[inline]
    pub const fn is_last(self) -> bool {
        self.traits().last
    }

    /// Whether the packet carries bytes of a message behind its headers.
    #[inline]
    pub const fn has_payload(self) -> bool {
        self.traits().payload
    }

    /// Bytes of extension headers behind the MSN.
    #[inline]
    pub const fn extension_len(self) -> usize {
        self.traits().extension_len as usize
    }

    #[inline(always)]
    const fn traits(self) -> Traits {
        // The mask tells the optimiser what the type already says.
        TRAITS[self as usize & 31]
    }
}

/// What all packets of an opcode share; four bytes, one load.
#[derive(Clone, Copy)]
struct Traits {
    extension_len: u8,
    first: bool,
    last: bool,
    payload: bool,
}

static TRAITS: [Traits; 32] = {
    let mut table = [Traits { extension_len: 0, first: false, last: false, payload: false }; 32];
    let mut i = 0;
    while i < DataOpcode::ALL.len() {
        table[DataOpcode::ALL[i] as usize] = traits_of(DataOpcode::ALL[i]);
        i += 1;
    }
    table
};

/// Protocol §1, the table of opcodes.
const fn traits_of(opcode: DataOpcode) -> Traits {
    use DataOpcode as O;
    let (first, last) = match opcode {
        O::SendFirst | O::WriteFirst | O::ReadResponseFirst => (true, false),
        O::SendMiddle | O::WriteMiddle | O::ReadResponseMiddle => (false, false),
        O::SendLast | O::SendLastImm | O::WriteLast | O::WriteLastImm | O::ReadResponseLast => (false, true),
        O::SendOnly | O::SendOnlyImm | O::WriteOnly | O::WriteOnlyImm | O::ReadResponseOnly => (true, true),
        O::ReadRequest | O::AtomicAck | O::CmpSwap | O::FetchAdd => (true, true),
    };
    let extension_len = match opcode {
        O::SendFirst | O::SendMiddle | O::SendLast | O::SendOnly => 3,
        O::ReadResponseFirst | O::ReadResponseMiddle | O::ReadResponseLast | O::ReadResponseOnly => 3,
        O::SendLastImm | O::SendOnlyImm => 7,
        O::WriteFirst | O::WriteMiddle | O::WriteLast | O::WriteOnly | O::ReadRequest => 16,
        O::WriteLastImm | O::WriteOnlyImm => 23,
        O::AtomicAck => 11,
        O::CmpSwap | O::FetchAdd => 28,
    };
    let payload = !matches!(opcode, O::ReadRequest | O::AtomicAck | O::CmpSwap | O::FetchAdd);
    Traits { extension_len, first, last, payload }
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
