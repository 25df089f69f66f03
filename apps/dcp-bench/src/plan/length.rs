//! How long a run is.

use std::num::NonZeroU64;
use std::time::Duration;

/// How long a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many messages per queue pair.
    Iterations(NonZeroU64),
    /// So long.
    Duration(Duration),
}

/// Messages of a latency test when nothing else is asked for.
pub const LATENCY_ITERATIONS: NonZeroU64 = NonZeroU64::new(1000).expect("not zero");
/// Messages of a bandwidth test when nothing else is asked for.
pub(super) const DEFAULT_ITERATIONS: NonZeroU64 = NonZeroU64::new(5000).expect("not zero");
