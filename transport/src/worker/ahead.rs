//! A look at what has arrived, before any of it is taken.

use dcp_core::{Endpoint, Prefetch};
use dcp_wire::Qpn;
use dpdk_ffi::MbufBatch;
use smallvec::SmallVec;

/// Queue pairs looked ahead for; more in one burst come when they come.
const AHEAD: usize = 16;

struct Near;

impl Prefetch for Near {
    #[inline]
    fn prefetch<T: ?Sized>(&self, it: &T) {
        dpdk_ffi::prefetch(it);
    }
}

/// Brings near the state of the queue pairs that a burst is for, where they are too many to stay in a cache.
#[inline]
pub(super) fn look_ahead(endpoint: &Endpoint, burst: &MbufBatch) {
    if !endpoint.outgrows_cache() {
        return;
    }
    let mut numbers: SmallVec<[Qpn; AHEAD]> = SmallVec::new();
    for frame in burst {
        // Unchecked: a number that is wrong brings something else near.
        let number = dcp_wire::peek_dest_qpn(frame.head());
        if let Some(number) = number
            && numbers.last() != Some(&number)
            && numbers.len() < AHEAD
        {
            numbers.push(number);
        }
    }
    endpoint.look_ahead(&numbers, &Near);
}
