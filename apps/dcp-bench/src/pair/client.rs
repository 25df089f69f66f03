//! The side that connects and measures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dcp::Worker;
use dcp::connect::{Control, Patience, random_key};
use dcp::wire::RegionKey;

use super::host::Host;
use super::options::Extras;
use super::reach::reach;
use super::run::{Begun, Brought, Middle, Pace, Round};
use super::session::Session;
use super::words::{Compare, Verdict, Word, told};
use super::{Joined, SETUP_S, drive, failure};
use crate::device::Stage;
use crate::failure::Failure;
use crate::fairness::Fairness;
use crate::outcome::{Details, Verification};
use crate::plan::{Link, Plan};
use crate::stats::Latencies;
use crate::traffic::{Client, Content, Count, Next, Rally, Role, Sender, SenderParts, Tally};

/// Number of the client; there is one.
pub(super) const CLIENT: u32 = 1;
/// Time that messages under way have to finish when the server stops the run, in nanoseconds.
const GRACE_NS: u64 = 200_000_000;
/// Time for the comparison at the end of a run, and of one that the user has stopped, in nanoseconds.
const COMPARED_NS: u64 = 60_000_000_000;
const COMPARED_STOPPED_NS: u64 = 800_000_000;

/// Finds the server, and agrees with it.
pub(super) fn join(
    plans: &[Plan],
    link: &Link,
    host: &str,
    stage: &mut Stage<'_>,
) -> Result<Joined, Failure> {
    let (own, mut worker) = Host::open(plans, link, stage.interrupted)?;
    (stage.note)(&format!("looking for a server at {host}, port {}", link.port));
    let mut go_on = || drive(&mut worker, stage.interrupted);
    let stream = reach(host, link.port, &own.clock, &mut go_on)?;
    let extras = Extras::new(&own.plan, plans.len() > 1, own.qpns(&worker));
    let offer = own.offer(&worker, extras.json());
    let pkey = random_key().map_err(|error| Failure::environment(error.to_string()))?;
    let mut go_on = || drive(&mut worker, stage.interrupted);
    let timeout = Duration::from_secs(SETUP_S);
    let mut patience = Patience { clock: &own.clock, timeout, idle: &mut go_on };
    let (control, agreement) =
        Control::over(stream, &offer, pkey, &mut patience).map_err(|error| failure(&error, "server"))?;
    let session = Session::new(control, own.clock, "server");
    let theirs = Extras::read(&agreement.peer.app).map_err(Failure::usage)?;
    Ok(Joined { session, agreement, theirs, worker, own })
}

impl<'a> Middle<'a> for Client<'a> {
    fn prepare(round: &Round<'_>, worker: Worker, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        make_client(round.own, worker, round.rkey()?, interrupted)
    }

    fn go(&mut self, begun: Begun<'_>) -> Result<Brought, Failure> {
        let Begun { own, session, interrupted, progress, pace } = begun;
        let tally = Tally::new(&own.plan, interrupted, progress, own.clock.now_ns());
        let client = self;
        let mut run = Run { client, session, interrupted, checking: None, mismatch: None, stopped_ns: None };
        run.drive(tally, &own.plan, pace)
    }

    fn held(&self) -> &Worker {
        self.worker()
    }

    fn held_mut(&mut self) -> &mut Worker {
        self.worker_mut()
    }

    fn release(self) -> Worker {
        self.into_worker()
    }
}

/// The side that measures.
fn make_client<'a>(
    own: &Host,
    worker: Worker,
    rkey: RegionKey,
    interrupted: &'a AtomicBool,
) -> Result<Client<'a>, Failure> {
    let (plan, layout) = (&own.plan, own.layout);
    if plan.is_rally() {
        let parts = own.rally_parts(worker, Role::Client, rkey);
        return Rally::new(parts, plan, layout, interrupted).map(Client::Rally);
    }
    let parts = SenderParts {
        worker,
        cq: own.cqs.send,
        number: CLIENT,
        qps: own.qps.clone(),
        memory: own.memory.share(),
        rkey,
        server: None,
        content: Content::new(plan, layout, CLIENT),
        copies: own.copies(),
    };
    Sender::new(parts, plan, interrupted).map(Client::Sender)
}

/// A run under way.
struct Run<'r, 'a> {
    client: &'r mut Client<'a>,
    session: &'r mut Session,
    interrupted: &'r AtomicBool,
    /// What the server compares while the run goes on.
    checking: Option<Vec<Count>>,
    /// What it found then.
    mismatch: Option<String>,
    /// When the server was heard to stop the run.
    stopped_ns: Option<u64>,
}

impl Run<'_, '_> {
    fn drive(&mut self, mut tally: Tally<'_>, plan: &Plan, pace: &mut Pace) -> Result<Brought, Failure> {
        while !self.client.is_done() {
            self.client.poll()?;
            if pace.is_look_due(self.client.worker()) && !self.tick(&mut tally)? {
                break;
            }
        }
        let (end_ns, completed) = (self.client.worker().now().ns(), self.client.completed());
        let burden = pace.end();
        let (fairness, overdue) = (Fairness::of(&self.client.rates()), self.client.overdue());
        let latency = self.client.latencies().and_then(Latencies::summary);
        let verification = self.compare()?;
        if self.stopped_ns.is_some() && !self.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::transfer("the server was stopped before the run was done"));
        }
        let mut outcome = tally.outcome(plan, end_ns, completed, 1);
        outcome.verification = verification;
        outcome.details = Details { latency, fairness, overdue, ..outcome.details };
        Ok(Brought { outcome, messages: completed.messages, burden })
    }

    /// A look at everything but the traffic. False: leave what is under way.
    fn tick(&mut self, tally: &mut Tally<'_>) -> Result<bool, Failure> {
        let now_ns = self.client.worker().now().ns();
        match tally.tick(now_ns, self.client.completed()) {
            Next::GoOn => {}
            Next::Finish => self.client.stop(),
            Next::Leave => return Ok(false),
        }
        if let Some(word) = self.session.hear()? {
            self.take(word)?;
        }
        if self.checking.is_none() && self.client.has_unchecked() {
            let counts = self.client.counts();
            self.tell(&counts, Compare::More)?;
            self.checking = Some(counts);
        }
        Ok(self.stopped_ns.is_none_or(|stopped| now_ns < stopped + GRACE_NS))
    }

    /// Deals with a word that came while the run went on.
    fn take(&mut self, word: Word) -> Result<(), Failure> {
        match (word, self.checking.take()) {
            (Word::Stop, checking) => {
                self.checking = checking;
                self.stopped_ns = Some(self.client.worker().now().ns());
                self.client.stop();
            }
            (Word::Verdict(verdict), Some(counts)) => {
                self.client.free(&counts);
                if let Verification::Failed(mismatch) = verdict.into() {
                    self.mismatch.get_or_insert(mismatch);
                    self.client.stop();
                }
            }
            _ => return Err(self.session.nonsense()),
        }
        Ok(())
    }

    fn tell(&mut self, counts: &[Count], why: Compare) -> Result<(), Failure> {
        let worker = self.client.worker_mut();
        let mut idle = || {
            worker.poll();
        };
        told(counts, why).iter().try_for_each(|word| self.session.say(word, &mut idle))
    }

    /// Lets both sides compare their memory, and tells the server what came of it.
    fn compare(&mut self) -> Result<Verification, Failure> {
        let stopped = self.interrupted.load(Ordering::Relaxed) || self.stopped_ns.is_some();
        let counts = self.client.counts();
        self.tell(&counts, if stopped { Compare::Stopped } else { Compare::Done })?;
        let clock = *self.client.worker().clock();
        let (start_ns, interrupted) = (clock.now_ns(), self.interrupted);
        let over = |limit_ns| clock.now_ns() - start_ns > limit_ns;
        let enough = || (stopped || interrupted.load(Ordering::Relaxed)) && over(COMPARED_STOPPED_NS);
        let here = self.client.verify(&enough);
        let there = self.wait_for_verdict(&|| enough() || over(COMPARED_NS))?;
        let verdict = match self.mismatch.take() {
            Some(mismatch) => Verification::Failed(mismatch),
            None => here.and(|| there),
        };
        self.session.say(&Word::Verdict(Verdict::from(&verdict)), &mut || {})?;
        Ok(verdict)
    }

    fn wait_for_verdict(&mut self, enough: &dyn Fn() -> bool) -> Result<Verification, Failure> {
        loop {
            let worker = self.client.worker_mut();
            let mut go_on = |_| {
                worker.poll();
                !enough()
            };
            match self.session.wait(&mut go_on)? {
                None => return Ok(Verification::NotChecked),
                // The one for this run's end comes behind one that was asked for earlier.
                Some(Word::Verdict(verdict)) if self.checking.is_none() => return Ok(verdict.into()),
                Some(word) => self.take(word)?,
            }
        }
    }
}
