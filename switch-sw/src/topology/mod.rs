//! Networks of several switches and many hosts: described, checked, and joined inside one process.
//!
//! A [`Topology`] is a checked description: which switches there are, which hosts and links, and by which ports a frame
//! for a host leaves each switch. It needs no DPDK. A [`Network`] is a topology at work on DPDK ports.

mod description;
mod error;
mod network;
mod plan;
mod routes;
mod time;

pub use description::{Description, LinkDescription, SwitchDescription};
pub use error::TopologyError;
pub use network::{Cables, Network};
pub use plan::{End, NetworkConfig, Topology};
