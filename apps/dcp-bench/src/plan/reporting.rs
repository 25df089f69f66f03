//! What is told of a run.

use std::time::Duration;

/// What is told of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Reporting {
    /// Time between rows while it goes on.
    pub interval: Option<Duration>,
    /// Time left out at both ends of a run that time limits.
    pub margin: Option<Duration>,
    /// Whether nobody wants the peak.
    pub no_peak: bool,
    /// Average bandwidth below which the run has failed, in Gb/s.
    pub limit_gbps: Option<f64>,
}
