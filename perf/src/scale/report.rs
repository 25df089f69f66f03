//! What was measured along the axes, as tables, JSON and plots.

use std::fmt::Write;

use dcp_bench::tools::plot::{Chart, Series, svg_column};
use serde::Serialize;

use super::{AXES, Axis};
use crate::calm::Calm;
use crate::compare::{DcpRow, RunError};
use crate::measure::{median, median_ratio};
use crate::output::Failure;

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
    /// Nanoseconds for copying a packet's payload by itself, the median of the rounds; along axes of queue pairs, where
    /// there was memory for it.
    pub copy_ns: Option<f64>,
    /// What a packet costs beside that copy, times the same at the axis's first value, inside the same rounds.
    pub beside_copy_of_first: Option<f64>,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Report {
    tool: &'static str,
    version: &'static str,
    rounds: u32,
    /// Turns that were measured while the core was not one's own.
    disturbed_turns: u32,
    /// What there is to know of the core.
    #[serde(skip)]
    core: Option<String>,
    /// Row by row.
    pub rows: Vec<Row>,
    pub(super) skipped: Vec<String>,
}

/// What was measured at one point, round by round.
#[derive(Clone, Default)]
pub(super) struct Samples {
    ns: Vec<f64>,
    gbps: Vec<f64>,
    cores: u32,
    /// Why there is nothing.
    refused: Option<String>,
    /// The copy alone.
    copy_ns: Vec<f64>,
    /// Why there is nothing of that.
    copy_refused: Option<String>,
}

impl Samples {
    /// Another round. What dcp-bench does not offer leaves the point out; that it fails ends everything.
    pub(super) fn add(&mut self, run: Result<DcpRow, RunError>) -> Result<(), Failure> {
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

    /// The copy alone in the same round. Without the memory in one round the point has none.
    pub(super) fn add_copy(&mut self, ns: Result<f64, RunError>) -> Result<(), Failure> {
        match ns {
            Ok(ns) => self.copy_ns.push(ns),
            Err(error) if error.is_refused => self.copy_refused = Some(error.sentence),
            Err(error) => return Err(Failure::Broken(error.sentence)),
        }
        Ok(())
    }

    /// Whether the copy is wanted: what it belongs to is there, and so was its memory up to now.
    pub(super) fn wants_copy(&self) -> bool {
        self.refused.is_none() && self.copy_refused.is_none()
    }

    /// The copy alone, round by round, if it is there in all of them.
    fn copies(&self) -> &[f64] {
        if self.copy_refused.is_some() { &[] } else { &self.copy_ns }
    }

    /// What a packet cost beside its copy, round by round.
    fn rests(&self) -> Vec<f64> {
        self.ns.iter().zip(self.copies()).map(|(ns, copy)| ns - copy).collect()
    }
}

impl Report {
    /// Nothing yet.
    pub(super) fn new(rounds: u32) -> Self {
        let (tool, version) = ("scale", env!("CARGO_PKG_VERSION"));
        Self { tool, version, rounds, disturbed_turns: 0, core: None, rows: vec![], skipped: vec![] }
    }

    pub(super) fn set_calm(&mut self, calm: &Calm) {
        (self.core, self.disturbed_turns) = (calm.sentence(), calm.disturbed);
    }

    pub(super) fn add(&mut self, axis: &'static str, values: &[u32], samples: &[Samples]) {
        for (&value, point) in values.iter().zip(samples) {
            if let Some(sentence) = &point.refused {
                self.skipped.push(format!("{value} {axis}: {sentence}"));
                continue;
            }
            if let Some(sentence) = &point.copy_refused {
                self.skipped.push(format!("copy alone at {value} {axis}: {sentence}"));
            }
            let copies = point.copies();
            self.rows.push(Row {
                axis,
                value,
                ns_per_packet: median(point.ns.clone()),
                of_first: median_ratio(&point.ns, &samples[0].ns).unwrap_or(0.0),
                gbps: median(point.gbps.clone()),
                cores: point.cores,
                copy_ns: (!copies.is_empty()).then(|| median(copies.to_vec())),
                beside_copy_of_first: median_ratio(&point.rests(), &samples[0].rests()),
            });
        }
    }

    fn axes(&self) -> Vec<(&'static Axis, Vec<&Row>)> {
        let rows = |name| self.rows.iter().filter(|row| row.axis == name).collect::<Vec<_>>();
        AXES.iter().map(|axis| (axis, rows(axis.name))).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// Tables for a person.
    pub fn tables(&self) -> String {
        let mut text = format!("median of {} rounds; ns of all cores for a packet\n", self.rounds);
        for (axis, rows) in self.axes() {
            let name = axis.name;
            let _ = write!(
                text,
                "\n{name:<22} {:>10} {:>10} {:>8} {:>6}",
                "ns/packet", "of first", "Gb/s", "cores"
            );
            if axis.copied.is_some() {
                let _ = write!(text, " {:>11} {:>15}", "copy alone", "rest, of first");
            }
            text.push('\n');
            for row in rows {
                let Row { value, ns_per_packet, of_first, gbps, cores, .. } = row;
                let _ =
                    write!(text, "{value:<22} {ns_per_packet:>10.1} {of_first:>10.2} {gbps:>8.2} {cores:>6}");
                if axis.copied.is_some() {
                    let copy = row.copy_ns.map(|ns| format!("{ns:.1}")).unwrap_or_default();
                    let rest = row.beside_copy_of_first.map(|it| format!("{it:.2}")).unwrap_or_default();
                    let _ = write!(text, " {copy:>11} {rest:>15}");
                }
                text.truncate(text.trim_end().len());
                text.push('\n');
            }
        }
        if let Some(core) = &self.core {
            let _ = writeln!(text, "{core}");
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
        svg_column(&self.axes().into_iter().map(|(axis, rows)| chart(axis, &rows)).collect::<Vec<_>>())
    }
}

fn chart(axis: &Axis, rows: &[&Row]) -> Chart {
    let series = |name: &str, value: fn(&Row) -> Option<f64>| Series {
        name: name.to_owned(),
        values: rows.iter().map(|row| value(row)).collect(),
    };
    let mut lines = vec![series("DCP", |row| Some(row.ns_per_packet))];
    if axis.copied.is_some() {
        lines.push(series("copy alone", |row| row.copy_ns));
    }
    Chart {
        title: format!("Cost of a packet by {}", axis.name),
        x: axis.name.to_owned(),
        y: "ns per packet".to_owned(),
        labels: rows.iter().map(|row| row.value.to_string()).collect(),
        series: lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ns: &[f64], copy_ns: &[f64]) -> Samples {
        let (ns, gbps, copy_ns) = (ns.to_vec(), vec![1.0; ns.len()], copy_ns.to_vec());
        Samples { ns, gbps, cores: 1, copy_ns, ..Samples::default() }
    }

    fn refusal(sentence: &str) -> RunError {
        RunError { is_refused: true, sentence: sentence.to_owned() }
    }

    fn is(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn growth_is_told_in_parts_of_the_first_point() {
        let mut report = Report::new(2);
        report.add("hosts", &[2, 32], &[samples(&[100.0, 10.0], &[]), samples(&[150.0, 15.0], &[])]);
        assert!((report.rows[1].of_first - 1.5).abs() < 1e-9);
        assert!(report.tables().contains("hosts") && report.svg().is_ok());
        let mut point = samples(&[], &[]);
        assert_eq!(point.add(Err(refusal("--hosts is 99"))), Ok(()));
        assert!(point.add(Err(RunError { is_refused: false, ..refusal("it broke") })).is_err());
        report.add("hosts", &[99], &[point]);
        assert_eq!((report.rows.len(), report.skipped.len()), (2, 1));
        assert!(serde_json::from_str::<serde_json::Value>(&report.json()).is_ok());
    }

    #[test]
    fn what_is_beside_the_copy_is_compared_inside_each_round() {
        let mut report = Report::new(3);
        // The second round was slow for everything; beside the copy the second point costs 1.2 times the first.
        let first = samples(&[200.0, 400.0, 210.0], &[100.0, 200.0, 110.0]);
        let second = samples(&[300.0, 600.0, 310.0], &[180.0, 360.0, 190.0]);
        report.add("queue pairs", &[1, 256], &[first, second]);
        let [first, second] = &report.rows[..] else { panic!("two rows") };
        assert!(is(first.copy_ns, 110.0) && is(first.beside_copy_of_first, 1.0));
        assert!(is(second.copy_ns, 190.0) && is(second.beside_copy_of_first, 1.2));
        assert!((second.of_first - 1.5).abs() < 1e-9);
    }

    #[test]
    fn copy_has_columns_and_a_line_along_queue_pairs_only() {
        let mut report = Report::new(1);
        report.add("hosts", &[2], &[samples(&[100.0], &[])]);
        for form in [report.tables(), report.svg().unwrap()] {
            assert!(!form.contains("copy alone"), "{form}");
        }
        report.add("queue pairs", &[1], &[samples(&[100.0], &[72.5])]);
        let tables = report.tables();
        assert!(tables.contains("copy alone  rest, of first\n"), "{tables}");
        assert!(tables.contains(" 72.5            1.00\n"), "{tables}");
        assert_eq!(report.svg().unwrap().matches("\ncopy alone\n").count(), 1);
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert!(json["rows"][0]["copy_ns"].is_null() && json["rows"][0]["beside_copy_of_first"].is_null());
        assert_eq!(
            (&json["rows"][1]["copy_ns"], &json["rows"][1]["beside_copy_of_first"]),
            (&72.5.into(), &1.0.into())
        );
    }

    #[test]
    fn copy_without_memory_leaves_its_columns_empty_and_says_why() {
        let mut report = Report::new(2);
        let mut large = samples(&[150.0, 150.0], &[90.0]);
        assert!(large.wants_copy());
        assert_eq!(large.add_copy(Err(refusal("1251 MiB of memory are needed"))), Ok(()));
        assert!(!large.wants_copy());
        report.add("queue pairs", &[1, 10_000], &[samples(&[100.0, 100.0], &[70.0, 70.0]), large]);
        let row = &report.rows[1];
        assert_eq!((row.copy_ns, row.beside_copy_of_first), (None, None));
        assert!((row.of_first - 1.5).abs() < 1e-9);
        assert_eq!(report.skipped, ["copy alone at 10000 queue pairs: 1251 MiB of memory are needed"]);
        assert!(report.tables().contains("1.50     1.00      1\n") && report.svg().is_ok());
        let broken = RunError { is_refused: false, ..refusal("the range is not inside") };
        assert!(Samples::default().add_copy(Err(broken)).is_err());
    }
}
