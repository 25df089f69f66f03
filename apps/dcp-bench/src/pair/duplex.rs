//! Either side of a run in both directions: both send, receive, compare, and tell each other how far they are.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;

use super::run::{Begun, Brought, Middle, Pace, Round};
use super::session::Session;
use super::words::{Compare, Ended, Told, Verdict, Word, told};
use crate::failure::Failure;
use crate::fairness::Fairness;
use crate::outcome::{Details, Verification};
use crate::plan::Plan;
use crate::stats::Latencies;
use crate::traffic::{Count, Done, Duplex, Next, Role, Tally};

/// Time between two words on how far this side is, in nanoseconds.
const PROGRESS_NS: u64 = 5_000_000;
/// Time that messages under way have to finish when the other side stops the run, in nanoseconds.
const GRACE_NS: u64 = 200_000_000;
/// Time for the comparison at the end of a run, and of one that a user has stopped, in nanoseconds.
const COMPARED_NS: u64 = 60_000_000_000;
const COMPARED_STOPPED_NS: u64 = 1_200_000_000;

impl<'a> Middle<'a> for Duplex<'a> {
    fn prepare(round: &Round<'_>, worker: Worker, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        let own = round.own;
        let role = if own.plan.device.is_server() { Role::Server } else { Role::Client };
        let parts = own.duplex_parts(worker, role, round.rkey()?);
        Self::new(parts, &own.plan, own.layout, interrupted)
    }

    fn go(&mut self, begun: Begun<'_>) -> Result<Brought, Failure> {
        let Begun { own, session, interrupted, progress, pace } = begun;
        let tally = Tally::new(&own.plan, interrupted, progress, own.clock.now_ns());
        let mut exchange = Exchange {
            side: self,
            session,
            interrupted,
            told: Told::default(),
            checked: vec![0; own.qps.len()],
            their_end: None,
            checking: None,
            mismatch: None,
            said: Said::default(),
            stopped_ns: None,
            ended_ns: None,
        };
        exchange.drive(tally, &own.plan, pace)
    }

    fn held(&self) -> &Worker {
        &self.sender.worker
    }

    fn held_mut(&mut self) -> &mut Worker {
        &mut self.sender.worker
    }

    fn release(self) -> Worker {
        self.sender.worker
    }
}

/// What this side has said.
#[derive(Clone, Copy, Default)]
struct Said {
    /// When it told last how far it is.
    progress_ns: u64,
    ended: bool,
    stop: bool,
}

/// A run under way.
struct Exchange<'r, 'a> {
    side: &'r mut Duplex<'a>,
    session: &'r mut Session,
    interrupted: &'r AtomicBool,
    told: Told,
    /// The other side's messages compared so far, by queue pair.
    checked: Vec<u64>,
    /// Why the other side has posted its last, once it has.
    their_end: Option<Compare>,
    /// What the other side compares while the run goes on.
    checking: Option<Vec<Count>>,
    /// The first difference that was found while the run went on, here or there.
    mismatch: Option<String>,
    said: Said,
    /// When the other side was heard to stop the run.
    stopped_ns: Option<u64>,
    /// When the other side's messages had all completed, by this side's clock.
    ended_ns: Option<u64>,
}

impl Exchange<'_, '_> {
    fn worker(&self) -> &Worker {
        &self.side.sender.worker
    }

    fn now_ns(&self) -> u64 {
        self.worker().now().ns()
    }

    fn drive(&mut self, mut tally: Tally<'_>, plan: &Plan, pace: &mut Pace) -> Result<Brought, Failure> {
        loop {
            self.side.poll()?;
            if pace.is_look_due(self.worker()) && (!self.tick(&mut tally)? || self.is_over()) {
                break;
            }
        }
        let burden = pace.end();
        let (sender, own) = (&self.side.sender, self.side.sender.completed());
        let end_ns = sender.ended_ns().unwrap_or_else(|| self.now_ns());
        let end_ns = self.ended_ns.map_or_else(|| self.now_ns(), |theirs| theirs.max(end_ns));
        let (fairness, overdue) = (Fairness::of(&sender.rates()), sender.overdue());
        let latency = sender.latencies().and_then(Latencies::summary);
        let verification = self.compare(&mut tally)?;
        if self.stopped_ns.is_some() && !self.interrupted.load(Ordering::Relaxed) {
            let other = self.session.other();
            return Err(Failure::transfer(format!("the {other} was stopped before the run was done")));
        }
        let mut outcome = tally.outcome(plan, end_ns, own, 1);
        outcome.verification = verification;
        outcome.details = Details { latency, fairness, overdue, ..outcome.details };
        Ok(Brought { messages: outcome.iterations, outcome, burden })
    }

    /// Whether both sides' messages have completed, and both know.
    fn is_over(&self) -> bool {
        self.their_end.is_some() || self.said.ended && self.ended_ns.is_some()
    }

    /// A look at everything but the traffic. False: leave what is under way.
    fn tick(&mut self, tally: &mut Tally<'_>) -> Result<bool, Failure> {
        let now_ns = self.now_ns();
        match tally.tick(now_ns, self.side.sender.completed()) {
            Next::GoOn => {}
            Next::Finish => self.side.sender.stop(),
            Next::Leave => return Ok(false),
        }
        if self.interrupted.load(Ordering::Relaxed) && !self.said.stop {
            self.said.stop = true;
            self.say(&Word::Stop)?;
        }
        if let Some(word) = self.session.hear()? {
            self.take(word, tally)?;
        }
        if self.checking.is_none() && self.side.sender.has_unchecked() {
            let counts = self.side.sender.counts();
            self.tell(&counts, Compare::More)?;
            self.checking = Some(counts);
        }
        self.tell_progress(now_ns, tally)?;
        Ok(self.stopped_ns.is_none_or(|stopped| now_ns < stopped + GRACE_NS))
    }

    fn tell_progress(&mut self, now_ns: u64, tally: &Tally<'_>) -> Result<(), Failure> {
        let sender = &self.side.sender;
        let Done { messages, bytes } = sender.completed();
        if sender.is_done() && !self.said.ended {
            self.said.ended = true;
            let elapsed_ns = sender.ended_ns().unwrap_or(now_ns).saturating_sub(tally.start_ns());
            let peak = tally.own_peak();
            return self.say(&Word::Ended(Ended { messages, bytes, elapsed_ns, peak }));
        }
        if self.said.ended || now_ns < self.said.progress_ns + PROGRESS_NS {
            return Ok(());
        }
        self.said.progress_ns = now_ns;
        self.say(&Word::Progress(messages, bytes))
    }

    /// Deals with a word.
    fn take(&mut self, word: Word, tally: &mut Tally<'_>) -> Result<(), Failure> {
        match word {
            Word::Progress(messages, bytes) => tally.hear_other(Done { messages, bytes }),
            Word::Ended(Ended { messages, bytes, elapsed_ns, peak }) => {
                tally.hear_other(Done { messages, bytes });
                tally.hear_other_peak(peak);
                self.ended_ns = Some(tally.start_ns().saturating_add(elapsed_ns));
            }
            Word::Counts(counts) => self.told.add(&counts, self.checked.len()),
            Word::Compare(Compare::More) => self.compare_more()?,
            Word::Compare(why) => self.their_end = Some(why),
            Word::Verdict(verdict) => {
                let counts = self.checking.take().ok_or_else(|| self.session.nonsense())?;
                self.side.sender.free(&counts);
                self.note(verdict.into());
            }
            Word::Stop => {
                self.stopped_ns = Some(self.now_ns());
                self.side.sender.stop();
            }
            _ => return Err(self.session.nonsense()),
        }
        Ok(())
    }

    /// A difference ends the run.
    fn note(&mut self, found: Verification) {
        if let Verification::Failed(mismatch) = found {
            self.mismatch.get_or_insert(mismatch);
            self.side.sender.stop();
        }
    }

    /// Compares what the other side says has completed, so that it may use its buffers again.
    fn compare_more(&mut self) -> Result<(), Failure> {
        let counts = self.their_counts()?;
        self.side.collect()?;
        let stopped = || self.interrupted.load(Ordering::Relaxed);
        let received = self.side.check_received(&counts, false);
        let found = received.and(|| self.side.check_inbox(&counts, &stopped));
        if self.side.incoming().each {
            self.checked = counts.iter().map(|count| count.completed).collect();
        }
        self.say(&Word::Verdict(Verdict::from(&found)))?;
        self.note(found);
        Ok(())
    }

    fn their_counts(&mut self) -> Result<Vec<Count>, Failure> {
        let depth = self.side.incoming().layout.depth;
        self.told.take(&self.checked, depth).ok_or_else(|| self.session.nonsense())
    }

    fn say(&mut self, word: &Word) -> Result<(), Failure> {
        let worker = &mut self.side.sender.worker;
        self.session.say(word, &mut || {
            worker.poll();
        })
    }

    fn tell(&mut self, counts: &[Count], why: Compare) -> Result<(), Failure> {
        told(counts, why).iter().try_for_each(|word| self.say(word))
    }

    /// Both sides compare what came to them, and what their own messages left; what both found.
    fn compare(&mut self, tally: &mut Tally<'_>) -> Result<Verification, Failure> {
        let (start_ns, clock) = (self.now_ns(), *self.worker().clock());
        let counts = self.side.sender.counts();
        let why = if self.is_stopped() { Compare::Stopped } else { Compare::Done };
        self.tell(&counts, why)?;
        while self.their_end.is_none() {
            match self.wait(start_ns)? {
                Some(word) => self.take(word, tally)?,
                None => return Ok(Verification::NotChecked),
            }
        }
        let theirs = self.their_counts()?;
        self.side.collect()?;
        tally.hear_other(self.side.incoming().done(&theirs));
        let stopped = self.is_stopped();
        let interrupted = self.interrupted;
        let enough = || {
            (stopped || interrupted.load(Ordering::Relaxed))
                && clock.now_ns() > start_ns + COMPARED_STOPPED_NS
        };
        let found = match self.mismatch.take() {
            Some(mismatch) => Verification::Failed(mismatch),
            None => self.side.sender.verify(&enough),
        };
        let found = found.and(|| self.side.check_received(&theirs, true));
        let found = found.and(|| self.side.check_inbox(&theirs, &enough));
        self.say(&Word::Verdict(Verdict::from(&found)))?;
        loop {
            match self.wait(start_ns)? {
                None => return Ok(found.and(|| Verification::NotChecked)),
                // The one for this run's end comes behind one that was asked for earlier.
                Some(Word::Verdict(verdict)) if self.checking.is_none() => {
                    return Ok(found.and(|| verdict.into()));
                }
                Some(word) => self.take(word, tally)?,
            }
        }
    }

    /// Whether either user has stopped the run.
    fn is_stopped(&self) -> bool {
        let by_other = self.stopped_ns.is_some() || self.their_end == Some(Compare::Stopped);
        by_other || self.interrupted.load(Ordering::Relaxed)
    }

    /// Waits for a word, as long as a comparison that began at `start_ns` may take.
    fn wait(&mut self, start_ns: u64) -> Result<Option<Word>, Failure> {
        let (interrupted, clock) = (self.interrupted, *self.worker().clock());
        let stopped = self.is_stopped();
        let worker = &mut self.side.sender.worker;
        let mut go_on = |_| {
            worker.poll();
            let hurry = stopped || interrupted.load(Ordering::Relaxed);
            clock.now_ns() < start_ns + if hurry { COMPARED_STOPPED_NS } else { COMPARED_NS }
        };
        self.session.wait(&mut go_on)
    }
}
