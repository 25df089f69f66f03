//! The loop: clients, a switch and a server in this process, joined by real DPDK ports.
//!
//! Every host and every switch port is a queue pair of a net_ring device. [`Loop`] starts DPDK; each
//! [`Loop::run`] builds a fabric, drives it until the plan is done, checks the data and takes it apart again.

mod drive;
mod fabric;
mod network;

use std::sync::atomic::AtomicBool;

use dcp::dpdk::{Clock, Eal, EalConfig};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::progress::Progress;

/// DPDK, started: at most one in a process.
#[derive(Debug)]
pub struct Loop {
    eal: Eal,
    clock: Clock,
}

impl Loop {
    /// Starts DPDK with the memory that `plan` needs.
    ///
    /// # Errors
    /// The machine does not let it start; the failure says what to do.
    pub fn start(plan: &Plan) -> Result<Self, Failure> {
        let memory_mib = fabric::memory_mib(plan.hosts);
        let config = EalConfig { memory_mib, ..EalConfig::default() };
        let eal = Eal::start(config).map_err(|error| Failure::environment(error.to_string()))?;
        Ok(Self { eal, clock: Clock::calibrate() })
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// The transfer failed, the machine lacks memory for it, or the user stopped it before it had begun.
    ///
    /// # Panics
    /// When frames are left over at the end: that would be a leak of ours.
    pub fn run(
        &self,
        plan: &Plan,
        interrupted: &AtomicBool,
        progress: &mut Progress,
    ) -> Result<Outcome, Failure> {
        let _registered =
            dcp::dpdk::register_thread(&self.eal).map_err(|error| Failure::environment(error.to_string()))?;
        let pools = fabric::Pools::new(&self.eal, plan.hosts)?;
        let fabric = fabric::Fabric::build(&self.eal, &self.clock, &pools, plan, interrupted)?;
        let result = drive::run(&self.eal, fabric, plan, interrupted, progress);
        let leaked = pools.in_use();
        assert_eq!(leaked, 0, "{leaked} mbufs are still in use after the run");
        result
    }
}
