//! What can go wrong when an application asks for something.

use std::fmt;

use dcp_core::{CreateError, QpState, RegisterError};
use dpdk_ffi::{PoolError, RegionError};

use crate::device::DeviceError;

/// Why an object was not made.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceError {
    /// A parameter, or too many objects.
    Create(CreateError),
    /// A memory region that cannot be registered.
    Register(RegisterError),
    /// Memory that the machine does not give.
    Memory(RegionError),
    /// Memory that a card cannot read.
    Dma(dpdk_ffi::DmaError),
    /// Mbufs that the EAL's memory does not hold.
    Pool(PoolError),
    /// A network device that does not do its part.
    Device(DeviceError),
    /// No worker of that number.
    NoSuchWorker {
        /// Asked for.
        worker: usize,
        /// There are so many.
        workers: usize,
    },
    /// The worker's thread panicked.
    WorkerGone {
        /// Its number.
        worker: usize,
    },
    /// Nobody answers for an address.
    Unreachable {
        /// The address.
        ip: std::net::Ipv4Addr,
    },
    /// The queue pair is connected, or closed, already.
    Connected,
    /// Objects of two devices do not go together.
    OtherDevice,
    /// The system refused an event descriptor.
    Event(String),
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(error) => error.fmt(f),
            Self::Register(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Dma(error) => error.fmt(f),
            Self::Pool(error) => error.fmt(f),
            Self::Device(error) => error.fmt(f),
            Self::NoSuchWorker { worker, workers } => {
                write!(f, "worker {worker} of a device with {workers}: count from 0")
            }
            Self::WorkerGone { worker } => {
                write!(f, "the thread of worker {worker} panicked; close the device")
            }
            Self::Unreachable { ip } => {
                write!(f, "nobody answers ARP for {ip}: check the address, the link and the gateway")
            }
            Self::Connected => write!(f, "the queue pair was connected or closed before: make a new one"),
            Self::OtherDevice => write!(f, "the objects belong to two devices"),
            Self::Event(reason) => write!(f, "no event descriptor: {reason}"),
        }
    }
}

impl std::error::Error for ResourceError {}

impl From<CreateError> for ResourceError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<DeviceError> for ResourceError {
    /// A lack of mbufs is the same wherever it shows.
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Pool(error) => Self::Pool(error),
            error => Self::Device(error),
        }
    }
}

/// Why a work request was not taken. Nothing of it was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The queue pair's send or receive queue is full: poll completions first.
    QueueFull {
        /// Its depth.
        depth: u32,
    },
    /// The worker has so many posts to look at: poll, and post again.
    WorkerBusy,
    /// More inline bytes than fit.
    InlineTooLong {
        /// As posted.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// More elements than fit.
    TooManySges {
        /// As posted.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The queue pair's state does not take it.
    NotReady {
        /// Its state.
        state: QpState,
    },
    /// A READ or atomic on a queue pair that was made without them (`max_rd_atomic` 0).
    NoReads,
    /// The message is too long.
    MessageTooLong {
        /// As posted.
        len: u64,
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::QueueFull { depth } => {
                write!(f, "the queue of {depth} is full; poll completions before posting more")
            }
            Self::WorkerBusy => write!(f, "the worker's queue of posts is full; poll, and post again"),
            Self::InlineTooLong { len, limit } => {
                write!(f, "{len} inline bytes; at most {limit} are allowed")
            }
            Self::TooManySges { count, limit } => {
                write!(f, "{count} scatter/gather elements; at most {limit} are allowed")
            }
            Self::NotReady { state } => write!(f, "the queue pair is in state {state:?}; connect it first"),
            Self::NoReads => {
                write!(f, "the queue pair was made with max_rd_atomic 0: no READs and no atomics")
            }
            Self::MessageTooLong { len, limit } => {
                write!(f, "a message of {len} bytes; at most {limit} are allowed")
            }
        }
    }
}

impl std::error::Error for PostError {}
