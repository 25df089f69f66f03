//! What the end-to-end tests of DCP share: the real programs, run and watched from outside.
#![forbid(unsafe_code)]

pub mod build;
pub mod machine;
pub mod namespace;
pub mod program;
pub mod results;
pub mod telemetry;

pub use program::Bench;
pub use results::Results;
pub use telemetry::Telemetry;
