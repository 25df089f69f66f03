//! How frames leave a port: the schedule of its queues (S-3), and its link.

use crate::counters::{DropReason, EgressCounters};
use crate::egress::Egress;
use crate::frame::{Frame, FrameSink, wire_len};
use crate::link::Link;
use crate::queue::Entry;

impl<F: Frame> Egress<F> {
    /// Moves frames to `sink` while it has room; how many.
    #[inline]
    pub(crate) fn transmit(&mut self, now_ns: u64, sink: &mut impl FrameSink<F>) -> usize {
        if self.link.is_some() {
            return self.transmit_on_link(now_ns, sink);
        }
        let room = sink.room();
        let mut sent = 0;
        while sent < room
            && !self.control.is_empty()
            && let Some(entry) = self.next()
        {
            self.hand_over(entry, sink);
            sent += 1;
        }
        sent + self.transmit_data(sink)
    }

    /// There is nothing to choose from.
    #[inline]
    fn transmit_data(&mut self, sink: &mut impl FrameSink<F>) -> usize {
        let mut trimmed = 0;
        let (sent, bytes) = self.data.pop_each(sink.room(), |entry| {
            self.scheduler.charge_data(wire_len(entry.len), true);
            trimmed += u64::from(entry.trimmed);
            sink.push(entry.frame);
        });
        self.counters.forwarded += sent as u64 - trimmed;
        self.counters.trimmed_forwarded += trimmed;
        self.counters.forwarded_bytes += bytes;
        sent
    }

    fn transmit_on_link(&mut self, now_ns: u64, sink: &mut impl FrameSink<F>) -> usize {
        let Some(mut link) = self.link.take() else { return 0 };
        let room = sink.room();
        let mut sent = 0;
        loop {
            self.start_frames(now_ns, &mut link);
            let before = sent;
            while sent < room
                && let Some(entry) = link.arrived(now_ns)
            {
                self.hand_over(entry, sink);
                sent += 1;
            }
            // A link that was full has room now, and may have time.
            if sent == before {
                break;
            }
        }
        self.link = Some(link);
        sent
    }

    /// Puts frames on the link for as long as it is free: which, is decided only then.
    #[inline]
    fn start_frames(&mut self, now_ns: u64, link: &mut Link<F>) {
        while link.is_free(now_ns)
            && let Some(entry) = self.next()
        {
            link.start(entry);
        }
    }

    #[inline]
    fn hand_over(&mut self, entry: Entry<F>, sink: &mut impl FrameSink<F>) {
        if entry.trimmed {
            self.counters.trimmed_forwarded += 1;
        } else {
            self.counters.forwarded += 1;
        }
        self.counters.forwarded_bytes += u64::from(entry.len);
        if entry.control {
            self.counters.control_forwarded += 1;
            self.counters.control_forwarded_bytes += u64::from(entry.len);
        }
        sink.push(entry.frame);
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

    /// Drops whatever waits, is held back or is on the link; how many frames.
    pub(crate) fn drain(&mut self) -> usize {
        let frames = self.clear();
        self.drop_frames(DropReason::Drained, frames as u64);
        frames
    }

    pub(crate) fn clear(&mut self) -> usize {
        let on_link = self.link.as_mut().map_or(0, |link| link.clear());
        let held = self.faults.as_mut().map_or(0, |faults| faults.clear());
        self.data.clear() + self.control.clear() + on_link + held
    }

    /// Whether [`Self::transmit`] has nothing to do, now or later.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
            && self.control.is_empty()
            && self.link.as_ref().is_none_or(|link| link.is_empty())
    }

    /// When something happens here next; 0 for at once.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let waits = !self.data.is_empty() || !self.control.is_empty();
        let transmit = match &self.link {
            Some(link) => link.next_ns(waits),
            None => waits.then_some(0),
        };
        let release = self.faults.as_ref().and_then(|faults| faults.next_ns());
        transmit.into_iter().chain(release).min()
    }

    pub(crate) fn queued(&self) -> Queued {
        Queued {
            data_bytes: self.data.bytes(),
            data_frames: self.data.frames(),
            control_bytes: self.control.bytes(),
            control_frames: self.control.frames(),
            link_frames: self.link.as_ref().map_or(0, |link| link.frames()),
            held_frames: self.faults.as_ref().map_or(0, |faults| faults.held()),
        }
    }

    pub(crate) fn counters(&self) -> EgressCounters {
        EgressCounters {
            data_bytes_peak: self.data.bytes_peak(),
            control_bytes_peak: self.control.bytes_peak(),
            link_frames_peak: self.link.as_ref().map_or(0, |link| link.frames_peak() as u64),
            faults: self.faults.as_ref().map_or_else(Default::default, |faults| faults.counters),
            ..self.counters
        }
    }
}

/// What waits at a port.
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
    /// Frames on the link.
    pub link_frames: usize,
    /// Frames that egress faults hold back.
    pub held_frames: usize,
}

impl Queued {
    /// Frames in both queues, on the link and held back.
    pub const fn frames(&self) -> u64 {
        (self.data_frames + self.control_frames + self.link_frames + self.held_frames) as u64
    }
}
