//! Values that are refused for themselves, or for the operation.

use std::num::NonZeroU64;

use super::range::in_range;
use crate::failure::Failure;
use crate::op::ATOMIC_BYTES;
use crate::plan::limits::{ACK_BYTES, INLINE_MAX, MTUS, QUEUE_BYTES_MAX};
use crate::plan::{Plan, Threads};

impl Plan {
    pub(super) fn check_atomic(&self) -> Result<(), Failure> {
        if !self.op.is_atomic() || self.size == ATOMIC_BYTES {
            return Ok(());
        }
        if self.load.size_dist.is_some() {
            return Err(Failure::usage("--size-dist draws sizes, and atomics have 8 bytes"));
        }
        let (size, op) = (self.size, self.op.name());
        Err(Failure::usage(format!("--size is {size}, but {op} works on {ATOMIC_BYTES} bytes: leave it out")))
    }

    pub(super) fn check_inline(&self) -> Result<(), Failure> {
        let bytes = self.inline_bytes;
        if bytes > INLINE_MAX as u64 {
            return Err(Failure::usage(format!(
                "--inline_size is {bytes}, but must be 0 to {INLINE_MAX}: larger messages go from their memory"
            )));
        }
        if bytes > 0 && self.op.is_answered() {
            let op = self.op.name();
            return Err(Failure::usage(format!(
                "--inline_size is for data that is posted, and {op} posts none: leave it out"
            )));
        }
        Ok(())
    }

    pub(super) fn check_cores(&self) -> Result<(), Failure> {
        let most = if self.threads == Threads::Split { 3 } else { 1 };
        if self.cores.len() <= most {
            return Ok(());
        }
        let (count, threads) = (self.cores.len(), self.threads.name());
        Err(Failure::usage(format!(
            "--cores lists {count} cores, but --threads {threads} uses {most} at most"
        )))
    }

    pub(super) fn check_mtu(&self) -> Result<(), Failure> {
        if MTUS.contains(&self.mtu) {
            return Ok(());
        }
        Err(Failure::usage(format!("--mtu is {}, but must be 256, 512, 1024, 2048, 4096 or 8192", self.mtu)))
    }

    pub(super) fn check_window(&self) -> Result<(), Failure> {
        let least = (2 * u64::from(self.mtu)).max(2 * ACK_BYTES);
        if self.window_bytes < least {
            return Err(Failure::usage(format!(
                "--window is {} bytes, but must be at least {least}: two packets, and twice the {ACK_BYTES} bytes \
                 after which a receiver acknowledges",
                self.window_bytes
            )));
        }
        in_range("--window", self.window_bytes, least, QUEUE_BYTES_MAX)
    }

    /// A run must be able to end.
    pub(super) fn check_faults(&self) -> Result<(), Failure> {
        // Each header that comes back shows that the peer lives, so no timeout would end it.
        if self.faults.trim.get() >= 1.0 {
            return Err(Failure::usage(
                "--trim is 100%, but must be below: when every packet is cut, no data ever arrives",
            ));
        }
        Ok(())
    }

    /// Counters of a run hold its messages and its bytes.
    pub(super) fn check_total(&self, iterations: NonZeroU64) -> Result<(), Failure> {
        let bytes = iterations.get().checked_mul(self.total_qps() * self.directions());
        let bytes = bytes.and_then(|n| n.checked_mul(self.size.max(1)));
        if bytes.is_some() {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--iters {iterations} of {} bytes on {} queue pairs is more than 2^64 bytes in all",
            self.size,
            self.total_qps()
        )))
    }
}
