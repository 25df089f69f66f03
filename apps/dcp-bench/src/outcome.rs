//! What a run brought.

use crate::burden::Strain;
use crate::measure::Throughput;
use serde::{Deserialize, Serialize};

use crate::fairness::Fairness;
use crate::net::NetCounters;
use crate::stats::LatencySummary;

/// Result of comparing the destination buffers with the pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verification {
    /// Nothing was delivered that could be compared.
    NotChecked,
    /// Every byte is as it was sent.
    Passed,
    /// The first difference, described: queue pair, message, offset.
    Failed(String),
}

impl Verification {
    /// As `verified` in the JSON.
    pub const fn verified(&self) -> Option<bool> {
        match self {
            Self::NotChecked => None,
            Self::Passed => Some(true),
            Self::Failed(_) => Some(false),
        }
    }

    /// Both together: what is not passed stands, and then the rest is not even looked at.
    #[must_use]
    pub fn and(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Passed { other() } else { self }
    }
}

/// What only some runs measure.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Details {
    /// Latencies.
    pub latency: Option<LatencySummary>,
    /// How hogs at the server fared.
    pub burden: Option<Strain>,
    /// How evenly queue pairs shared the way.
    pub fairness: Option<Fairness>,
    /// The run piece by piece.
    pub intervals: Vec<Interval>,
    /// What each side's messages were, if both sent some.
    pub directions: Option<Directions>,
    /// Messages whose time had come, and that were not sent when the run was over.
    pub overdue: u64,
}

/// The two parts of a run in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Directions {
    /// What the client sent, or read.
    pub from_client: Direction,
    /// What the server did.
    pub from_server: Direction,
}

/// What one side's messages were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Direction {
    /// Messages completed.
    pub iterations: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What to say about messages that came too late to be sent.
pub fn overdue_note(details: &Details) -> Option<String> {
    let count = details.overdue;
    (count > 0).then(|| {
        format!("{count} messages were due and not sent when the run was over: it is slower than --rate, and they are in no latency")
    })
}

/// A piece of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// When it began, in seconds of the run.
    pub start: f64,
    /// How long it was.
    pub seconds: f64,
    /// Messages completed in it.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What one row of a run brought, complete or interrupted.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Messages acknowledged, over all queue pairs of all clients.
    pub iterations: u64,
    /// Application payload in those messages, each byte counted once.
    pub bytes: u64,
    /// From the first post to the last completion, in nanoseconds.
    pub elapsed_ns: u64,
    /// Fastest stretch, in payload bytes per second; `None` where it is not measured (`--duration`).
    pub peak_bytes_per_second: Option<f64>,
    /// Whether the data arrived as it was sent.
    pub verification: Verification,
    /// What the network did.
    pub net: NetCounters,
    /// Cores that the run kept busy.
    pub cores: u32,
    /// MTU of the queue pairs in bytes, after negotiation.
    pub mtu: u32,
    /// Whether the user stopped the run; the rest is then what had been done until there.
    pub interrupted: bool,
    /// Remarks for the user, one sentence each.
    pub notes: Vec<String>,
    /// What only some runs measure.
    pub details: Details,
}

impl Outcome {
    /// Rates of the run.
    pub const fn throughput(&self) -> Throughput {
        Throughput { messages: self.iterations, bytes: self.bytes, elapsed_ns: self.elapsed_ns }
    }

    /// Core time spent per data packet transmitted, in nanoseconds; `None` without packets.
    pub fn ns_per_packet(&self) -> Option<f64> {
        let core_ns = self.elapsed_ns as f64 * f64::from(self.cores);
        (self.net.data_packets > 0).then(|| core_ns / self.net.data_packets as f64)
    }

    /// Payload rate per core, in Gb/s; `None` without cores.
    pub fn gbps_per_core(&self) -> Option<f64> {
        (self.cores > 0).then(|| self.throughput().gbps() / f64::from(self.cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_time_is_shared_among_packets() {
        let outcome = Outcome {
            iterations: 5000,
            bytes: 5000 * 65536,
            elapsed_ns: 100_000_000,
            peak_bytes_per_second: None,
            verification: Verification::Passed,
            net: NetCounters { data_packets: 80_000, ..NetCounters::default() },
            cores: 2,
            mtu: 4096,
            interrupted: false,
            notes: Vec::new(),
            details: Details::default(),
        };
        assert_eq!(outcome.ns_per_packet(), Some(2500.0));
        assert_eq!(outcome.gbps_per_core(), Some(13.1072));
        let idle = Outcome { net: NetCounters::default(), cores: 0, ..outcome };
        assert_eq!((idle.ns_per_packet(), idle.gbps_per_core()), (None, None));
    }
}
