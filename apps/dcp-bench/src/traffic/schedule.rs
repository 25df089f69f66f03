//! When the messages of an open-loop load are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::load::Gaps;
use crate::plan::Plan;

/// Times of messages, of all queue pairs of a client.
///
/// A time is worked out when its message can be sent: an offered load beyond what the client can send takes neither
/// memory nor time for what is left behind.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Queue pairs that wait for the time of their next message, the earliest first.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// By queue pair.
    lanes: Vec<Lane>,
    /// Time since the run began, as of the last [`release`](Self::release).
    elapsed_ns: u64,
    mean_ns: f64,
}

/// Times of one queue pair.
#[derive(Clone, Copy, Debug)]
struct Lane {
    gaps: Gaps,
    /// When the next message is due, in nanoseconds of the run: gaps are no whole numbers, and must not add up to an error.
    due_ns: f64,
    is_waiting: bool,
}

/// Messages of a queue pair that are counted one by one when they are overdue; those beyond are estimated.
const COUNTED_MAX: u64 = 1_000_000;

impl Schedule {
    /// None where messages have no times of their own.
    pub(super) fn new(plan: &Plan, client: u32, flows: usize) -> Option<Self> {
        let mean_ns = plan.load.mean_gap_ns(plan.qps, plan.size)?;
        let arrivals = plan.load.arrivals?;
        let lane = |flow| {
            let mut gaps = Gaps::new(arrivals, mean_ns, plan.seed, client, flow);
            let due_ns = gaps.first();
            Lane { gaps, due_ns, is_waiting: false }
        };
        let lanes = (0..flows).map(lane).collect();
        Some(Self { waiting: BinaryHeap::new(), lanes, elapsed_ns: 0, mean_ns })
    }

    /// Moves time on to `elapsed_ns` since the run began, and adds the queue pairs whose next message has become due to
    /// `open`.
    pub(super) fn release(&mut self, elapsed_ns: u64, open: &mut Vec<usize>) {
        self.elapsed_ns = elapsed_ns;
        while let Some(&Reverse((due_ns, flow))) = self.waiting.peek() {
            if due_ns > elapsed_ns {
                return;
            }
            self.waiting.pop();
            self.lanes[flow].is_waiting = false;
            open.push(flow);
        }
    }

    /// Whether the next message of a queue pair is due. If not, [`release`](Self::release) names it when it is.
    pub(super) fn is_due(&mut self, flow: usize) -> bool {
        let lane = &mut self.lanes[flow];
        let due_ns = whole(lane.due_ns);
        if due_ns <= self.elapsed_ns {
            return true;
        }
        if !lane.is_waiting {
            lane.is_waiting = true;
            self.waiting.push(Reverse((due_ns, flow)));
        }
        false
    }

    /// The message that is due is sent; answers its time, since the run began.
    pub(super) fn take(&mut self, flow: usize) -> u64 {
        let lane = &mut self.lanes[flow];
        let due_ns = whole(lane.due_ns);
        lane.due_ns += lane.gaps.next();
        due_ns
    }

    /// Messages of a queue pair whose time has come and that were not sent, of at most `left`.
    pub(super) fn overdue(&self, flow: usize, left: u64) -> u64 {
        let mut lane = self.lanes[flow];
        let mut count = 0;
        while count < COUNTED_MAX.min(left) && whole(lane.due_ns) <= self.elapsed_ns {
            lane.due_ns += lane.gaps.next();
            count += 1;
        }
        let rest = (self.elapsed_ns as f64 - lane.due_ns).max(0.0) / self.mean_ns;
        count.saturating_add(whole(rest)).min(left)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive")]
const fn whole(ns: f64) -> u64 {
    ns as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Arrivals, Load};

    fn schedule(arrivals: Arrivals) -> Schedule {
        // 1250 bytes at 10 Gb/s, shared by two: one every 2 us each.
        let load = Load { rate_gbps: Some(10.0), arrivals: Some(arrivals), ..Load::default() };
        Schedule::new(&Plan { size: 1250, qps: 2, load, ..Plan::default() }, 1, 2).unwrap()
    }

    /// Times of what becomes due on queue pair 0 until `end_ns`, if one looks every `step_ns`.
    fn times(mut it: Schedule, step_ns: usize, end_ns: u64) -> Vec<u64> {
        let (mut times, mut open) = (Vec::new(), vec![0, 1]);
        for now_ns in (0..end_ns).step_by(step_ns).chain([end_ns]) {
            it.release(now_ns, &mut open);
            while let Some(flow) = open.pop() {
                while it.is_due(flow) {
                    let at = it.take(flow);
                    if flow == 0 {
                        times.push(at);
                    }
                }
            }
        }
        times
    }

    #[test]
    fn messages_come_at_the_rate_and_their_times_however_seldom_one_looks() {
        for (arrivals, slack) in [(Arrivals::Fixed, 1), (Arrivals::Poisson, 400)] {
            let often = times(schedule(arrivals), 100, 20_000_000);
            assert!(often.len().abs_diff(10_000) <= slack, "{arrivals:?}: {}", often.len());
            assert_eq!(often, times(schedule(arrivals), 77_777, 20_000_000));
        }
    }

    #[test]
    fn times_are_those_that_were_intended_and_not_when_one_looked() {
        let times = times(schedule(Arrivals::Fixed), 1_000_000, 1_000_000);
        assert!(times[0] < 2000 && times.windows(2).all(|pair| pair[1].abs_diff(pair[0] + 2000) <= 1));
    }

    #[test]
    fn what_is_overdue_is_counted_and_where_it_is_too_much_estimated() {
        for arrivals in [Arrivals::Fixed, Arrivals::Poisson] {
            let mut it = schedule(arrivals);
            it.release(2_000_000, &mut Vec::new());
            assert!(it.overdue(0, u64::MAX).abs_diff(1000) <= 130, "{arrivals:?}");
            assert_eq!(it.overdue(0, 7), 7);
            // An hour: 1.8e9 messages.
            it.release(3_600_000_000_000, &mut Vec::new());
            assert!(it.overdue(0, u64::MAX).abs_diff(1_800_000_000) < 4_000_000, "{arrivals:?}");
            assert_eq!(it.overdue(0, 1_500_000_000), 1_500_000_000);
        }
    }
}
