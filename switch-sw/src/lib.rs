//! The trimming switch on DPDK ports.
//!
//! [`Switch`] is a driver: it moves frames between queue pairs of Ethernet devices and a [`pipeline::Pipeline`], which decides
//! everything about them.
#![forbid(unsafe_code)]

mod frame;
mod switch;

pub use dcp_pipeline as pipeline;
pub use frame::MbufFrame;
pub use switch::{Switch, SwitchCounters};
