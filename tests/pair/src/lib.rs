//! Two endpoints, a scripted link and virtual time: the test harness of the core.
//!
//! Frames are real bytes and so is memory; only the wire between the hosts is made up. A [`Script`] decides what
//! becomes of each frame. The harness knows nothing of the endpoints' insides: what it checks, it checks on
//! completions, counters and bytes.
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small, and a pair runs on 64 bits")]
#![forbid(unsafe_code)]

mod host;
mod pair;
mod script;
mod setup;

pub use host::{Host, MR_VA};
pub use pair::{Pair, Side, Step, WriteRange};
pub use script::{Copies, FrameCopy, Lossless, Random, Rates, Rng, Script, fate};
pub use setup::PairConfig;
