//! Defaults that suit thousands of queue pairs.

use super::Plan;
use super::limits::CQ_DEPTH_MAX;

/// Messages of all queue pairs together that may have completed and not been seen.
const UNSEEN_MESSAGES: u64 = 20_000;
const TIMEOUT_UNIT_NS: u64 = 4096;
/// Timeout for each queue pair's turn of 64 KiB, in nanoseconds: at 5 Gb/s, which any machine does.
const TURN_NS: u64 = 100_000;

impl Plan {
    /// How many messages to one that asks for a completion, no more than `moderation`, when nothing else is asked for: with
    /// thousands of queue pairs, a run would be over before any had completed so many.
    pub fn moderation_that_shows(moderation: u32, total_qps: u64) -> u32 {
        u32::try_from(UNSEEN_MESSAGES / total_qps.max(1)).unwrap_or(u32::MAX).clamp(1, moderation)
    }

    /// The least timeout from `exponent` on that is longer than a turn of all queue pairs takes: T-8 wants four round
    /// trips, and with thousands of queue pairs a turn is most of one.
    pub fn timeout_that_fits(exponent: u8, total_qps: u64) -> u8 {
        (exponent..31).find(|n| TIMEOUT_UNIT_NS << n >= total_qps.saturating_mul(TURN_NS)).unwrap_or(31)
    }

    /// The deepest queue, no deeper than `depth`, of which every queue pair's completions fit into one completion queue.
    pub fn depth_that_fits(depth: u32, total_qps: u64) -> u32 {
        u32::try_from(CQ_DEPTH_MAX / total_qps.max(1)).unwrap_or(u32::MAX).clamp(1, depth)
    }
}
