//! What a queue pair points to, brought near.

use super::Qp;
use crate::Prefetch;

impl Qp {
    /// For a turn: the message to go on with, and the request behind it.
    #[inline]
    pub(crate) fn prefetch_turn(&self, near: &impl Prefetch) {
        let window = &self.requests.window;
        near.prefetch(window.message(window.cursor));
        if let Some(next) = self.queue.waiting() {
            near.prefetch(next);
        }
    }

    /// For a frame from the peer: data of the message expected next, or an ACK of the oldest one under way.
    #[inline]
    pub(crate) fn prefetch_arrival(&self, near: &impl Prefetch) {
        near.prefetch(self.recv.slot(self.recv.emsn()));
        if !self.requests.window.is_empty() {
            near.prefetch(self.requests.window.message(self.requests.window.una));
            near.prefetch(self.queue.oldest());
        }
    }
}
