//! Posting work requests.

use dcp_wire::RegionKey;

use super::send_queue::{SegmentList, SendOp};
use super::{Qp, QpState, Shared};
use crate::memory::{Claim, Need};
use crate::{Segment, Status};

/// Scatter/gather elements of one work request.
const SGES_MAX: usize = 16;
/// Bytes of one message.
const MESSAGE_MAX: u64 = 1 << 31;

/// One element of a gather list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sge {
    /// Address in a registered range.
    pub va: u64,
    /// Length in bytes; 0 is allowed and touches nothing.
    pub len: u32,
    /// The range's lkey.
    pub lkey: RegionKey,
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Comes back in the completion, any value.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// Where the bytes are; at most 16 elements.
    pub sges: &'a [Sge],
    /// Whether success makes a completion. Failure always does.
    pub signalled: bool,
}

/// Why a work request was not taken. Nothing of it was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// The send queue is full.
    QueueFull {
        /// Its depth.
        depth: u32,
    },
    /// More elements than 16.
    TooManySges {
        /// As posted.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The message is longer than 2 GiB.
    MessageTooLong {
        /// As posted.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// The queue pair is not connected yet.
    NotReady {
        /// Its state.
        state: QpState,
    },
    /// No such queue pair.
    UnknownQp,
}

impl core::fmt::Display for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::QueueFull { depth } => {
                write!(f, "the send queue of {depth} is full; poll completions before posting more")
            }
            Self::TooManySges { count, limit } => {
                write!(f, "{count} scatter/gather elements; at most {limit} are allowed")
            }
            Self::MessageTooLong { len, limit } => {
                write!(f, "a message of {len} bytes; at most {limit} are allowed")
            }
            Self::NotReady { state } => write!(f, "the queue pair is in state {state:?}; connect it first"),
            Self::UnknownQp => write!(f, "no such queue pair"),
        }
    }
}

impl core::error::Error for PostError {}

impl Qp {
    pub(crate) fn post_send(
        &mut self,
        request: &SendRequest<'_>,
        shared: &mut Shared,
    ) -> Result<(), PostError> {
        if !matches!(self.state, QpState::Rts | QpState::Error) {
            return Err(PostError::NotReady { state: self.state });
        }
        let len = check_lengths(request.sges)?;
        if self.queue.is_full() {
            return Err(PostError::QueueFull { depth: self.queue.depth() });
        }
        let pd = self.config.pd;
        let wqe = self.queue.vacant();
        wqe.wr_id = request.wr_id;
        wqe.op = request.op;
        wqe.len = len;
        wqe.packets = len.div_ceil(self.config.mtu).max(1);
        wqe.signalled = request.signalled;
        wqe.fault = None;
        wqe.segments.clear();
        for sge in request.sges.iter().filter(|sge| sge.len > 0) {
            let claim = Claim { pd, key: sge.lkey, need: Need::LocalRead };
            match shared.memory.resolve(claim, sge.va, sge.len) {
                Some(segment) => wqe.segments.push(segment),
                None => wqe.fault = Some(Status::LocalProtection),
            }
        }
        self.queue.commit();
        if self.state == QpState::Error {
            self.flush(shared);
        }
        Ok(())
    }
}

fn check_lengths(sges: &[Sge]) -> Result<u32, PostError> {
    if sges.len() > SGES_MAX {
        return Err(PostError::TooManySges { count: sges.len(), limit: SGES_MAX });
    }
    let len: u64 = sges.iter().map(|sge| u64::from(sge.len)).sum();
    match u32::try_from(len) {
        Ok(short) if len <= MESSAGE_MAX => Ok(short),
        _ => Err(PostError::MessageTooLong { len, limit: MESSAGE_MAX }),
    }
}

/// The segments of `[from, from + len)` of a gather list.
#[inline]
pub(super) fn gather(segments: &[Segment], from: u32, len: u32, out: &mut SegmentList) {
    out.clear();
    let (mut skip, mut left) = (from, len);
    for segment in segments {
        if left == 0 {
            return;
        }
        if skip >= segment.len {
            skip -= segment.len;
            continue;
        }
        let take = left.min(segment.len - skip);
        out.push(Segment { region: segment.region, offset: segment.offset + u64::from(skip), len: take });
        left -= take;
        skip = 0;
    }
}
