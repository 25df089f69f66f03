//! The JSON of this program, read again.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::outcome::Directions;

/// A run that has results.
#[derive(Clone, Deserialize, Debug)]
pub(super) struct Run {
    pub(super) op: String,
    pub(super) mode: String,
    #[serde(default)]
    pub(super) interrupted: bool,
    pub(super) results: Vec<Row>,
}

/// One row of them.
#[derive(Clone, Deserialize, Debug)]
pub(super) struct Row {
    pub(super) size_bytes: u64,
    pub(super) iterations: u64,
    pub(super) seconds: f64,
    pub(super) bw_average_gbps: Option<f64>,
    pub(super) bw_peak_gbps: Option<f64>,
    pub(super) msg_rate_mpps: Option<f64>,
    pub(super) lat_us: Option<Latency>,
    pub(super) verified: Option<bool>,
    /// Only there when both sides sent.
    pub(super) directions: Option<Directions>,
    /// Counters by name.
    #[serde(default)]
    pub(super) net: Map<String, Value>,
}

/// Latencies in microseconds; `None` where there was no sample.
#[derive(Clone, Deserialize, Debug)]
pub(super) struct Latency {
    pub(super) min: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) avg: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p999: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) stdev: Option<f64>,
}

impl Run {
    /// The run that `json` tells of.
    ///
    /// # Errors
    /// A sentence: it tells of none.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let run = Self::deserialize(json).map_err(|error| format!("it has no results of a run: {error}"))?;
        if run.results.is_empty() { Err("its list of results is empty".to_owned()) } else { Ok(run) }
    }

    /// Whether latency is what it was about.
    pub(super) fn is_latency(&self) -> bool {
        self.mode != "bw"
    }
}

impl Row {
    /// A counter of the network; 0 when it is not there.
    pub(super) fn counter(&self, name: &str) -> u64 {
        self.net.get(name).and_then(Value::as_u64).unwrap_or(0)
    }
}

impl Latency {
    /// All of it, in the order of perftest's columns and then some.
    pub(super) const fn columns(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("min", self.min),
            ("p50", self.p50),
            ("avg", self.avg),
            ("p90", self.p90),
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("max", self.max),
            ("stdev", self.stdev),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn object_without_results_is_no_run() {
        for json in [
            json!({}),
            json!([]),
            json!({"op": "write", "mode": "bw", "results": []}),
            json!({"op": "write", "mode": "bw", "results": [{"size_bytes": -1}]}),
        ] {
            assert!(Run::read(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn run_is_read_with_its_counters_whatever_else_is_there() {
        let json = json!({"tool": "dcp-bench", "op": "read", "mode": "lat", "mtu": 4096, "results": [{
            "size_bytes": 2, "iterations": 5, "seconds": 0.1, "bw_average_gbps": null, "bw_peak_gbps": null,
            "msg_rate_mpps": null, "verified": null, "net": {"data_packets": 7}, "cpu": {},
            "lat_us": {"min": 1.0, "p50": 2, "avg": 2.5, "p90": 3.0, "p99": 4.0, "p999": 5.0, "max": 6.0, "stdev": 0.0}}]});
        let run = Run::read(&json).unwrap();
        let row = &run.results[0];
        assert!(run.is_latency() && !run.interrupted);
        assert_eq!((row.counter("data_packets"), row.counter("trimmed")), (7, 0));
        assert_eq!(row.lat_us.as_ref().and_then(|it| it.p50), Some(2.0));
    }
}
