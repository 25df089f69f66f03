//! Where messages lie in memory.

use dcp::dpdk::HugePreference;

use crate::plan::Plan;

/// Bytes between two buffers; they must stay zero.
pub(super) const GUARD: usize = 64;
/// Memory that the buffers of one client take when nothing asks for more: small enough for a cache.
const CACHED_BYTES: u64 = 2 << 20;
/// Memory that the buffers of one client may take when every message under way needs a buffer of its own.
const SEPARATE_BYTES: u64 = 1 << 30;

/// Buffers of one client: `slots` for each queue pair, used in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) size: usize,
    stride: usize,
    pub(crate) slots: u64,
    pub(crate) qps: usize,
    /// Messages that a queue pair may have outstanding.
    pub(crate) depth: u64,
    /// Which pages it wants.
    pub(crate) huge: HugePreference,
}

impl Layout {
    /// With `--verify`, every message under way has its own buffer, and the depth shrinks if memory would not do.
    pub(crate) fn new(plan: &Plan) -> Self {
        let size = usize::try_from(plan.size).unwrap_or(usize::MAX);
        let stride = size.next_multiple_of(GUARD) + GUARD;
        let per_slot = stride as u64 * u64::from(plan.qps);
        let depth = u64::from(plan.tx_depth);
        let fitting = |bytes: u64| (bytes / per_slot).clamp(1, depth);
        let separate = plan.verify_each || plan.is_rally();
        let slots = if separate { fitting(SEPARATE_BYTES) } else { fitting(CACHED_BYTES) };
        let depth = if separate { slots } else { depth };
        let huge = if plan.use_hugepages { HugePreference::Require } else { HugePreference::Auto };
        Self { size, stride, slots, qps: plan.qps as usize, depth, huge }
    }

    /// Bytes of a message, as work requests count them.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.size).unwrap_or(u32::MAX)
    }

    /// Bytes of all buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.stride * self.qps * usize::try_from(self.slots).unwrap_or(usize::MAX)
    }

    /// Offset of the buffer of message `index` on queue pair `qp`.
    #[inline]
    pub(crate) fn offset(&self, qp: usize, index: u64) -> u64 {
        let slot = qp as u64 * self.slots + index % self.slots;
        slot * self.stride as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_overlap_and_fit() {
        for (size, qps, tx_depth, verify_each) in [(0, 3, 4, false), (1, 2, 7, true), (65536, 5, 128, true)] {
            let layout = Layout::new(&Plan { size, qps, tx_depth, verify_each, ..Plan::default() });
            let mut offsets: Vec<u64> = (0..qps as usize)
                .flat_map(|qp| (0..layout.slots).map(move |i| (qp, i)))
                .map(|(qp, i)| layout.offset(qp, i))
                .collect();
            offsets.sort_unstable();
            assert!(offsets.windows(2).all(|pair| pair[1] - pair[0] >= size + GUARD as u64));
            assert!(offsets.last().is_some_and(|last| last + size + GUARD as u64 <= layout.bytes() as u64));
        }
    }

    /// `perf` copies over the same buffers; the same numbers are in the test of its blocks.
    #[test]
    fn buffers_of_many_queue_pairs_fit_a_cache_as_long_as_each_has_one() {
        for (size, qps, tx_depth, slots, bytes) in [
            (64 << 10, 1, 8, 8, 524_800),
            (64 << 10, 4, 8, 7, 1_836_800),
            (64 << 10, 256, 8, 1, 16_793_600),
            (64 << 10, 10_000, 8, 1, 656_000_000),
            (4 << 10, 1, 128, 128, 532_480),
            (4 << 10, 64, 128, 7, 1_863_680),
            (4 << 10, 1024, 128, 1, 4_259_840),
            (2500, 3, 128, 128, 1_007_616),
        ] {
            let layout = Layout::new(&Plan { size, qps, tx_depth, ..Plan::default() });
            assert_eq!((layout.slots, layout.bytes()), (slots, bytes), "{qps} queue pairs of {size}");
        }
    }

    #[test]
    fn verification_of_each_message_needs_a_buffer_for_each_one_under_way() {
        let plan = Plan { size: 256 << 20, tx_depth: 128, verify_each: true, ..Plan::default() };
        let layout = Layout::new(&plan);
        assert_eq!(layout.depth, layout.slots);
        assert!(layout.bytes() <= 1 << 30);
    }
}
