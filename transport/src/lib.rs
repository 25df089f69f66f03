//! DCP: an RDMA-like transport in user space, on DPDK.
//!
//! [`Worker`] drives one [`dcp_core::Endpoint`] over a queue pair of an Ethernet device: it receives, places payload
//! straight into registered memory, and sends payload straight out of it. The protocol itself lives in `dcp-core`.
#![forbid(unsafe_code)]

pub mod connect;
pub mod device;
pub mod net;
mod place;
mod recency;
mod transmit;
pub mod verbs;
mod worker;

pub use dcp_core as core;
pub use dcp_wire as wire;
pub use dpdk_ffi as dpdk;
pub use worker::{ReceiveLoad, Worker, WorkerConfig, WorkerCounters};
