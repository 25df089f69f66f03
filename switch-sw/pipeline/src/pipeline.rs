//! The switch: frames in, frames out.

use crate::config::PipelineConfig;
use crate::config_error::ConfigError;
use crate::counters::{DropReason, PortCounters};
use crate::egress::Egress;
use crate::fault::FaultConfig;
use crate::forward::Forwarding;
use crate::frame::{Frame, FrameSink};
use crate::ingress::Ingress;
use crate::note::Note;
use crate::port::{Direction, PortId};
use crate::tap::{NoTap, Tap, TapPoint, TappedSink};
use crate::transmit::Queued;
use crate::weight::Weight;

/// A trimming switch as a state machine: no clock, no IO, no thread, no allocation after the start.
///
/// Frames come in by [`handle_frame`](Self::handle_frame) and wait in their egress port's two queues until
/// [`poll_transmit`](Self::poll_transmit) takes them. Every frame is forwarded, queued or counted as dropped (S-4).
/// `now_ns` is always the caller's monotonic time in nanoseconds; it never goes back.
///
/// A [`Tap`] sees frames come and go; without one it costs nothing.
///
/// Methods that take a [`PortId`] panic if there is no such port.
#[derive(Debug)]
pub struct Pipeline<F, T = NoTap> {
    ingress: Box<[Ingress<F>]>,
    egress: Box<[Egress<F>]>,
    forwarding: Forwarding,
    /// Faults that may hold frames back were configured once.
    may_hold: bool,
    weight: Weight,
    notes: Vec<Note>,
    seed: u64,
    tap: T,
}

impl<F: Frame> Pipeline<F> {
    /// A switch with empty queues.
    ///
    /// # Errors
    /// A sentence that says which parameter cannot work (D6).
    pub fn new(config: PipelineConfig) -> Result<Self, ConfigError> {
        Self::with_tap(config, NoTap)
    }
}

impl<F: Frame, T: Tap<F>> Pipeline<F, T> {
    /// A switch with empty queues, watched by `tap`.
    ///
    /// # Errors
    /// A sentence that says which parameter cannot work (D6).
    pub fn with_tap(config: PipelineConfig, tap: T) -> Result<Self, ConfigError> {
        config.check()?;
        let (weight, note) = config.resolve_weight()?;
        let forwarding = Forwarding::new(&config)?;
        let mut pipeline = Self {
            ingress: (0..config.ports)
                .map(PortId)
                .map(|port| Ingress::new(port, forwarding.home(port), &config.service_ports))
                .collect(),
            egress: (0..config.ports).map(|port| Egress::new(&config, weight, port)).collect(),
            forwarding,
            may_hold: config.egress_faults.iter().any(FaultConfig::can_hold),
            weight,
            notes: note.into_iter().chain(config.notes()).collect(),
            seed: config.seed,
            tap,
        };
        for (port, faults) in (0..).map(PortId).zip(&config.faults).filter(|(_, faults)| faults.is_active()) {
            pipeline.set_faults(port, *faults);
        }
        Ok(pipeline)
    }

    /// Takes a frame that arrived at `ingress`. A frame that is lost is counted, and dropped by its `Drop`.
    #[inline]
    pub fn handle_frame(&mut self, now_ns: u64, ingress: PortId, frame: F) {
        self.handle_frames(now_ns, ingress, core::iter::once(frame));
    }

    /// Takes frames that arrived at `ingress` at the same time, in their order: cheaper than one by one.
    #[inline]
    pub fn handle_frames(&mut self, now_ns: u64, ingress: PortId, frames: impl IntoIterator<Item = F>) {
        self.forwarding.pass_time(now_ns);
        let port = &mut self.ingress[ingress.index()];
        for frame in frames {
            if T::ENABLED {
                self.tap.frame(now_ns, ingress, TapPoint::Arrival, &frame);
            }
            port.receive(now_ns, frame, &mut self.forwarding, &mut self.egress);
        }
    }

    /// Time has passed: frames that faults held back go on. To be called in every round, or at
    /// [`next_timeout`](Self::next_timeout); costs nothing without such faults.
    #[inline]
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.may_hold {
            self.release_all(now_ns);
        }
    }

    #[cold]
    fn release_all(&mut self, now_ns: u64) {
        for port in &mut self.ingress {
            port.release(now_ns, &mut self.forwarding, &mut self.egress);
        }
        for port in &mut self.egress {
            port.release(now_ns);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) or a [`poll_transmit`](Self::poll_transmit) will have something to do
    /// next: a time in the past, such as 0, for now; `None` while no frame is in the switch. Looks at every port.
    pub fn next_timeout(&self) -> Option<u64> {
        let held = self.ingress.iter().filter_map(|port| port.faults.as_ref()?.next_ns());
        held.chain(self.egress.iter().filter_map(Egress::next_ns)).min()
    }

    /// The same for one egress port alone.
    pub fn next_timeout_of(&self, egress: PortId) -> Option<u64> {
        self.egress[egress.index()].next_ns()
    }

    /// Gives frames of `egress` to `sink` while it has room, in the order of the schedule (S-3) and at the time when they
    /// have come over the link; how many.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64, egress: PortId, sink: &mut impl FrameSink<F>) -> usize {
        let tap = &mut self.tap;
        self.egress[egress.index()].transmit(now_ns, &mut TappedSink { sink, tap, now_ns, port: egress })
    }

    /// Changes the faults that frames meet when they arrive at a port.
    ///
    /// # Panics
    /// When a number is outside the range that [`FaultConfig`] gives for it.
    pub fn set_faults(&mut self, ingress: PortId, faults: FaultConfig) {
        assert!(faults.check().is_ok(), "faults out of range: {faults:?}");
        self.may_hold |= faults.can_hold();
        self.ingress[ingress.index()].fault_point(self.seed, ingress).configure(faults);
    }

    /// Changes the faults that frames meet when they are to leave by a port.
    ///
    /// # Panics
    /// As [`Self::set_faults`].
    pub fn set_egress_faults(&mut self, egress: PortId, faults: FaultConfig) {
        assert!(faults.check().is_ok(), "faults out of range: {faults:?}");
        self.may_hold |= faults.can_hold();
        self.egress[egress.index()].set_faults(faults);
    }

    /// Cuts a link in one direction, or mends it (S-7). Frames that come to a cut link, wait for it or are on it are lost
    /// as [`DropReason::LinkDown`].
    pub fn set_link(&mut self, port: PortId, direction: Direction, up: bool) {
        match direction {
            Direction::Ingress => self.ingress[port.index()].fault_point(self.seed, port).set_down(!up),
            Direction::Egress => {
                self.egress[port.index()].set_down(!up);
                self.forwarding.set_down(port, !up);
            }
        }
    }

    /// Forgets what was learned behind `port`, whose host may have gone. Addresses behind its group stay.
    pub fn forget_macs(&mut self, port: PortId) {
        self.forwarding.forget(port);
    }

    /// Drops every frame in the switch; how many. They count as [`DropReason::Drained`].
    pub fn drain(&mut self) -> usize {
        let mut frames = 0;
        for port in &mut self.ingress {
            let held = port.faults.as_mut().map_or(0, |faults| faults.clear());
            port.origin.counters.drops.count(DropReason::Drained, held as u64);
            frames += held;
        }
        frames + self.egress.iter_mut().map(Egress::drain).sum::<usize>()
    }
}

/// Getters.
impl<F: Frame, T> Pipeline<F, T> {
    /// Number of ports.
    pub fn ports(&self) -> u16 {
        u16::try_from(self.egress.len()).unwrap_or(u16::MAX)
    }

    /// Whether `egress` has a frame to send, now or when its link lets it.
    #[inline]
    pub fn has_queued(&self, egress: PortId) -> bool {
        !self.egress[egress.index()].is_empty()
    }

    /// What waits at `egress`.
    pub fn queued(&self, egress: PortId) -> Queued {
        self.egress[egress.index()].queued()
    }

    /// Counters of a port.
    pub fn counters(&self, port: PortId) -> PortCounters {
        PortCounters {
            ingress: self.ingress[port.index()].counters(),
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

    /// Frames at all egress ports. Those that faults hold back on ingress are in the counters.
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

    /// What watches.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// What watches, to be told what to look at.
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }
}
