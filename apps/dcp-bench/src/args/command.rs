//! The program's words: operations and what else there is.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::BandwidthArgs;
use crate::failure::Failure;
use crate::op::Op;
use crate::tools::Tool;

/// perftest for DCP.
///
/// Moves seeded data between hosts over DPDK and a trimming switch, checks it, and says how fast that was.
#[derive(Parser, Debug)]
#[command(name = "dcp-bench", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Bandwidth of RDMA WRITE.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Write(BandwidthArgs),
    /// Bandwidth of RDMA WRITE with immediate data.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    WriteImm(BandwidthArgs),
    /// Bandwidth of SEND.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Send(BandwidthArgs),
    /// Bandwidth of SEND with immediate data.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    SendImm(BandwidthArgs),
    /// Bandwidth of RDMA READ.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Read(BandwidthArgs),
    /// Rate of atomic compare and swap.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Cas(BandwidthArgs),
    /// Rate of atomic fetch and add.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Faa(BandwidthArgs),
    /// What is no operation.
    #[command(flatten)]
    Tool(Tool),
    /// What host congestion does to RDMA WRITE in the loop, without RHCC and with either half of it: one table.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Rhcc(BandwidthArgs),
    /// Any other word, with what follows it.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl Command {
    /// The operation and its options, or the words that name none.
    ///
    /// # Errors
    /// The words; none for what is no operation.
    pub fn operation(self) -> Result<(Op, BandwidthArgs), Vec<OsString>> {
        Ok(match self {
            Self::Write(args) => (Op::Write, args),
            Self::WriteImm(args) => (Op::WriteImm, args),
            Self::Send(args) => (Op::Send, args),
            Self::SendImm(args) => (Op::SendImm, args),
            Self::Read(args) => (Op::Read, args),
            Self::Cas(args) => (Op::Cas, args),
            Self::Faa(args) => (Op::Faa, args),
            Self::Tool(_) => return Err(Vec::new()),
            Self::Rhcc(_) => return Err(Vec::new()),
            Self::Other(words) => return Err(words),
        })
    }
}

/// Why a word is not an operation.
pub fn not_an_operation(words: &[OsString]) -> Failure {
    let word = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    Failure::usage(format!("there is no operation `{word}`")).with_hint(
        "there are write, write-imm, send, send-imm, read, cas and faa; `dcp-bench --help` lists what else there is",
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
