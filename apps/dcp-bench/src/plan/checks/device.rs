//! What a device, or a network without a switch, has no use for.

use super::range::in_range;
use crate::failure::Failure;
use crate::network::{Network, Shape};
use crate::plan::limits::LINK_QPS_MAX;
use crate::plan::{CONTROL_BYTES, Device, Plan, THRESHOLD_BYTES, Threads};
use crate::units::Probability;

impl Plan {
    /// Between two processes there is nothing but the device.
    pub(super) fn check_link(&self) -> Result<(), Failure> {
        if self.device == Device::Loop {
            return Ok(());
        }
        if matches!(self.device, Device::Link(_)) {
            in_range("--qp between two processes", u64::from(self.qps), 1, u64::from(LINK_QPS_MAX))?;
        }
        let loop_only = [
            ("--hosts", self.hosts != 2),
            ("a network of --link-gbps, --topology or --pcap", self.network != Network::default()),
            ("--threads split", self.threads == Threads::Split),
        ];
        match loop_only.iter().chain(&self.switch_options()).find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for the loop, whose switch is in this process: leave it out with {}",
                self.device.name()
            ))),
        }
    }

    /// Hosts that are joined directly have nothing in between.
    pub(super) fn check_direct(&self) -> Result<(), Failure> {
        if self.network.shape != Shape::Direct {
            return Ok(());
        }
        let of_links =
            [("--link-gbps", self.network.link_gbps > 0.0), ("--pcap", self.network.pcap.is_some())];
        match self.switch_options().iter().chain(&of_links).find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is about a switch, and --topology direct has none: leave one of them out"
            ))),
        }
    }

    /// What never arrives is not answered, and cannot be compared.
    pub(super) fn check_null(&self) -> Result<(), Failure> {
        if self.device != Device::Null {
            return Ok(());
        }
        if self.op.is_answered() {
            let op = self.op.name();
            return Err(Failure::usage(format!("null answers nothing, and {op} waits for an answer"))
                .with_hint("choose write, write-imm, send or send-imm"));
        }
        if self.verify_each {
            return Err(Failure::usage("null delivers nothing that --verify could compare"));
        }
        Ok(())
    }

    /// Options of the switch, and whether they were used.
    fn switch_options(&self) -> [(&'static str, bool); 7] {
        [
            ("--threshold", self.threshold_bytes != THRESHOLD_BYTES),
            ("--control-bytes", self.control_bytes != CONTROL_BYTES),
            ("--trim", self.faults.trim != Probability::ZERO),
            ("--drop", self.faults.drop != Probability::ZERO),
            ("--dup", self.faults.duplicate != Probability::ZERO),
            ("--reorder", self.faults.reorder != Probability::ZERO),
            ("--corrupt", self.faults.corrupt != Probability::ZERO),
        ]
    }
}
