//! What a switch says at start without refusing to.

use core::fmt;

use crate::trim_to::TrimTo;
use crate::weight::{Incast, Weight};

/// Something that the operator should read when the switch starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// The derived weight is outside the legal range.
    WeightClamped {
        /// What it was derived from.
        incast: Incast,
        /// What is used.
        weight: Weight,
    },
    /// S-6: Kmax is not below the trim threshold.
    MarksLate {
        /// Kmax.
        max_bytes: u32,
        /// The threshold.
        trim_threshold_bytes: u32,
    },
    /// Frames are trimmed as other switches do it.
    TrimsLikeOthers {
        /// How.
        to: TrimTo,
        /// Largest N for which the weight formula holds, with frames of MTU 1024.
        incast_ports_max: u32,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WeightClamped { incast, weight } if *weight == Weight::MAX => write!(
                f,
                "the control queue cannot hold every header of a {}-to-1 incast of {}-byte frames; its weight is \
                 clamped to {weight}, and headers may be lost",
                incast.ports.max(1) - 1,
                incast.trimmable_frame_len,
            ),
            Self::WeightClamped { weight, .. } => {
                write!(f, "the control queue's derived weight is too small; it is raised to {weight}")
            }
            Self::MarksLate { max_bytes, trim_threshold_bytes } => write!(
                f,
                "ECN marks all frames only above {max_bytes} bytes, but from {trim_threshold_bytes} bytes on frames \
                 are trimmed: senders learn of congestion by loss first"
            ),
            Self::TrimsLikeOthers { to, incast_ports_max } => write!(
                f,
                "frames are trimmed to {} bytes with DSCP {}: DCP endpoints do not take them for header-only packets, and \
                 the weight formula holds for N up to {incast_ports_max} at MTU 1024",
                to.trim_bytes, to.trim_dscp,
            ),
        }
    }
}
