//! Small worlds, exhaustively: every schedule of deliver, drop, trim, lose an HO, duplicate and delay past a timeout,
//! in any order of arrival, by depth-first search over cloned endpoints.
//!
//! What holds in every state: nothing is written after completion; a completion comes once, in order, and with all its
//! bytes; whatever is under way has a timer armed; eMSN never steps back. No schedule runs in circles or stops short
//! of the end, so every state can still finish.
//!
//! `cargo test -p dcp-core --test worlds -- --ignored --nocapture` searches the larger worlds.
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small, and worlds run on 64 bits")]

mod checks;
mod larger;
mod plan;
mod search;
mod small;
mod teeth;
mod world;
