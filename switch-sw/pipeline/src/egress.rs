//! The transmit side of a port: admission (S-1), trimming (S-2), two queues, their schedule (S-3).

use dcp_wire::{Classified, Tag};

use crate::config::PipelineConfig;
use crate::counters::{DropReason, EgressCounters};
use crate::frame::{Frame, FrameSink, wire_len};
use crate::queue::{Entry, FrameQueue};
use crate::random::Random;
use crate::red::Red;
use crate::scheduler::Scheduler;
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

/// Purpose of the dice that mark; ingress faults have the smaller numbers.
const RED_STREAM: u64 = 16;

#[derive(Debug)]
pub(crate) struct Egress<F> {
    data: FrameQueue<F>,
    control: FrameQueue<F>,
    scheduler: Scheduler,
    red: Option<Red>,
    trim_threshold_bytes: u64,
    control_bytes_max: u64,
    acks_use_control_queue: bool,
    counters: EgressCounters,
}

impl<F: Frame> Egress<F> {
    pub(crate) fn new(config: &PipelineConfig, weight: Weight, port: u16) -> Self {
        Self {
            data: FrameQueue::new(config.data_frames_max),
            control: FrameQueue::new(config.control_frames_max),
            scheduler: Scheduler::new(weight),
            red: config
                .ecn
                .map(|red| Red::new(red, Random::new(config.seed, u64::from(port) << 8 | RED_STREAM))),
            trim_threshold_bytes: u64::from(config.trim_threshold_bytes),
            control_bytes_max: u64::from(config.control_bytes_max),
            acks_use_control_queue: config.acks_use_control_queue,
            counters: EgressCounters::default(),
        }
    }

    /// S-1: queues, trims or drops a frame that was routed here.
    #[inline]
    pub(crate) fn offer(&mut self, frame: F, seen: &Classified, handling: Handling) {
        self.counters.offered += 1;
        let len = frame.len();
        let entry = Entry { frame, len, trimmed: false };
        match seen.tag {
            Tag::HeaderOnly => self.queue_control(entry, DropReason::HeaderLost),
            Tag::Ack if self.acks_use_control_queue => {
                self.queue_control(entry, DropReason::ControlQueueFull);
            }
            Tag::Data if handling == Handling::ForceTrim => self.trim(entry, seen),
            Tag::Data if handling == Handling::Routed && self.data_is_long() => self.trim(entry, seen),
            _ if self.data_is_long() => self.drop_frames(DropReason::DataQueueFull, 1),
            _ => self.queue_data(entry, seen),
        }
    }

    #[inline]
    fn queue_data(&mut self, mut entry: Entry<F>, seen: &Classified) {
        if self.is_to_be_marked(seen) {
            self.mark(&mut entry.frame);
        }
        self.data.push(entry);
    }

    /// S-6.
    #[inline]
    fn is_to_be_marked(&mut self, seen: &Classified) -> bool {
        let queue_bytes = self.data.bytes();
        self.red.as_mut().is_some_and(|red| red.marks(seen.ecn, queue_bytes))
    }

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
        if entry.frame.trim().is_err() {
            self.drop_frames(DropReason::TrimRefused, 1);
            return;
        }
        self.counters.trimmed += 1;
        entry.len = entry.frame.len();
        entry.trimmed = true;
        if to_be_marked {
            self.mark(&mut entry.frame);
        }
        self.queue_control(entry, DropReason::HeaderLost);
    }

    /// S-4: the control queue is bounded, and what it loses is counted by kind.
    #[inline]
    fn queue_control(&mut self, entry: Entry<F>, if_full: DropReason) {
        if self.control.is_full() || self.control.bytes() + u64::from(entry.len) > self.control_bytes_max {
            self.drop_frames(if_full, 1);
            return;
        }
        self.control.push(entry);
    }

    #[cold]
    fn drop_frames(&mut self, reason: DropReason, frames: u64) {
        self.counters.drops.count(reason, frames);
    }

    /// Moves frames to `sink` while it has room; how many.
    #[inline]
    pub(crate) fn transmit(&mut self, sink: &mut impl FrameSink<F>) -> usize {
        let room = sink.room();
        let mut sent = 0;
        while sent < room {
            let Some(entry) = self.next() else { break };
            if entry.trimmed {
                self.counters.trimmed_forwarded += 1;
            } else {
                self.counters.forwarded += 1;
            }
            self.counters.forwarded_bytes += u64::from(entry.len);
            sink.push(entry.frame);
            sent += 1;
        }
        sent
    }

    /// S-3: the frame whose turn it is.
    #[inline]
    fn next(&mut self) -> Option<Entry<F>> {
        let data_waits = !self.data.is_empty();
        if !self.control.is_empty() && (!data_waits || self.scheduler.control_is_due()) {
            let entry = self.control.pop()?;
            self.scheduler.charge_control(wire_len(entry.len), !data_waits);
            return Some(entry);
        }
        let entry = self.data.pop()?;
        self.scheduler.charge_data(wire_len(entry.len), self.control.is_empty());
        Some(entry)
    }

    /// Drops whatever is queued; how many frames.
    pub(crate) fn drain(&mut self) -> usize {
        let frames = self.data.clear() + self.control.clear();
        self.drop_frames(DropReason::Drained, frames as u64);
        frames
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.control.is_empty()
    }

    pub(crate) fn queued(&self) -> Queued {
        Queued {
            data_bytes: self.data.bytes(),
            data_frames: self.data.frames(),
            control_bytes: self.control.bytes(),
            control_frames: self.control.frames(),
        }
    }

    pub(crate) fn counters(&self) -> EgressCounters {
        EgressCounters {
            data_bytes_peak: self.data.bytes_peak(),
            control_bytes_peak: self.control.bytes_peak(),
            ..self.counters
        }
    }
}

/// What the queues of a port hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Queued {
    /// Bytes in the data queue, without FCS.
    pub data_bytes: u64,
    /// Frames in the data queue.
    pub data_frames: usize,
    /// Bytes in the control queue, without FCS.
    pub control_bytes: u64,
    /// Frames in the control queue.
    pub control_frames: usize,
}

impl Queued {
    /// Frames in both queues.
    pub const fn frames(&self) -> u64 {
        (self.data_frames + self.control_frames) as u64
    }
}
