//! Benchmarks of DCP: the pieces that are measured, and what DCP is compared with.
#![forbid(unsafe_code)]

mod calm;
pub mod cases;
mod child;
pub mod compare;
pub mod gate;
pub mod measure;
pub mod output;
pub mod scale;

#[cfg(not(test))]
use dcp_core::Instant;

#[cfg(not(test))]
#[path = "../../transport/core/src/maps.rs"]
#[expect(dead_code, reason = "the core's own source; only what a slot needs is used")]
mod maps;
#[cfg(not(test))]
#[path = "../../transport/core/src/mix.rs"]
#[expect(unreachable_pub, reason = "the core's own source, where it is public")]
mod mix;
#[cfg(not(test))]
#[path = "../../transport/core/src/slot.rs"]
#[expect(dead_code, reason = "the core's own source, measured where it is private")]
mod slot;
#[cfg(not(test))]
#[path = "../../transport/core/src/wheel.rs"]
#[expect(dead_code, reason = "the core's own source, measured where it is private")]
mod wheel;
