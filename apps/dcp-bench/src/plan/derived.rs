//! What follows from the values of a plan.

use super::{Device, Length, Mode, Op, Plan, Trigger};
use crate::network::Shape;

impl Plan {
    /// Clients: every host but the server.
    pub const fn clients(&self) -> u32 {
        self.hosts - 1
    }

    /// Queue pairs of all clients together.
    pub const fn total_qps(&self) -> u64 {
        self.clients() as u64 * self.qps as u64
    }

    /// Messages of all queue pairs together, in both directions; `None` when time limits the run.
    pub const fn total_iterations(&self) -> Option<u64> {
        match self.length {
            Length::Iterations(n) => Some(n.get() * self.total_qps() * self.directions()),
            Length::Duration(_) => None,
        }
    }

    /// Whether the two sides send to each other in turns.
    pub const fn is_rally(&self) -> bool {
        matches!(self.mode, Mode::Latency) && !self.op.is_answered()
    }

    /// Whether both sides send messages.
    pub const fn is_duplex(&self) -> bool {
        self.is_rally() || self.bidirectional
    }

    /// Directions that messages are counted in.
    pub const fn directions(&self) -> u64 {
        if self.bidirectional { 2 } else { 1 }
    }

    /// Whether messages take receives, or would with another MTU.
    pub const fn takes_receives(&self) -> bool {
        self.op.takes_receives() || self.is_rally()
    }

    /// Whether a switch in this process joins the hosts.
    pub fn has_switch(&self) -> bool {
        self.device == Device::Loop && self.network.shape != Shape::Direct
    }

    /// What answers a message of a latency test; `None` in others.
    pub fn trigger(&self) -> Option<Trigger> {
        if self.mode == Mode::Bandwidth {
            return None;
        }
        Some(match self.op {
            Op::Write if (1..=u64::from(self.mtu)).contains(&self.size) => Trigger::LastByte,
            Op::Write | Op::WriteImm => Trigger::Immediate,
            Op::Send | Op::SendImm => Trigger::Receive,
            Op::Read | Op::Cas | Op::Faa => Trigger::Completion,
        })
    }

    /// Name of what is measured, in the JSON: with times of its own for each message, a load has rates and latencies.
    pub const fn mode_name(&self) -> &'static str {
        if self.load.arrivals.is_some() { "load" } else { self.mode.name() }
    }
}
