//! Distribution of latencies.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency told apart from longer ones: one hour, in nanoseconds.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Digits of a percentile that are exact; the extremes, the mean and the deviation are exact to the nanosecond.
const DIGITS: u8 = 3;

/// Latencies of a run; takes the same memory for any number of them.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    /// Sum of squared distances from the mean (Welford).
    spread: f64,
}

/// Latencies in microseconds, as in the JSON.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatencySummary {
    /// Shortest.
    pub min: f64,
    /// Half are at most this; perftest's "typical".
    pub p50: f64,
    /// Mean.
    pub avg: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// 99.9 % are at most this.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Standard deviation of the whole population.
    pub stdev: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram =
            Histogram::new_with_max(LATENCY_NS_MAX, DIGITS).expect("the bounds are constants in range");
        Self { histogram, min_ns: u64::MAX, max_ns: 0, mean_ns: 0.0, spread: 0.0 }
    }
}

impl Latencies {
    /// Adds one sample.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let distance = ns as f64 - self.mean_ns;
        self.mean_ns += distance / self.histogram.len() as f64;
        self.spread += distance * (ns as f64 - self.mean_ns);
    }

    /// Adds the samples of another.
    pub fn add(&mut self, other: &Self) {
        let (ours, theirs) = (self.histogram.len() as f64, other.histogram.len() as f64);
        if theirs == 0.0 {
            return;
        }
        // Both have the same bounds, so nothing is refused.
        self.histogram += &other.histogram;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let distance = other.mean_ns - self.mean_ns;
        self.mean_ns += distance * theirs / (ours + theirs);
        self.spread += other.spread + distance * distance * ours * theirs / (ours + theirs);
    }

    /// What the samples say; `None` without any.
    pub fn summary(&self) -> Option<LatencySummary> {
        if self.histogram.is_empty() {
            return None;
        }
        let quantile = |q| micros(self.histogram.value_at_quantile(q).clamp(self.min_ns, self.max_ns) as f64);
        Some(LatencySummary {
            min: micros(self.min_ns as f64),
            p50: quantile(0.5),
            avg: micros(self.mean_ns),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: micros(self.max_ns as f64),
            stdev: micros((self.spread / self.histogram.len() as f64).sqrt()),
        })
    }
}

fn micros(ns: f64) -> f64 {
    ns / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(samples: impl IntoIterator<Item = u64>) -> Option<LatencySummary> {
        let mut latencies = Latencies::default();
        samples.into_iter().for_each(|ns| latencies.record(ns));
        latencies.summary()
    }

    // I2
    #[test]
    fn percentiles_are_by_nearest_rank() {
        let s = summary(1..=1000).unwrap();
        assert_eq!((s.min, s.p50, s.p90, s.p99, s.p999, s.max), (0.001, 0.5, 0.9, 0.99, 0.999, 1.0));
        assert!((s.avg - 0.5005).abs() < 1e-12);
    }

    #[test]
    fn deviation_is_that_of_the_population() {
        let s = summary([1000, 1400, 1800]).unwrap();
        assert_eq!((s.p50, s.max), (1.4, 1.8));
        assert_eq!(format!("{:.4}", s.stdev), "0.3266");
    }

    #[test]
    fn samples_of_several_are_those_of_one_that_has_all() {
        let (mut odd, mut even, mut none) =
            (Latencies::default(), Latencies::default(), Latencies::default());
        (1..=1000).for_each(|ns| if ns % 2 == 1 { odd.record(ns) } else { even.record(ns) });
        none.add(&odd);
        none.add(&even);
        none.add(&Latencies::default());
        let (s, all) = (none.summary().unwrap(), summary(1..=1000).unwrap());
        assert_eq!((s.min, s.p50, s.p90, s.p99, s.max), (all.min, all.p50, all.p90, all.p99, all.max));
        assert!((s.avg - all.avg).abs() < 1e-9 && (s.stdev - all.stdev).abs() < 1e-9);
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(summary([]), None);
        assert_eq!(serde_json::to_string(&summary([])).unwrap(), "null");
    }

    #[test]
    fn one_sample_is_all_there_is() {
        let s = summary([123_456_789]).unwrap();
        let all = [s.min, s.p50, s.avg, s.p90, s.p99, s.p999, s.max];
        assert_eq!(all, [123_456.789; 7]);
        assert_eq!(s.stdev, 0.0);
    }

    #[test]
    fn absurd_sample_keeps_its_maximum() {
        assert_eq!(summary([u64::MAX]).unwrap().max, u64::MAX as f64 / 1e3);
    }
}
