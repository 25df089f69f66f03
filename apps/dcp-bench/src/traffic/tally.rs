//! What is measured while a run goes on, and the outcome made of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::net::NetCounters;
use crate::outcome::{Details, Outcome, Verification};
use crate::plan::{Length, Plan};
use crate::progress::Progress;

/// Least time between two samples of the rate, in nanoseconds.
const SAMPLE_NS: u64 = 5_000_000;
/// Least messages in a sample, in rounds of completions of all queue pairs: a completion stands for as many messages as
/// `--cq-mod` says, so that a sample may hold one round that was not its own, a sixteenth.
const SAMPLE_ROUNDS: u64 = 16;
/// Time between two updates of the progress bar, in nanoseconds.
const PROGRESS_NS: u64 = 50_000_000;
/// Time that messages under way have to finish when the user stops a run, in nanoseconds.
const GRACE_NS: u64 = 200_000_000;

/// Samples of a run, taken every few hundred rounds.
pub(crate) struct Tally<'a> {
    interrupted: &'a AtomicBool,
    progress: &'a mut Progress,
    size: u64,
    start_ns: u64,
    end_ns: Option<u64>,
    sampled: (u64, u64),
    /// Least messages in a sample.
    sample_messages: u64,
    shown_ns: u64,
    peak: f64,
    /// When the user's wish to stop was seen.
    stopped_ns: Option<u64>,
}

/// What a run is to do after a look at clock and signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Go on.
    GoOn,
    /// Begin nothing new, and finish what is under way.
    Finish,
    /// Leave: what is under way takes longer than a user waits.
    Leave,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(
        plan: &Plan,
        interrupted: &'a AtomicBool,
        progress: &'a mut Progress,
        now_ns: u64,
    ) -> Self {
        let end_ns = match plan.length {
            Length::Iterations(_) => None,
            Length::Duration(duration) => Some(now_ns.saturating_add(nanos(duration))),
        };
        Self {
            interrupted,
            progress,
            size: plan.size,
            start_ns: now_ns,
            end_ns,
            sampled: (now_ns, 0),
            sample_messages: SAMPLE_ROUNDS * plan.total_qps() * u64::from(plan.cq_mod),
            shown_ns: now_ns,
            peak: 0.0,
            stopped_ns: None,
        }
    }

    /// Takes note of the time and of what is done.
    pub(crate) fn tick(&mut self, now_ns: u64, completed: u64) -> Next {
        let (then_ns, before) = self.sampled;
        if completed >= before + self.sample_messages && now_ns >= then_ns + SAMPLE_NS {
            let bytes = (completed - before) as f64 * self.size as f64;
            self.peak = self.peak.max(bytes * 1e9 / (now_ns - then_ns) as f64);
            self.sampled = (now_ns, completed);
        }
        if now_ns >= self.shown_ns + PROGRESS_NS {
            self.shown_ns = now_ns;
            self.progress.update(completed);
        }
        if self.stopped_ns.is_none() && self.interrupted.load(Ordering::Relaxed) {
            self.stopped_ns = Some(now_ns);
        }
        match self.stopped_ns {
            Some(stopped) if now_ns >= stopped.saturating_add(GRACE_NS) => Next::Leave,
            Some(_) => Next::Finish,
            None if self.end_ns.is_some_and(|end| now_ns >= end) => Next::Finish,
            None => Next::GoOn,
        }
    }

    /// The outcome of a run that ended at `now_ns`.
    pub(crate) fn outcome(self, plan: &Plan, now_ns: u64, iterations: u64, cores: u32) -> Outcome {
        let elapsed_ns = (now_ns - self.start_ns).max(1);
        let bytes = iterations * self.size;
        let average = bytes as f64 * 1e9 / elapsed_ns as f64;
        let timed = matches!(plan.length, Length::Duration(_));
        Outcome {
            iterations,
            bytes,
            elapsed_ns,
            peak_bytes_per_second: (!timed).then_some(self.peak.max(average)),
            verification: Verification::NotChecked,
            net: NetCounters::default(),
            cores,
            mtu: plan.mtu,
            interrupted: self.stopped_ns.is_some(),
            notes: Vec::new(),
            details: Details::default(),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Peak over average of a steady run of 100 messages in a millisecond, seen `burst` at a time.
    fn peak_over_average(plan: &Plan, burst: u64, bursts: u64) -> f64 {
        let mut progress = Progress::hidden();
        let interrupted = AtomicBool::new(false);
        let mut tally = Tally::new(plan, &interrupted, &mut progress, 0);
        let end_ns = burst * bursts * MS / 100;
        let seen = |now: u64| now * 100 / MS / burst * burst;
        for now in (0..=end_ns).step_by(100_000) {
            tally.tick(now, seen(now));
        }
        let outcome = tally.outcome(plan, end_ns, burst * bursts, 1);
        outcome.peak_bytes_per_second.unwrap() / outcome.throughput().bytes_per_second()
    }

    #[test]
    fn peak_of_a_steady_run_is_its_average_however_completions_come() {
        for (qps, cq_mod, bursts) in
            [(1, 1, 100_000), (1, 100, 1000), (64, 100, 100), (4096, 100, 40), (1, 128, 3)]
        {
            let plan = Plan { qps, cq_mod, ..Plan::default() };
            let ratio = peak_over_average(&plan, u64::from(qps * cq_mod), bursts);
            assert!((1.0..1.07).contains(&ratio), "{qps} queue pairs, {cq_mod} at a time: {ratio}");
        }
    }

    #[test]
    fn faster_stretch_is_the_peak() {
        let plan = Plan { cq_mod: 1, ..Plan::default() };
        let mut progress = Progress::hidden();
        let interrupted = AtomicBool::new(false);
        let mut tally = Tally::new(&plan, &interrupted, &mut progress, 0);
        for (now_ms, completed) in [(10, 100), (20, 400), (30, 500)] {
            tally.tick(now_ms * MS, completed);
        }
        let peak = tally.outcome(&plan, 30 * MS, 500, 1).peak_bytes_per_second;
        assert_eq!(peak, Some(300.0 * 65536.0 * 100.0));
    }
}
