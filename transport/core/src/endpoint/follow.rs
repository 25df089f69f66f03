//! The door for packets that follow each other.

use super::Endpoint;
use crate::{Followed, Instant, Run, RunSink, RxPacket, Stretch};

impl Endpoint {
    /// The run that a packet is in which [`Endpoint::handle_packet`] has just used up; `None` if no others can follow it.
    ///
    /// A driver that finds the next frame to differ in nothing but its PSN, the address that goes with it, and AckReq
    /// ([`dcp_wire::Follower`]), offers it to [`Endpoint::handle_followers`], which has less to look at.
    pub fn run_after(&self, rx: &RxPacket<'_>) -> Option<Run> {
        let number = rx.packet.headers.dest_qpn.get().wrapping_sub(self.shared.config.qpn_base);
        self.qps.get(number as usize)?.run_after(number, rx, &self.shared)
    }

    /// Takes packets of a run, whose frames are in `sink` in their order; does what [`Endpoint::handle_packet`] would do with
    /// each. Returns how many it took, and whether more may follow.
    #[inline]
    pub fn handle_followers<S: RunSink>(
        &mut self,
        now: Instant,
        run: &Run,
        stretch: Stretch,
        sink: &mut S,
    ) -> (u32, Followed) {
        let Some(qp) = self.qps.get_mut(run.number as usize) else { return (0, Followed::Not) };
        let (taken, last) = qp.take_followers(now, run, stretch, &mut self.shared, sink);
        match last {
            // Of all that may be owed, such packets bring only that.
            Followed::On if !qp.owes_ack() => {}
            Followed::On => self.list_control(run.number),
            Followed::Over => {
                self.list_control(run.number);
                self.send_answers(now, run.number);
            }
            Followed::Not => {}
        }
        (taken, last)
    }
}
