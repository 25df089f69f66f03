//! What the switch did until now: a snapshot of its counters.

use dcp_switch::pipeline::{DropReason, PortCounters, PortId, Queued, Weight};
use dcp_switch::{DeviceCounters, Switch};

use crate::ports::Ports;

/// Counters of everything at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Nanoseconds since the start.
    pub at_ns: u64,
    /// The control queue's weight.
    pub weight: Weight,
    /// Each port.
    pub ports: Vec<PortReport>,
    /// All ports together.
    pub totals: PortCounters,
    /// Frames in all queues.
    pub queued_frames: u64,
}

/// Counters of a port.
#[derive(Clone, PartialEq, Debug)]
pub struct PortReport {
    /// Its device.
    pub uri: String,
    /// Whether its link is up.
    pub is_up: bool,
    /// The pipeline's counters.
    pub counters: PortCounters,
    /// What waits there.
    pub queued: Queued,
    /// The device's counters.
    pub device: DeviceCounters,
}

impl PortReport {
    /// S-4: whether every frame that came to it is accounted for.
    pub fn balances(&self) -> bool {
        self.counters.ingress.balances() && self.counters.egress.balances(self.queued.frames())
    }

    /// Frames lost there, on either side.
    pub fn dropped(&self) -> u64 {
        self.counters.ingress.drops.total() + self.counters.egress.drops.total() + self.device.discarded
    }
}

impl Report {
    /// The counters now.
    pub fn of(at_ns: u64, switch: &Switch, ports: &Ports) -> Self {
        let pipeline = switch.pipeline();
        let each = ports.links().zip((0..).map(PortId)).map(|((uri, is_up), port)| PortReport {
            uri: uri.to_string(),
            is_up,
            counters: pipeline.counters(port),
            queued: pipeline.queued(port),
            device: switch.device_counters(port),
        });
        Self {
            at_ns,
            weight: pipeline.weight(),
            ports: each.collect(),
            totals: pipeline.totals(),
            queued_frames: pipeline.queued_frames(),
        }
    }

    /// S-4: whether every frame is accounted for: at every port, and on the way from port to port, and to the devices.
    pub fn balances(&self) -> bool {
        let (ingress, egress) = (&self.totals.ingress, &self.totals.egress);
        let sent = |port: &PortReport| {
            let device = &port.device;
            let egress = &port.counters.egress;
            egress.forwarded + egress.trimmed_forwarded
                == device.sent + device.discarded + device.waiting as u64
        };
        self.ports.iter().all(|port| port.balances() && sent(port))
            && egress.balances(self.queued_frames)
            && ingress.routed + egress.duplicated == egress.offered
    }

    /// Losses of all ports by reason, without those that did not happen.
    pub fn losses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (ingress, egress) = (self.totals.ingress.drops, self.totals.egress.drops);
        let reasons = DropReason::ALL.into_iter();
        let drops = reasons.map(move |reason| (reason.name(), ingress.get(reason) + egress.get(reason)));
        let discarded = self.ports.iter().map(|port| port.device.discarded).sum();
        drops.chain([("discarded", discarded)]).filter(|(_, frames)| *frames > 0)
    }
}
