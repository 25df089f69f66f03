//! What the program does besides measuring once.

mod check;
mod paper;
pub mod plot;
mod report;
mod run;
mod series;
mod sweep;

use clap::Subcommand;

use crate::failure::Failure;
use check::CheckArgs;
use paper::CompletionsArgs;
use report::ReportArgs;
use sweep::SweepArgs;

const SWEEP_HELP: &str = "\
One option has a list of values, and each of them runs. The results go to a table, and with --csv FILE, --svg FILE and
--json FILE also to files. `dcp-bench sweep write --help` lists the options and which of them take a list.";

/// A subcommand that is no operation.
#[derive(Subcommand, Debug)]
pub enum Tool {
    /// Run an operation once for each value of one option, such as: sweep write --trim 0,0.1%,1%
    #[command(arg_required_else_help = true, after_help = SWEEP_HELP)]
    Sweep {
        /// The operation and its options.
        #[command(subcommand)]
        of: SweepArgs,
    },
    /// Say in words what this machine offers, and the best command for it
    #[command(display_name = "dcp-bench check")]
    Check(CheckArgs),
    /// Make one HTML page of results in JSON
    #[command(display_name = "dcp-bench report")]
    Report(ReportArgs),
    /// Print the man page: dcp-bench man > dcp-bench.1
    #[command(display_name = "dcp-bench man")]
    Man,
    /// Print the completions of a shell
    #[command(display_name = "dcp-bench completions")]
    Completions(CompletionsArgs),
}

impl Tool {
    /// Does it; answers the exit code.
    ///
    /// # Errors
    /// It could not be done; nothing was said about it yet.
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Self::Sweep { of } => sweep::run(&of),
            Self::Check(args) => check::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Man => paper::man(),
            Self::Completions(args) => paper::completions(&args),
        }
    }
}
