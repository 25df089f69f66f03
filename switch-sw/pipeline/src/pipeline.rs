//! The switch: frames in, frames out.

use crate::config::PipelineConfig;
use crate::config_error::ConfigError;
use crate::counters::{DropReason, PortCounters};
use crate::egress::{Egress, Handling, Queued};
use crate::fault::{FaultConfig, Injector};
use crate::forward::Forwarding;
use crate::frame::{Frame, FrameSink};
use crate::ingress::Ingress;
use crate::note::Note;
use crate::port::PortId;
use crate::weight::Weight;

/// A trimming switch as a state machine: no clock, no IO, no thread, no allocation after the start.
///
/// Frames come in by [`handle_frame`](Self::handle_frame) and wait in their egress port's two queues until
/// [`poll_transmit`](Self::poll_transmit) takes them. Every frame is forwarded, queued or counted as dropped (S-4).
///
/// Methods that take a [`PortId`] panic if there is no such port.
#[derive(Debug)]
pub struct Pipeline<F> {
    ingress: Box<[Ingress]>,
    egress: Box<[Egress<F>]>,
    forwarding: Forwarding,
    service_ports: Box<[u16]>,
    weight: Weight,
    notes: Vec<Note>,
}

impl<F: Frame> Pipeline<F> {
    /// A switch with empty queues.
    ///
    /// # Errors
    /// A sentence that says which parameter cannot work (D6).
    pub fn new(config: PipelineConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let (weight, note) = config.resolve_weight()?;
        let forwarding = Forwarding::new(&config)?;
        let faults = |port: u16| config.faults.get(usize::from(port)).copied().unwrap_or_default();
        let ingress = |port| {
            let injector = Injector::new(faults(port), config.seed, port);
            Ingress::new(injector, PortId(port), forwarding.home(PortId(port)))
        };
        Ok(Self {
            ingress: (0..config.ports).map(ingress).collect(),
            egress: (0..config.ports).map(|port| Egress::new(&config, weight, port)).collect(),
            forwarding,
            weight,
            notes: note.into_iter().chain(config.ecn_note()).collect(),
            service_ports: config.service_ports.into_boxed_slice(),
        })
    }

    /// Takes a frame that arrived at `ingress`. A frame that is lost is counted, and dropped by its `Drop`.
    ///
    /// `now_ns` is the caller's monotonic time in nanoseconds; it never goes back.
    #[inline]
    pub fn handle_frame(&mut self, now_ns: u64, ingress: PortId, frame: F) {
        self.forwarding.pass_time(now_ns);
        let port = &mut self.ingress[ingress.index()];
        port.counters.received += 1;
        port.counters.received_bytes += u64::from(frame.len());
        if port.faults.is_active() {
            self.handle_with_faults(ingress, frame);
        } else {
            self.route(ingress, frame, Handling::Routed);
        }
    }

    /// S-7: the frame with the faults of its port.
    #[cold]
    fn handle_with_faults(&mut self, ingress: PortId, frame: F) {
        let port = &mut self.ingress[ingress.index()];
        if port.faults.drops() {
            port.counters.drops.count(DropReason::Injected, 1);
            return;
        }
        let copy = if port.faults.duplicates() { frame.try_clone() } else { None };
        for frame in [Some(frame), copy.inspect(|_| port.counters.duplicated += 1)].into_iter().flatten() {
            let trims = self.ingress[ingress.index()].faults.trims();
            self.route(ingress, frame, if trims { Handling::ForceTrim } else { Handling::Routed });
        }
    }

    #[inline]
    fn route(&mut self, ingress: PortId, frame: F, handling: Handling) {
        let port = &mut self.ingress[ingress.index()];
        let Some(seen) = frame.classify(&self.service_ports) else {
            return port.counters.drops.count(DropReason::Runt, 1);
        };
        self.forwarding.route(port, &mut self.egress, frame, &seen, handling);
    }

    /// Gives frames of `egress` to `sink` while it has room, in the order of the schedule (S-3); how many.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64, egress: PortId, sink: &mut impl FrameSink<F>) -> usize {
        let _ = now_ns;
        self.egress[egress.index()].transmit(sink)
    }

    /// Changes the faults of a port.
    pub fn set_faults(&mut self, ingress: PortId, faults: FaultConfig) {
        self.ingress[ingress.index()].faults.configure(faults);
    }

    /// Forgets what was learned behind `port`, whose host may have gone. Addresses behind its group stay.
    pub fn forget_macs(&mut self, port: PortId) {
        self.forwarding.forget(port);
    }

    /// Drops every queued frame; how many. They count as [`DropReason::Drained`].
    pub fn drain(&mut self) -> usize {
        self.egress.iter_mut().map(Egress::drain).sum()
    }

    /// Number of ports.
    pub fn ports(&self) -> u16 {
        u16::try_from(self.egress.len()).unwrap_or(u16::MAX)
    }

    /// Whether `egress` has a frame to send.
    #[inline]
    pub fn has_queued(&self, egress: PortId) -> bool {
        !self.egress[egress.index()].is_empty()
    }

    /// What the queues of `egress` hold.
    pub fn queued(&self, egress: PortId) -> Queued {
        self.egress[egress.index()].queued()
    }

    /// Counters of a port.
    pub fn counters(&self, port: PortId) -> PortCounters {
        PortCounters {
            ingress: self.ingress[port.index()].counters,
            egress: self.egress[port.index()].counters(),
        }
    }

    /// Counters of all ports together.
    pub fn totals(&self) -> PortCounters {
        let mut totals = PortCounters::default();
        for port in 0..self.ports() {
            totals.add(&self.counters(PortId(port)));
        }
        totals
    }

    /// Frames in all queues.
    pub fn queued_frames(&self) -> u64 {
        self.egress.iter().map(|egress| egress.queued().frames()).sum()
    }

    /// The weight in use.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// What the operator should read at start.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}
