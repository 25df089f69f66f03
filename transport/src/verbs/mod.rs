//! The library in verbs' words: devices, protection domains, memory regions, completion queues, queue pairs.
//!
//! A [`Device`] has one or more workers; each owns a protocol endpoint and a queue pair of the Ethernet device. A worker
//! is driven by whoever polls ([`Device::poll`], [`Cq::poll`]), or by a thread of its own ([`Workers::spawn`]); the
//! rest of the application is the same. Posts and completions cross between the application and a worker through
//! bounded lock-free queues.

mod connection;
mod cq;
mod device;
mod engine;
mod error;
mod event;
mod mr;
mod pd;
mod qp;
mod request;
mod stats;
mod telemetry;
mod threads;

pub use connection::Connection;
pub use cq::{Completion, Cq, CqOverflow};
pub use device::{Device, DeviceConfig};
pub use error::{PostError, ResourceError};
pub use mr::{Mr, MrRangeError, RemoteMr};
pub use pd::{Pd, SharedReceives};
pub use qp::{Qp, QpAddress, QpOptions};
pub use request::{Opcode, RecvWorkRequest, SendWorkRequest};
pub use stats::{DeviceStats, QpStats, WorkerStats};
pub use threads::{Backoff, Workers};

pub use dcp_core::{Access, CongestionControl, Operation, QpCounters, QpState, Remote, Sge, Status};
pub use dpdk_ffi::PortStats;
