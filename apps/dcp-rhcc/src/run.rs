//! The control from its beginning to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dcp_core::{HostControl, HostControlConfig, TrafficClass};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::child;
use crate::choose::{self, Found};
use crate::clock::{now_ns, rest};
use crate::console::Console;
use crate::failure::Failure;
use crate::governor::{Governor, describe};
use crate::guardian::Guardian;
use crate::modes::Program;
use crate::plan::Plan;
use crate::report;

/// Longest rest, so that a signal and the end of a program are noticed soon.
const REST_MAX: Duration = Duration::from_millis(50);
/// Time between two live lines, and between two looks whether programs still run.
const LIVE_NS: u64 = 250_000_000;

/// The signal that came, 0 for none. The second one ends the process at once; then the guardian lifts what is left.
pub(crate) fn watch() -> io::Result<Arc<AtomicUsize>> {
    let came = Arc::new(AtomicUsize::new(0));
    let again = Arc::new(AtomicBool::new(false));
    for (signal, number) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
        flag::register_conditional_default(signal, Arc::clone(&again))?;
        flag::register(signal, Arc::clone(&again))?;
        flag::register_usize(signal, Arc::clone(&came), number)?;
    }
    Ok(came)
}

pub(crate) fn run(plan: &Plan, console: &mut Console) -> Result<(), Failure> {
    let came = watch().map_err(|error| Failure::environment(format!("cannot watch for Ctrl-C: {error}")))?;
    plan.notes.iter().for_each(|note| console.note(note));
    let mut governor = governor(plan, console)?;
    let lists = governor.actuator().entrances(TrafficClass::Local);
    let mut child = None;
    if let Some(words) = &plan.command {
        let started = child::Running::start(words, &lists, console.json_is_on_stdout());
        let started =
            started.map_err(|error| Failure::environment(format!("cannot start the program: {error}")))?;
        adopt(&mut governor, TrafficClass::Local, &started.target())?;
        child = Some(started);
    }
    for (class, target) in &plan.targets {
        adopt(&mut governor, *class, target)?;
    }
    let mut control = Control { plan, governor, child, console, start_ns: now_ns(), trouble: String::new() };
    let result = control.go(&came);
    control.finish(result, &came)
}

fn adopt(
    governor: &mut Governor,
    class: TrafficClass,
    target: &crate::target::Target,
) -> Result<(), Failure> {
    let adopted = governor.adopt(class, target);
    adopted.map_err(|error| Failure::environment(format!("cannot hold the program back: {error}")))
}

/// Finds what this machine has, and says so.
fn governor(plan: &Plan, console: &mut Console) -> Result<Governor, Failure> {
    let signal = choose::signal(plan.args.signal, &plan.conditions)?;
    tell(console, "signal", &signal, &signal.chosen.name());
    let threshold = plan.args.threshold.unwrap_or_else(|| signal.chosen.threshold());
    let cross_numa = plan.conditions.classes.contains(&TrafficClass::CrossNuma);
    let config = HostControlConfig { threshold, cross_numa, ..HostControlConfig::new() };
    let control = HostControl::new(config).map_err(Failure::usage)?;
    let guardian = Guardian::start(&Program::this())
        .map_err(|error| Failure::environment(format!("cannot start the guardian: {error}")))?;
    let actuator = choose::actuator(plan.args.actuator, &plan.conditions)?;
    tell(console, "actuator", &actuator, &actuator.chosen.name());
    let root = plan.conditions.root.clone();
    let mut governor = Governor::new(root, signal.chosen, control, actuator.chosen, Some(guardian));
    governor.tell_guardian();
    console.note(&format!("threshold {} {}", threshold, governor.signal().unit()));
    Ok(governor)
}

fn tell<T>(console: &mut Console, what: &str, found: &Found<T>, name: &str) {
    for (better, reason) in &found.passed_over {
        console.note(&format!("no {what} {better}: {reason}"));
    }
    console.note(&format!("{what} {name}"));
}

struct Control<'a> {
    plan: &'a Plan,
    governor: Governor,
    child: Option<child::Running>,
    console: &'a mut Console,
    start_ns: u64,
    /// What was said last to go wrong.
    trouble: String,
}

impl Control<'_> {
    /// Until the programs end, or a signal comes.
    fn go(&mut self, came: &AtomicUsize) -> Result<(), Failure> {
        let period =
            self.plan.args.period.unwrap_or(Duration::from_nanos(self.governor.actuator().period_ns()));
        let period_ns = nanoseconds(period);
        let stats_ns = self.plan.args.stats.map_or(u64::MAX, nanoseconds);
        let (mut next_ns, mut live_ns) = (self.start_ns, self.start_ns);
        let mut next_stats_ns = self.start_ns.saturating_add(stats_ns);
        loop {
            if came.load(Ordering::Relaxed) != 0 {
                return Err(Failure::Interrupted);
            }
            let now = now_ns();
            if now >= next_ns {
                // A period that was missed is over; it is not made up for.
                next_ns = next_ns.saturating_add(period_ns).max(now);
                self.step(now)?;
            }
            if now >= live_ns {
                live_ns = now + LIVE_NS;
                self.console.live(&describe(self.governor.control()));
                if self.child.is_none() && self.all_have_ended() {
                    return Ok(());
                }
            }
            if now >= next_stats_ns {
                next_stats_ns = next_stats_ns.saturating_add(stats_ns).max(now);
                self.console.say(&describe(self.governor.control()));
                self.console.object(&report::object(&self.governor, self.seconds(), false))?;
            }
            if let Some(child) = &mut self.child {
                let ended = child.ended().map_err(|error| Failure::environment(error.to_string()))?;
                if let Some(status) = ended {
                    return child.verdict(status);
                }
            }
            rest(Duration::from_nanos(next_ns.saturating_sub(now_ns())).min(REST_MAX));
        }
    }

    fn step(&mut self, now: u64) -> Result<(), Failure> {
        let stepped = self.governor.step(now);
        // Said once, not every period that it lasts.
        if let Some(trouble) = self.governor.take_trouble().filter(|it| *it != self.trouble) {
            self.console.note(&trouble);
            self.trouble = trouble;
        }
        stepped.map(drop).map_err(|error| Failure::environment(format!("cannot set a limit: {error}")))
    }

    fn all_have_ended(&self) -> bool {
        let root = &self.plan.conditions.root;
        self.plan.targets.iter().all(|(_, target)| target.is_gone(root))
    }

    #[expect(clippy::cast_precision_loss, reason = "a report")]
    fn seconds(&self) -> f64 {
        (now_ns() - self.start_ns) as f64 / 1e9
    }

    /// Lifts every limit first, whatever the result; then sees COMMAND end.
    fn finish(mut self, result: Result<(), Failure>, came: &AtomicUsize) -> Result<(), Failure> {
        for problem in self.governor.lift() {
            self.console.say(&format!("cannot lift a limit: {problem}"));
        }
        let is_over = matches!(result, Ok(()) | Err(Failure::Program(_)));
        if let Some(child) = self.child.as_mut().filter(|_| !is_over) {
            let signal = match came.load(Ordering::Relaxed) {
                2 => Signal::INT,
                1 => Signal::HUP,
                _ => Signal::TERM,
            };
            if !child.end(&self.plan.conditions.root, signal) {
                self.console.say("the program did not heed the signal for 5 s and was killed");
            }
        }
        self.console.note(&report::sentence(&self.governor));
        self.console.object(&report::object(&self.governor, self.seconds(), true))?;
        result
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
