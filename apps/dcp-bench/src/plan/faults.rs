//! Faults of a run's network.

use crate::units::Probability;

/// Faults that the switch injects, each packet on its own.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Faults {
    /// Trim a data packet.
    pub trim: Probability,
    /// Drop a frame.
    pub drop: Probability,
    /// Send a frame twice.
    pub duplicate: Probability,
    /// Let a frame be overtaken.
    pub reorder: Probability,
    /// Change a byte of a frame.
    pub corrupt: Probability,
}
