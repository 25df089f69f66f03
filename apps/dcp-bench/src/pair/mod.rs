//! A run between two processes: a server that waits for one client and serves it, and a client that measures.
//!
//! They find each other over TCP (`dcp::connect`), compare their options, and connect their queue pairs. The channel
//! stays open during the run: over it the client tells what has completed, the server what it found in its memory, and
//! each that it stops or why it failed. Its end without a word is the death of the other process.

mod client;
mod host;
mod options;
mod reach;
mod server;
mod session;
mod words;

use dcp::connect::ConnectError;
pub(crate) use host::Host;

use crate::device::Stage;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::plan::{Link, Plan, Side};

/// Time for each answer of the other side while the two get together, in seconds.
const SETUP_S: u64 = 15;

/// Carries out one side of a plan.
pub(crate) fn run(plan: &Plan, link: &Link, stage: &mut Stage<'_>) -> Result<Outcome, Failure> {
    match &link.side {
        Side::Server => server::run(plan, link, stage),
        Side::Client { host } => client::run(plan, link, host, stage),
    }
}

/// Why the two did not get together, or lost each other. `other`: who that is.
fn failure(error: &ConnectError, other: &str) -> Failure {
    match error {
        ConnectError::Stopped => Failure::interrupted(),
        ConnectError::Refused(_) | ConnectError::RefusedByPeer { .. } => Failure::usage(error.to_string()),
        ConnectError::PeerLost { reason } => {
            Failure::transfer(format!("the {other} ended without a word ({reason})"))
                .with_hint(format!("see on the {other}'s side why it ended"))
        }
        _ => Failure::environment(error.to_string()),
    }
}
