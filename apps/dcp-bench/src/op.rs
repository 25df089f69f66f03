//! The operations: what a client posts, what a server must have posted for it, and where the data ends.

use dcp::core::{Access, Remote, SendOp};
use dcp::wire::ImmData;

use crate::plan::Mode;

/// Bytes that an atomic works on.
pub const ATOMIC_BYTES: u64 = 8;

/// Operation under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate data: each consumes a receive.
    WriteImm,
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendImm,
    /// RDMA READ.
    Read,
    /// Atomic compare and swap.
    Cas,
    /// Atomic fetch and add.
    Faa,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Write, Self::WriteImm, Self::Send, Self::SendImm, Self::Read, Self::Cas, Self::Faa];

    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::WriteImm => "write-imm",
            Self::Send => "send",
            Self::SendImm => "send-imm",
            Self::Read => "read",
            Self::Cas => "cas",
            Self::Faa => "faa",
        }
    }

    /// Name in the banner, as perftest spells it where it has it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Write => "RDMA_Write",
            Self::WriteImm => "RDMA_Write_imm",
            Self::Send => "Send",
            Self::SendImm => "Send_imm",
            Self::Read => "RDMA_Read",
            Self::Cas => "Atomic Compare_and_Swap",
            Self::Faa => "Atomic Fetch_and_Add",
        }
    }

    /// Message size when none is asked for, in bytes.
    pub const fn default_size(self, mode: Mode) -> u64 {
        match mode {
            _ if self.is_atomic() => ATOMIC_BYTES,
            Mode::Bandwidth => 64 << 10,
            Mode::Latency => 2,
        }
    }

    /// Whether the peer changes 8 bytes of its memory and says what they were.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::Cas | Self::Faa)
    }

    /// Whether the peer answers with data, which ends at the client.
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Read | Self::Cas | Self::Faa)
    }

    /// Whether each message takes a receive of the server's.
    pub const fn takes_receives(self) -> bool {
        matches!(self, Self::WriteImm | Self::Send | Self::SendImm)
    }

    /// Whether those receives must have room for the message.
    pub const fn fills_receives(self) -> bool {
        matches!(self, Self::Send | Self::SendImm)
    }

    /// Whether messages carry immediate data.
    pub const fn has_immediate(self) -> bool {
        matches!(self, Self::WriteImm | Self::SendImm)
    }

    /// What the client's memory must allow.
    pub(crate) const fn client_access(self) -> Access {
        Access { local_write: self.is_answered(), ..NO_ACCESS }
    }

    /// What the server's memory must allow.
    pub(crate) const fn server_access(self) -> Access {
        Access {
            remote_write: matches!(self, Self::Write | Self::WriteImm),
            remote_read: matches!(self, Self::Read),
            remote_atomic: self.is_atomic(),
            local_write: self.fills_receives(),
        }
    }

    /// The request for a message. `step` is what an atomic finds and leaves.
    #[inline]
    pub(crate) fn request(self, remote: Remote, number: u64, step: impl FnOnce() -> (u64, u64)) -> SendOp {
        match self {
            Self::Write => SendOp::Write(remote),
            Self::WriteImm => SendOp::WriteImm(remote, immediate(number)),
            Self::Send => SendOp::Send,
            Self::SendImm => SendOp::SendImm(immediate(number)),
            Self::Read => SendOp::Read(remote),
            Self::Cas => {
                let (compare, swap) = step();
                SendOp::CmpSwap { remote, compare, swap }
            }
            Self::Faa => {
                let (before, after) = step();
                SendOp::FetchAdd { remote, add: after.wrapping_sub(before) }
            }
        }
    }
}

const NO_ACCESS: Access =
    Access { remote_write: false, remote_read: false, remote_atomic: false, local_write: false };

/// The immediate data of a message: its number's low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
pub(crate) const fn immediate(number: u64) -> ImmData {
    ImmData(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<_> = Op::ALL.iter().map(|op| op.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Op::ALL.len());
    }

    #[test]
    fn memory_allows_what_the_operation_needs_and_no_more() {
        for op in Op::ALL {
            let access = op.server_access();
            let rights = [access.remote_write, access.remote_read, access.remote_atomic, access.local_write];
            assert_eq!(rights.iter().filter(|&&right| right).count(), 1, "{}", op.name());
            assert_eq!(op.client_access().local_write, op.is_answered());
        }
    }

    #[test]
    fn atomics_step_from_one_value_to_the_next() {
        let remote = Remote { va: 0, rkey: dcp::wire::RegionKey(0) };
        let cas = Op::Cas.request(remote, 0, || (3, 9));
        assert_eq!(cas, SendOp::CmpSwap { remote, compare: 3, swap: 9 });
        let faa = Op::Faa.request(remote, 0, || (u64::MAX, 1));
        assert_eq!(faa, SendOp::FetchAdd { remote, add: 2 });
    }
}
