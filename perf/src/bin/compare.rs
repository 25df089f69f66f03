//! DCP beside memcpy, bare mbufs, kernel TCP and UCX, in one run: `make compare`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use dcp_perf::compare::{Options, run};
use dcp_perf::output::{Failure, finish, stopped_by_signals, write};

fn main() -> ExitCode {
    finish(compare(&Options::parse()))
}

fn compare(options: &Options) -> Result<(), Failure> {
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
