//! `dcp-bench sweep`: one run, or the median of several, for each value of an option, and what they came to as table, CSV, JSON and plot.

mod args;
mod point;
mod report;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::Console;
use crate::failure::{Failure, FailureKind};
use crate::interrupt;
use crate::json;
use crate::sink::JsonSink;
pub(super) use args::SweepArgs;
use point::{Current, Point};

/// Runs the sweep; answers 0 when all runs succeeded, 1 when one failed, 130 when the user stopped it.
///
/// # Errors
/// It was refused before anything ran, the machine can run none of it, or results could not be written.
pub(super) fn run(args: &SweepArgs) -> Result<u8, Failure> {
    args.check()?;
    let sinks = Sinks::open(args)?;
    let current = Arc::new(Current::default());
    let interrupted = {
        let (current, json) = (Arc::clone(&current), Arc::clone(&sinks.json));
        interrupt::watch(move || cut_off(&current, &json))
            .map_err(|error| Failure::environment(format!("cannot watch for Ctrl-C: {error}")))?
    };
    let console = Console { table_on_stderr: args.table_on_stderr(), quiet: args.quiet };
    let points = run_all(args, &interrupted, &current, console)?;
    if let Some(failure) = none_could_run(&points) {
        return Err(failure);
    }
    console.table(&report::footer())?;
    sinks.write(args, &points)?;
    let stopped = interrupted.load(Ordering::Relaxed) || points.iter().any(Point::is_stopped);
    if stopped {
        console.note("stopped; these are the results until then");
        return Ok(FailureKind::Interrupted.exit_code());
    }
    let failed = points.iter().any(|point| point.exit_code != 0);
    Ok(if failed { FailureKind::Transfer.exit_code() } else { 0 })
}

/// When the user does not wait for the run that goes on to end.
fn cut_off(current: &Current, json: &Mutex<JsonSink>) {
    current.kill();
    let mut json = json.lock().unwrap_or_else(PoisonError::into_inner);
    if !json.is_written() {
        // Where it cannot be written, there is nobody left to tell.
        let _ = json.write(&json::error(&Failure::cut_off()));
    }
}

fn run_all(
    args: &SweepArgs,
    interrupted: &AtomicBool,
    current: &Current,
    console: Console,
) -> Result<Vec<Point>, Failure> {
    console.table(&report::head(args))?;
    let bar = progress(args);
    let mut turns: Vec<Vec<Point>> = args.values.iter().map(|_| Vec::new()).collect();
    let count = args.values.len();
    for turn in 0..args.rounds * count {
        let (index, is_last) = (turn % count, turn / count + 1 == args.rounds);
        let value = &args.values[index];
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        bar.set_message(format!("--{} {value}", args.option));
        turns[index].push(point::run(&args.words_of(value), value, interrupted, current)?);
        if let (true, Some(middle)) = (is_last, point::middle(&turns[index])) {
            bar.suspend(|| show(args, middle, console))?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(turns.iter().filter_map(|turns| point::middle(turns)).cloned().collect())
}

/// A bar over the runs; hidden unless stderr is a terminal.
fn progress(args: &SweepArgs) -> ProgressBar {
    if args.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new((args.rounds * args.values.len()) as u64);
    let style = ProgressStyle::with_template(" {spinner} {pos} of {len} runs done, {msg}, {elapsed} passed");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(args: &SweepArgs, point: &Point, console: Console) -> Result<(), Failure> {
    console.table(&report::rows(args, point))?;
    if let (true, Some(message)) = (point.exit_code != 0, point.message()) {
        console.note(&format!("--{} {}: {message}", args.option, point.value));
    }
    Ok(())
}

/// The failure of the first run, when the machine let none of them begin.
fn none_could_run(points: &[Point]) -> Option<Failure> {
    let environment = FailureKind::Environment.exit_code();
    let first = points.first().filter(|_| points.iter().all(|point| point.exit_code == environment))?;
    Some(Failure::environment(first.message().unwrap_or("no run could begin")))
}

/// Where the results go.
struct Sinks {
    json: Arc<Mutex<JsonSink>>,
    csv: JsonSink,
    svg: JsonSink,
}

impl Sinks {
    fn open(args: &SweepArgs) -> Result<Self, Failure> {
        Ok(Self {
            json: Arc::new(Mutex::new(JsonSink::open("--json", args.json.as_deref())?)),
            csv: JsonSink::open("--csv", args.csv.as_deref())?,
            svg: JsonSink::open("--svg", args.svg.as_deref())?,
        })
    }

    /// Each of them is written, also when another cannot be.
    fn write(mut self, args: &SweepArgs, points: &[Point]) -> Result<(), Failure> {
        let json = report::json(args, points);
        let mut sink = self.json.lock().unwrap_or_else(PoisonError::into_inner);
        let written = [
            sink.write(&json.text),
            self.csv.write(&report::csv(args, points)),
            report::svg(&json.value).and_then(|svg| self.svg.write(&svg)),
        ];
        written.into_iter().collect()
    }
}
