//! perftest for DCP: `dcp-bench write`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // --antagonist starts this program again for its hogs.
    let code = dcp_rhcc::modes::play(std::env::args_os());
    ExitCode::from(code.unwrap_or_else(|| dcp_bench::app::run(std::env::args_os().collect())))
}
