//! The link on which frames come to a port: a host's line, as fast as its rate and no faster.

use std::collections::VecDeque;

use dcp_pipeline::{LinkRate, LinkTime};
use dpdk_ffi::{Mbuf, MbufBatch, RxQueue};

/// A link between a sender's transmit ring and a port. What the link has no time for stays in the ring, which fills and
/// holds up the sender, as a network card at line rate does.
#[derive(Debug)]
pub(crate) struct ArrivingLink {
    arrivals: Arrivals<Mbuf>,
    batch: MbufBatch,
}

impl ArrivingLink {
    pub(crate) fn new(rate: LinkRate) -> Self {
        Self { arrivals: Arrivals::new(rate), batch: MbufBatch::new() }
    }

    /// Moves the frames that have arrived by now to `out`; how many.
    pub(crate) fn receive(&mut self, now_ns: u64, from: &mut RxQueue, out: &mut MbufBatch) -> usize {
        let before = out.len();
        loop {
            while out.room() > 0
                && let Some(frame) = self.arrivals.next(now_ns)
            {
                out.push(frame).expect("room() counted it");
            }
            if out.room() == 0 || !self.arrivals.wants_more(now_ns) {
                return out.len() - before;
            }
            from.burst(&mut self.batch);
            let frames = self.batch.drain().map(|frame| (len(&frame), frame));
            self.arrivals.add(now_ns, frames);
        }
    }
}

fn len(frame: &Mbuf) -> u32 {
    u32::try_from(frame.frame_len()).unwrap_or(u32::MAX)
}

/// Frames on the link, each with the time at which its last bit arrives.
///
/// The sender's ring tells nothing of when a frame was put into it. Frames that are found while the link was busy until
/// now have waited for it; those that are found after it was seen idle come now.
#[derive(Debug)]
struct Arrivals<F> {
    time: LinkTime,
    on_it: VecDeque<(u64, F)>,
    is_idle: bool,
    /// When the ring was last seen empty.
    empty_ns: Option<u64>,
}

impl<F> Arrivals<F> {
    fn new(rate: LinkRate) -> Self {
        Self {
            time: LinkTime::new(rate),
            on_it: VecDeque::with_capacity(MbufBatch::CAPACITY),
            is_idle: true,
            empty_ns: None,
        }
    }

    /// Whether the link has carried what was found.
    fn wants_more(&self, now_ns: u64) -> bool {
        let looked_in_vain = self.empty_ns == Some(now_ns);
        self.time.free_ns() <= now_ns && self.on_it.is_empty() && !looked_in_vain
    }

    /// Frames were found, or none.
    fn add(&mut self, now_ns: u64, frames: impl Iterator<Item = (u32, F)>) {
        let was_idle = std::mem::replace(&mut self.is_idle, true);
        if was_idle {
            self.time.wake(now_ns);
        }
        for (len, frame) in frames {
            self.is_idle = false;
            self.on_it.push_back((self.time.start(len), frame));
        }
        if self.is_idle {
            self.empty_ns = Some(now_ns);
        }
    }

    fn next(&mut self, now_ns: u64) -> Option<F> {
        if self.on_it.front()?.0 > now_ns {
            return None;
        }
        self.on_it.pop_front().map(|(_, frame)| frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender whose ring is never empty, looked at every `interval` ns: frames that arrived within `end` ns.
    fn arrived(interval: u64, end: u64, mut ring: impl FnMut(u64) -> usize) -> u64 {
        // 8 Gb/s: a byte per nanosecond; frames of 1000 wire bytes.
        let mut link = Arrivals::new(LinkRate::from_gbps(8.0).unwrap());
        let mut count = 0;
        for now in (0..=end).step_by(usize::try_from(interval).unwrap()) {
            loop {
                while link.next(now).is_some() {
                    count += 1;
                }
                if !link.wants_more(now) {
                    break;
                }
                link.add(now, std::iter::repeat_n((976, ()), ring(now)));
            }
        }
        count
    }

    #[test]
    fn busy_link_keeps_its_rate_however_rarely_one_looks() {
        for interval in [100, 999, 30_000, 1_000_000] {
            for batch in [1, 7, 64] {
                let count = arrived(interval, 10_000_000, |_| batch);
                assert!((9_900..=10_000).contains(&count), "{interval} ns, {batch} frames: {count}");
            }
        }
    }

    #[test]
    fn idle_link_saves_no_time() {
        // A thousand frames come at 5 ms: they take a millisecond.
        for (end, expected) in [(5_500_000, 500), (6_000_000, 1000), (9_000_000, 1000)] {
            let mut waiting = 1000;
            let count = arrived(100, end, |now| {
                let found = if now < 5_000_000 { 0 } else { 64.min(waiting) };
                waiting -= found;
                found
            });
            assert!(u64::abs_diff(count, expected) <= 1, "{end}: {count}");
        }
    }
}
