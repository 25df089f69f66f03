//! Behaviour of the switch, without DPDK. Ids: D1 … are cases, S-0 … requirements of the protocol.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod alike;
mod balance;
mod faults;
mod forwarding;
mod groups;
mod links;
mod marking;
mod refusals;
mod schedule;
mod support;
mod tap;
mod trim_to;
mod trimming;
mod wire_faults;
