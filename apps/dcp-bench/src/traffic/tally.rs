//! What is measured while a run goes on, and the outcome made of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::net::NetCounters;
use crate::outcome::{Details, Direction, Directions, Interval, Outcome, Verification};
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

/// Time that they have when the time of a run is over, in nanoseconds: unless none of them completes, which a failure may
/// explain.
const DRAIN_NS: u64 = 2_000_000_000;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Done {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Done {
    pub(crate) fn add(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += bytes;
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    fn since(self, earlier: Self) -> Self {
        let bytes = self.bytes.saturating_sub(earlier.bytes);
        Self { messages: self.messages.saturating_sub(earlier.messages), bytes }
    }
}

/// The fastest stretch of one direction.
#[derive(Clone, Copy, Debug)]
struct Peak {
    sampled: (u64, Done),
    /// Least messages in a sample.
    messages: u64,
    bytes_per_second: f64,
}

impl Peak {
    fn new(plan: &Plan, now_ns: u64) -> Self {
        let messages = SAMPLE_ROUNDS * plan.total_qps() * u64::from(plan.cq_mod);
        Self { sampled: (now_ns, Done::default()), messages, bytes_per_second: 0.0 }
    }

    fn sample(&mut self, now_ns: u64, done: Done) {
        let (then_ns, before) = self.sampled;
        if done.messages >= before.messages + self.messages && now_ns >= then_ns + SAMPLE_NS {
            let bytes = done.since(before).bytes as f64;
            self.bytes_per_second = self.bytes_per_second.max(bytes * 1e9 / (now_ns - then_ns) as f64);
            self.sampled = (now_ns, done);
        }
    }
}

const LEFT: &str =
    "messages were still under way 2 s after the time was over: they were left, and are not counted";

/// Samples of a run, taken every few hundred rounds.
pub(crate) struct Tally<'a> {
    interrupted: &'a AtomicBool,
    progress: &'a mut Progress,
    start_ns: u64,
    end_ns: Option<u64>,
    /// Messages when the time was over.
    at_end: Option<u64>,
    /// Whether messages were left under way then.
    left: bool,
    /// What the other side sent, where both do.
    other: Done,
    /// Time left out at both ends.
    margin_ns: u64,
    /// When the part between them began and ended, and what this side and the other had done by then.
    measured: [Option<(u64, [Done; 2])>; 2],
    /// Time between rows.
    interval_ns: u64,
    /// When the next row is due, and up to where there are some.
    row_ns: u64,
    told: (u64, Done),
    intervals: Vec<Interval>,
    shown_ns: u64,
    /// Of this side's messages, and of the other's.
    peaks: [Peak; 2],
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
        let interval_ns = plan.reporting.interval.map_or(u64::MAX, nanos);
        Self {
            interrupted,
            progress,
            start_ns: now_ns,
            end_ns,
            at_end: None,
            left: false,
            other: Done::default(),
            margin_ns: plan.reporting.margin.map_or(0, nanos),
            measured: [None; 2],
            interval_ns,
            row_ns: now_ns.saturating_add(interval_ns),
            told: (now_ns, Done::default()),
            intervals: Vec::new(),
            shown_ns: now_ns,
            peaks: [Peak::new(plan, now_ns); 2],
            stopped_ns: None,
        }
    }

    /// Takes note of what the other side has sent, as seen now.
    pub(crate) fn see_other(&mut self, now_ns: u64, done: Done) {
        self.peaks[1].sample(now_ns, done);
        self.other = done;
    }

    /// Takes note of what the other side says it has sent, a little while ago.
    pub(crate) fn hear_other(&mut self, done: Done) {
        self.other = done;
    }

    /// Takes note of the other side's fastest stretch, as it says.
    pub(crate) fn hear_other_peak(&mut self, bytes_per_second: f64) {
        self.peaks[1].bytes_per_second = bytes_per_second;
    }

    /// This side's fastest stretch so far, in bytes per second.
    pub(crate) fn own_peak(&self) -> f64 {
        self.peaks[0].bytes_per_second
    }

    /// When the run began.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Takes note of the time and of what this side has done.
    pub(crate) fn tick(&mut self, now_ns: u64, own: Done) -> Next {
        self.peaks[0].sample(now_ns, own);
        let done = own.plus(self.other);
        if self.margin_ns > 0 {
            self.note_margins(now_ns, own);
        }
        if now_ns >= self.row_ns {
            self.row_ns = now_ns.max(self.row_ns.saturating_add(self.interval_ns));
            self.tell(now_ns, done);
        }
        if now_ns >= self.shown_ns + PROGRESS_NS {
            self.shown_ns = now_ns;
            self.progress.update(done);
        }
        if self.stopped_ns.is_none() && self.interrupted.load(Ordering::Relaxed) {
            self.stopped_ns = Some(now_ns);
        }
        match self.stopped_ns {
            Some(stopped) if now_ns >= stopped.saturating_add(GRACE_NS) => Next::Leave,
            Some(_) => Next::Finish,
            None => self.next_by_time(now_ns, done.messages),
        }
    }

    fn next_by_time(&mut self, now_ns: u64, messages: u64) -> Next {
        let Some(end_ns) = self.end_ns.filter(|&end| now_ns >= end) else { return Next::GoOn };
        let at_end = *self.at_end.get_or_insert(messages);
        self.left = now_ns >= end_ns.saturating_add(DRAIN_NS) && messages > at_end;
        if self.left { Next::Leave } else { Next::Finish }
    }

    fn note_margins(&mut self, now_ns: u64, own: Done) {
        let done = [own, self.other];
        let [begin, end] = &mut self.measured;
        if begin.is_none() && now_ns >= self.start_ns + self.margin_ns {
            *begin = Some((now_ns, done));
        }
        if end.is_none() && self.end_ns.is_some_and(|end| now_ns >= end - self.margin_ns) {
            *end = Some((now_ns, done));
        }
    }

    /// Ends an interval.
    fn tell(&mut self, now_ns: u64, done: Done) {
        let (then_ns, before) = self.told;
        let Done { messages, bytes } = done.since(before);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let interval = Interval {
            start: seconds(then_ns - self.start_ns),
            seconds: seconds(now_ns - then_ns),
            messages,
            bytes,
        };
        self.progress.row(&interval);
        self.intervals.push(interval);
        self.told = (now_ns, done);
    }

    /// The outcome of a run that ended at `now_ns`, with what this side has done.
    pub(crate) fn outcome(mut self, plan: &Plan, now_ns: u64, own: Done, cores: u32) -> Outcome {
        let all = own.plus(self.other);
        if plan.reporting.interval.is_some() && all != self.told.1 {
            self.tell(now_ns.max(self.told.0), all);
        }
        let (begin_ns, begin) = self.measured[0].unwrap_or((self.start_ns, Default::default()));
        let (end_ns, end) = self.measured[1].unwrap_or((now_ns, [own, self.other]));
        let elapsed_ns = end_ns.saturating_sub(begin_ns).max(1);
        let parts = [end[0].since(begin[0]), end[1].since(begin[1])];
        let measured = parts[0].plus(parts[1]);
        let average = measured.bytes as f64 * 1e9 / elapsed_ns as f64;
        let peak = self.peaks[0].bytes_per_second + self.peaks[1].bytes_per_second;
        let timed = matches!(plan.length, Length::Duration(_));
        Outcome {
            iterations: measured.messages,
            bytes: measured.bytes,
            elapsed_ns,
            peak_bytes_per_second: (!timed && !plan.reporting.no_peak).then_some(peak.max(average)),
            verification: Verification::NotChecked,
            net: NetCounters::default(),
            cores,
            mtu: plan.mtu,
            interrupted: self.stopped_ns.is_some(),
            notes: self.left.then(|| LEFT.to_owned()).into_iter().collect(),
            details: Details {
                intervals: self.intervals,
                directions: plan.bidirectional.then(|| directions(plan, parts)),
                ..Details::default()
            },
        }
    }
}

/// Whose messages were whose: this side's and the other's.
fn directions(plan: &Plan, [own, other]: [Done; 2]) -> Directions {
    let of = |done: Done| Direction { iterations: done.messages, bytes: done.bytes };
    let (client, server) = if plan.device.is_server() { (other, own) } else { (own, other) };
    Directions { from_client: of(client), from_server: of(server) }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Reporting;

    const MS: u64 = 1_000_000;

    fn done(messages: u64) -> Done {
        Done { messages, bytes: messages * 65536 }
    }

    /// Peak over average of a steady run of 100 messages in a millisecond, seen `burst` at a time.
    fn peak_over_average(plan: &Plan, burst: u64, bursts: u64) -> f64 {
        let mut progress = Progress::hidden();
        let interrupted = AtomicBool::new(false);
        let mut tally = Tally::new(plan, &interrupted, &mut progress, 0);
        let end_ns = burst * bursts * MS / 100;
        let seen = |now: u64| now * 100 / MS / burst * burst;
        for now in (0..=end_ns).step_by(100_000) {
            tally.tick(now, done(seen(now)));
        }
        let outcome = tally.outcome(plan, end_ns, done(burst * bursts), 1);
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
            tally.tick(now_ms * MS, done(completed));
        }
        let peak = tally.outcome(&plan, 30 * MS, done(500), 1).peak_bytes_per_second;
        assert_eq!(peak, Some(300.0 * 65536.0 * 100.0));
    }

    /// A run with `reporting` that ends after a second, 100 messages in a millisecond.
    fn steady(reporting: Reporting) -> Outcome {
        let length = Length::Duration(Duration::from_secs(1));
        let plan = Plan { length, reporting, ..Plan::default() };
        let mut progress = Progress::hidden();
        let interrupted = AtomicBool::new(false);
        let mut tally = Tally::new(&plan, &interrupted, &mut progress, 0);
        for ms in 1..1000 {
            assert_eq!(tally.tick(ms * MS, done(ms * 100)), Next::GoOn);
        }
        assert_eq!(tally.tick(1000 * MS, done(100_000)), Next::Finish);
        tally.outcome(&plan, 1010 * MS, done(100_500), 1)
    }

    #[test]
    fn intervals_add_up_to_the_run() {
        let interval = Some(Duration::from_millis(150));
        let outcome = steady(Reporting { interval, ..Reporting::default() });
        let intervals = &outcome.details.intervals;
        assert_eq!(intervals.len(), 7);
        assert_eq!(intervals.iter().map(|it| it.messages).sum::<u64>(), outcome.iterations);
        assert_eq!(intervals.iter().map(|it| it.bytes).sum::<u64>(), outcome.bytes);
        let seconds: f64 = intervals.iter().map(|it| it.seconds).sum();
        assert!((seconds - 1.01).abs() < 1e-9, "{seconds}");
        assert!(intervals[..6].iter().all(|it| it.messages == 15_000));
        assert!(steady(Reporting::default()).details.intervals.is_empty());
    }

    #[test]
    fn messages_that_take_long_to_end_are_left_when_others_have_completed_since() {
        let plan = Plan { length: Length::Duration(Duration::from_secs(1)), ..Plan::default() };
        for (completed, next) in [(100, Next::Finish), (101, Next::Leave)] {
            let mut progress = Progress::hidden();
            let interrupted = AtomicBool::new(false);
            let mut tally = Tally::new(&plan, &interrupted, &mut progress, 0);
            assert_eq!(tally.tick(999 * MS, done(100)), Next::GoOn);
            assert_eq!(tally.tick(1000 * MS, done(100)), Next::Finish);
            assert_eq!(tally.tick(2999 * MS, done(completed)), Next::Finish);
            assert_eq!(tally.tick(3000 * MS, done(completed)), next, "{completed}");
            let outcome = tally.outcome(&plan, 3000 * MS, done(completed), 1);
            assert_eq!(
                (outcome.iterations, outcome.notes.len()),
                (completed, usize::from(next == Next::Leave))
            );
        }
    }

    #[test]
    fn both_directions_are_summed_and_told_apart() {
        let plan = Plan { cq_mod: 1, bidirectional: true, ..Plan::default() };
        let mut progress = Progress::hidden();
        let interrupted = AtomicBool::new(false);
        let mut tally = Tally::new(&plan, &interrupted, &mut progress, 0);
        for (now_ms, own, other) in [(10, 100, 50), (20, 400, 100), (30, 500, 150)] {
            tally.see_other(now_ms * MS, done(other));
            tally.tick(now_ms * MS, done(own));
        }
        let outcome = tally.outcome(&plan, 30 * MS, done(500), 1);
        assert_eq!((outcome.iterations, outcome.bytes), (650, 650 * 65536));
        // As in perftest, the peak is the sum of both peaks: 300 and 50 messages in 10 ms.
        assert_eq!(outcome.peak_bytes_per_second, Some(350.0 * 65536.0 * 100.0));
        let directions = outcome.details.directions.unwrap();
        assert_eq!((directions.from_client.iterations, directions.from_server.iterations), (500, 150));
    }

    #[test]
    fn margins_are_left_out() {
        let margin = Some(Duration::from_millis(200));
        let outcome = steady(Reporting { margin, ..Reporting::default() });
        assert_eq!((outcome.iterations, outcome.elapsed_ns), (60_000, 600 * MS));
    }
}
