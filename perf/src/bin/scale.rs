//! How the cost of a packet grows: `make scale`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use dcp_perf::output::{Failure, Told, finish, publish, stopped_by_signals};
use dcp_perf::scale::{Options, run};

fn main() -> ExitCode {
    finish(scale(&Options::parse()))
}

fn scale(options: &Options) -> Result<(), Failure> {
    let report = run(options, stopped_by_signals()?)?;
    let told = Told { tables: report.tables(), json: report.json(), svg: report.svg() };
    publish(told, options.json.as_deref(), options.svg.as_deref())
}
