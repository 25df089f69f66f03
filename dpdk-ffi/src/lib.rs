//! Safe wrappers over the part of DPDK that DCP uses.
//!
//! The only crate of the workspace, besides the C interface, that may say `unsafe`. What it gives out cannot be misused
//! from safe code: frames are owned handles, transmit takes what it sent and leaves the rest, and memory that a peer
//! can write is only ever copied in and out.
//!
//! A program starts [`Eal`] once, makes [`Pool`]s, gets [`QueuePair`]s from [`fabric`] or [`port`], and then runs
//! [`RxQueue::burst`] and [`TxQueue::burst`] over an [`MbufBatch`]. Payload goes out without a copy through an
//! [`MbufStash`] and a [`Region`].

#![deny(unsafe_op_in_unsafe_fn)]

pub mod batch;
pub mod clock;
pub mod dma;
pub mod eal;
mod errno;
pub mod fabric;
mod flock;
pub mod interface;
pub mod interrupts;
pub mod lcore;
mod limits;
pub mod mbuf;
pub mod memory;
pub mod pool;
pub mod port;
mod prefetch;
pub mod queue;
pub mod region;
mod segment;
pub mod stash;
pub mod streaming;
pub mod telemetry;

pub use batch::MbufBatch;
pub use clock::Clock;
pub use dma::{DmaDevice, DmaError};
pub use eal::{Eal, EalConfig, EalError, MemoryMode};
pub use errno::Errno;
pub use fabric::{FabricConfig, FabricError, create_links};
pub use interface::{Interface, InterfaceError};
pub use interrupts::InterruptGate;
pub use lcore::{LcoreGuard, available_cores, pin, register_thread};
pub use mbuf::Mbuf;
pub use memory::HugePreference;
pub use pool::{Pool, PoolConfig, PoolError};
pub use port::{Port, PortConfig, PortError, PortStats};
pub use prefetch::prefetch;
pub use queue::{QueuePair, RxQueue, TxQueue};
pub use region::{Region, RegionError, RegionRangeError};
pub use stash::{AttachError, MbufStash};
pub use streaming::Streaming;
