//! State brought near before it is used: with many queue pairs, each comes from memory when its turn comes.

use dcp_wire::Qpn;

use super::Endpoint;
use crate::Prefetch;

/// Queue pairs whose state stays in a core's own cache beside the payload that goes through it.
const CACHED_QPS: usize = 64;

impl Endpoint {
    /// Whether the queue pairs are too many for their state to stay in a cache.
    #[inline]
    pub fn outgrows_cache(&self) -> bool {
        self.qps.len() > CACHED_QPS
    }

    /// Brings near what frames for these queue pairs are going to use. Numbers that are none here do no harm.
    pub fn look_ahead(&self, numbers: &[Qpn], near: &impl Prefetch) {
        let of = |qpn: &Qpn| qpn.get().wrapping_sub(self.shared.config.qpn_base) as usize;
        for index in numbers.iter().map(of) {
            if let (Some(qp), Some(counters)) = (self.qps.get(index), self.shared.by_qp.get(index)) {
                near.prefetch(qp);
                near.prefetch(counters);
            }
        }
        // What they point to, now that the first of them are there.
        for index in numbers.iter().map(of) {
            if let Some(qp) = self.qps.get(index) {
                qp.prefetch_arrival(near);
            }
        }
    }

    /// Brings near the queue pair of the turn after the next, and what that of the next turn points to.
    #[inline]
    pub(super) fn prefetch_turns(&self, near: &impl Prefetch) {
        if !self.outgrows_cache() {
            return;
        }
        if let Some(&next) = self.ready.front() {
            self.qps[next as usize].prefetch_turn(near);
        }
        if let Some(&after) = self.ready.get(1) {
            near.prefetch(&self.qps[after as usize]);
        }
    }
}
