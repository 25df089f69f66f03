//! Where a queue pair meets congestion: marks it sees as a receiver, signals it hears as a sender, its pace.

use dcp_wire::{Ecn, ProbeAck};

use super::{Qp, Shared, TurnEnd};
use crate::cc::Delay;
use crate::{Instant, RxPacket};

impl Qp {
    /// a switch marked the frame.
    #[inline]
    pub(super) fn note_mark(&mut self, rx: &RxPacket, shared: &mut Shared) {
        if rx.packet.headers.path.ecn == Ecn::Ce {
            shared.counters.ce_received += 1;
            self.pending.cnp = true;
        }
    }

    /// at most one CNP in an interval.
    #[cold]
    pub(super) fn may_send_cnp(&mut self, now: Instant, shared: &mut Shared) -> bool {
        let sent = &mut self.rare.owed.cnp_sent;
        if sent.is_some_and(|sent| now.since(sent) < shared.config.cnp_interval_ns) {
            return false;
        }
        *sent = Some(now);
        shared.counters.cnps_sent += 1;
        true
    }

    /// A CNP of the peer's receiver.
    #[cold]
    pub(crate) fn handle_cnp(&mut self, now: Instant, shared: &mut Shared) {
        shared.counters.cnps += 1;
        if let Some(controller) = &mut self.controller {
            controller.handle_cnp(now);
        }
    }

    /// A probe's answer tells the delays of the fabric and of the receiver.
    pub(crate) fn handle_delay(&mut self, now: Instant, answer: &ProbeAck) {
        let Some(controller) = &mut self.controller else { return };
        let since = |later: u32, earlier: u32| u64::from(later.wrapping_sub(earlier));
        let delay = Delay {
            round_trip_ns: since(now.timestamp().0, answer.t1.0),
            receiver_ns: since(answer.t3.0, answer.t2.0),
        };
        controller.handle_delay(now, delay);
        self.follow_window();
    }

    /// A coarse expiry: something was lost without a trace.
    #[cold]
    pub(super) fn note_loss(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller {
            controller.handle_loss(now);
            self.follow_window();
        }
    }

    /// Takes over a window that the scheme moved.
    pub(super) fn follow_window(&mut self) {
        if let Some(window) = self.controller.as_ref().and_then(|controller| controller.window()) {
            self.window_bytes = window;
        }
    }

    /// C-5: whether the pace lets a packet leave.
    #[inline]
    pub(super) fn is_in_time(&self, now: Instant) -> bool {
        self.controller.as_ref().is_none_or(|controller| controller.pacer.is_open(now))
    }

    /// A packet of `bytes` leaves. True: it is to be acknowledged.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, bytes: u32) -> bool {
        let Some(controller) = &mut self.controller else { return false };
        let sent = controller.handle_sent(now, bytes, self.in_flight.bytes());
        self.pending.probe[0] |= sent.probe;
        sent.ack
    }

    /// The end of a turn: a queue pair whose pace is closed waits for the wheel.
    #[inline]
    pub(super) fn end_turn(&mut self, now: Instant, end: TurnEnd) -> TurnEnd {
        let Some(controller) = &mut self.controller else { return end };
        let more = end == TurnEnd::More;
        controller.pacer.end_turn(more);
        self.paced = more && !controller.pacer.is_open(now);
        if self.paced { TurnEnd::Paced } else { end }
    }

    /// The wheel says that it may be time to send, to rise or to ask. True: there is something to send.
    #[cold]
    pub(super) fn handle_pace(&mut self, now: Instant) -> bool {
        let Some(controller) = &mut self.controller else { return false };
        let probe = controller.handle_time(now);
        let opened = self.paced && controller.pacer.is_open(now);
        self.paced &= !opened;
        self.pending.probe[0] |= probe;
        probe || opened
    }
}
