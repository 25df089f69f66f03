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
mod server;
mod session;
mod words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dcp::Worker;
use dcp::connect::{Agreement, ConnectError};
use dcp::core::Status;
use dcp::wire::RegionKey;
pub(crate) use host::Host;

use self::options::Extras;
use self::session::Session;
use crate::device::Stage;
use crate::failure::Failure;
use crate::hint;
use crate::outcome::Outcome;
use crate::plan::{Link, Plan, Side};

/// Time for each answer of the other side while the two get together, in seconds.
const SETUP_S: u64 = 15;
/// Time for the other side to fill its buffers, in seconds.
const READY_S: u64 = 60;

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
            duplex::run(round, worker, stage)?
        } else if link.side == Side::Server {
            server::run(round, worker, stage)?
        } else {
            client::run(round, worker, stage)?
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

/// One run of a connection.
struct Round<'a> {
    own: &'a Host,
    session: &'a mut Session,
    /// Key of the other side's memory, if it offers some.
    rkey: Option<RegionKey>,
    is_first: bool,
}

impl Round<'_> {
    fn rkey(&self) -> Result<RegionKey, Failure> {
        let other = self.session.other();
        self.rkey.ok_or_else(|| Failure::environment(format!("the {other} offers no memory")))
    }

    /// Both sides' buffers and receives are there: lets the queue pairs send.
    fn begin(&mut self, worker: &mut Worker, stage: &mut Stage<'_>) -> Result<(), Failure> {
        let timeout = Duration::from_secs(READY_S);
        let mut idle = || drive(worker, stage.interrupted);
        if self.is_first {
            self.session.ready(timeout, &mut idle)?;
        } else {
            self.session.ready_again(timeout, &mut idle)?;
        }
        self.own.start(worker)?;
        if self.is_first {
            (stage.banner)(&self.own.plan)?;
        }
        stage.progress.begin(&self.own.plan);
        Ok(())
    }
}

/// A round of a worker that waits. False: the user has stopped it.
fn drive(worker: &mut Worker, interrupted: &AtomicBool) -> bool {
    worker.poll();
    !interrupted.load(Ordering::Relaxed)
}

/// A failure with its likely cause, where that is not known yet.
fn explained(failure: Failure, plan: &Plan) -> Failure {
    let exceeded = failure.status.is_some_and(|status| status.number == Status::RetryExceeded as u32);
    if exceeded { failure.or_hint(|| hint::of_silence(plan)) } else { failure }
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
