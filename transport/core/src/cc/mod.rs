//! Congestion control: how many bytes a queue pair may have in flight now, and how fast they may leave.
//!
//! A scheme hears CNPs, delays and returned headers, and answers with a rate or a window. It never decides what is
//! resent, and nothing that resends looks at it.

mod controller;
mod dcqcn;
mod host;
mod pacer;
mod rate;
mod rhcc;
mod swift;

pub(crate) use controller::{Controller, Delay};
pub use dcqcn::DcqcnConfig;
pub use host::{HostControl, HostControlConfig, HostControlError, Level, Levels, Occupancy, TrafficClass};
pub(crate) use pacer::Pacer;
pub use rate::{Fraction, Rate};
pub use rhcc::{RhccConfig, RhccThreshold};
pub use swift::SwiftConfig;

/// The scheme of one queue pair. RHCC composes with any of them ([`crate::QpConfig::rhcc`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CongestionControl {
    /// Unlimited (C-1).
    None,
    /// A static limit on the bytes in flight (C-1).
    Window {
        /// Bytes, IP length counted; ≥ 2 packets and ≥ 2 × the peer's `ack_bytes`.
        bytes: u32,
    },
    /// A rate that CNPs cut (C-2). Needs [`crate::QpConfig::rate_max`] as the line rate.
    Dcqcn(DcqcnConfig),
    /// A window that follows the delay of probes.
    Swift(SwiftConfig),
}

impl CongestionControl {
    /// Its name in reports and on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Window { .. } => "window",
            Self::Dcqcn(_) => "dcqcn",
            Self::Swift(_) => "swift",
        }
    }

    /// Bytes that may be in flight at the start: `u64::MAX` without a limit.
    pub(crate) const fn window(&self) -> u64 {
        match self {
            Self::None | Self::Dcqcn(_) => u64::MAX,
            Self::Window { bytes } => *bytes as u64,
            Self::Swift(config) => config.window_max as u64,
        }
    }
}

/// Why a parameter is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ParameterError {
    pub(crate) what: &'static str,
    pub(crate) value: u64,
    pub(crate) range: (u64, u64),
}

/// Checks a parameter against its range.
pub(crate) const fn check(what: &'static str, value: u64, range: (u64, u64)) -> Result<(), ParameterError> {
    if value < range.0 || value > range.1 { Err(ParameterError { what, value, range }) } else { Ok(()) }
}
