//! `dcp-switch` between hosts in processes of their own: over memif, veth and taps. The hosts are `device-probe`.
#![forbid(unsafe_code)]

mod congestion;
mod kernel;
mod links;
#[path = "../device/probe.rs"]
#[expect(dead_code, reason = "the device tests use more of it")]
mod probe;
mod program;
mod refusals;
mod stop;
mod telemetry;
mod transfers;
