//! The door for packets that follow each other.

use dcp_wire::Psn;

use super::Endpoint;
use crate::slot::Counted;
use crate::{Followed, Instant, Run, RxPacket, RxSink};

impl Endpoint {
    /// The run that a packet is in which [`Endpoint::handle_packet`] has just used up; `None` if no others can follow it.
    ///
    /// A driver that finds the next frame to differ in nothing but its PSN, and the address that goes with it
    /// ([`dcp_wire::Follower`]), offers it to [`Endpoint::handle_follower`], which has less to look at.
    pub fn run_after(&self, rx: &RxPacket<'_>) -> Option<Run> {
        let number = rx.packet.headers.dest_qpn.get().wrapping_sub(self.shared.config.qpn_base);
        self.qps.get(number as usize)?.run_after(number, rx, &self.shared)
    }

    /// Takes packet `psn` of a run; does what [`Endpoint::handle_packet`] would do with it.
    #[inline]
    pub fn handle_follower<S: RxSink>(
        &mut self,
        now: Instant,
        run: &Run,
        psn: Psn,
        sink: &mut S,
    ) -> Followed {
        let Some(qp) = self.qps.get_mut(run.number as usize) else { return Followed::Not };
        let Some(counted) = qp.take_follower(now, run, psn, &mut self.shared, sink) else {
            return Followed::Not;
        };
        if counted == Counted::More {
            // Of all that may be owed, such a packet brings only that.
            if qp.owes_ack() {
                self.list_control(run.number);
            }
            return Followed::On;
        }
        self.list_control(run.number);
        if counted == Counted::Complete {
            self.send_answers(now, run.number);
        }
        Followed::Over
    }
}
