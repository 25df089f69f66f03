//! READ and ATOMIC, the requester's side of the answer stream, and what both sides keep of a request.

use dcp_wire::{Data, Msn, PacketName, Part, Stream};

use super::post::pieces;
use super::recv_window::Admission;
use super::send_queue::SendOp;
use super::{Qp, QpState, Shared};
use crate::maps::MapPool;
use crate::slot::{Counted, SlotState};
use crate::{AtomicOp, DropReason, RxPacket, RxSink, Segment};

/// An answer that this side sends: what it must be able to send again.
#[derive(Clone, Copy, Hash, Debug)]
pub(super) struct Answer {
    /// MSN of the request.
    pub(super) rmsn: Msn,
    pub(super) body: AnswerBody,
}

#[derive(Clone, Copy, Hash, Debug)]
pub(super) enum AnswerBody {
    /// Bytes of a READ.
    Read(Segment),
    /// Value before an atomic.
    Atomic(u64),
}

impl Answer {
    pub(super) const NOTHING: Self = Self { rmsn: Msn::ZERO, body: AnswerBody::Atomic(0) };
}

/// A READ or ATOMIC of the peer that waits until emsn reaches it.
#[derive(Clone, Copy, Hash, Debug)]
pub(super) enum PeerRequest {
    Read(dcp_wire::Reth),
    Atomic(dcp_wire::AtomicEth, AtomicOp),
}

/// What an answer packet carries.
#[derive(Clone, Copy)]
pub(super) enum AnswerPart {
    Read(Part<core::convert::Infallible>),
    Atomic(u64),
}

/// A packet of an answer.
struct AnswerPacket {
    name: PacketName,
    /// Position of the request behind the oldest work request.
    steps: u32,
    /// Packets of the answer.
    packets: u32,
    payload_len: u32,
}

impl Qp {
    /// A packet of the answer stream.
    pub(super) fn handle_answer<S: RxSink>(
        &mut self,
        rx: &RxPacket,
        data: &Data,
        rmsn: Msn,
        part: AnswerPart,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<(), DropReason> {
        if self.state != QpState::Rts {
            return Err(DropReason::WrongState);
        }
        let found = self.check_answer(rx, data.name, rmsn, part);
        // An answer that is over has no request that waits for it; it counts as received all the same.
        let over = matches!(
            self.rare.recv_answers.admit(data.name),
            Admission::Drop(DropReason::OldMessage | DropReason::Settled)
        );
        if found.is_err() && !over {
            return found.map(|_| ());
        }
        self.count_received(rx, data.ack_req, Stream::Answers, shared);
        let restart = match self.rare.recv_answers.admit(data.name) {
            Admission::Take => None,
            Admission::Restart(generation) => Some(generation),
            Admission::Drop(reason) => {
                self.pending.ack[Stream::Answers as usize] |= reason == DropReason::OldMessage;
                return Err(reason);
            }
        };
        let packet = found?;
        let slot = self.rare.recv_answers.slot_mut(packet.name.msn);
        slot.set_expected(packet.packets);
        let counted = track(slot, &packet.name, restart, packet.packets, shared)?;
        self.place_answer(&packet, part, sink);
        shared.count_placed(self.id, 1);
        match counted {
            Counted::More => {}
            Counted::Complete => self.complete_answer(&packet, shared),
            Counted::Torn => self.ask_for_restart(Stream::Answers, packet.name),
        }
        Ok(())
    }

    /// RMSN names an unanswered request, and the packet's lengths are those of its answer.
    fn check_answer(
        &mut self,
        rx: &RxPacket,
        name: PacketName,
        rmsn: Msn,
        part: AnswerPart,
    ) -> Result<AnswerPacket, DropReason> {
        let under_way = self.queue.awaiting() + self.requests.window.len();
        let steps = rmsn.index_in(self.oldest_msn(), under_way).ok_or(DropReason::StaleAnswer)?;
        let mtu = self.config.mtu;
        let wqe = self.queue.behind_oldest(steps);
        let (total, payload, psn) = (wqe.len, u32::from(rx.packet.payload_len), name.psn.get());
        let payload_len = payload;
        if wqe.flags.answered {
            return Err(DropReason::StaleAnswer);
        }
        match (wqe.op, part) {
            (SendOp::Read(_), AnswerPart::Read(part)) => {
                let packets = total.div_ceil(mtu).max(1);
                let before = u64::from(psn) * u64::from(mtu);
                let legal = match part {
                    Part::Only(_) => packets == 1 && payload == total,
                    Part::First => packets > 1 && payload == mtu,
                    Part::Middle => psn + 1 < packets && payload == mtu,
                    Part::Last(_) => psn + 1 == packets && before + u64::from(payload) == u64::from(total),
                };
                if legal {
                    Ok(AnswerPacket { name, steps, packets, payload_len })
                } else {
                    Err(DropReason::BadLength)
                }
            }
            (SendOp::CmpSwap { .. } | SendOp::FetchAdd { .. }, AnswerPart::Atomic(_)) => {
                Ok(AnswerPacket { name, steps, packets: 1, payload_len })
            }
            _ => Err(DropReason::StaleAnswer),
        }
    }

    /// straight to the request's gather list.
    fn place_answer<S: RxSink>(&mut self, packet: &AnswerPacket, part: AnswerPart, sink: &mut S) {
        let from = packet.name.psn.get() * self.config.mtu;
        let wqe = self.queue.behind_oldest(packet.steps);
        match part {
            AnswerPart::Read(_) => {
                let mut offset = 0;
                pieces(&wqe.segments, from, packet.payload_len, |to| {
                    sink.place(offset, to);
                    offset += to.len;
                });
            }
            AnswerPart::Atomic(value) => {
                if let [to] = wqe.segments[..] {
                    sink.store(to, value);
                }
            }
        }
    }

    fn complete_answer(&mut self, packet: &AnswerPacket, shared: &mut Shared) {
        let slot = self.rare.recv_answers.slot_mut(packet.name.msn);
        give_map_back(slot, &mut shared.maps);
        slot.complete();
        self.queue.behind_oldest(packet.steps).flags.answered = true;
        self.unanswered -= 1;
        while self.rare.recv_answers.advance() {
            self.pending.ack[Stream::Answers as usize] = true;
        }
        self.complete_ready(shared);
    }
}

/// counts a packet in its slot, with a map from the first restart on.
#[inline]
pub(super) fn track(
    slot: &mut crate::slot::Slot,
    name: &PacketName,
    restart: Option<dcp_wire::Generation>,
    packets_max: u32,
    shared: &mut Shared,
) -> Result<Counted, DropReason> {
    if let Some(generation) = restart {
        slot.restart(generation);
        match shared.maps.take(packets_max) {
            Some(map) => slot.track_exactly(map),
            None => shared.counters.maps_refused += 1,
        }
    }
    if slot.state() != SlotState::Mapped {
        let counted = slot.count(name.psn.get());
        #[cfg(feature = "test-faults")]
        if shared.config.counter_only && counted == Counted::Torn {
            return Ok(Counted::Complete);
        }
        return Ok(counted);
    }
    let inserted = shared.maps.insert(slot.map(), name.psn.get()).ok_or(DropReason::Duplicate)?;
    Ok(if inserted.seen == slot.expected() { Counted::Complete } else { Counted::More })
}

/// A message that ends needs its map no more.
#[inline]
pub(super) fn give_map_back(slot: &crate::slot::Slot, maps: &mut MapPool) {
    if slot.state() == SlotState::Mapped {
        maps.give_back(slot.map());
    }
}
