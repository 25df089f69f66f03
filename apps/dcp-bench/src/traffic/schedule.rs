//! When the messages of an open-loop load are due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::load::Gaps;
use crate::plan::Plan;

/// Times of messages, of all queue pairs of a client.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The next message of each queue pair, the earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// By queue pair.
    lanes: Vec<Lane>,
}

/// Times of one queue pair.
#[derive(Debug)]
struct Lane {
    gaps: Gaps,
    /// When the next message is due, in nanoseconds of the run: gaps are no whole numbers, and must not add up to an error.
    due_ns: f64,
    /// Messages whose time has come.
    released: u64,
    /// Times of those that have not been posted.
    waiting: VecDeque<u64>,
}

impl Schedule {
    /// None where messages have no times of their own.
    pub(super) fn new(plan: &Plan, client: u32, flows: usize) -> Option<Self> {
        let mean_ns = plan.load.mean_gap_ns(plan.qps, plan.size)?;
        let arrivals = plan.load.arrivals?;
        let lane = |flow| {
            let mut gaps = Gaps::new(arrivals, mean_ns, plan.seed, client, flow);
            let due_ns = gaps.first();
            Lane { gaps, due_ns, released: 0, waiting: VecDeque::new() }
        };
        let lanes: Vec<_> = (0..flows).map(lane).collect();
        let next = lanes.iter().enumerate().map(|(flow, lane)| Reverse((whole(lane.due_ns), flow))).collect();
        Some(Self { next, lanes })
    }

    /// Adds to `open` the queue pairs that have a message due, none more than `limit` in all. The run began at
    /// `start_ns`.
    pub(super) fn release(&mut self, now_ns: u64, start_ns: u64, limit: u64, open: &mut Vec<usize>) {
        while let Some(&Reverse((due_ns, flow))) = self.next.peek() {
            if due_ns > now_ns - start_ns {
                return;
            }
            self.next.pop();
            let lane = &mut self.lanes[flow];
            lane.released += 1;
            lane.waiting.push_back(start_ns + due_ns);
            open.push(flow);
            if lane.released < limit {
                lane.due_ns += lane.gaps.next();
                self.next.push(Reverse((whole(lane.due_ns), flow)));
            }
        }
    }

    /// Messages of a queue pair whose time has come.
    pub(super) fn released(&self, flow: usize) -> u64 {
        self.lanes[flow].released
    }

    /// Time of the message that is posted now.
    pub(super) fn take(&mut self, flow: usize) -> Option<u64> {
        self.lanes[flow].waiting.pop_front()
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

    #[test]
    fn messages_are_released_at_the_rate_however_seldom_one_looks() {
        for (arrivals, slack) in [(Arrivals::Fixed, 1), (Arrivals::Poisson, 400)] {
            for step_ns in [100, 77_777] {
                let mut it = schedule(arrivals);
                let mut open = Vec::new();
                (5000..=20_005_000)
                    .step_by(step_ns)
                    .for_each(|now| it.release(now, 5000, u64::MAX, &mut open));
                it.release(20_005_000, 5000, u64::MAX, &mut open);
                for flow in 0..2 {
                    let released = it.released(flow);
                    assert!(released.abs_diff(10_000) <= slack, "{arrivals:?}: {released}");
                }
                assert_eq!(open.len() as u64, it.released(0) + it.released(1));
            }
        }
    }

    #[test]
    fn times_are_those_that_were_intended_and_not_when_one_looked() {
        let mut it = schedule(Arrivals::Fixed);
        it.release(1_005_000, 5000, u64::MAX, &mut Vec::new());
        let times: Vec<u64> = std::iter::from_fn(|| it.take(1)).collect();
        assert_eq!(times.len() as u64, it.released(1));
        assert!(times[0] < 7000 && times.windows(2).all(|pair| pair[1].abs_diff(pair[0] + 2000) <= 1));
    }

    #[test]
    fn no_more_are_released_than_there_are() {
        let mut it = schedule(Arrivals::Poisson);
        let mut open = Vec::new();
        it.release(u64::MAX, 0, 7, &mut open);
        assert_eq!(open.len(), 14);
    }
}
