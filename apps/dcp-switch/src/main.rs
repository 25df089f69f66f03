//! The trimming switch as a program: `dcp-switch`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dcp_switch_app::app::run(std::env::args_os()))
}
