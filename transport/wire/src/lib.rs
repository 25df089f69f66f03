//! Frames of the DCP protocol: parse, emit, trim, bounce.
//!
//! A frame is parsed once, at the edge, into a [`Packet`]: a value that can only hold what the protocol
//! allows. Everything behind the edge works on that value and never on bytes.
#![forbid(unsafe_code)]

pub mod header;
pub mod ids;
pub mod seq;

pub use header::*;
pub use ids::*;
pub use seq::*;
