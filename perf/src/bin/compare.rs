//! DCP beside memcpy, bare mbufs, kernel TCP and UCX, in one run: `make compare`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use dcp_perf::compare::{Options, run};
use dcp_perf::output::{Failure, Told, finish, publish, stopped_by_signals};

fn main() -> ExitCode {
    finish(compare(&Options::parse()))
}

fn compare(options: &Options) -> Result<(), Failure> {
    let report = run(options, stopped_by_signals()?)?;
    let told = Told { tables: report.tables(), json: report.json(), svg: report.svg() };
    publish(told, options.json.as_deref(), options.svg.as_deref())
}
