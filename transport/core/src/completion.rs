//! Completions and completion queues.

use std::collections::VecDeque;

use dcp_wire::ImmData;

use crate::QpId;

/// Outcome of a work request; the numbers are InfiniBand's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Success = 0,
    /// A local buffer does not fit its message.
    LocalLength = 1,
    /// A local buffer lies outside its region, or its key is wrong.
    LocalProtection = 4,
    /// Not tried: the queue pair went to the error state before.
    Flushed = 5,
    /// The peer says that the request breaks a rule.
    RemoteInvalidRequest = 9,
    /// The peer refuses the access to its memory.
    RemoteAccess = 10,
    /// The peer failed.
    RemoteOperation = 11,
    /// The peer did not answer after all retries.
    RetryExceeded = 12,
    /// The peer had no receive posted after all retries.
    RnrRetryExceeded = 13,
}

impl Status {
    /// The name that verbs users know.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::LocalLength => "LOC_LEN_ERR",
            Self::LocalProtection => "LOC_PROT_ERR",
            Self::Flushed => "WR_FLUSH_ERR",
            Self::RemoteInvalidRequest => "REM_INV_REQ_ERR",
            Self::RemoteAccess => "REM_ACCESS_ERR",
            Self::RemoteOperation => "REM_OP_ERR",
            Self::RetryExceeded => "RETRY_EXC_ERR",
            Self::RnrRetryExceeded => "RNR_RETRY_EXC_ERR",
        }
    }
}

/// What a completed work request was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// SEND, with or without immediate.
    Send,
    /// RDMA WRITE, with or without immediate.
    Write,
    /// RDMA READ.
    Read,
    /// Atomic compare and swap.
    CmpSwap,
    /// Atomic fetch and add.
    FetchAdd,
    /// A receive that a SEND filled.
    Receive,
    /// A receive that a WRITE with immediate consumed.
    ReceiveWriteImm,
}

/// One completed work request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// As posted.
    pub wr_id: u64,
    /// Queue pair it was posted to.
    pub qp: QpId,
    /// Outcome.
    pub status: Status,
    /// What it was.
    pub operation: Operation,
    /// Bytes of the message.
    pub byte_len: u32,
    /// Immediate data that came with it, for a receive.
    pub imm: Option<ImmData>,
    /// Whether the sender asked for a solicited event, for a receive.
    pub solicited: bool,
}

impl Completion {
    /// What a place for one holds until [`Endpoint::poll_completions`](crate::Endpoint::poll_completions) fills it.
    pub const BLANK: Self = Self {
        wr_id: 0,
        qp: QpId(0),
        status: Status::Flushed,
        operation: Operation::Write,
        byte_len: 0,
        imm: None,
        solicited: false,
    };
}

/// A completion queue: bounded, first in first out.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Cq {
    entries: VecDeque<Completion>,
    depth: usize,
    overflowed: bool,
}

impl Cq {
    pub(crate) fn new(depth: usize) -> Self {
        Self { entries: VecDeque::with_capacity(depth), depth, overflowed: false }
    }

    /// Adds a completion. False: the queue is full, the completion is lost and the queue says so for ever.
    #[must_use]
    pub(crate) fn push(&mut self, completion: Completion) -> bool {
        if self.entries.len() == self.depth {
            self.overflowed = true;
            return false;
        }
        self.entries.push_back(completion);
        true
    }

    /// Takes completions, oldest first. `draining`: frames may still refer to the buffers of failed requests, so
    /// their completions wait, and with them what is behind (T-17).
    pub(crate) fn poll(&mut self, out: &mut [Completion], draining: bool) -> usize {
        let mut taken = out.len().min(self.entries.len());
        if draining {
            let ready = self.entries.iter().take_while(|completion| completion.status == Status::Success);
            taken = taken.min(ready.count());
        }
        for (to, from) in out.iter_mut().zip(self.entries.drain(..taken)) {
            *to = from;
        }
        taken
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }
}
