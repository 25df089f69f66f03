//! Completion queues: one ring per worker, polled in turn.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::queue::ArrayQueue;
use dcp_core::{CqId, Operation, Status};

use super::device::DeviceInner;
use super::error::ResourceError;
use super::event::Event;

/// One completed work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As posted.
    pub wr_id: u64,
    /// Number of the queue pair it was posted to, as on the wire.
    pub qpn: u32,
    /// Outcome.
    pub status: Status,
    /// What it was.
    pub operation: Operation,
    /// Bytes of the message.
    pub byte_len: u32,
    /// Immediate data that came with it, for a receive.
    pub imm: Option<u32>,
    /// Whether the sender asked for a solicited event, for a receive.
    pub solicited: bool,
}

impl Completion {
    /// What a place for one holds until [`Cq::poll`] fills it.
    pub const BLANK: Self = Self {
        wr_id: 0,
        qpn: 0,
        status: Status::Success,
        operation: Operation::Send,
        byte_len: 0,
        imm: None,
        solicited: false,
    };
}

/// Completions were lost because the queue was full; its queue pairs are of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqOverflow {
    /// Its depth.
    pub depth: usize,
}

impl fmt::Display for CqOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a completion queue of {} overflowed: make it as deep as all work that can complete to it",
            self.depth
        )
    }
}

impl std::error::Error for CqOverflow {}

/// What a queue and the workers share.
#[derive(Debug)]
pub(super) struct CqShared {
    pub(super) rings: Vec<ArrayQueue<Completion>>,
    pub(super) overflowed: AtomicBool,
    pub(super) event: Event,
}

/// A completion queue. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct Cq {
    pub(super) device: Arc<DeviceInner>,
    pub(super) shared: Arc<CqShared>,
    /// The core's queue, by worker.
    pub(super) ids: Arc<[CqId]>,
    /// Ring to look at first.
    turn: Arc<AtomicUsize>,
    depth: usize,
}

impl Cq {
    pub(super) fn new(device: Arc<DeviceInner>, depth: usize) -> Result<Self, ResourceError> {
        let workers = device.workers.len();
        let event = Event::new().map_err(ResourceError::Event)?;
        let rings = (0..workers).map(|_| ArrayQueue::new(depth.max(1))).collect();
        let shared = Arc::new(CqShared { rings, overflowed: AtomicBool::new(false), event });
        let mut ids = Vec::with_capacity(workers);
        for worker in 0..workers {
            let ring = Arc::clone(&shared);
            ids.push(device.with_engine(worker, move |engine| engine.create_cq(depth, ring))??);
        }
        Ok(Self { device, shared, ids: ids.into(), turn: Arc::new(AtomicUsize::new(0)), depth })
    }

    /// Takes completions, oldest first per worker; returns how many. Drives workers that have no thread of their own.
    ///
    /// # Errors
    /// [`CqOverflow`] once completions were lost and what is left has been taken.
    pub fn poll(&self, out: &mut [Completion]) -> Result<usize, CqOverflow> {
        self.device.drive();
        let rings = &self.shared.rings;
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut taken = 0;
        for step in 0..rings.len() {
            let ring = &rings[(first + step) % rings.len()];
            while taken < out.len() {
                let Some(completion) = ring.pop() else { break };
                out[taken] = completion;
                taken += 1;
            }
        }
        if taken == 0 && self.shared.overflowed.load(Ordering::Acquire) {
            return Err(CqOverflow { depth: self.depth });
        }
        Ok(taken)
    }

    /// Takes one completion, if there is one.
    ///
    /// # Errors
    /// As [`Cq::poll`].
    pub fn poll_one(&self) -> Result<Option<Completion>, CqOverflow> {
        let mut one = [Completion::BLANK];
        Ok((self.poll(&mut one)? == 1).then_some(one[0]))
    }

    /// A descriptor for `epoll` and its like: readable after [`Cq::arm`] when completions came. Workers need threads of
    /// their own then ([`Workers`](super::Workers)).
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.fd()
    }

    /// Asks for the descriptor to become readable at the next completion. Poll once more after it, then wait: what came
    /// before it makes no event.
    pub fn arm(&self) {
        self.shared.event.arm();
    }

    /// Completions that it holds per worker.
    pub fn depth(&self) -> usize {
        self.depth
    }
}
