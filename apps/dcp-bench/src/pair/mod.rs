//! Runs between two processes: a server that waits for one client and serves it, and a client that measures.
//!
//! They find each other over TCP (`dcp::connect`), compare their options, and connect their queue pairs. The channel
//! stays open during the runs: over it the client tells what has completed, the server what it found in its memory, and
//! each that it stops or why it failed. Where both send, either does all of that. The channel's end without a word is
//! the death of the other process.

mod client;
mod duplex;
mod host;
mod options;
mod reach;
mod run;
mod server;
mod session;
mod words;

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::connect::{Agreement, ConnectError};
pub(crate) use host::Host;

use self::options::Extras;
use self::run::{Round, carry_out};
use self::session::Session;
use crate::device::Stage;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::plan::{Link, Plan, Side};
use crate::traffic::{Client, Duplex, Server};

/// Time for each answer of the other side while the two get together, in seconds.
const SETUP_S: u64 = 15;

/// Two that have found each other, seen from one.
struct Joined {
    session: Session,
    agreement: Agreement,
    theirs: Extras,
    worker: Worker,
    // What is left of it goes last.
    own: Host,
}

/// Carries out one side of `plans`, one after the other over one connection. `row`: takes what each brought.
pub(crate) fn run(
    plans: &[Plan],
    link: &Link,
    stage: &mut Stage<'_>,
    row: &mut dyn FnMut(&Plan, Outcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Joined { mut session, agreement, theirs, mut worker, mut own } = match &link.side {
        Side::Server => server::join(plans, link, stage)?,
        Side::Client { host } => client::join(plans, link, host, stage)?,
    };
    own.connect(&mut worker, &agreement, &theirs, stage.interrupted)
        .inspect_err(|failure| session.tell_failure(failure))?;
    for (number, plan) in plans.iter().enumerate() {
        if number > 0 {
            own.connect_again(&mut worker, plan, (&agreement, &theirs), stage.interrupted)
                .inspect_err(|failure| session.tell_failure(failure))?;
        }
        let round = Round {
            own: &own,
            session: &mut session,
            rkey: agreement.peer.mrs.first().map(|mr| mr.rkey),
            is_first: number == 0,
        };
        let (outcome, left) = if own.plan.bidirectional {
            carry_out::<Duplex<'_>>(round, worker, stage)?
        } else if link.side == Side::Server {
            carry_out::<Server<'_>>(round, worker, stage)?
        } else {
            carry_out::<Client<'_>>(round, worker, stage)?
        };
        worker = left;
        let interrupted = outcome.interrupted;
        row(&own.plan, outcome)?;
        if interrupted {
            break;
        }
    }
    if link.side != Side::Server {
        session.close();
    }
    Ok(())
}

/// A round of a worker that waits. False: the user has stopped it.
fn drive(worker: &mut Worker, interrupted: &AtomicBool) -> bool {
    worker.poll();
    !interrupted.load(Ordering::Relaxed)
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
