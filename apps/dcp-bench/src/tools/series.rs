//! What there is to draw in the JSON of runs and sweeps.

use serde::Deserialize;
use serde_json::Value;

use super::plot::{Chart, Series};
use super::run::{Row, Run};

/// A sweep.
#[derive(Deserialize, Debug)]
pub(super) struct Sweep {
    pub(super) op: String,
    pub(super) option: String,
    #[serde(default)]
    pub(super) interrupted: bool,
    pub(super) points: Vec<SweepPoint>,
}

/// One value of it.
#[derive(Deserialize, Debug)]
pub(super) struct SweepPoint {
    pub(super) value: String,
    pub(super) result: String,
    pub(super) run: Option<Run>,
    pub(super) error: Option<SweepError>,
}

/// Why a value has no results.
#[derive(Deserialize, Debug)]
pub(super) struct SweepError {
    pub(super) status: Option<String>,
    pub(super) message: String,
}

impl Sweep {
    /// The sweep that `json` tells of.
    ///
    /// # Errors
    /// A sentence: it tells of none.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let sweep =
            Self::deserialize(json).map_err(|error| format!("it has no results of a sweep: {error}"))?;
        let is_empty = |point: &SweepPoint| point.run.as_ref().is_some_and(|run| run.results.is_empty());
        if sweep.points.iter().any(is_empty) {
            Err("a list of results is empty".to_owned())
        } else {
            Ok(sweep)
        }
    }

    /// Goodput, or latency, by value.
    pub(super) fn chart(&self) -> Chart {
        let is_latency = self.points.iter().filter_map(|point| point.run.as_ref()).any(Run::is_latency);
        // A run with a row for each size stands for its largest.
        let rows: Vec<Option<&Row>> =
            self.points.iter().map(|point| point.run.as_ref().and_then(|run| run.results.last())).collect();
        Chart {
            title: format!("{}: sweep of --{}", self.op, self.option),
            x: format!("--{}", self.option),
            y: unit(is_latency),
            labels: self.points.iter().map(|point| point.value.clone()).collect(),
            series: lines(is_latency, &rows),
        }
    }
}

impl Run {
    /// Bandwidth, or latency, by size; latency of one size by percentile. `None` where a single number is all there is.
    pub(super) fn chart(&self) -> Option<Chart> {
        let rows: Vec<Option<&Row>> = self.results.iter().map(Some).collect();
        let title = format!("{} {}", self.op, self.mode);
        if let [row] = &self.results[..] {
            let latency = row.lat_us.as_ref()?;
            let columns = latency.columns();
            let shown = columns.iter().filter(|(name, _)| *name != "stdev");
            let (labels, values) = shown.map(|(name, value)| ((*name).to_owned(), *value)).unzip();
            let series = vec![Series { name: format!("{} bytes", row.size_bytes), values }];
            return Some(Chart { title, x: "percentile".to_owned(), y: unit(true), labels, series });
        }
        let labels = self.results.iter().map(|row| size(row.size_bytes)).collect();
        let series = lines(self.is_latency(), &rows);
        Some(Chart {
            title,
            x: "message size in bytes".to_owned(),
            y: unit(self.is_latency()),
            labels,
            series,
        })
    }
}

fn unit(is_latency: bool) -> String {
    if is_latency { "latency in us" } else { "average bandwidth in Gb/s" }.to_owned()
}

fn lines(is_latency: bool, rows: &[Option<&Row>]) -> Vec<Series> {
    let line = |name: &str, of: &dyn Fn(&Row) -> Option<f64>| Series {
        name: name.to_owned(),
        values: rows.iter().map(|row| row.and_then(of)).collect(),
    };
    if !is_latency {
        return vec![line("average", &|row| row.bw_average_gbps)];
    }
    vec![
        line("p50", &|row| row.lat_us.as_ref()?.p50),
        line("p99", &|row| row.lat_us.as_ref()?.p99),
        line("p99.9", &|row| row.lat_us.as_ref()?.p999),
    ]
}

/// A size as it is given on the command line.
fn size(bytes: u64) -> String {
    let letters = [("G", 30), ("M", 20), ("K", 10)];
    let fits = letters.into_iter().find(|(_, shift)| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift));
    fits.map_or_else(|| bytes.to_string(), |(letter, shift)| format!("{}{letter}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(size: u64, lat: Value) -> Value {
        json!({"size_bytes": size, "iterations": 1, "seconds": 1.0, "bw_average_gbps": 2.0, "bw_peak_gbps": null,
            "msg_rate_mpps": 1.0, "lat_us": lat, "verified": true})
    }

    fn run(mode: &str, rows: &[Value]) -> Run {
        Run::read(&json!({"op": "write", "mode": mode, "results": rows})).unwrap()
    }

    #[test]
    fn single_bandwidth_is_no_plot_and_several_are_one_by_size() {
        assert!(run("bw", &[row(2, Value::Null)]).chart().is_none());
        let chart = run("bw", &[row(2, Value::Null), row(4096, Value::Null)]).chart().unwrap();
        assert_eq!((chart.labels, chart.series[0].values.len()), (vec!["2".to_owned(), "4K".to_owned()], 2));
    }

    #[test]
    fn single_latency_is_drawn_by_percentile() {
        let lat = json!({"min": 1.0, "p50": 2.0, "avg": 2.0, "p90": 3.0, "p99": 4.0, "p999": 5.0, "max": 6.0, "stdev": 0.1});
        let chart = run("lat", &[row(2, lat)]).chart().unwrap();
        assert_eq!(chart.labels, ["min", "p50", "avg", "p90", "p99", "p99.9", "max"]);
        assert_eq!(chart.series[0].values.last(), Some(&Some(6.0)));
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([2, 1024, 1536, 1 << 20, 0].map(size), ["2", "1K", "1536", "1M", "0"]);
    }
}
