//! `dcp-bench check`: what this machine offers, in words or as JSON.

mod machine;
mod words;

use std::path::{Path, PathBuf};

use clap::Args;
use dcp::dpdk::{Eal, EalConfig};
use serde::Serialize;

use crate::console::Console;
use crate::failure::{Failure, FailureKind};
use crate::sink::JsonSink;
use machine::Machine;

/// Options of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Write one JSON object to FILE; without a name, to stdout instead of the words
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Whether a run in one process can begin here, tried and not guessed.
#[derive(Serialize, Debug)]
struct LoopTrial {
    starts: bool,
    /// What DPDK runs on, when it starts.
    memory: Option<String>,
    /// What is missing, when it does not.
    reason: Option<String>,
}

impl LoopTrial {
    /// Starts DPDK as a run does.
    fn run() -> Self {
        match Eal::start(EalConfig { memory_mib: MEMORY_MIB, ..EalConfig::default() }) {
            Ok(eal) => Self { starts: true, memory: Some(eal.memory().to_string()), reason: None },
            Err(error) => Self { starts: false, memory: None, reason: Some(error.to_string()) },
        }
    }
}

/// About what a run of two hosts takes.
const MEMORY_MIB: u32 = 96;

#[derive(Serialize)]
struct Report<'a> {
    tool: &'a str,
    version: &'a str,
    mode: &'a str,
    #[serde(flatten)]
    machine: &'a Machine,
    #[serde(rename = "loop")]
    trial: &'a LoopTrial,
    best_commands: Vec<String>,
}

/// Looks, and says what it found; answers 0 if a run in one process can begin, 3 if not.
///
/// # Errors
/// The findings could not be printed.
pub(super) fn run(args: &CheckArgs) -> Result<u8, Failure> {
    // Before DPDK starts, so that the counts are those of the machine at rest.
    let machine = Machine::read();
    let trial = LoopTrial::run();
    let mut sink = JsonSink::open("--json", args.json.as_deref())?;
    if args.json.as_deref() != Some(Path::new("-")) {
        Console { table_on_stderr: false, quiet: false }.table(&words::all(&machine, &trial))?;
    }
    sink.write(&json(&machine, &trial))?;
    Ok(if trial.starts { 0 } else { FailureKind::Environment.exit_code() })
}

fn json(machine: &Machine, trial: &LoopTrial) -> String {
    let report = Report {
        tool: "dcp-bench",
        version: env!("CARGO_PKG_VERSION"),
        mode: "check",
        machine,
        trial,
        best_commands: words::best_commands(machine, trial),
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain structs always serialise");
    text.push('\n');
    text
}
