//! The receiver half: check, place, count (R-1 … ), and what happens when emsn moves.

use dcp_wire::{
    BounceRewrite, Data, DataOp, Generation, HeaderOnly, ImmData, Nak, NakCode, PacketName, Part, Probe,
    Reth, Ssn, Stream, WriteImm,
};

use super::answer::{AnswerPart, PeerRequest, give_map_back, track};
use super::post::pieces;
use super::recv_queue::{Arrived, Lookup};
use super::recv_window::Admission;
use super::respond::{cmp_swap, fetch_add};
use super::{Qp, QpState, Shared};
use crate::memory::{Claim, Need};
use crate::slot::{Counted, Family, SlotState};
use crate::{Completion, DropReason, Instant, Operation, RxPacket, RxSink, RxVerdict, Segment, Status};

/// Why a message failed; kept in its slot until emsn reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Failure {
    InvalidRequest = 1,
    RemoteAccess = 2,
    /// The receive is too small: an error here, an invalid request there.
    ReceiveTooSmall = 3,
    /// The receive names memory that it may not touch.
    ReceiveProtection = 4,
}

impl Failure {
    const fn from_code(code: u8) -> Self {
        match code {
            2 => Self::RemoteAccess,
            3 => Self::ReceiveTooSmall,
            4 => Self::ReceiveProtection,
            _ => Self::InvalidRequest,
        }
    }

    const fn nak(self) -> NakCode {
        match self {
            Self::RemoteAccess => NakCode::RemoteAccess,
            Self::ReceiveProtection => NakCode::RemoteOperational,
            Self::InvalidRequest | Self::ReceiveTooSmall => NakCode::InvalidRequest,
        }
    }

    /// What the receive completes with, if the message had one.
    const fn receive_status(self) -> Option<Status> {
        match self {
            Self::ReceiveTooSmall => Some(Status::LocalLength),
            Self::ReceiveProtection => Some(Status::LocalProtection),
            Self::InvalidRequest | Self::RemoteAccess => None,
        }
    }
}

/// Why a packet is not taken.
enum Refusal {
    /// The message ends.
    Fail(Failure),
    /// No receive is posted.
    NotReady,
}

/// A packet of a SEND or WRITE whose lengths agree with each other (P-2).
struct Incoming {
    name: PacketName,
    payload_len: u32,
    family: Family,
    /// Packets of the message, as far as this packet tells; 0 if it does not.
    packets: u32,
    reth: Option<Reth>,
    /// The receive it names.
    ssn: Option<Ssn>,
    /// What the receive's completion says, in the message's last packet.
    arrived: Option<Arrived>,
}

/// Where a packet goes.
enum Target {
    Memory(Segment),
    /// The receive at this position, and its capacity in bytes.
    Receive(usize, u32),
}

impl Qp {
    pub(crate) fn handle_data<S: RxSink>(
        &mut self,
        now: Instant,
        rx: &RxPacket,
        data: &Data,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<RxVerdict, DropReason> {
        let incoming = match data.op {
            // what breaks no rule is answered with the last NAK.
            _ if self.state == QpState::Error => return Err(self.answer_in_error(rx, data)),
            DataOp::Write { reth, part } => self.check_write(rx, data, reth, part),
            DataOp::Send { ssn, part } => self.check_send(rx, data, ssn, part),
            DataOp::ReadRequest(reth) => {
                return self.handle_request(rx, data, PeerRequest::Read(reth), now, shared, sink).map(done);
            }
            DataOp::CmpSwap(eth) => {
                return self.handle_request(rx, data, cmp_swap(eth), now, shared, sink).map(done);
            }
            DataOp::FetchAdd(eth) => {
                return self.handle_request(rx, data, fetch_add(eth), now, shared, sink).map(done);
            }
            DataOp::ReadResponse { rmsn, part } => {
                return self.handle_answer(rx, data, rmsn, AnswerPart::Read(part), shared, sink).map(done);
            }
            DataOp::AtomicAck { rmsn, original } => {
                return self
                    .handle_answer(rx, data, rmsn, AnswerPart::Atomic(original), shared, sink)
                    .map(done);
            }
        };
        let incoming = incoming.ok_or(DropReason::BadLength)?;
        self.count_received(rx, data.ack_req, Stream::Requests, shared);
        match self.recv.admit(data.name) {
            Admission::Take => self.take(now, &incoming, None, shared, sink),
            Admission::Restart(generation) => self.take(now, &incoming, Some(generation), shared, sink),
            Admission::Drop(reason) => {
                // a lost ACK must not livelock.
                self.pending.ack[Stream::Requests as usize] |= reason == DropReason::OldMessage;
                Err(reason)
            }
        }
    }

    #[cold]
    fn answer_in_error(&mut self, rx: &RxPacket, data: &Data) -> DropReason {
        let legal = match data.op {
            DataOp::Write { reth, part } => self.check_write(rx, data, reth, part).is_some(),
            DataOp::Send { ssn, part } => self.check_send(rx, data, ssn, part).is_some(),
            _ => true,
        };
        self.pending.nak |= legal;
        if legal { DropReason::WrongState } else { DropReason::BadLength }
    }

    /// counted whatever happens to it next.
    #[inline]
    pub(super) fn count_received(
        &mut self,
        rx: &RxPacket,
        ack_req: bool,
        stream: Stream,
        shared: &mut Shared,
    ) {
        self.note_mark(rx, shared);
        self.count_unmarked(1, u32::from(rx.packet.ip_len), ack_req, stream, shared);
    }

    /// The same for packets of `ip_len` bytes each without a mark.
    #[inline]
    pub(super) fn count_unmarked(
        &mut self,
        packets: u32,
        ip_len: u32,
        ack_req: bool,
        stream: Stream,
        shared: &mut Shared,
    ) {
        self.received = self.received.wrapping_add(packets.wrapping_mul(ip_len));
        shared.counters.data_received += u64::from(packets);
        shared.by_qp[self.id.index()].data_received += u64::from(packets);
        let unacknowledged = self.received.wrapping_sub(self.acknowledged);
        let many = self.config.ack_bytes > 0 && unacknowledged >= self.config.ack_bytes;
        self.pending.ack[stream as usize] |= ack_req || many;
    }

    /// P-2: payload, PSN, MTU and DMALen of a WRITE packet. Only multiplications: this runs for every packet.
    #[inline]
    fn check_write(&self, rx: &RxPacket, data: &Data, reth: Reth, part: Part<WriteImm>) -> Option<Incoming> {
        let name = data.name;
        let (mtu, psn) = (u64::from(self.config.mtu), u64::from(name.psn.get()));
        let (payload, total) = (u64::from(rx.packet.payload_len), u64::from(reth.dma_len));
        let start = psn * mtu;
        let (legal, imm) = match part {
            Part::Only(imm) => (psn == 0 && payload == total && total <= mtu, imm),
            Part::First => (psn == 0 && payload == mtu && total > mtu, None),
            Part::Middle => (psn > 0 && payload == mtu && start + mtu < total, None),
            Part::Last(imm) => (psn > 0 && payload > 0 && payload <= mtu && start + payload == total, imm),
        };
        if !legal {
            return None;
        }
        let slot = self.recv.slot(name.msn);
        let known = u64::from(slot.expected());
        let agrees = known > 0 && total <= known * mtu && total + mtu > known * mtu && total > 0;
        let packets = if agrees { slot.expected() } else { reth.dma_len.div_ceil(self.config.mtu).max(1) };
        Some(Incoming {
            name,
            payload_len: u32::from(rx.packet.payload_len),
            family: Family::Write,
            packets,
            reth: Some(reth),
            ssn: imm.map(|imm| imm.ssn),
            arrived: imm.map(|imm| Arrived {
                operation: Operation::ReceiveWriteImm,
                len: reth.dma_len,
                imm: Some(imm.imm),
                solicited: data.solicited,
            }),
        })
    }

    /// P-2: payload and PSN of a SEND packet.
    fn check_send(&self, rx: &RxPacket, data: &Data, ssn: Ssn, part: Part<ImmData>) -> Option<Incoming> {
        let (mtu, psn) = (self.config.mtu, data.name.psn.get());
        let payload_len = u32::from(rx.packet.payload_len);
        let (legal, end) = match part {
            Part::Only(imm) => (psn == 0 && payload_len <= mtu, Some(imm)),
            Part::First => (psn == 0 && payload_len == mtu, None),
            Part::Middle => (psn > 0 && payload_len == mtu, None),
            Part::Last(imm) => (psn > 0 && payload_len > 0 && payload_len <= mtu, Some(imm)),
        };
        let len = u64::from(psn) * u64::from(mtu) + u64::from(payload_len);
        let len = u32::try_from(len).ok().filter(|&len| len <= 1 << 31)?;
        legal.then(|| Incoming {
            name: data.name,
            payload_len,
            family: Family::Send,
            packets: if end.is_some() { psn + 1 } else { 0 },
            reth: None,
            ssn: Some(ssn),
            arrived: end.map(|imm| Arrived {
                operation: Operation::Receive,
                len,
                imm,
                solicited: data.solicited,
            }),
        })
    }

    /// R-4 … R-8 for a packet that R-3 lets in; `restart`: in a newer generation than its slot's.
    fn take<S: RxSink>(
        &mut self,
        now: Instant,
        packet: &Incoming,
        restart: Option<Generation>,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<RxVerdict, DropReason> {
        let slot = self.recv.slot(packet.name.msn);
        if slot.family().is_some_and(|family| family != packet.family) {
            return Err(DropReason::MixedOperations);
        }
        let target = match self.check_access(packet, shared) {
            Ok(target) => target,
            Err(Refusal::Fail(failure)) => return self.refuse(now, packet, failure, shared, sink),
            Err(Refusal::NotReady) => return Ok(self.not_ready(packet)),
        };
        let slot = self.recv.slot_mut(packet.name.msn);
        slot.set_family(packet.family);
        if packet.packets > 0 {
            slot.set_expected(packet.packets);
        }
        if packet.ssn.is_some() {
            slot.set_consumes_receive();
        }
        let packets_max = match target {
            _ if slot.expected() > 0 => slot.expected(),
            Target::Receive(_, capacity) if restart.is_some() => capacity.div_ceil(self.config.mtu).max(1),
            _ => 1,
        };
        let counted = track(slot, &packet.name, restart, packets_max, shared)?;
        self.place(packet, &target, shared, sink);
        match counted {
            Counted::More => {}
            Counted::Complete => self.complete_message(now, packet.name, shared, sink),
            Counted::Torn => self.ask_for_restart(Stream::Requests, packet.name),
        }
        Ok(RxVerdict::Done)
    }

    /// everything that a packet claims is checked, on every packet; R-6: and agrees with what others claimed.
    #[inline]
    fn check_access(&mut self, packet: &Incoming, shared: &mut Shared) -> Result<Target, Refusal> {
        let expected = self.recv.slot(packet.name.msn).expected();
        let beyond = expected != 0 && packet.name.psn.get() >= expected;
        if beyond || (expected != 0 && packet.packets != 0 && expected != packet.packets) {
            return Err(Refusal::Fail(Failure::InvalidRequest));
        }
        let receive = match packet.ssn {
            None => None,
            Some(ssn) => match self.recv_queue.lookup(ssn, self.config.window, &mut shared.srqs) {
                Lookup::Found(index) => Some(index),
                Lookup::Behind => return Err(Refusal::Fail(Failure::InvalidRequest)),
                Lookup::Beyond => return Err(Refusal::NotReady),
            },
        };
        match (packet.reth, receive) {
            (Some(reth), _) => {
                self.check_range(packet, reth, shared).map(Target::Memory).map_err(Refusal::Fail)
            }
            (None, Some(index)) => self.check_receive(packet, index).map_err(Refusal::Fail),
            (None, None) => Err(Refusal::Fail(Failure::InvalidRequest)),
        }
    }

    /// The whole range of a WRITE.
    #[inline]
    fn check_range(&self, packet: &Incoming, reth: Reth, shared: &Shared) -> Result<Segment, Failure> {
        if reth.dma_len == 0 {
            return Ok(Segment { region: crate::RegionId(0), offset: 0, len: 0 });
        }
        let before = u64::from(packet.name.psn.get()) * u64::from(self.config.mtu);
        let start = reth.va.checked_sub(before).ok_or(Failure::RemoteAccess)?;
        let claim = Claim { pd: self.config.pd, key: reth.rkey, need: Need::RemoteWrite };
        let whole = shared.memory.resolve(claim, start, reth.dma_len).ok_or(Failure::RemoteAccess)?;
        Ok(Segment { offset: whole.offset + before, len: packet.payload_len, ..whole })
    }

    /// The receive of a SEND holds the packet.
    fn check_receive(&mut self, packet: &Incoming, index: usize) -> Result<Target, Failure> {
        let receive = self.recv_queue.found(index);
        if receive.fault.is_some() {
            return Err(Failure::ReceiveProtection);
        }
        let end =
            u64::from(packet.name.psn.get()) * u64::from(self.config.mtu) + u64::from(packet.payload_len);
        if end > u64::from(receive.capacity) {
            return Err(Failure::ReceiveTooSmall);
        }
        Ok(Target::Receive(index, receive.capacity))
    }

    /// R-5; and the receive learns what arrived.
    #[inline]
    fn place<S: RxSink>(&mut self, packet: &Incoming, target: &Target, shared: &mut Shared, sink: &mut S) {
        shared.count_placed(self.id, 1);
        match *target {
            Target::Memory(to) if to.len > 0 => sink.place(0, to),
            Target::Memory(_) => {}
            Target::Receive(index, _) => {
                let from = packet.name.psn.get() * self.config.mtu;
                let mut offset = 0;
                pieces(&self.recv_queue.found(index).segments, from, packet.payload_len, |to| {
                    sink.place(offset, to);
                    offset += to.len;
                });
            }
        }
        if let (Some(arrived), Some(ssn)) = (packet.arrived, packet.ssn)
            && let Lookup::Found(index) = self.recv_queue.lookup(ssn, self.config.window, &mut shared.srqs)
        {
            self.recv_queue.found(index).arrived = arrived;
        }
    }

    /// what found no receive goes back as a header, with a NAK that says how long to wait.
    #[cold]
    fn not_ready(&mut self, packet: &Incoming) -> RxVerdict {
        let PacketName { msn, generation, .. } = packet.name;
        self.nak_once(
            Stream::Requests,
            Nak { code: NakCode::Rnr(self.rare.config.rnr_timer), msn, generation },
        );
        RxVerdict::Return(self.rewrite())
    }

    /// the message ends, not yet the queue pair.
    #[cold]
    fn refuse<S: RxSink>(
        &mut self,
        now: Instant,
        packet: &Incoming,
        failure: Failure,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<RxVerdict, DropReason> {
        let slot = self.recv.slot_mut(packet.name.msn);
        give_map_back(slot, &mut shared.maps);
        slot.fail(failure as u8);
        self.advance(now, shared, sink);
        Err(DropReason::Refused)
    }

    fn complete_message<S: RxSink>(
        &mut self,
        now: Instant,
        name: PacketName,
        shared: &mut Shared,
        sink: &mut S,
    ) {
        let slot = self.recv.slot_mut(name.msn);
        give_map_back(slot, &mut shared.maps);
        slot.complete();
        self.advance(now, shared, sink);
    }

    /// counted as many as expected, but not the right ones.
    #[cold]
    pub(super) fn ask_for_restart(&mut self, stream: Stream, name: PacketName) {
        let window = match stream {
            Stream::Requests => &mut self.recv,
            Stream::Answers => &mut self.rare.recv_answers,
        };
        let slot = window.slot_mut(name.msn);
        slot.poison();
        let generation = slot.generation();
        self.nak_once(stream, Nak { code: NakCode::Resync, msn: name.msn, generation });
    }

    /// steps over what is complete, runs what waits for its turn; a failed message ends the queue pair.
    pub(crate) fn advance<S: RxSink>(&mut self, now: Instant, shared: &mut Shared, sink: &mut S) {
        while self.state.is_live() {
            let slot = *self.recv.slot(self.recv.emsn());
            match slot.state() {
                SlotState::Complete if slot.consumes_receive() => self.complete_receive(shared),
                SlotState::Complete => {}
                SlotState::Request if !self.may_answer() => return,
                SlotState::Request => {
                    if let Err(code) = self.run_request(now, shared, sink) {
                        return self.end_by_peer(code, slot.generation(), shared);
                    }
                }
                SlotState::Failed => return self.end_by_failure(&slot, shared),
                SlotState::Counting | SlotState::Poisoned | SlotState::Mapped => return,
            }
            self.recv.step();
            self.pending.ack[Stream::Requests as usize] = true;
        }
    }

    fn complete_receive(&mut self, shared: &mut Shared) {
        let Some(receive) = self.recv_queue.take_next() else { return };
        let arrived = receive.arrived;
        let completion = Completion {
            wr_id: receive.wr_id,
            qp: self.id,
            status: Status::Success,
            operation: arrived.operation,
            byte_len: arrived.len,
            imm: arrived.imm,
            solicited: arrived.solicited,
        };
        shared.complete(self.config.recv_cq, completion);
    }

    #[cold]
    fn end_by_failure(&mut self, slot: &crate::slot::Slot, shared: &mut Shared) {
        let failure = Failure::from_code(slot.failure());
        if let Some(status) = failure.receive_status() {
            self.fail_receive(status, shared);
        }
        self.end_by_peer(failure.nak(), slot.generation(), shared);
    }

    /// The message at emsn ends the queue pair; the peer is told.
    #[cold]
    fn end_by_peer(&mut self, code: NakCode, generation: Generation, shared: &mut Shared) {
        self.enter_error(Nak { code, msn: self.recv.emsn(), generation }, shared);
        self.pending.nak = true;
    }

    /// a header that a switch made of one of the peer's packets.
    pub(crate) fn handle_header(
        &mut self,
        rx: &RxPacket,
        header: &HeaderOnly,
        shared: &mut Shared,
    ) -> Result<BounceRewrite, DropReason> {
        if self.state == QpState::Error {
            self.pending.nak = true;
            return Err(DropReason::WrongState);
        }
        self.note_mark(rx, shared);
        let stream = header.opcode.stream();
        if let Err(reason) = self.recv_window(stream).admit_header(header.name, &shared.maps) {
            self.pending.ack[stream as usize] |= reason == DropReason::OldMessage;
            return Err(reason);
        }
        Ok(self.rewrite())
    }

    fn rewrite(&self) -> BounceRewrite {
        BounceRewrite {
            dest_qpn: self.connection.dest_qpn,
            src_port: self.connection.path.src_port,
            dst_port: self.connection.path.dst_port,
        }
    }

    ///
    pub(crate) fn handle_probe(&mut self, rx: &RxPacket, probe: &Probe) {
        if self.state == QpState::Error {
            self.pending.nak = true;
        } else {
            self.owe_probe_ack(probe.stream, probe.t1, rx.arrived.timestamp());
        }
    }
}

const fn done((): ()) -> RxVerdict {
    RxVerdict::Done
}
