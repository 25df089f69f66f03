//! Workers and the switch in this process, over real DPDK rings. One EAL serves all tests.
#![forbid(unsafe_code)]

mod load;
mod noise;
mod overload;
mod relay;
mod rig;
mod scarcity;
mod segments;
mod stale;
mod zero_copy;
