//! Posting work requests and receives.

use dcp_wire::RegionKey;

use super::recv_queue::{Arrived, Receive};
use super::send_queue::{SegmentList, SendOp, WqeFlags};
use super::{Qp, QpState, Shared};
use crate::memory::{Claim, Memory, Need};
use crate::{PdId, Segment, Status};

/// Scatter/gather elements of one work request.
const SGES_MAX: usize = 16;
/// Bytes of one message.
const MESSAGE_MAX: u64 = 1 << 31;
/// Bytes of an atomic.
const ATOMIC_LEN: u32 = 8;

/// One element of a gather or scatter list.
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
    /// Where the bytes are, or where an answer goes; at most 16 elements.
    pub sges: &'a [Sge],
    /// Whether success makes a completion. Failure always does.
    pub signalled: bool,
    /// Asks the peer's application for a solicited event.
    pub solicited: bool,
    /// Waits for everything before it, answers included (T-16).
    pub fence: bool,
}

impl<'a> SendRequest<'a> {
    /// A signalled request without further flags.
    pub const fn new(wr_id: u64, op: SendOp, sges: &'a [Sge]) -> Self {
        Self { wr_id, op, sges, signalled: true, solicited: false, fence: false }
    }
}

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvRequest<'a> {
    /// Comes back in the completion, any value.
    pub wr_id: u64,
    /// Where the bytes go; at most 16 elements.
    pub sges: &'a [Sge],
}

/// Why a work request was not taken. Nothing of it was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// The queue is full.
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
    /// The queue pair's state does not take it.
    NotReady {
        /// Its state.
        state: QpState,
    },
    /// A READ or ATOMIC on a queue pair that was set up without them (`max_rd_atomic` 0).
    NoReads,
    /// A receive posted to a queue pair that takes its receives from a shared queue.
    SharedQueue,
    /// No such queue pair, or no such shared queue.
    UnknownQueue,
}

impl core::fmt::Display for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::QueueFull { depth } => {
                write!(f, "the queue of {depth} is full; poll completions before posting more")
            }
            Self::TooManySges { count, limit } => {
                write!(f, "{count} scatter/gather elements; at most {limit} are allowed")
            }
            Self::MessageTooLong { len, limit } => {
                write!(f, "a message of {len} bytes; at most {limit} are allowed")
            }
            Self::NotReady { state } => {
                write!(f, "the queue pair is in state {state:?}, which takes no such request")
            }
            Self::NoReads => {
                write!(f, "the queue pair was set up with max_rd_atomic 0: no READs and no ATOMICs")
            }
            Self::SharedQueue => {
                write!(f, "the queue pair takes receives from a shared queue; post them there")
            }
            Self::UnknownQueue => write!(f, "no such queue pair or shared queue"),
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
        if request.op.is_answered() && self.config.max_rd_atomic == 0 {
            return Err(PostError::NoReads);
        }
        let len = check_lengths(request.sges)?;
        if self.queue.is_full() {
            return Err(PostError::QueueFull { depth: self.queue.depth() });
        }
        let need = if request.op.is_answered() { Need::LocalWrite } else { Need::LocalRead };
        let claim = Claim { pd: self.config.pd, key: RegionKey(0), need };
        let wqe = self.queue.vacant();
        wqe.wr_id = request.wr_id;
        wqe.op = request.op;
        wqe.len = len;
        wqe.packets = if request.op.is_answered() { 1 } else { len.div_ceil(self.config.mtu).max(1) };
        wqe.fault = resolve(&shared.memory, claim, request.sges, &mut wqe.segments);
        if request.op.is_atomic() && wqe.fault.is_none() {
            let one_of_eight = matches!(wqe.segments[..], [Segment { len: ATOMIC_LEN, .. }]);
            wqe.fault = if one_of_eight { None } else { Some(Status::LocalLength) };
        }
        let is_write = matches!(request.op, SendOp::Write(_));
        wqe.flags = WqeFlags {
            signalled: request.signalled,
            solicited: request.solicited,
            fence: request.fence,
            unconditional: is_write && wqe.fault.is_none() && !request.fence,
            answered: false,
        };
        self.queue.commit();
        if self.state == QpState::Error {
            self.flush(shared);
        }
        Ok(())
    }

    pub(crate) fn post_recv(
        &mut self,
        request: &RecvRequest<'_>,
        shared: &mut Shared,
    ) -> Result<(), PostError> {
        if self.state == QpState::Reset {
            return Err(PostError::NotReady { state: self.state });
        }
        if self.recv_queue.srq.is_some() {
            return Err(PostError::SharedQueue);
        }
        if self.recv_queue.is_full() {
            return Err(PostError::QueueFull { depth: self.rare.config.recv_depth });
        }
        let receive = make_receive(request, self.config.pd, &shared.memory)?;
        self.recv_queue.post(receive);
        if self.state == QpState::Error {
            self.flush(shared);
        }
        Ok(())
    }
}

/// A receive with its scatter list resolved.
pub(crate) fn make_receive(
    request: &RecvRequest<'_>,
    pd: PdId,
    memory: &Memory,
) -> Result<Receive, PostError> {
    let capacity = check_lengths(request.sges)?;
    let claim = Claim { pd, key: RegionKey(0), need: Need::LocalWrite };
    let mut segments = SegmentList::new();
    let fault = resolve(memory, claim, request.sges, &mut segments);
    Ok(Receive { wr_id: request.wr_id, segments, capacity, fault, arrived: Arrived::NOTHING })
}

/// Keys are resolved once per request, not per packet. `Some`: an element is not what it claims.
fn resolve(memory: &Memory, claim: Claim, sges: &[Sge], segments: &mut SegmentList) -> Option<Status> {
    segments.clear();
    let mut fault = None;
    for sge in sges.iter().filter(|sge| sge.len > 0) {
        match memory.resolve(Claim { key: sge.lkey, ..claim }, sge.va, sge.len) {
            Some(segment) => segments.push(segment),
            None => fault = Some(Status::LocalProtection),
        }
    }
    fault
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

/// The pieces of `[from, from + len)` of a gather or scatter list, in order.
#[inline]
pub(super) fn pieces(segments: &[Segment], from: u32, len: u32, mut each: impl FnMut(Segment)) {
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
        each(Segment { region: segment.region, offset: segment.offset + u64::from(skip), len: take });
        left -= take;
        skip = 0;
    }
}
