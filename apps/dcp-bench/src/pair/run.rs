//! The frame of a run: how it begins and how it ends, the same whatever this side does in between.
//!
//! [`carry_out`] is the frame. What is between is a [`Middle`], of which there are three: the client's, the server's, and
//! that of a side that is both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dcp::Worker;
use dcp::core::Status;
use dcp::wire::RegionKey;

use super::drive;
use super::host::Host;
use super::session::Session;
use crate::burden::{Carried, Strain};
use crate::device::Stage;
use crate::failure::Failure;
use crate::hint;
use crate::net::NetCounters;
use crate::outcome::{Outcome, Verification, overdue_note};
use crate::plan::Plan;
use crate::progress::Progress;

/// Time for the other side to fill its buffers, in seconds.
const READY_S: u64 = 60;
/// Rounds between two looks at clock, signals and channel.
const ROUNDS_PER_LOOK: u32 = 64;

/// One run of a connection.
pub(super) struct Round<'a> {
    pub(super) own: &'a Host,
    pub(super) session: &'a mut Session,
    /// Key of the other side's memory, if it offers some.
    pub(super) rkey: Option<RegionKey>,
    pub(super) is_first: bool,
}

/// What a side does in a run; it holds the worker meanwhile.
pub(super) trait Middle<'a>: Sized {
    /// Fills the buffers and posts the receives: all that the other side waits for.
    fn prepare(round: &Round<'_>, worker: Worker, interrupted: &'a AtomicBool) -> Result<Self, Failure>;

    /// Moves the messages and compares them.
    fn go(&mut self, begun: Begun<'_>) -> Result<Brought, Failure>;

    /// A failure with its likely cause, where that is not known yet.
    fn explained(failure: Failure, plan: &Plan) -> Failure {
        let exceeded = failure.status.is_some_and(|status| status.number == Status::RetryExceeded as u32);
        if exceeded { failure.or_hint(|| hint::of_silence(plan)) } else { failure }
    }

    fn held(&self) -> &Worker;

    fn held_mut(&mut self) -> &mut Worker;

    fn release(self) -> Worker;
}

/// A run for which both sides are ready.
pub(super) struct Begun<'a> {
    pub(super) own: &'a Host,
    pub(super) session: &'a mut Session,
    /// Set when the user wants it to stop.
    pub(super) interrupted: &'a AtomicBool,
    pub(super) progress: &'a mut Progress,
    pub(super) pace: &'a mut Pace,
}

/// What a run brought.
pub(super) struct Brought {
    /// With what both sides found, which counts if there were messages.
    pub(super) outcome: Outcome,
    /// Messages that could be compared.
    pub(super) messages: u64,
    /// What [`Pace::end`] said.
    pub(super) burden: Borne,
}

/// How the hogs fared, and what the user should know of them.
pub(super) type Borne = (Option<Strain>, Vec<String>);

/// Counts rounds of traffic, and carries the burden meanwhile.
pub(super) struct Pace {
    rounds: u32,
    /// Until the traffic ends.
    carried: Option<Carried>,
}

impl Pace {
    /// After each round: whether it is time for a look at everything but the traffic.
    #[inline]
    pub(super) fn is_look_due(&mut self, worker: &Worker) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        let is_due = self.rounds.is_multiple_of(ROUNDS_PER_LOOK);
        if let (true, Some(carried)) = (is_due, &self.carried) {
            carried.publish(worker);
        }
        is_due
    }

    /// The traffic has ended.
    pub(super) fn end(&mut self) -> Borne {
        self.carried.take().map(Carried::end).unwrap_or_default()
    }
}

/// Carries out a run.
pub(super) fn carry_out<'a, M: Middle<'a>>(
    mut round: Round<'_>,
    worker: Worker,
    stage: &mut Stage<'a>,
) -> Result<(Outcome, Worker), Failure> {
    let (own, interrupted) = (round.own, stage.interrupted);
    let plan = &own.plan;
    let before = NetCounters::of_one_side(&worker);
    let mut middle = M::prepare(&round, worker, interrupted)?;
    let carried = Carried::start(plan.burden, plan.cores.last().copied())
        .inspect_err(|failure| round.session.tell_failure(failure))?;
    round.begin(middle.held_mut(), stage)?;
    let mut pace = Pace { rounds: 0, carried: Some(carried) };
    let Round { session, .. } = round;
    let result = middle.go(Begun { own, session, interrupted, progress: stage.progress, pace: &mut pace });
    let net = NetCounters::of_one_side(middle.held()).since(&before);
    match result {
        Ok(brought) => Ok((Outcome { net, ..brought.outcome(interrupted) }, middle.release())),
        Err(failure) => {
            session.tell_failure(&failure);
            Err(M::explained(failure.with_net(net), plan))
        }
    }
}

impl Brought {
    /// The outcome, with what is said of every run.
    fn outcome(self, interrupted: &AtomicBool) -> Outcome {
        let Self { mut outcome, messages, burden: (strain, notes) } = self;
        if messages == 0 {
            outcome.verification = Verification::NotChecked;
        } else if outcome.verification == Verification::NotChecked {
            outcome.notes.push("the data was not compared to its end".to_owned());
        }
        outcome.details.burden = strain;
        outcome.notes.extend(overdue_note(&outcome.details));
        outcome.notes.extend(notes);
        outcome.interrupted |= interrupted.load(Ordering::Relaxed);
        outcome
    }
}

impl Round<'_> {
    pub(super) fn rkey(&self) -> Result<RegionKey, Failure> {
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
