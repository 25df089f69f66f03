//! The loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dcp::dpdk::{Clock, register_thread};
use dcp::verbs::Backoff;
use dcp_switch::Switch;

use crate::app::Console;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::ports::{self, Change, Ports};
use crate::report::Report;
use crate::telemetry::Questions;

/// How long frames that are in the switch may take to leave it when it stops.
const DRAIN_NS: u64 = 1_000_000_000;

/// Opens everything, moves frames until `stop` is set, and takes everything apart.
///
/// # Errors
/// It does not come up, or a report or capture cannot be written.
pub fn run(plan: &Plan, stop: &AtomicBool, console: &mut Console) -> Result<(), Failure> {
    let eal = ports::start_eal(plan)?;
    if let Some(core) = plan.core {
        dcp::dpdk::pin(core).map_err(Failure::environment)?;
    }
    let _registered = register_thread(&eal).map_err(Failure::environment)?;
    let clock = Clock::calibrate();
    let (ports, queues) = Ports::open(&eal, plan)?;
    let mut switch = Switch::new(plan.pipeline.clone(), queues, clock).map_err(Failure::usage)?;
    ports.introduce(&mut switch);
    plan.captures.iter().try_for_each(|capture| capture.start(&mut switch))?;
    plan.notes.iter().for_each(|note| console.note(note));
    switch.pipeline().notes().iter().for_each(|note| console.note(&note.to_string()));
    console.say(&format!(
        "dcp-switch: {} ports, {}, control queue weight {}",
        plan.ports.len(),
        eal.memory(),
        switch.pipeline().weight()
    ));
    if let Some(path) = eal.telemetry_socket() {
        console.say(&format!("dcp-switch: telemetry at {}", path.display()));
    }
    let questions = Questions::open();
    Machine { switch, ports, clock, start_ns: clock.now_ns(), console, questions }.run(plan, stop)
}

struct Machine<'a> {
    switch: Switch,
    ports: Ports,
    clock: Clock,
    start_ns: u64,
    console: &'a mut Console,
    questions: Questions,
}

impl Machine<'_> {
    fn run(mut self, plan: &Plan, stop: &AtomicBool) -> Result<(), Failure> {
        let backoff = if plan.polls_always { Backoff::NEVER } else { Backoff::default() };
        let interval_ns = plan.stats.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        let mut next_stats_ns =
            interval_ns.map_or(u64::MAX, |interval| self.start_ns.saturating_add(interval));
        let (mut earlier, mut idle) = (None, 0u32);
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now_ns();
            self.keep_up(now);
            self.questions.answer(|| self.report());
            if self.switch.poll() > 0 {
                idle = 0;
            } else {
                idle = idle.saturating_add(1);
                backoff.rest(idle, self.time_to_timer(now, next_stats_ns));
            }
            if now >= next_stats_ns {
                next_stats_ns = next_stats_ns.saturating_add(interval_ns.unwrap_or(u64::MAX)).max(now);
                let report = self.report();
                self.console.report(&report, earlier.as_ref())?;
                earlier = Some(report);
            }
        }
        self.finish()
    }

    #[inline]
    fn keep_up(&mut self, now_ns: u64) {
        let console = &mut *self.console;
        self.ports.keep_up(now_ns, &mut self.switch, |change| say_change(console, change));
    }

    fn time_to_timer(&self, now_ns: u64, next_stats_ns: u64) -> Option<Duration> {
        let next = self.switch.pipeline().next_timeout().unwrap_or(u64::MAX).min(next_stats_ns);
        Some(Duration::from_nanos(next.saturating_sub(now_ns)))
    }

    fn report(&self) -> Report {
        Report::of(self.clock.now_ns() - self.start_ns, &self.switch, &self.ports)
    }

    /// Lets what is inside leave, tells the end, and releases everything.
    fn finish(mut self) -> Result<(), Failure> {
        let stopped = self.switch.stop(DRAIN_NS);
        self.console.say(&format!(
            "dcp-switch: stopped; of the frames inside, {} left and {} were dropped",
            stopped.sent, stopped.dropped
        ));
        let report = self.report();
        self.console.last_report(&report)?;
        let captured = self.switch.finish_captures();
        captured.map(drop).map_err(|error| Failure::environment(format!("a capture is not whole: {error}")))
    }
}

fn say_change(console: &mut Console, change: Change) {
    let state = if change.is_up { "up" } else { "down" };
    console.say(&format!("dcp-switch: port {} is {state}", change.port));
}
