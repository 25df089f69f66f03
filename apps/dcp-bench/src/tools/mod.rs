//! What the program does besides measuring: `check`.

mod check;

use clap::Subcommand;

use crate::failure::Failure;
use check::CheckArgs;

/// A subcommand that is no operation.
#[derive(Subcommand, Debug)]
pub enum Tool {
    /// Say in words what this machine offers, and the best command for it.
    #[command(display_name = "dcp-bench check")]
    Check(CheckArgs),
}

impl Tool {
    /// Does it; answers the exit code.
    ///
    /// # Errors
    /// It could not be done; nothing was said about it yet.
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Self::Check(args) => check::run(&args),
        }
    }
}
