//! The sender's turn: what leaves next (T-2), and building it.

use dcp_wire::{Data, DataOp, Kind, Msn, PacketName, Part, Psn, Reth};

use super::post::gather;
use super::send_queue::{SegmentList, SendOp};
use super::{Qp, QpState, Shared, WRITE_IP_OVERHEAD};
use crate::{Instant, TxFrame, TxSink};

/// Why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnEnd {
    /// More could leave at once: the quota or the sink ended it.
    More,
    /// Nothing to send, or `awin` has no room; an input wakes the queue pair again.
    Rest,
}

/// What is left of a turn.
struct Budget {
    bytes: u32,
    wqes: u32,
}

/// One packet to send.
#[derive(Clone, Copy)]
struct Next {
    msn: Msn,
    psn: u32,
    resend: bool,
}

impl Qp {
    /// T-3: whether `awin` has room for a full packet.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.config.cc.allowance(self.in_flight.bytes()) >= u64::from(self.full_packet)
    }

    /// Whether there is anything that a turn could send, were `awin` unlimited.
    #[inline]
    pub(crate) fn has_data(&mut self) -> bool {
        !self.retrans.is_empty() || self.window.unsent().is_some() || self.may_enter()
    }

    /// Whether a turn would send something, or fail a request that is wrong by itself.
    #[inline]
    pub(crate) fn wants_turn(&mut self) -> bool {
        self.state == QpState::Rts && self.may_send() && self.has_data()
    }

    #[inline]
    fn may_enter(&self) -> bool {
        // A request that is wrong by itself waits until everything before it is done.
        let waiting = self.queue.waiting().is_some_and(|wqe| wqe.fault.is_none() || self.window.is_empty());
        waiting && !self.window.is_full()
    }

    /// One turn: at most `round_quota` bytes, retransmissions first (T-2).
    pub(crate) fn turn<S: TxSink>(&mut self, now: Instant, shared: &mut Shared, sink: &mut S) -> TurnEnd {
        if self.state != QpState::Rts {
            return TurnEnd::Rest;
        }
        let mut budget = Budget { bytes: shared.config.round_quota, wqes: shared.config.round_wqes };
        self.resend_returned(now, &mut budget, shared, sink);
        self.send_new(now, &mut budget, shared, sink);
        if self.wants_turn() { TurnEnd::More } else { TurnEnd::Rest }
    }

    /// At most `min(16, len, awin/MTU)` entries of the RetransQ.
    fn resend_returned<S: TxSink>(
        &mut self,
        now: Instant,
        budget: &mut Budget,
        shared: &mut Shared,
        sink: &mut S,
    ) {
        let mut left = shared.config.round_retrans;
        while left > 0 && budget.bytes > 0 && sink.capacity() > 0 && self.may_send() {
            let Some(name) = self.retrans.pop() else { return };
            // T-7: what is retired or restarted is dropped when met.
            if self.window.position(name.msn).is_none() {
                continue;
            }
            let message = self.window.message_mut(name.msn);
            if message.generation != name.generation {
                continue;
            }
            message.waiting -= 1;
            left -= 1;
            self.send(Next { msn: name.msn, psn: name.psn.get(), resend: true }, now, budget, shared, sink);
        }
    }

    fn send_new<S: TxSink>(&mut self, now: Instant, budget: &mut Budget, shared: &mut Shared, sink: &mut S) {
        while budget.bytes > 0 && sink.capacity() > 0 && self.may_send() {
            let msn = match self.window.unsent() {
                Some(msn) => msn,
                None if budget.wqes > 0 && self.enter_next(now, shared) => {
                    budget.wqes -= 1;
                    continue;
                }
                None => return,
            };
            let message = self.window.message_mut(msn);
            let psn = message.next_psn;
            let resend = psn < message.sent_once;
            message.next_psn += 1;
            message.sent_once = message.sent_once.max(message.next_psn);
            self.send(Next { msn, psn, resend }, now, budget, shared, sink);
        }
    }

    /// T-1: the next work request becomes a message. False: none, or no room for it.
    fn enter_next(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if self.window.is_full() {
            return false;
        }
        let Some(wqe) = self.queue.waiting() else { return false };
        if let Some(fault) = wqe.fault {
            // A request that is wrong by itself fails in its order, after everything before it.
            if self.window.is_empty() {
                self.fail_oldest(fault, shared);
            }
            return false;
        }
        let packets = wqe.packets;
        self.window.enter(packets, now);
        self.queue.enter();
        true
    }

    /// Builds one packet and hands it to the sink.
    #[inline]
    fn send<S: TxSink>(
        &mut self,
        next: Next,
        now: Instant,
        budget: &mut Budget,
        shared: &mut Shared,
        sink: &mut S,
    ) {
        let Next { msn, psn, resend } = next;
        let steps = msn.index_in(self.window.una, self.window.size()).unwrap_or_default();
        let payload = self.payload_of(steps, psn);
        let ip_len = WRITE_IP_OVERHEAD + payload;
        self.in_flight.sent(ip_len);
        let message = self.window.message_mut(msn);
        message.bytes_sent += u64::from(ip_len);
        message.life = now;
        let (packets, generation) = (message.packets, message.generation);
        budget.bytes = budget.bytes.saturating_sub(payload);
        let ack_req = resend || !self.may_send() || (psn + 1 == packets && !self.has_data());

        let wqe = self.queue.at(steps);
        let offset = psn * self.config.mtu;
        let SendOp::Write { remote_va, rkey } = wqe.op;
        let reth = Reth { va: remote_va.wrapping_add(u64::from(offset)), rkey, dma_len: wqe.len };
        let mut segments = SegmentList::new();
        gather(&wqe.segments, offset, payload, &mut segments);
        self.template.kind = Kind::Data(Data {
            name: PacketName { msn, psn: Psn::from_low_bits(psn), generation },
            ack_req,
            solicited: false,
            op: DataOp::Write { reth, part: part_of(psn, packets) },
        });
        sink.push(TxFrame { headers: &self.template, payload_len: payload, segments: &segments });
        shared.counters.data_packets += 1;
        shared.counters.data_bytes += u64::from(payload);
        shared.counters.retransmitted += u64::from(resend);
    }
}

#[inline]
fn part_of<I>(psn: u32, packets: u32) -> Part<I> {
    match (psn == 0, psn + 1 == packets) {
        (true, true) => Part::Only(None),
        (true, false) => Part::First,
        (false, false) => Part::Middle,
        (false, true) => Part::Last(None),
    }
}
