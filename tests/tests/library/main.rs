//! The library in verbs' words, two devices on one link of DPDK rings.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test, helpers included")]

mod connection;
mod environment;
mod hand_over;
mod on_device;
mod operations;
mod rig;
mod telemetry;
mod threads;
