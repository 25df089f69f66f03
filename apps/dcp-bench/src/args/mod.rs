//! The command line.

mod bandwidth;
mod command;
mod fabric;
mod link;
mod notes;
mod output;
mod perftest;
mod traffic;
mod unchecked;

pub use bandwidth::BandwidthArgs;
pub use command::{Cli, Command, not_an_operation};
pub use fabric::FabricArgs;
pub use link::LinkArgs;
pub use output::{OutputArgs, json_target};
pub use perftest::PerftestArgs;
pub use traffic::TrafficArgs;
