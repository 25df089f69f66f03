//! What was measured, as tables, as JSON and as a drawing.

use std::collections::BTreeMap;
use std::fmt::Write;

use dcp_bench::tools::plot::{Chart, Series, svg_column};
use serde::Serialize;

use super::{Name, Options, Point, Sample};
use crate::calm::Calm;
use crate::measure::{median, median_ratio};

/// Everything that was measured.
pub struct Report {
    points: Vec<Point>,
    rounds: u32,
    seconds: f64,
    samples: BTreeMap<(Name, u32, u64), Vec<Sample>>,
    skipped: Vec<(Name, String)>,
    /// What there is to know of the core.
    core: Option<String>,
    disturbed: u32,
}

/// One contender at one point.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Row {
    /// Who.
    pub contender: &'static str,
    /// Payload of a packet in bytes; `None` for those whose packets are their own affair.
    pub mtu: Option<u32>,
    /// Bytes of a message.
    pub size_bytes: u64,
    /// Cores in use.
    pub cores: f64,
    /// Gb/s of payload, the median of the rounds.
    pub gbps: f64,
    /// The same, per core.
    pub gbps_per_core: f64,
    /// Million messages a second, per core.
    pub mmps_per_core: f64,
    /// Part of what memcpy reached per core in the same rounds.
    pub of_memcpy: Option<f64>,
    /// Part of what bare mbufs reached per core in the same rounds.
    pub of_mbufs: Option<f64>,
    /// Gb/s of each round.
    pub rounds_gbps: Vec<f64>,
}

#[derive(Serialize)]
struct Json<'a> {
    tool: &'a str,
    version: &'a str,
    rounds: u32,
    seconds: f64,
    /// Turns that were measured while the core was not one's own.
    disturbed_turns: u32,
    rows: Vec<Row>,
    skipped: Vec<Skipped<'a>>,
}

#[derive(Serialize)]
struct Skipped<'a> {
    contender: &'a str,
    reason: &'a str,
}

impl Report {
    pub(super) fn new(options: &Options, skipped: Vec<(Name, String)>) -> Self {
        let (points, rounds, seconds) = (options.points(), options.rounds(), options.seconds());
        Self { points, rounds, seconds, samples: BTreeMap::new(), skipped, core: None, disturbed: 0 }
    }

    pub(super) fn add(&mut self, name: Name, point: Point, sample: Sample) {
        self.samples.entry((name, point.mtu, point.size)).or_default().push(sample);
    }

    pub(super) fn skip(&mut self, name: Name, sentence: String) {
        self.skipped.push((name, sentence));
    }

    pub(super) fn set_calm(&mut self, calm: &Calm) {
        (self.core, self.disturbed) = (calm.sentence(), calm.disturbed);
    }

    /// Rates per core of each round.
    fn per_core(&self, name: Name, point: Point) -> Vec<f64> {
        let samples = self.samples.get(&(name, point.mtu, point.size));
        samples.into_iter().flatten().map(|sample| sample.gbps / sample.cores).collect()
    }

    fn row(&self, name: Name, point: Point) -> Option<Row> {
        let samples = self.samples.get(&(name, point.mtu, point.size))?;
        let rounds_gbps: Vec<f64> = samples.iter().map(|sample| sample.gbps).collect();
        let own = self.per_core(name, point);
        let part_of = |other| median_ratio(&own, &self.per_core(other, point));
        let gbps_per_core = median(own.clone());
        Some(Row {
            contender: name.word(),
            mtu: (!name.ignores_mtu()).then_some(point.mtu),
            size_bytes: point.size,
            cores: samples.first()?.cores,
            gbps: median(rounds_gbps.clone()),
            gbps_per_core,
            mmps_per_core: gbps_per_core * 1e3 / (point.size as f64 * 8.0),
            of_memcpy: part_of(Name::Memcpy),
            of_mbufs: part_of(Name::Mbufs),
            rounds_gbps,
        })
    }

    /// Every contender at every point that it was measured at.
    pub fn rows(&self) -> Vec<Row> {
        let all = self.points.iter().flat_map(|&point| Name::ALL.map(|name| self.row(name, point)));
        all.flatten().collect()
    }

    /// One object.
    pub fn json(&self) -> String {
        let skipped = self.skipped.iter();
        let json = Json {
            tool: "compare",
            version: env!("CARGO_PKG_VERSION"),
            rounds: self.rounds,
            seconds: self.seconds,
            disturbed_turns: self.disturbed,
            rows: self.rows(),
            skipped: skipped.map(|(name, reason)| Skipped { contender: name.word(), reason }).collect(),
        };
        let text =
            serde_json::to_string_pretty(&json).unwrap_or_else(|error| panic!("numbers and words: {error}"));
        text + "\n"
    }

    fn mtus(&self) -> Vec<u32> {
        let mut mtus: Vec<u32> = self.points.iter().map(|point| point.mtu).collect();
        mtus.dedup();
        mtus
    }

    fn sizes(&self) -> Vec<u64> {
        let first = self.points.first().map(|point| point.mtu);
        self.points.iter().filter(|point| Some(point.mtu) == first).map(|point| point.size).collect()
    }

    /// Tables for a person.
    pub fn tables(&self) -> String {
        let mut text = format!("median of {} rounds of {} s, per core in use\n", self.rounds, self.seconds);
        for mtu in self.mtus() {
            self.table(&mut text, &format!("MTU {mtu}, Gb/s"), mtu, |row| {
                Some(format!("{:.2}", row.gbps_per_core))
            });
            let percent = |part: f64| format!("{:.0} %", part * 100.0);
            self.table(&mut text, &format!("MTU {mtu}, of mbufs"), mtu, |row| row.of_mbufs.map(percent));
            self.table(&mut text, &format!("MTU {mtu}, of memcpy"), mtu, |row| row.of_memcpy.map(percent));
            self.table(&mut text, &format!("MTU {mtu}, M messages/s"), mtu, |row| {
                Some(format!("{:.4}", row.mmps_per_core))
            });
        }
        if let Some(core) = &self.core {
            let _ = writeln!(text, "{core}");
        }
        for (name, reason) in &self.skipped {
            let _ = writeln!(text, "{} was skipped: {reason}", name.word());
        }
        text
    }

    fn table(&self, text: &mut String, title: &str, mtu: u32, cell: impl Fn(&Row) -> Option<String>) {
        let _ = write!(text, "\n{title:<24}");
        for size in self.sizes() {
            let _ = write!(text, "{:>11}", size_name(size));
        }
        text.push('\n');
        for name in Name::ALL {
            let rows: Vec<_> =
                self.sizes().into_iter().map(|size| self.row(name, Point { mtu, size })).collect();
            if rows.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(text, "{:<24}", name.word());
            for row in rows {
                let _ =
                    write!(text, "{:>11}", row.as_ref().and_then(&cell).unwrap_or_else(|| "-".to_owned()));
            }
            text.push('\n');
        }
    }

    /// A drawing of the rates, one plane for each MTU.
    ///
    /// # Errors
    /// A sentence: it cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let charts: Vec<Chart> = self.mtus().into_iter().map(|mtu| self.chart(mtu)).collect();
        svg_column(&charts)
    }

    fn chart(&self, mtu: u32) -> Chart {
        let sizes = self.sizes();
        let line = |name: Name| {
            let value = |&size: &u64| self.row(name, Point { mtu, size }).map(|row| row.gbps_per_core);
            let values: Vec<_> = sizes.iter().map(value).collect();
            values.iter().any(Option::is_some).then(|| Series { name: name.word().to_owned(), values })
        };
        Chart {
            title: format!("MTU {mtu}"),
            x: "bytes of a message".to_owned(),
            y: "Gb/s per core".to_owned(),
            labels: sizes.iter().map(|&size| size_name(size)).collect(),
            series: Name::ALL.into_iter().filter_map(line).collect(),
        }
    }
}

fn size_name(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn report() -> Report {
        let options = Options::try_parse_from(["compare", "--quick", "--rounds", "3"]).unwrap();
        let mut report = Report::new(&options, vec![(Name::UcxTcp, "it is not installed".to_owned())]);
        let point = options.points()[0];
        for (memcpy, dcp) in [(100.0, 50.0), (10.0, 5.0), (200.0, 100.0)] {
            report.add(Name::Memcpy, point, Sample { gbps: memcpy, cores: 1.0 });
            report.add(Name::DcpSplit, point, Sample { gbps: dcp, cores: 2.0 });
        }
        report
    }

    #[test]
    fn rates_are_per_core_and_ratios_of_the_same_round() {
        let rows = report().rows();
        let split = rows.iter().find(|row| row.contender == "dcp-split").unwrap();
        assert_eq!((split.gbps, split.gbps_per_core), (50.0, 25.0));
        assert_eq!((split.of_memcpy, split.of_mbufs), (Some(0.25), None));
    }

    #[test]
    fn everything_says_who_was_skipped_and_why() {
        let report = report();
        assert!(report.tables().contains("ucx-tcp was skipped: it is not installed"));
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["skipped"][0]["contender"], "ucx-tcp");
        assert_eq!(json["rows"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn there_is_a_line_for_everyone_who_was_measured() {
        let svg = report().svg().unwrap();
        assert!(svg.contains("memcpy") && svg.contains("dcp-split") && !svg.contains("ucx"), "{svg}");
    }
}
