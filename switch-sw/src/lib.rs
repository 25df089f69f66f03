//! The trimming switch on DPDK ports.
//!
//! [`Switch`] is a driver: it moves frames between queue pairs of Ethernet devices and a [`pipeline::Pipeline`], which decides
//! everything about them. [`topology`] joins several of them in one process.
#![forbid(unsafe_code)]

mod arrival;
mod capture;
mod checksum;
mod frame;
mod pcap;
mod switch;
pub mod topology;

pub use capture::{Capture, CaptureFile, CapturePoint};
pub use dcp_pipeline as pipeline;
pub use frame::MbufFrame;
pub use pcap::{PcapWriter, SNAP_LEN};
pub use switch::{DeviceCounters, Stopped, Switch, SwitchCounters};
