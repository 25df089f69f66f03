//! The monotonic clock, and rests.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds since the first call.
#[expect(clippy::disallowed_methods, reason = "a program's clock, read once a period")]
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "a program that waits for its next period")]
pub fn rest(duration: Duration) {
    std::thread::sleep(duration);
}

/// Whether `condition` holds within `limit`; asks every millisecond.
pub fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end_ns = now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    loop {
        if condition() {
            return true;
        }
        if now_ns() >= end_ns {
            return false;
        }
        rest(Duration::from_millis(1));
    }
}
