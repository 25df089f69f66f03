//! How the cost of a packet grows with queue pairs, messages outstanding, cores and hosts.
//!
//! With more queue pairs there are more buffers, which no cache holds in the end. So along those axes copying the payload
//! alone, over the same buffers, has a turn after each of dcp-bench's: what grows with it is the memory's, what grows
//! beside it is the transport's.

mod copy;
mod report;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use dpdk_ffi::{Clock, available_cores};
use indicatif::{ProgressBar, ProgressStyle};

use crate::calm::Calm;
use crate::compare::{DcpBench, beside_this_program, core};
use crate::output::Failure;
use copy::Messages;
use report::Samples;
pub use report::{Report, Row};

/// Cost of a packet as queue pairs, messages outstanding, cores and hosts grow.
#[derive(Parser, Clone, Debug)]
#[command(name = "scale", version, args_override_self = true)]
pub struct Options {
    /// The ends of each axis, one round of a tenth of a second: whether it works, not how it grows
    #[arg(long)]
    quick: bool,
    /// Rounds; every point has a turn in each [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Write the results to FILE as JSON; - = stdout, without tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the results to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The program dcp-bench [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    dcp_bench: Option<PathBuf>,
}

/// What grows.
struct Axis {
    name: &'static str,
    /// Options of dcp-bench, with `{}` for the value.
    options: &'static str,
    values: &'static [u32],
    /// Whose payload is copied by itself, too.
    copied: Option<Messages>,
}

const AXES: [Axis; 5] = [
    Axis {
        name: "queue pairs",
        options: "-s 64K -t 8 -q {}",
        values: &[1, 4, 16, 64, 256, 1024, 4096, 10_000],
        copied: Some(Messages { size: 64 << 10, depth: 8 }),
    },
    // Payload of 256 of them stays in the cache: what the queue pairs themselves cost.
    Axis {
        name: "queue pairs of 4 KiB",
        options: "-s 4K -t 128 -q {}",
        values: &[1, 4, 16, 64, 256, 1024],
        copied: Some(Messages { size: 4 << 10, depth: 128 }),
    },
    Axis {
        name: "messages outstanding",
        options: "-s 4K -q 1 -t {}",
        values: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        copied: None,
    },
    Axis { name: "cores", options: "-s 1M -t 32", values: &[1, 2], copied: None },
    Axis { name: "hosts", options: "-s 64K -t 8 --hosts {}", values: &[2, 3, 5, 9, 17, 32], copied: None },
];

impl Options {
    fn values(&self, axis: &Axis) -> Vec<u32> {
        match (self.quick, axis.values) {
            (true, [first, .., _]) => vec![*first, axis.values[1]],
            (_, values) => values.to_vec(),
        }
    }
}

/// The options of dcp-bench for one point.
fn options(axis: &Axis, value: u32, seconds: f64) -> String {
    let mut options = axis.options.replace("{}", &value.to_string());
    match (axis.name, value) {
        ("cores", 2) => options += " --threads split",
        _ => drop(write!(options, " --cores {}", core())),
    }
    format!("write {options} -D {seconds}")
}

/// Measures along every axis.
///
/// # Errors
/// It was interrupted, or dcp-bench does not run.
pub fn run(given: &Options, interrupted: &AtomicBool) -> Result<Report, Failure> {
    let path = given.dcp_bench.clone().unwrap_or_else(beside_this_program);
    let program = DcpBench::new(path).map_err(Failure::Environment)?;
    let (rounds, seconds) =
        (given.rounds.unwrap_or(if given.quick { 1 } else { 3 }), if given.quick { 0.1 } else { 1.0 });
    let mut report = Report::new(rounds);
    let mut axes: Vec<(&Axis, Vec<u32>)> = AXES.iter().map(|axis| (axis, given.values(axis))).collect();
    if available_cores().len() < 2 {
        report.skipped.push("cores: this machine gives one".to_owned());
        axes.iter_mut().filter(|(axis, _)| axis.name == "cores").for_each(|(_, values)| values.truncate(1));
    }
    let style = ProgressStyle::with_template(" {wide_bar} {pos}/{len} turns, {msg}, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(turns_per_round(&axes) * u64::from(rounds)).with_style(style);
    let patience = if given.quick { 0 } else { turns_per_round(&axes) * u64::from(rounds) };
    let calm = Calm::new(u32::try_from(patience).unwrap_or(u32::MAX));
    let mut turns = Turns { program, clock: Clock::calibrate(), seconds, interrupted, bar, calm };
    for (axis, values) in axes {
        let mut samples = vec![Samples::default(); values.len()];
        for _ in 0..rounds {
            for (value, samples) in values.iter().zip(&mut samples) {
                turns.take(axis, *value, samples)?;
            }
        }
        report.add(axis.name, &values, &samples);
    }
    report.set_calm(&turns.calm);
    Ok(report)
}

/// Turns of dcp-bench, and of the copy where it has one.
fn turns_per_round(axes: &[(&Axis, Vec<u32>)]) -> u64 {
    axes.iter().map(|(axis, values)| values.len() as u64 * if axis.copied.is_some() { 2 } else { 1 }).sum()
}

/// What turns are taken with.
struct Turns<'a> {
    program: DcpBench,
    clock: Clock,
    seconds: f64,
    interrupted: &'a AtomicBool,
    bar: ProgressBar,
    calm: Calm,
}

impl Turns<'_> {
    /// One point in one round: dcp-bench, and right after it the copy alone, when the machine is as fast or as slow.
    fn take(&mut self, axis: &Axis, value: u32, samples: &mut Samples) -> Result<(), Failure> {
        let options = options(axis, value, self.seconds);
        let dcp = self.turn(axis.name, |turns| turns.program.run(&options))?;
        samples.add(dcp)?;
        let Some(messages) = axis.copied else { return Ok(()) };
        let wanted = samples.wants_copy();
        let copy = |turns: &Self| wanted.then(|| messages.copy_ns(value, turns.clock, turns.seconds));
        match self.turn("copy alone", copy)? {
            Some(ns) => samples.add_copy(ns),
            None => Ok(()),
        }
    }

    /// One step of the progress bar; not begun, and without a result, when the user stopped it.
    fn turn<T>(&mut self, name: &'static str, measure: impl Fn(&Self) -> T) -> Result<T, Failure> {
        self.bar.set_message(name);
        let mut calm = std::mem::take(&mut self.calm);
        let measured = calm.turn(|| {
            self.go_on()?;
            let measured = measure(self);
            // Ctrl-C reaches dcp-bench, too: what it then says is no failure.
            self.go_on()?;
            Ok(measured)
        });
        self.calm = calm;
        self.bar.inc(1);
        measured
    }

    fn go_on(&self) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

impl Drop for Turns<'_> {
    /// What is printed next stands where the bar was.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str) -> &'static Axis {
        AXES.iter().find(|axis| axis.name == name).expect("an axis of that name")
    }

    #[test]
    fn two_cores_are_split_and_one_is_pinned() {
        assert!(options(axis("cores"), 2, 1.0).ends_with("--threads split -D 1"));
        assert!(options(axis("queue pairs"), 16, 1.0).contains("-q 16 --cores"));
    }

    #[test]
    fn messages_that_are_copied_alone_are_those_of_dcp_bench() {
        for axis in AXES.iter().filter(|axis| axis.name.starts_with("queue pairs")) {
            let Messages { size, depth } = axis.copied.expect("it tells the copy");
            let expected = format!("-s {}K -t {depth} -q {{}}", size >> 10);
            assert_eq!(axis.options, expected);
        }
        assert_eq!(AXES.iter().filter(|axis| axis.copied.is_some()).count(), 2);
    }

    #[test]
    fn copy_has_a_turn_after_each_of_dcp_bench() {
        let turns = |names: &[&str]| {
            turns_per_round(&names.iter().map(|name| (axis(name), vec![1, 4])).collect::<Vec<_>>())
        };
        assert_eq!((turns(&["hosts"]), turns(&["queue pairs"]), turns(&["hosts", "queue pairs"])), (2, 4, 6));
    }
}
