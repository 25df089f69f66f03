//! Options of the network in between.

use clap::Args;

use crate::network::NetworkArgs;
use crate::units::{self, Probability};

/// The network in between.
#[derive(Args, Debug)]
#[command(next_help_heading = "Network (loop only)")]
pub struct FabricArgs {
    /// Hosts, 2 to 33: one server, the others clients [default: 2, or what the file of --topology has]
    #[arg(long, value_name = "N")]
    pub hosts: Option<u32>,
    /// Queued bytes above which the switch trims
    #[arg(long, value_name = "BYTES", default_value = "512K", value_parser = units::parse_size)]
    pub threshold: u64,
    /// Room for trimmed headers and control packets in the switch
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = units::parse_size)]
    pub control_bytes: u64,
    /// Trim data packets with this probability, below 100%: 1% or 0.01
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub trim: Probability,
    /// Drop packets with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub drop: Probability,
    /// Send packets twice with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub dup: Probability,
    /// Seed of the data and of the injected faults
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::parse_seed)]
    pub seed: u64,
    /// Switches, links and what happens on them.
    #[command(flatten)]
    pub network: Box<NetworkArgs>,
}
