//! RHCC's receiver: holds programs back while this host takes in slower than the network delivers (C-4).
//!
//! [`dcp_core::HostControl`] decides; a [`signal`] tells how full the way into memory is, an [`actuator`] holds
//! programs back, and a [`governor`] puts the three together. [`choose`] finds what a machine has. A limit is made so
//! that it can be lifted by someone else ([`undo`]), which a [`guardian`] does when the controller is killed.
//! [`antagonist`] has the programs that make a host congested.
//!
//! Nothing here needs DPDK: a worker of this process hands its numbers over ([`signal::software`]), another process's
//! come from its telemetry socket.
#![forbid(unsafe_code)]

pub mod actuator;
pub mod antagonist;
pub mod app;
mod child;
pub mod choose;
pub mod clock;
mod console;
pub mod enter;
pub mod failure;
pub mod governor;
pub mod guardian;
pub mod hog;
pub mod machine;
pub mod modes;
pub mod msr;
mod plan;
mod report;
pub mod root;
mod run;
pub mod settings;
pub mod signal;
pub mod target;
pub mod undo;

pub use antagonist::{Antagonist, AntagonistConfig};
pub use governor::Governor;
