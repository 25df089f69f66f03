//! What latency tests and runs in both directions have no use for.

use crate::failure::Failure;
use crate::plan::{Device, Mode, Plan};

impl Plan {
    /// One message at a time, between two.
    pub(super) fn check_latency(&self) -> Result<(), Failure> {
        if self.mode == Mode::Bandwidth {
            return Ok(());
        }
        if self.device == Device::Null {
            return Err(Failure::usage("null answers nothing, and --lat waits for answers"));
        }
        let alone = [("--qp", self.qps != 1), ("--hosts", self.hosts != 2)];
        match alone.iter().find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for bandwidth: --lat sends one message at a time from one client; leave it out"
            ))),
        }
    }

    /// As in perftest, two hosts send to each other.
    pub(super) fn check_bidirectional(&self) -> Result<(), Failure> {
        if !self.bidirectional {
            return Ok(());
        }
        if self.mode == Mode::Latency {
            return Err(Failure::usage("--bidirectional is for bandwidth: leave it out with --lat"));
        }
        if self.device == Device::Null {
            return Err(Failure::usage(
                "null answers nothing, so there is one direction: leave out --bidirectional",
            ));
        }
        if self.hosts != 2 {
            let hosts = self.hosts;
            return Err(Failure::usage(format!(
                "--bidirectional is between two hosts, and --hosts is {hosts}: leave out one of them"
            )));
        }
        Ok(())
    }

    pub(super) fn check_load(&self) -> Result<(), Failure> {
        self.load.check(self.qps, self.tx_depth)?;
        let bandwidth_only = [
            ("--rate", self.load.rate_gbps.is_some()),
            ("--size-dist", self.load.size_dist.is_some()),
            ("--post_list", self.load.post_list > 1),
            ("--limit_bw", self.reporting.limit_gbps.is_some()),
        ];
        let wrong = bandwidth_only.iter().find(|(_, used)| *used && self.mode == Mode::Latency);
        if let Some((option, _)) = wrong {
            return Err(Failure::usage(format!("{option} is for bandwidth: leave it out with --lat")));
        }
        Ok(())
    }
}
