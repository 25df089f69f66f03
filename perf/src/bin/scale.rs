//! How the cost of a packet grows: `make scale`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use dcp_perf::output::{Failure, finish, stopped_by_signals, write};
use dcp_perf::scale::{Options, run};

fn main() -> ExitCode {
    finish(scale(&Options::parse()))
}

fn scale(options: &Options) -> Result<(), Failure> {
    let report = run(options, stopped_by_signals()?)?;
    if options.json.as_deref() != Some(Path::new("-")) {
        print!("{}", report.tables());
    }
    if let Some(path) = &options.json {
        write(path, &report.json())?;
    }
    if let Some(path) = &options.svg {
        write(path, &report.svg().map_err(Failure::Broken)?)?;
    }
    Ok(())
}
