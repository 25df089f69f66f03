//! Connection set-up out of band (protocol §6): over TCP, IPv4 or IPv6, one JSON object per line each way.
//!
//! The connecting side sends its [`Offer`] and the connection's key, the accepting side looks at it and answers with
//! its own; both take the smaller of each number. Then each brings its queue pair to RTR, posts its receives and says
//! "ready"; after both have, they send. The channel stays open: its end is how the death of a peer's process is
//! noticed at once, and applications may pass messages of their own on it.
//!
//! [`negotiate`] and [`Line`] are sans-IO; [`Control`] and [`Listener`] are the sockets around them.

mod control;
mod error;
mod lines;
mod negotiate;
mod offer;
mod wire_form;

pub use control::{Control, ControlEvent, Incoming, Listener, Patience, random_key};
pub use error::{ConnectError, Refusal};
pub use lines::{LINE_BYTES_MAX, Line, LineBuffer, printable};
pub use negotiate::{Agreement, negotiate};
pub use offer::{MrOffer, Offer};
pub use wire_form::VERSION;

#[cfg(test)]
mod tests;
