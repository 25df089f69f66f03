//! The program from its command line to its exit code.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{self, BandwidthArgs, Cli, Command};
use crate::console::{Console, say};
use crate::csv;
use crate::device::{self, Stage};
use crate::failure::{Failure, FailureKind};
use crate::interrupt;
use crate::json;
use crate::net::NetCounters;
use crate::outcome::{Outcome, Verification};
use crate::plan::{Mode, Op, Plan};
use crate::progress::Progress;
use crate::report::{self, Unit};
use crate::rhcc;
use crate::sink::JsonSink;

/// Runs the program with its words, its own name first; answers the exit code.
pub fn run(words: Vec<OsString>) -> u8 {
    match Cli::try_parse_from(&words) {
        Ok(Cli { command: Command::Tool(tool) }) => tool.run().unwrap_or_else(|failure| {
            say(&format!("error: {failure}"));
            refuse(&words, &failure)
        }),
        Ok(Cli { command: Command::Rhcc(args) }) => rhcc::run(&words, &args),
        Ok(cli) => match cli.command.operation() {
            Ok((op, args)) => App::new(words, &args).run(&args, op),
            Err(other) => {
                let failure = args::not_an_operation(&other);
                say(&format!("error: {failure}"));
                refuse(&words, &failure)
            }
        },
        Err(error) => {
            if let Some(failure) = sweep_failure(&error) {
                say(&format!("error: {failure}"));
                return refuse(&words, &failure);
            }
            // A closed terminal is nothing to report.
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
                _ => refuse(&words, &Failure::usage(sentence(&error))),
            }
        }
    }
}

/// Tells the JSON, if the command line names one, and answers the exit code.
pub(crate) fn refuse(words: &[OsString], failure: &Failure) -> u8 {
    let target = args::json_target(words);
    let written =
        JsonSink::open("--json", target.as_deref()).and_then(|mut sink| sink.write(&json::error(failure)));
    if let Err(other) = written {
        say(&format!("error: {other}"));
    }
    failure.exit_code()
}

/// What a sweep itself refuses is a sentence of its own, which clap knows nothing to add to.
fn sweep_failure(error: &clap::Error) -> Option<Failure> {
    let is_own = error.kind() == ErrorKind::ValueValidation && error.context().next().is_none();
    is_own.then(|| {
        Failure::usage(sentence(error)).with_hint("`dcp-bench sweep --help` says how a sweep is asked for")
    })
}

/// First line of what clap says, without its prefix.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// What a thread and a few descriptors may be wanting.
pub(crate) const RAISE: &str =
    "raise the limits of threads and of open files, for example with ulimit -u 4096 and ulimit -n 1024";

/// Leaves an object behind in any case, also when the user does not wait for the results.
pub(crate) fn tell_cut_off(sink: &Mutex<JsonSink>) {
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    if !sink.is_written() {
        // Where it cannot be written, there is nobody left to tell.
        let _ = sink.write(&json::error(&Failure::cut_off()));
    }
}

struct App {
    words: Vec<OsString>,
    console: Console,
    unit: Unit,
}

impl App {
    fn new(words: Vec<OsString>, args: &BandwidthArgs) -> Self {
        let console = Console { table_on_stderr: args.output.takes_stdout(), quiet: args.output.quiet };
        Self { words, console, unit: args.output.unit() }
    }

    fn run(&self, args: &BandwidthArgs, op: Op) -> u8 {
        let (plans, notes) = match args.plans(op) {
            Ok(planned) => planned,
            Err(failure) => {
                self.console.failure(&failure);
                return refuse(&self.words, &failure);
            }
        };
        let opened = JsonSink::open(args.output.json_option(), args.output.json().as_deref())
            .and_then(|json| Ok((json, JsonSink::open("--csv", args.output.csv.as_deref())?)));
        let (json, mut csv) = match opened {
            Ok((json, csv)) => (Arc::new(Mutex::new(json)), csv),
            Err(failure) => {
                self.console.failure(&failure);
                return failure.exit_code();
            }
        };
        notes.iter().for_each(|note| self.console.note(note));
        let mut rows = Vec::with_capacity(plans.len());
        let measured = self.measure(&plans, &json, &mut rows);
        let measured = measured.or_else(|failure| stopped_between(failure, &mut rows));
        let ended = measured.and_then(|()| self.show_end(&rows)).and_then(|()| missed(&rows));
        let written = if rows.is_empty() { Ok(()) } else { csv.write(&csv::results(&rows)) };
        self.conclude(&plans[0], notes, &json, &rows, ended.and(written))
    }

    fn measure(
        &self,
        plans: &[Plan],
        sink: &Arc<Mutex<JsonSink>>,
        rows: &mut Vec<(Plan, Outcome)>,
    ) -> Result<(), Failure> {
        let sink = Arc::clone(sink);
        let interrupted = interrupt::watch(move || tell_cut_off(&sink)).map_err(|error| {
            Failure::environment(format!("cannot watch for Ctrl-C: {error}")).with_hint(RAISE)
        })?;
        let progress = if self.console.quiet { Progress::hidden() } else { Progress::on_terminal(&plans[0]) };
        let mut progress = progress.with_rows(self.console, self.unit);
        let mut stage = Stage {
            interrupted: &interrupted,
            progress: &mut progress,
            banner: &|plan| self.console.table(&report::banner(plan, self.unit, plans.len() > 1)),
            line: &|text| self.console.table(text),
            note: &|text| self.console.note(text),
        };
        let mut row = |plan: &Plan, outcome: Outcome| {
            self.show(plan, &outcome)?;
            let outcome = judged(outcome)?;
            rows.push((plan.clone(), outcome));
            Ok(())
        };
        let result = device::run(plans, &mut stage, &mut row);
        progress.finish();
        result
    }

    /// Leaves the JSON behind; answers the exit code.
    fn conclude(
        &self,
        plan: &Plan,
        mut notes: Vec<String>,
        sink: &Mutex<JsonSink>,
        rows: &[(Plan, Outcome)],
        ended: Result<(), Failure>,
    ) -> u8 {
        let (json, mut exit_code) = match &ended {
            Ok(()) => {
                notes.extend(rows.iter().flat_map(|(_, outcome)| outcome.notes.iter().cloned()));
                (json::results(plan, rows, &notes), success_code(rows))
            }
            Err(failure) => (json::error(failure), failure.exit_code()),
        };
        if let Err(failure) = &ended {
            self.console.failure(failure);
            if failure.kind == FailureKind::Transfer {
                say(&format!("  repeat: {}", self.repeat(plan)));
            }
        }
        if let Err(failure) = sink.lock().unwrap_or_else(PoisonError::into_inner).write(&json) {
            self.console.failure(&failure);
            exit_code = failure.exit_code();
        }
        exit_code
    }

    /// Prints a row and what belongs to it.
    fn show(&self, plan: &Plan, outcome: &Outcome) -> Result<(), Failure> {
        let row = match plan.mode {
            Mode::Bandwidth => report::row(plan.size, outcome, self.unit),
            Mode::Latency => report::latency_row(plan.size, outcome),
        };
        self.console.table(&row)?;
        self.console.table(&report::remarks(outcome, plan.mode))?;
        if let Verification::Failed(_) = outcome.verification {
            self.console.table(&report::footer(&outcome.net, &outcome.verification))?;
        }
        Ok(())
    }

    /// Prints what follows the rows.
    fn show_end(&self, rows: &[(Plan, Outcome)]) -> Result<(), Failure> {
        let mut net = NetCounters::default();
        rows.iter().for_each(|(_, outcome)| net.add(&outcome.net));
        let checked = |(_, outcome): &(Plan, Outcome)| outcome.verification == Verification::Passed;
        let all = rows.iter().all(checked) && !rows.is_empty();
        let verification = if all { Verification::Passed } else { Verification::NotChecked };
        self.console.table(&report::footer(&net, &verification))?;
        for (_, outcome) in rows {
            outcome.notes.iter().for_each(|note| self.console.note(note));
        }
        if rows.iter().any(|(_, outcome)| outcome.interrupted) {
            self.console.note("stopped; these are the results until then");
        }
        Ok(())
    }

    /// The command that does the same again, faults included.
    fn repeat(&self, plan: &Plan) -> String {
        let mut line: Vec<_> =
            self.words.iter().skip(1).map(|word| quoted(&word.to_string_lossy())).collect();
        if !line.iter().any(|word| word.starts_with("--seed")) {
            line.push(format!("--seed {}", plan.seed));
        }
        format!("dcp-bench {}", line.join(" "))
    }
}

/// The outcome, unless its data is wrong: then a failure, whatever else it has.
fn judged(outcome: Outcome) -> Result<Outcome, Failure> {
    match &outcome.verification {
        Verification::Failed(mismatch) => {
            Err(Failure::transfer(format!("the data arrived wrong: {mismatch}")).with_net(outcome.net))
        }
        Verification::Passed | Verification::NotChecked => Ok(outcome),
    }
}

/// A failure where a run was slower than its user allows.
fn missed(rows: &[(Plan, Outcome)]) -> Result<(), Failure> {
    for (plan, outcome) in rows {
        let gbps = outcome.throughput().gbps();
        if let Some(limit) = plan.reporting.limit_gbps.filter(|&limit| gbps < limit) {
            return Err(Failure::transfer(format!(
                "{} bytes went at {gbps:.3} Gb/s on average, which is below --limit_bw {limit}",
                plan.size
            )));
        }
    }
    Ok(())
}

/// A user who stops several runs between two of them has the results until then.
fn stopped_between(failure: Failure, rows: &mut [(Plan, Outcome)]) -> Result<(), Failure> {
    match rows.last_mut() {
        Some((_, last)) if failure.kind == FailureKind::Interrupted => {
            last.interrupted = true;
            Ok(())
        }
        _ => Err(failure),
    }
}

/// Exit code of a run that has results: a stopped one is no success.
fn success_code(rows: &[(Plan, Outcome)]) -> u8 {
    if rows.iter().any(|(_, outcome)| outcome.interrupted) { FailureKind::Interrupted.exit_code() } else { 0 }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Details;

    fn outcome(verification: Verification, interrupted: bool) -> Outcome {
        Outcome {
            iterations: 1,
            bytes: 1,
            elapsed_ns: 1,
            peak_bytes_per_second: None,
            verification,
            net: NetCounters::default(),
            cores: 1,
            mtu: 4096,
            interrupted,
            notes: Vec::new(),
            details: Details::default(),
        }
    }

    #[test]
    fn exit_code_is_success_only_for_a_whole_run() {
        for (interrupted, code) in [(false, 0), (true, 130)] {
            let judged = judged(outcome(Verification::Passed, interrupted)).unwrap();
            assert_eq!(success_code(&[(Plan::default(), judged)]), code);
        }
    }

    #[test]
    fn rows_that_were_there_before_ctrl_c_are_results() {
        let mut rows = [(Plan::default(), outcome(Verification::Passed, false))];
        assert_eq!(stopped_between(Failure::interrupted(), &mut rows), Ok(()));
        assert_eq!(success_code(&rows), 130);
        assert!(stopped_between(Failure::interrupted(), &mut []).is_err());
        assert!(stopped_between(Failure::transfer(""), &mut rows).is_err());
    }

    #[test]
    fn wrong_data_is_a_failure_also_in_a_stopped_run() {
        for interrupted in [false, true] {
            let wrong = Verification::Failed("queue pair 3, message 17, offset 4096".to_owned());
            let failure = judged(outcome(wrong, interrupted)).unwrap_err();
            assert_eq!(failure.exit_code(), 1);
            assert!(failure.message.ends_with("queue pair 3, message 17, offset 4096"));
        }
    }

    #[test]
    fn words_are_quoted_when_a_shell_would_change_them() {
        assert_eq!(quoted("--trim=5%"), "--trim=5%");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
