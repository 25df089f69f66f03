//! The transmit side of a port: admission to its queues (S-1), trimming (S-2), marking (S-6).

use dcp_wire::{Classified, Tag};

use crate::config::PipelineConfig;
use crate::counters::{DropReason, EgressCounters};
use crate::fault::{Fate, FaultConfig};
use crate::fault_point::{FaultPoint, Passing};
use crate::frame::{EditRefused, Frame};
use crate::link::Link;
use crate::queue::{Entry, FrameQueue};
use crate::random::Random;
use crate::red::Red;
use crate::scheduler::Scheduler;
use crate::trim_to::{TrimQueue, TrimTo};
use crate::weight::Weight;

/// How a frame came to its egress port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handling {
    /// Routed.
    Routed,
    /// Routed, and trimmed by an injected fault if it is a data packet.
    ForceTrim,
    /// Flooded: never trimmed, for its copies would bounce from hosts that it is not for.
    Flooded,
}

/// Purpose of the dice that mark; faults have the other numbers.
const RED_STREAM: u64 = 16;
/// Sets faults of this side apart from those of ingress.
const FAULT_STREAM: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Egress<F> {
    pub(crate) data: FrameQueue<F>,
    pub(crate) control: FrameQueue<F>,
    pub(crate) scheduler: Scheduler,
    /// None where it is ideal: frames leave when they are asked for.
    pub(crate) link: Option<Box<Link<F>>>,
    pub(crate) faults: Option<Box<FaultPoint<F>>>,
    red: Option<Red>,
    trim_to: Option<TrimTo>,
    trim_threshold_bytes: u64,
    control_bytes_max: u64,
    acks_use_control_queue: bool,
    pub(crate) counters: EgressCounters,
    seed: u64,
    port: u16,
}

impl<F: Frame> Egress<F> {
    pub(crate) fn new(config: &PipelineConfig, weight: Weight, port: u16) -> Self {
        let link = config.links.get(usize::from(port)).filter(|link| !link.is_ideal());
        let mut egress = Self {
            data: FrameQueue::new(config.data_frames_max),
            control: FrameQueue::new(config.control_frames_max),
            scheduler: Scheduler::new(weight),
            link: link.map(|link| Box::new(Link::new(link))),
            faults: None,
            red: config
                .ecn
                .map(|red| Red::new(red, Random::new(config.seed, u64::from(port) << 8 | RED_STREAM))),
            trim_to: config.trim_to,
            trim_threshold_bytes: u64::from(config.trim_threshold_bytes),
            control_bytes_max: u64::from(config.control_bytes_max),
            acks_use_control_queue: config.acks_use_control_queue,
            counters: EgressCounters::default(),
            seed: config.seed,
            port,
        };
        if let Some(faults) = config.egress_faults.get(usize::from(port)).filter(|faults| faults.is_active())
        {
            egress.set_faults(*faults);
        }
        egress
    }

    pub(crate) fn set_faults(&mut self, config: FaultConfig) {
        self.fault_point().configure(config);
    }

    fn fault_point(&mut self) -> &mut FaultPoint<F> {
        let stream = u64::from(self.port) << 8 | FAULT_STREAM;
        self.faults.get_or_insert_with(|| Box::new(FaultPoint::new(FaultConfig::NONE, self.seed, stream)))
    }

    /// Cuts the link, or mends it. What waits for a cut link is lost.
    pub(crate) fn set_down(&mut self, down: bool) {
        self.fault_point().set_down(down);
        if down {
            let lost = self.clear();
            self.drop_frames(DropReason::LinkDown, lost as u64);
        }
        // A link that only was down is as fast as any again.
        self.faults = self.faults.take().filter(|faults| faults.is_active() || faults.has_counted());
    }

    /// A frame was routed here.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now_ns: u64, frame: F, seen: &Classified, handling: Handling) {
        self.counters.offered += 1;
        if self.faults.is_some() {
            return self.offer_among_faults(now_ns, frame, seen, handling);
        }
        self.admit(now_ns, frame, seen, handling);
    }

    /// S-7: a frame at a port where faults were configured. Most of them it leaves alone, too.
    #[inline(never)]
    fn offer_among_faults(&mut self, now_ns: u64, frame: F, seen: &Classified, handling: Handling) {
        let Some(faults) = &mut self.faults else { return };
        match faults.look(seen.tag, handling) {
            Ok(handling) => self.admit(now_ns, frame, seen, handling),
            Err(fate) => self.offer_struck(now_ns, fate, Passing { frame, seen: *seen, handling }),
        }
    }

    /// A frame that faults do not leave alone.
    #[cold]
    #[inline(never)]
    fn offer_struck(&mut self, now_ns: u64, fate: Fate, frame: Passing<F>) {
        let Some(faults) = &mut self.faults else { return };
        let mut copies = 0;
        let passed = faults.pass(now_ns, fate, frame, &mut copies, &mut self.counters.drops);
        self.counters.duplicated += copies;
        self.counters.offered += copies;
        for frame in passed.into_iter().flatten() {
            self.admit_passing(now_ns, frame);
        }
        self.release(now_ns);
    }

    /// Lets go what a fault held back and is due.
    pub(crate) fn release(&mut self, now_ns: u64) {
        while let Some(frame) = self.faults.as_mut().and_then(|faults| faults.due(now_ns)) {
            self.admit_passing(now_ns, frame);
        }
    }

    #[cold]
    #[inline(never)]
    fn admit_passing(&mut self, now_ns: u64, frame: Passing<F>) {
        self.admit(now_ns, frame.frame, &frame.seen, frame.handling);
    }

    /// S-1: queues, trims or drops a frame.
    #[inline(always)]
    fn admit(&mut self, now_ns: u64, frame: F, seen: &Classified, handling: Handling) {
        if let Some(link) = &mut self.link
            && self.data.is_empty()
            && self.control.is_empty()
        {
            link.wake(now_ns);
        }
        // What nearly all frames are, in registers until they lie in the queue.
        if seen.tag == Tag::Data && handling == Handling::Routed && !self.data_is_long() {
            return self.queue_data(frame, seen);
        }
        self.admit_other(frame, seen, handling);
    }

    #[inline(never)]
    fn admit_other(&mut self, frame: F, seen: &Classified, handling: Handling) {
        let len = frame.len();
        let entry = Entry { frame, len, trimmed: false, control: false };
        match seen.tag {
            Tag::HeaderOnly => self.queue_header(entry),
            // Where it is full, an ACK is better off behind data than lost: one of them stands for whole messages.
            Tag::Ack if self.acks_use_control_queue && self.has_control_room(len) => self.push_control(entry),
            Tag::Data if handling == Handling::ForceTrim => self.trim(entry, seen),
            Tag::Data if handling == Handling::Routed && self.data_is_long() => self.trim(entry, seen),
            _ if self.data_is_long() => self.drop_frames(DropReason::DataQueueFull, 1),
            _ => self.queue_data(entry.frame, seen),
        }
    }

    #[inline(always)]
    fn queue_data(&mut self, mut frame: F, seen: &Classified) {
        if self.is_to_be_marked(seen) {
            self.mark(&mut frame);
        }
        let len = frame.len();
        self.data.push(Entry { frame, len, trimmed: false, control: false });
    }

    /// S-6.
    #[inline]
    fn is_to_be_marked(&mut self, seen: &Classified) -> bool {
        let queue_bytes = self.data.bytes();
        self.red.as_mut().is_some_and(|red| red.marks(seen.ecn, queue_bytes))
    }

    #[cold]
    fn mark(&mut self, frame: &mut F) {
        match frame.mark_ce() {
            Ok(true) => self.counters.marked += 1,
            Ok(false) | Err(_) => self.counters.mark_refused += 1,
        }
    }

    /// Counts a frame that should have come here, but could not be copied.
    #[cold]
    pub(crate) fn offer_failed(&mut self, reason: DropReason) {
        self.counters.offered += 1;
        self.drop_frames(reason, 1);
    }

    /// S-5: what adaptive routing compares.
    #[inline]
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data.bytes()
    }

    /// The bytes queued before a new frame exceed the threshold, or its place is missing.
    #[inline]
    fn data_is_long(&self) -> bool {
        self.data.bytes() > self.trim_threshold_bytes || self.data.is_full()
    }

    /// S-2.
    fn trim(&mut self, mut entry: Entry<F>, seen: &Classified) {
        // Decided before trimming, done after it: there is less to copy then.
        let to_be_marked = self.is_to_be_marked(seen);
        if self.cut(&mut entry.frame).is_err() {
            self.drop_frames(DropReason::TrimRefused, 1);
            return;
        }
        self.counters.trimmed += 1;
        entry.len = entry.frame.len();
        entry.trimmed = true;
        if to_be_marked {
            self.mark(&mut entry.frame);
        }
        match self.trim_to {
            Some(TrimTo { trim_queue: TrimQueue::Data, .. }) => self.queue_trimmed_as_data(entry),
            _ => self.queue_header(entry),
        }
    }

    fn cut(&self, frame: &mut F) -> Result<(), EditRefused> {
        match self.trim_to {
            None => frame.trim(),
            Some(to) => frame.trim_to(to.trim_bytes, to.trim_dscp),
        }
    }

    /// The data queue takes trimmed frames beyond its threshold, as many bytes as a control queue would.
    fn queue_trimmed_as_data(&mut self, entry: Entry<F>) {
        if self.data.is_full() || self.data.bytes() > self.trim_threshold_bytes + self.control_bytes_max {
            return self.drop_frames(DropReason::HeaderLost, 1);
        }
        self.data.push(entry);
    }

    /// S-4: the control queue is bounded.
    #[inline]
    fn has_control_room(&self, len: u32) -> bool {
        !self.control.is_full() && self.control.bytes() + u64::from(len) <= self.control_bytes_max
    }

    #[inline]
    fn push_control(&mut self, mut entry: Entry<F>) {
        entry.control = true;
        self.control.push(entry);
    }

    #[inline]
    fn queue_header(&mut self, entry: Entry<F>) {
        if self.has_control_room(entry.len) {
            self.push_control(entry);
        } else {
            self.drop_frames(DropReason::HeaderLost, 1);
        }
    }

    #[cold]
    pub(crate) fn drop_frames(&mut self, reason: DropReason, frames: u64) {
        self.counters.drops.count(reason, frames);
    }
}
