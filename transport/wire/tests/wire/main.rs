//! Behaviour of the frame formats. Ids (A1 …) are those of the case list, P-1, S-2 … those of the protocol.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod classifier;
mod golden;
mod noise;
mod parser_faults;
mod rewrite;
mod roundtrip;
mod serial;
mod support;
mod switch_view;
mod trailer;
