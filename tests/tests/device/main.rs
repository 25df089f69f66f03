//! The device layer between processes: memif directly, veth with af_packet, taps with a bridge. Each in a network
//! namespace of its own, by `device-probe`.
#![forbid(unsafe_code)]

mod hosts;
mod memif;
mod probe;
mod refusals;
mod telemetry;
mod transfers;
mod wires;
