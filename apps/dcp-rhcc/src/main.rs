//! RHCC's receiver as a program: `dcp-rhcc`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = dcp_rhcc::modes::play(std::env::args_os());
    ExitCode::from(code.unwrap_or_else(|| dcp_rhcc::app::run(std::env::args_os())))
}
