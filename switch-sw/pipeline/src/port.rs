//! Ports by number.

/// A port of the switch: its index, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PortId(pub u16);

impl PortId {
    /// The index, for tables with an entry per port.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A direction of a port, seen from the switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Into the switch.
    Ingress,
    /// Out of it.
    Egress,
}
