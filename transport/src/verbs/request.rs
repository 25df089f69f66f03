//! Work requests.

use dcp_core::{Remote, SendOp, Sge};
use dcp_wire::ImmData;

/// What a send work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// SEND to a receive of the peer's.
    Send,
    /// SEND with 32 bits of immediate data.
    SendImm(u32),
    /// RDMA WRITE.
    Write(Remote),
    /// RDMA WRITE that consumes a receive of the peer's and hands it 32 bits.
    WriteImm(Remote, u32),
    /// RDMA READ into the gather list.
    Read(Remote),
    /// Compares 8 bytes at the peer's and swaps them; the value before lands in the one SGE of 8 bytes.
    CmpSwap {
        /// The 8 bytes, on an address that is a multiple of 8.
        remote: Remote,
        /// Value they must have.
        compare: u64,
        /// Value they get then.
        swap: u64,
    },
    /// Adds to 8 bytes at the peer's; the value before lands in the one SGE of 8 bytes.
    FetchAdd {
        /// The 8 bytes, on an address that is a multiple of 8.
        remote: Remote,
        /// What is added, modulo 2^64.
        add: u64,
    },
}

impl Opcode {
    pub(super) const fn op(self) -> SendOp {
        match self {
            Self::Send => SendOp::Send,
            Self::SendImm(imm) => SendOp::SendImm(ImmData(imm)),
            Self::Write(remote) => SendOp::Write(remote),
            Self::WriteImm(remote, imm) => SendOp::WriteImm(remote, ImmData(imm)),
            Self::Read(remote) => SendOp::Read(remote),
            Self::CmpSwap { remote, compare, swap } => SendOp::CmpSwap { remote, compare, swap },
            Self::FetchAdd { remote, add } => SendOp::FetchAdd { remote, add },
        }
    }

    /// Whether its elements are written to, not read.
    pub(super) const fn is_answered(self) -> bool {
        matches!(self, Self::Read(_) | Self::CmpSwap { .. } | Self::FetchAdd { .. })
    }
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendWorkRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub opcode: Opcode,
    /// Where the bytes are, or where an answer goes: at most 16 elements, from [`Mr::slice`](super::Mr::slice).
    pub sges: &'a [Sge],
    /// Bytes that are copied when the request is posted, at most 1 KiB, instead of `sges`.
    pub inline: Option<&'a [u8]>,
    /// Whether success makes a completion. Failure always does.
    pub signalled: bool,
    /// Marks the receive's completion at the peer.
    pub solicited: bool,
    /// Waits for everything before it, answers included.
    pub fence: bool,
}

impl<'a> SendWorkRequest<'a> {
    /// A signalled request without further flags.
    pub const fn new(wr_id: u64, opcode: Opcode, sges: &'a [Sge]) -> Self {
        Self { wr_id, opcode, sges, inline: None, signalled: true, solicited: false, fence: false }
    }

    /// A signalled request whose bytes are copied when it is posted.
    pub const fn inline(wr_id: u64, opcode: Opcode, bytes: &'a [u8]) -> Self {
        Self { inline: Some(bytes), ..Self::new(wr_id, opcode, &[]) }
    }
}

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvWorkRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where the bytes go: at most 16 elements.
    pub sges: &'a [Sge],
}
