//! Options that people know from perftest.

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::plan::{Length, Plan, Reporting};
use crate::units;

/// Options that people know from perftest.
#[derive(Args, Debug)]
#[command(next_help_heading = "As in perftest")]
pub struct PerftestArgs {
    /// Run with sizes from 2 bytes to 8 MiB, one row each
    #[arg(short, long, conflicts_with_all = ["size", "size_dist"])]
    pub all: bool,
    /// Leave out so many seconds at the beginning and at the end of --duration
    #[arg(short = 'f', long, value_name = "S", requires = "duration", value_parser = units::parse_seconds)]
    pub margin: Option<Duration>,
    /// Do not look for the peak
    #[arg(short = 'N', long = "noPeak")]
    pub no_peak: bool,
    /// Fail when the average bandwidth is below so many Gb/s
    #[arg(short = 'w', long = "limit_bw", value_name = "G", value_parser = units::parse_gbps)]
    pub limit_bw: Option<f64>,
    /// Take messages from huge pages, or fail
    #[arg(long = "use_hugepages")]
    pub use_hugepages: bool,
    /// Print a row every so many seconds
    #[arg(long, value_name = "S", value_parser = units::parse_seconds)]
    pub interval: Option<Duration>,
    /// Copy messages up to so many bytes when they are posted, up to 1K
    #[arg(short = 'I', long = "inline_size", alias = "inline", value_name = "BYTES", default_value = "0",
          value_parser = units::parse_size)]
    pub inline_size: u64,
    /// Accepted and ignored: there is no check of the processor's frequency
    #[arg(short = 'F', long = "CPU-freq")]
    pub cpu_freq: bool,
    /// Accepted and ignored: there are no GIDs
    #[arg(short = 'x', long = "gid-index", value_name = "N")]
    pub gid_index: Option<u32>,
    /// Accepted and ignored: a device is a port
    #[arg(short = 'i', long = "ib-port", value_name = "N")]
    pub ib_port: Option<u32>,
    /// Accepted and ignored: there is one way to connect
    #[arg(short = 'R', long = "rdma_cm")]
    pub rdma_cm: bool,
}

/// Exponents of the sizes of --all: 2 bytes to 8 MiB.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

impl PerftestArgs {
    /// What is told of a run, and how.
    pub const fn reporting(&self) -> Reporting {
        Reporting {
            interval: self.interval,
            margin: self.margin,
            no_peak: self.no_peak,
            limit_gbps: self.limit_bw,
        }
    }

    /// Sentences on options that change nothing.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let ignored = [
            ("-F", self.cpu_freq, "there is no check of the processor's frequency"),
            ("-x", self.gid_index.is_some(), "there are no GIDs"),
            ("-i", self.ib_port.is_some(), "a device is a port"),
            ("-R", self.rdma_cm, "there is one way to connect"),
        ];
        let given = ignored.into_iter().filter(|(_, given, _)| *given);
        given.map(|(option, _, why)| format!("{option} means nothing here: {why}"))
    }

    /// The runs of --all, or the one.
    ///
    /// # Errors
    /// A usage failure.
    pub fn plans(&self, plan: &Plan) -> Result<Vec<Plan>, Failure> {
        if let (Some(margin), Length::Duration(duration)) = (self.margin, plan.length)
            && margin * 2 >= duration
        {
            return Err(Failure::usage(
                "-f leaves nothing of --duration: twice as much must be less than it",
            ));
        }
        if !self.all {
            return Ok(vec![plan.clone().checked()?]);
        }
        if plan.op.is_atomic() {
            return Err(Failure::usage("--all is for messages of several sizes, and atomics have 8 bytes"));
        }
        ALL.map(|exponent| Plan { size: 1 << exponent, ..plan.clone() }.checked()).collect()
    }
}
