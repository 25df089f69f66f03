//! What the fuzz targets do with their input. `transport/core/tests/corpus.rs` includes the same files, and replays
//! the committed corpora on a stable compiler.
//!
//! `cd transport && cargo +nightly fuzz run handle_packet` (or `parse`) goes on searching.
#![forbid(unsafe_code)]

pub mod handle_packet;
pub mod input;
pub mod parse;
