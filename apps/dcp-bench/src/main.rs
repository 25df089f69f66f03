//! perftest for DCP: `dcp-bench write`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dcp_bench::app::run(std::env::args_os().collect()))
}
