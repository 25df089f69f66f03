//! What host congestion does, without RHCC, with either half of it and with both: one table, as RHCC's Figure 21.
//!
//! Every row is two runs in the loop: bandwidth, and then latency of one message at a time of the same size. All rows
//! take turns, and each shows the medians of its turns, so that whatever else the machine does falls on all alike.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dcp::core::RhccThreshold;
use dcp::dpdk::available_cores;
use serde::Serialize;

use crate::app::{RAISE, refuse, tell_cut_off};
use crate::args::BandwidthArgs;
use crate::burden::{Burden, Carried};
use crate::console::Console;
use crate::failure::{Failure, FailureKind};
use crate::interrupt;
use crate::json;
use crate::loopback::Loop;
use crate::outcome::{Outcome, Verification};
use crate::plan::{Device, Length, Mode, Op, Plan};
use crate::progress::Progress;
use crate::sink::JsonSink;

/// Time of a run when nothing else is asked for.
const DURATION: Duration = Duration::from_secs(1);
/// Turns of every row.
const TURNS: usize = 3;
/// Time for which hogs run alone.
const ALONE: Duration = Duration::from_secs(1);
/// Time between two looks for Ctrl-C while they do.
const LOOK: Duration = Duration::from_millis(20);

/// A row's circumstances: hogs, RHCC at the sender, RHCC at the receiver.
const ROWS: [(bool, bool, bool); 6] = [
    (false, false, false),
    (false, true, true),
    (true, false, false),
    (true, true, false),
    (true, false, true),
    (true, true, true),
];

/// What one turn of a row brought.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Turn {
    gbps: f64,
    p99_us: Option<f64>,
    hogs_gbs: f64,
    left_percent: f64,
    trimmed: f64,
}

/// A row: medians of its turns.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Row {
    hogs: usize,
    rhcc: &'static str,
    turns: usize,
    bw_average_gbps: f64,
    /// Of what it is without hogs and without RHCC.
    bw_relative: f64,
    /// Of one message at a time, half a round trip.
    lat_p99_us: Option<f64>,
    /// Hogs' speed of that when they run alone; none without hogs.
    hogs_relative: Option<f64>,
    /// Mean of what the control left to hogs, in per cent.
    hogs_left_percent: f64,
    /// Packets that the switch cut.
    trimmed: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    tool: &'a str,
    version: &'a str,
    op: &'a str,
    mode: &'a str,
    size_bytes: u64,
    cc: &'a str,
    actuator: Option<String>,
    hogs_alone_gbs: f64,
    notes: &'a [String],
    interrupted: bool,
    rows: Vec<Row>,
}

/// Runs the subcommand; answers the exit code.
pub(crate) fn run(words: &[OsString], args: &BandwidthArgs) -> u8 {
    let table_on_stderr = args.output.takes_stdout();
    let console = Console { table_on_stderr, quiet: args.output.quiet };
    let opened = planned(args)
        .and_then(|it| Ok((it, JsonSink::open(args.output.json_option(), args.output.json().as_deref())?)));
    let ((plan, notes), sink) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            console.failure(&failure);
            return refuse(words, &failure);
        }
    };
    let sink = Arc::new(Mutex::new(sink));
    notes.iter().for_each(|note| console.note(note));
    let mut table = Table { console, notes, turns: Default::default(), alone_gbs: 0.0, actuator: None };
    let result = table.fill(&plan, &sink);
    if let Err(failure) = &result {
        console.failure(failure);
    }
    let json = match &result {
        Err(failure) if failure.kind != FailureKind::Interrupted || table.turns[0].is_empty() => {
            json::error(failure)
        }
        _ => table.json(&plan, result.is_err()),
    };
    let written = sink.lock().unwrap_or_else(PoisonError::into_inner).write(&json);
    match result.and(written.inspect_err(|failure| console.failure(failure))) {
        Ok(()) => 0,
        Err(failure) => failure.exit_code(),
    }
}

/// The plan of the rows, with hogs.
fn planned(args: &BandwidthArgs) -> Result<(Plan, Vec<String>), Failure> {
    let (mut plans, _) = args.plans(Op::Write)?;
    let mut plan = plans.remove(0);
    if !plans.is_empty() {
        return Err(Failure::usage("rhcc has rows of its own: leave out --all"));
    }
    if plan.device != Device::Loop {
        return Err(Failure::usage("rhcc runs in the loop, with both hosts in this process")
            .with_hint("between two processes, give --antagonist and --rhcc-receiver to the server"));
    }
    if plan.mode == Mode::Latency || plan.total_qps() != 1 {
        return Err(Failure::usage(
            "rhcc measures bandwidth and latency of one queue pair: leave out --lat, --qp and --hosts",
        ));
    }
    if args.traffic.iters.is_none() && args.traffic.duration.is_none() {
        plan.length = Length::Duration(DURATION);
    }
    plan.burden.hogs = plan.burden.hogs.max(1);
    plan.congestion.rhcc = plan.congestion.rhcc.or(Some(RhccThreshold::Auto));
    let notes = Vec::from_iter(crate::burden::place(&mut plan));
    Ok((plan, notes))
}

struct Table {
    console: Console,
    notes: Vec<String>,
    /// By row.
    turns: [Vec<Turn>; ROWS.len()],
    alone_gbs: f64,
    actuator: Option<String>,
}

impl Table {
    fn fill(&mut self, plan: &Plan, sink: &Arc<Mutex<JsonSink>>) -> Result<(), Failure> {
        let sink = Arc::clone(sink);
        let interrupted = interrupt::watch(move || tell_cut_off(&sink)).map_err(|error| {
            Failure::environment(format!("cannot watch for Ctrl-C: {error}")).with_hint(RAISE)
        })?;
        self.alone(plan, &interrupted)?;
        let looped = Loop::start(plan)?;
        let result = (1..=TURNS).try_for_each(|turn| {
            self.console.note(&format!("turn {turn} of {TURNS}"));
            (0..ROWS.len()).try_for_each(|row| self.turn(&looped, plan, row, &interrupted))
        });
        if !self.turns[0].is_empty() {
            let rows: String = self.rows(plan).iter().map(line).collect();
            self.console.table(&format!("{}{rows}{}", heads(plan), foot(self.alone_gbs)))?;
        }
        result
    }

    /// How fast hogs are with nothing else to do on their core.
    fn alone(&mut self, plan: &Plan, interrupted: &AtomicBool) -> Result<(), Failure> {
        let split: Vec<usize> = available_cores().iter().copied().take(3).collect();
        let core = plan.cores.last().or(split.last()).copied();
        let carried = Carried::start(Burden { is_governed: false, ..plan.burden }, core)?;
        let looks = ALONE.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            dcp::dpdk::clock::pause(LOOK);
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::interrupted());
            }
        }
        let (strain, notes) = carried.end();
        self.alone_gbs = strain.map_or(0.0, |strain| strain.hogs_gbs);
        self.note(notes);
        Ok(())
    }

    /// Says what was not said before.
    fn note(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.console.note(&note);
                self.notes.push(note);
            }
        }
    }

    /// A turn of a row.
    fn turn(
        &mut self,
        looped: &Loop,
        plan: &Plan,
        row: usize,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        let (hogs, sender, receiver) = ROWS[row];
        let mut plan = plan.clone();
        plan.burden = Burden { hogs: if hogs { plan.burden.hogs } else { 0 }, is_governed: receiver };
        if !sender {
            plan.congestion.rhcc = None;
        }
        let bandwidth = self.measure(looped, &plan, interrupted)?;
        let one_by_one = Plan { mode: Mode::Latency, ..plan }.checked()?;
        let latency = self.measure(looped, &one_by_one, interrupted)?;
        let strain = bandwidth.details.burden.as_ref().filter(|it| it.hogs > 0);
        self.actuator = strain.and_then(|it| it.actuator.clone()).or(self.actuator.take());
        self.turns[row].push(Turn {
            gbps: bandwidth.throughput().gbps(),
            p99_us: latency.details.latency.map(|latency| latency.p99),
            hogs_gbs: strain.map_or(0.0, |it| it.hogs_gbs),
            left_percent: strain.map_or(100.0, |it| it.left_percent),
            trimmed: bandwidth.net.trimmed as f64,
        });
        Ok(())
    }

    fn rows(&self, plan: &Plan) -> Vec<Row> {
        let best = median(&self.turns[0], |turn| Some(turn.gbps)).unwrap_or(0.0);
        let row = |(&(hogs, sender, receiver), turns): (&_, &Vec<Turn>)| {
            let of = |value: fn(&Turn) -> Option<f64>| median(turns, value);
            let gbps = of(|turn| Some(turn.gbps))?;
            Some(Row {
                hogs: if hogs { plan.burden.hogs } else { 0 },
                rhcc: name(sender, receiver),
                turns: turns.len(),
                bw_average_gbps: gbps,
                bw_relative: if best > 0.0 { gbps / best } else { 0.0 },
                lat_p99_us: of(|turn| turn.p99_us),
                hogs_relative: of(|turn| Some(turn.hogs_gbs))
                    .filter(|_| hogs && self.alone_gbs > 0.0)
                    .map(|gbs| gbs / self.alone_gbs),
                hogs_left_percent: of(|turn| Some(turn.left_percent))?,
                trimmed: of(|turn| Some(turn.trimmed))?,
            })
        };
        ROWS.iter().zip(&self.turns).filter_map(row).collect()
    }

    /// A run that went well to its end.
    fn measure(&mut self, looped: &Loop, plan: &Plan, interrupted: &AtomicBool) -> Result<Outcome, Failure> {
        let mut outcome = looped.run(plan, interrupted, &mut Progress::hidden())?;
        if outcome.interrupted {
            return Err(Failure::interrupted());
        }
        if let Verification::Failed(mismatch) = &outcome.verification {
            return Err(
                Failure::transfer(format!("the data arrived wrong: {mismatch}")).with_net(outcome.net)
            );
        }
        self.note(std::mem::take(&mut outcome.notes));
        Ok(outcome)
    }

    fn json(&self, plan: &Plan, interrupted: bool) -> String {
        json::render(&Report {
            tool: json::TOOL,
            version: env!("CARGO_PKG_VERSION"),
            op: plan.op.name(),
            mode: "rhcc",
            size_bytes: plan.size,
            cc: plan.congestion.scheme.name(),
            actuator: self.actuator.clone(),
            hogs_alone_gbs: self.alone_gbs,
            notes: &self.notes,
            interrupted,
            rows: self.rows(plan),
        })
    }
}

/// Median of what there is; of an even number, the upper one.
fn median(turns: &[Turn], value: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = turns.iter().filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn foot(alone_gbs: f64) -> String {
    format!(" medians of {TURNS} turns; hogs alone go through {alone_gbs:.2} GB/s\n")
}

const fn name(sender: bool, receiver: bool) -> &'static str {
    match (sender, receiver) {
        (false, false) => "off",
        (true, false) => "sender",
        (false, true) => "receiver",
        (true, true) => "both",
    }
}

fn heads(plan: &Plan) -> String {
    format!(
        " Host congestion in the loop: {} of {} bytes, latency of one at a time (half a round trip)\n\
         \n #hogs  RHCC      BW average[Gb/sec]  relative  99%[usec]   hogs, of alone  left to them\n",
        plan.op.title(),
        plan.size
    )
}

fn line(row: &Row) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let p99 = or_dash(row.lat_p99_us.map(|us| format!("{us:.1}")));
    let speed = or_dash(row.hogs_relative.map(|part| format!("{part:.2}")));
    let left = or_dash(row.hogs_relative.map(|_| format!("{:.0} %", row.hogs_left_percent)));
    format!(
        " {:<6} {:<9} {:<19.2} {:<9.2} {p99:<11} {speed:<15} {left}\n",
        row.hogs, row.rhcc, row.bw_average_gbps, row.bw_relative
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_that_the_machine_disturbed_moves_no_median() {
        let turn = |gbps| Turn { gbps, p99_us: None, hogs_gbs: 0.0, left_percent: 100.0, trimmed: 0.0 };
        assert_eq!(median(&[turn(9.0), turn(1.0), turn(8.0)], |turn| Some(turn.gbps)), Some(8.0));
        assert_eq!(median(&[turn(9.0)], |turn| turn.p99_us), None);
        assert_eq!(median(&[], |turn| Some(turn.gbps)), None);
    }

    #[test]
    fn values_stand_under_their_heads() {
        let row = Row {
            hogs: 2,
            rhcc: "both",
            turns: 3,
            bw_average_gbps: 12.5,
            bw_relative: 0.75,
            lat_p99_us: Some(99.5),
            hogs_relative: Some(0.25),
            hogs_left_percent: 31.0,
            trimmed: 0.0,
        };
        let (heads, line) = (heads(&Plan::default()), line(&row));
        let heads = heads.lines().last().unwrap();
        for (head, value) in [
            ("RHCC", "both"),
            ("BW", "12.50"),
            ("relative", "0.75"),
            ("99%", "99.5"),
            ("hogs,", "0.25"),
            ("left", "31 %"),
        ] {
            assert_eq!(heads.find(head), line.find(value), "{head}");
        }
    }
}
