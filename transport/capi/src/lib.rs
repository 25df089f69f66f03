//! The C interface of DCP. `include/dcp.h` is written from this crate by cbindgen; its comments are the manual.
//!
//! Every entry point does the same: it borrows the handles it is given, which refuses NULL and strangers, calls the Rust
//! library, and turns the outcome into a number. Nothing unwinds into C: see `failure::entry`.

// What C calls must be public to be exported, and is named as C names it; what C promises stands in dcp.h, once.
#![allow(unreachable_pub, clippy::missing_safety_doc)]

mod connection;
mod context;
mod failure;
mod handle;
mod memory;
mod pair;
mod post;
mod process;
mod queue;
mod queue_pair;
mod sized;
mod version;
mod words;
