//! How the cost of a packet grows with queue pairs, messages outstanding, cores and hosts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use dcp_bench::tools::plot::{Chart, Series, svg_column};
use dpdk_ffi::available_cores;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Write;

use crate::compare::{DcpBench, DcpRow, RunError, beside_this_program, core};
use crate::measure::{median, median_ratio};
use crate::output::Failure;

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
}

const AXES: [Axis; 5] = [
    Axis {
        name: "queue pairs",
        options: "-s 64K -t 8 -q {}",
        values: &[1, 4, 16, 64, 256, 1024, 4096, 10_000],
    },
    // Payload of 256 of them stays in the cache: what the queue pairs themselves cost.
    Axis { name: "queue pairs of 4 KiB", options: "-s 4K -t 128 -q {}", values: &[1, 4, 16, 64, 256, 1024] },
    Axis {
        name: "messages outstanding",
        options: "-s 4K -q 1 -t {}",
        values: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    },
    Axis { name: "cores", options: "-s 1M -t 32", values: &[1, 2] },
    Axis { name: "hosts", options: "-s 64K -t 8 --hosts {}", values: &[2, 3, 5, 9, 17, 32] },
];

/// One point of one axis.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Row {
    /// What grows.
    pub axis: &'static str,
    /// How much of it.
    pub value: u32,
    /// Nanoseconds of all cores for a packet, the median of the rounds.
    pub ns_per_packet: f64,
    /// Times the cost at the axis's first value, inside the same rounds.
    pub of_first: f64,
    /// Gb/s of payload, the median of the rounds.
    pub gbps: f64,
    /// Cores in use.
    pub cores: u32,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Report {
    tool: &'static str,
    version: &'static str,
    rounds: u32,
    /// Row by row.
    pub rows: Vec<Row>,
    skipped: Vec<String>,
}

/// What was measured at one point, round by round.
#[derive(Clone, Default)]
struct Samples {
    ns: Vec<f64>,
    gbps: Vec<f64>,
    cores: u32,
    /// Why there is nothing.
    refused: Option<String>,
}

impl Samples {
    /// Another round. What dcp-bench does not offer leaves the point out; that it fails ends everything.
    fn add(&mut self, run: Result<DcpRow, RunError>) -> Result<(), Failure> {
        match run {
            Ok(row) => {
                self.ns.push(row.cpu.ns_per_packet.unwrap_or(0.0));
                self.gbps.push(row.bw_average_gbps);
                self.cores = row.cpu.cores;
            }
            Err(error) if error.is_refused => self.refused = Some(error.sentence),
            Err(error) => return Err(Failure::Broken(error.sentence)),
        }
        Ok(())
    }
}

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
    let mut report =
        Report { tool: "scale", version: env!("CARGO_PKG_VERSION"), rounds, rows: vec![], skipped: vec![] };
    let points: usize = AXES.iter().map(|axis| given.values(axis).len()).sum();
    let style = ProgressStyle::with_template(" {wide_bar} {pos}/{len} turns, {msg}, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(points as u64 * u64::from(rounds)).with_style(style);
    for axis in &AXES {
        let mut values = given.values(axis);
        if axis.name == "cores" && available_cores().len() < 2 {
            report.skipped.push("cores: this machine gives one".to_owned());
            values.truncate(1);
        }
        let mut samples = vec![Samples::default(); values.len()];
        for _ in 0..rounds {
            for (value, samples) in values.iter().zip(&mut samples) {
                if interrupted.load(Ordering::Relaxed) {
                    bar.finish_and_clear();
                    return Err(Failure::Interrupted);
                }
                bar.set_message(axis.name);
                samples.add(program.run(&options(axis, *value, seconds)))?;
                bar.inc(1);
            }
        }
        report.add(axis.name, &values, &samples);
    }
    bar.finish_and_clear();
    Ok(report)
}

impl Report {
    fn add(&mut self, axis: &'static str, values: &[u32], samples: &[Samples]) {
        for (&value, point) in values.iter().zip(samples) {
            if let Some(sentence) = &point.refused {
                self.skipped.push(format!("{value} {axis}: {sentence}"));
                continue;
            }
            self.rows.push(Row {
                axis,
                value,
                ns_per_packet: median(point.ns.clone()),
                of_first: median_ratio(&point.ns, &samples[0].ns).unwrap_or(0.0),
                gbps: median(point.gbps.clone()),
                cores: point.cores,
            });
        }
    }

    fn axes(&self) -> Vec<(&'static str, Vec<&Row>)> {
        let rows = |name| self.rows.iter().filter(|row| row.axis == name).collect::<Vec<_>>();
        AXES.iter().map(|axis| (axis.name, rows(axis.name))).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// Tables for a person.
    pub fn tables(&self) -> String {
        let mut text = format!("median of {} rounds; ns of all cores for a packet\n", self.rounds);
        for (name, rows) in self.axes() {
            let _ = writeln!(
                text,
                "\n{name:<22} {:>10} {:>10} {:>8} {:>6}",
                "ns/packet", "of first", "Gb/s", "cores"
            );
            for row in rows {
                let Row { value, ns_per_packet, of_first, gbps, cores, .. } = row;
                let _ = writeln!(
                    text,
                    "{value:<22} {ns_per_packet:>10.1} {of_first:>10.2} {gbps:>8.2} {cores:>6}"
                );
            }
        }
        for sentence in &self.skipped {
            let _ = writeln!(text, "skipped: {sentence}");
        }
        text
    }

    /// One object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| panic!("numbers and words: {error}")) + "\n"
    }

    /// A plot for each axis.
    ///
    /// # Errors
    /// A sentence: it cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let chart = |(name, rows): (&str, Vec<&Row>)| Chart {
            title: format!("Cost of a packet by {name}"),
            x: name.to_owned(),
            y: "ns per packet".to_owned(),
            labels: rows.iter().map(|row| row.value.to_string()).collect(),
            series: vec![Series {
                name: "ns".to_owned(),
                values: rows.iter().map(|row| Some(row.ns_per_packet)).collect(),
            }],
        };
        svg_column(&self.axes().into_iter().map(chart).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_in_parts_of_the_first_point() {
        let mut report = Report { tool: "scale", version: "0", rounds: 2, rows: vec![], skipped: vec![] };
        let samples =
            |ns: &[f64]| Samples { ns: ns.to_vec(), gbps: vec![1.0; ns.len()], cores: 1, refused: None };
        report.add("hosts", &[2, 32], &[samples(&[100.0, 10.0]), samples(&[150.0, 15.0])]);
        assert!((report.rows[1].of_first - 1.5).abs() < 1e-9);
        assert!(report.tables().contains("hosts") && report.svg().is_ok());
        let refused = RunError { is_refused: true, sentence: "--hosts is 99".to_owned() };
        let mut point = samples(&[]);
        assert_eq!(point.add(Err(refused.clone())), Ok(()));
        assert!(point.add(Err(RunError { is_refused: false, ..refused })).is_err());
        report.add("hosts", &[99], &[point]);
        assert_eq!((report.rows.len(), report.skipped.len()), (2, 1));
        assert!(serde_json::from_str::<serde_json::Value>(&report.json()).is_ok());
    }

    #[test]
    fn two_cores_are_split_and_one_is_pinned() {
        let axis = |name| AXES.iter().find(|axis| axis.name == name).expect("an axis of that name");
        assert!(options(axis("cores"), 2, 1.0).ends_with("--threads split -D 1"));
        assert!(options(axis("queue pairs"), 16, 1.0).contains("-q 16 --cores"));
    }
}
