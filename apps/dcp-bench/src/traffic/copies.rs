//! Messages that are copied when they are posted, as inline data is: their own memory may change at once.

use std::sync::atomic::AtomicBool;

use dcp::Worker;
use dcp::core::{Access, PdId, Sge};
use dcp::dpdk::Region;

use super::layout::Layout;
use super::memory::{Extent, Memory, REGION_VA, add_memory};
use crate::failure::Failure;
use crate::plan::{INLINE_MAX, Plan};

/// Bytes that the copies of all queue pairs start at multiples of.
const ALIGN: u64 = 64;
/// Address of the first copy: behind every message of a run.
const COPIES_VA: u64 = REGION_VA << 1;

/// A copy for each message under way.
#[derive(Debug)]
pub(crate) struct Copies {
    memory: Memory,
    /// Largest message that is copied, in bytes.
    limit: u32,
    depth: u64,
    stride: u64,
    /// Where a message is on its way from one place to the other.
    between: [u8; INLINE_MAX],
}

impl Copies {
    /// Bytes that they take, with room for `layout.depth` messages on each queue pair.
    pub(crate) fn bytes(plan: &Plan, layout: Layout) -> u64 {
        stride(plan) * layout.depth * layout.qps as u64
    }

    /// Room for them, where the plan wants some.
    ///
    /// # Errors
    /// There is not enough memory, or the user stopped it.
    pub(crate) fn new(
        plan: &Plan,
        layout: Layout,
        worker: &mut Worker,
        pd: PdId,
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        if plan.inline_bytes == 0 {
            return Ok(None);
        }
        let bytes = usize::try_from(Self::bytes(plan, layout)).unwrap_or(usize::MAX);
        let extent = Extent { va: COPIES_VA, bytes, huge: layout.huge };
        Ok(Some(Self {
            memory: add_memory(worker, pd, extent, Access::default(), interrupted)?,
            limit: u32::try_from(plan.inline_bytes).unwrap_or(u32::MAX),
            depth: layout.depth,
            stride: stride(plan),
            between: [0; INLINE_MAX],
        }))
    }

    /// The same room, for the next run.
    pub(crate) fn share(&self) -> Self {
        Self { memory: self.memory.share(), ..*self }
    }

    /// Whether a message of such a length is copied.
    #[inline]
    pub(crate) const fn takes(&self, len: u32) -> bool {
        len > 0 && len <= self.limit
    }

    /// Copies message `number` of a queue pair from `at`; where the copy is. No more than `depth` are under way.
    pub(crate) fn take(&mut self, from: &Region, at: u64, qp: usize, number: u64, len: u32) -> Sge {
        let offset = (qp as u64 * self.depth + number % self.depth) * self.stride;
        let between = &mut self.between[..len as usize];
        from.read(at, between).expect("the layout fits the region");
        self.memory.region.write(offset, between).expect("there is room for each");
        Sge { va: COPIES_VA + offset, len, lkey: self.memory.keys.lkey }
    }
}

fn stride(plan: &Plan) -> u64 {
    plan.inline_bytes.next_multiple_of(ALIGN)
}
