//! perftest for DCP.

#![forbid(unsafe_code)]

pub mod device;
pub mod failure;
pub mod interrupt;
pub mod measure;
pub mod net;
pub mod outcome;
pub mod pattern;
pub mod plan;
pub mod progress;
pub mod units;
