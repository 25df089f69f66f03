//! The sender's turn: what leaves next (T-2), and building it.

use dcp_wire::{AtomicEth, Data, DataOp, Kind, Msn, PacketName, Part, Psn, Reth, Stream, WriteImm};

use super::answer::AnswerBody;
use super::post::pieces;
use super::send_queue::{Remote, SegmentList, SendOp, Wqe};
use super::{ICRC_LEN, Qp, QpState, Shared, WRITE_OVERHEAD};
use crate::{EndpointConfig, Instant, QpId, TxFrame, TxSink};

/// Why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnEnd {
    /// More could leave at once: the quota or the sink ended it.
    More,
    /// More may leave later: the pace ended it (C-5).
    Paced,
    /// Nothing to send, or `awin` has no room; an input wakes the queue pair again.
    Rest,
}

/// What is left of a turn.
pub(super) struct Budget {
    pub(super) bytes: u32,
    wqes: u32,
    pub(super) now: Instant,
    pub(super) sent: Sent,
}

/// What a turn sent: counted once, at its end.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) resent: u64,
}

/// One packet to send.
#[derive(Clone, Copy)]
struct Next {
    stream: Stream,
    msn: Msn,
    psn: u32,
    resend: bool,
}

impl Shared {
    fn count_sent(&mut self, qp: QpId, sent: &Sent) {
        let own = &mut self.by_qp[qp.index()];
        own.data_packets += sent.packets;
        own.data_bytes += sent.bytes;
        own.retransmitted += sent.resent;
        self.counters.data_packets += sent.packets;
        self.counters.data_bytes += sent.bytes;
        self.counters.retransmitted += sent.resent;
    }
}

impl Qp {
    /// T-3: whether `awin` has room for a full packet.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.window_bytes.saturating_sub(self.in_flight.bytes()) >= u64::from(self.full_packet)
    }

    /// Whether there is anything that a turn could send, were `awin` unlimited.
    #[inline]
    pub(super) fn has_data(&mut self) -> bool {
        self.has_requests() || self.has_answers()
    }

    #[inline]
    fn has_requests(&mut self) -> bool {
        self.state == QpState::Rts
            && (!self.requests.retrans.is_empty()
                || match self.requests.window.unsent() {
                    Some(msn) => !self.is_held_back(msn),
                    None => self.may_enter(),
                })
    }

    #[inline]
    fn has_answers(&mut self) -> bool {
        self.owes_answers()
            && (!self.rare.answers.retrans.is_empty() || self.rare.answers.window.unsent().is_some())
    }

    /// Whether a turn would send something, or fail a request that is wrong by itself.
    #[inline]
    pub(crate) fn wants_turn(&mut self) -> bool {
        !self.paced && self.state.is_live() && self.may_send() && self.has_data()
    }

    /// The first message with unsent packets, unless it waits for a receive of the peer's (T-10).
    #[inline]
    fn unsent_request(&mut self) -> Option<Msn> {
        self.requests.window.unsent().filter(|&msn| !self.is_held_back(msn))
    }

    /// Whether a message waits for a receive of the peer's (T-10).
    #[inline]
    fn is_held_back(&self, msn: Msn) -> bool {
        self.requests.window.position(msn).is_none_or(|steps| self.is_held(steps))
    }

    /// T-1, T-10, T-15, T-16: whether the next work request may become a message.
    #[inline]
    fn may_enter(&self) -> bool {
        let Some(wqe) = self.queue.waiting() else { return false };
        if self.requests.window.is_full() {
            return false;
        }
        wqe.flags.unconditional || self.conditions_hold(wqe)
    }

    /// T-10, T-15, T-16.
    fn conditions_hold(&self, wqe: &Wqe) -> bool {
        let alone = self.requests.window.is_empty() && self.queue.awaiting() == 0;
        let waits = (wqe.fault.is_some() || wqe.flags.fence) && !alone
            || wqe.op.is_answered() && self.unanswered >= self.config.max_rd_atomic
            || wqe.op.is_two_sided() && self.rnr.holds(self.next_ssn);
        !waits
    }

    /// Bytes of a turn.
    #[inline]
    pub(super) fn quota(&self, config: &EndpointConfig) -> u32 {
        if self.controller.is_some() { config.paced_quota } else { config.round_quota }
    }

    /// One turn: at most [`quota`](Self::quota) bytes, retransmissions first (T-2).
    pub(crate) fn turn<S: TxSink>(&mut self, now: Instant, shared: &mut Shared, sink: &mut S) -> TurnEnd {
        if !self.state.is_live() {
            return TurnEnd::Rest;
        }
        let quota = self.quota(&shared.config);
        let mut budget = Budget { bytes: quota, wqes: shared.config.round_wqes, now, sent: Sent::default() };
        if let Some(controller) = &mut self.controller {
            controller.begin_turn(now, quota);
        }
        if self.owes_answers() {
            self.resend_returned(Stream::Answers, &mut budget, shared, sink);
            self.send_answers(&mut budget, shared, sink);
        }
        if self.state == QpState::Rts {
            self.resend_returned(Stream::Requests, &mut budget, shared, sink);
            self.send_requests(&mut budget, shared, sink);
        }
        shared.count_sent(self.id, &budget.sent);
        let end = if self.wants_turn() { TurnEnd::More } else { TurnEnd::Rest };
        self.end_turn(now, end)
    }

    #[inline]
    fn has_room<S: TxSink>(&self, budget: &Budget, sink: &S) -> bool {
        budget.bytes > 0 && sink.capacity() > 0 && self.may_leave(budget.now)
    }

    /// Whether window and pace let a packet leave.
    #[inline]
    pub(super) fn may_leave(&self, now: Instant) -> bool {
        self.may_send() && self.is_in_time(now)
    }

    /// At most `min(16, len, awin/MTU)` entries of the RetransQ.
    fn resend_returned<S: TxSink>(
        &mut self,
        stream: Stream,
        budget: &mut Budget,
        shared: &mut Shared,
        sink: &mut S,
    ) {
        for _ in 0..shared.config.round_retrans {
            if !self.has_room(budget, sink) {
                return;
            }
            let Some(PacketName { msn, psn, .. }) = self.stream_mut(stream).pop_returned() else { return };
            let plain = if stream == Stream::Requests { self.plain_write(msn) } else { None };
            match plain {
                Some(write) => self.resend_plain(msn, psn.get(), write, budget, sink),
                None => self.send(Next { stream, msn, psn: psn.get(), resend: true }, budget, shared, sink),
            }
        }
    }

    fn send_answers<S: TxSink>(&mut self, budget: &mut Budget, shared: &mut Shared, sink: &mut S) {
        while self.has_room(budget, sink) {
            let Some(msn) = self.rare.answers.window.unsent() else { return };
            self.send_next(Stream::Answers, msn, budget, shared, sink);
        }
    }

    fn send_requests<S: TxSink>(&mut self, budget: &mut Budget, shared: &mut Shared, sink: &mut S) {
        while self.has_room(budget, sink) {
            let Some(msn) = self.unsent_request().or_else(|| self.enter_next(budget, shared)) else { return };
            match self.plain_write(msn) {
                Some(write) => self.send_run(msn, write, budget, sink),
                None => self.send_next(Stream::Requests, msn, budget, shared, sink),
            }
        }
    }

    /// The next work request becomes a message. `None`: none may. A message with unsent packets, even one that waits for a
    /// receive, keeps the ones behind it (T-10).
    #[inline]
    fn enter_next(&mut self, budget: &mut Budget, shared: &mut Shared) -> Option<Msn> {
        if budget.wqes == 0 || self.requests.window.unsent().is_some() || !self.may_enter() {
            return None;
        }
        let wqe = self.queue.waiting()?;
        if let Some(fault) = wqe.fault {
            // A request that is wrong by itself fails in its order, after everything before it.
            self.fail_oldest(fault, shared);
            return None;
        }
        budget.wqes -= 1;
        let (packets, op) = (wqe.packets, wqe.op);
        let msn = self.requests.window.enter(packets, budget.now);
        self.queue.enter(self.next_ssn);
        if op.is_two_sided() {
            self.next_ssn = self.next_ssn.next();
        }
        self.unanswered += u32::from(op.is_answered());
        Some(msn)
    }

    /// Sends the next packet of a message's current generation.
    #[inline]
    fn send_next<S: TxSink>(
        &mut self,
        stream: Stream,
        msn: Msn,
        budget: &mut Budget,
        shared: &mut Shared,
        sink: &mut S,
    ) {
        let message = self.stream_mut(stream).window.message_mut(msn);
        let psn = message.next_psn;
        let resend = psn < message.sent_once;
        message.next_psn += 1;
        message.sent_once = message.sent_once.max(message.next_psn);
        self.send(Next { stream, msn, psn, resend }, budget, shared, sink);
    }

    /// Builds one packet and hands it to the sink.
    #[inline]
    fn send<S: TxSink>(&mut self, next: Next, budget: &mut Budget, shared: &mut Shared, sink: &mut S) {
        let Next { stream, msn, psn, resend } = next;
        let message = *self.stream(stream).window.message(msn);
        let mut segments = SegmentList::new();
        let (op, solicited) = match stream {
            Stream::Requests => self.request_packet(msn, psn, message.packets, &mut segments),
            Stream::Answers => (self.answer_packet(msn, psn, message.packets, &mut segments), false),
        };
        let payload: u32 = segments.iter().map(|segment| segment.len).sum();
        let ip_len = payload + self.ip_overhead(&op);
        self.in_flight.sent(u64::from(ip_len));
        let sent = self.stream_mut(stream).window.message_mut(msn);
        sent.bytes_sent += u64::from(ip_len);
        sent.life = budget.now;
        budget.bytes = budget.bytes.saturating_sub(payload);
        let asked = self.charge(budget.now, ip_len);
        // T-13.
        let ack_req = asked || resend || !self.may_send() || (psn + 1 == message.packets && !self.has_data());
        let name = PacketName { msn, psn: Psn::from_low_bits(psn), generation: message.generation };
        if self.config.spray {
            self.change_path(shared.counters.data_packets + budget.sent.packets);
        }
        let headers = self.connection.headers(Kind::Data(Data { name, ack_req, solicited, op }));
        let icrc = self.config.icrc;
        sink.push(TxFrame {
            headers: &headers,
            template: &self.connection.template,
            payload_len: payload,
            segments: &segments,
            icrc,
        });
        budget.sent.packets += 1;
        budget.sent.bytes += u64::from(payload);
        budget.sent.resent += u64::from(resend);
    }

    /// Operation and solicited bit of a request's packet; its payload goes to `segments`.
    #[inline]
    fn request_packet(&self, msn: Msn, psn: u32, packets: u32, segments: &mut SegmentList) -> (DataOp, bool) {
        let steps = self.requests.window.position(msn).unwrap_or_default();
        let wqe = self.queue.at(steps);
        let offset = psn * self.config.mtu;
        if !wqe.op.is_answered() {
            pieces(&wqe.segments, offset, self.config.mtu.min(wqe.len - offset), |piece| {
                segments.push(piece)
            });
        }
        let last = psn + 1 == packets;
        (request_op(wqe, psn, packets, offset), wqe.flags.solicited && last)
    }

    fn answer_packet(&self, msn: Msn, psn: u32, packets: u32, segments: &mut SegmentList) -> DataOp {
        let answer = self.rare.answer_ring[msn.get() as usize & (self.rare.answer_ring.len() - 1)];
        match answer.body {
            AnswerBody::Atomic(original) => DataOp::AtomicAck { rmsn: answer.rmsn, original },
            AnswerBody::Read(segment) => {
                let offset = psn * self.config.mtu;
                pieces(&[segment], offset, self.config.mtu.min(segment.len - offset), |piece| {
                    segments.push(piece)
                });
                DataOp::ReadResponse { rmsn: answer.rmsn, part: part_of(psn, packets, None) }
            }
        }
    }

    /// Bytes of IP length beyond the payload.
    #[inline]
    fn ip_overhead(&self, op: &DataOp) -> u32 {
        let headers = match op {
            DataOp::Write { part: Part::Last(Some(_)) | Part::Only(Some(_)), .. } => 66,
            DataOp::Write { .. } | DataOp::ReadRequest(_) => WRITE_OVERHEAD,
            DataOp::Send { part: Part::Last(Some(_)) | Part::Only(Some(_)), .. } => 50,
            DataOp::Send { .. } | DataOp::ReadResponse { .. } => 46,
            DataOp::CmpSwap(_) | DataOp::FetchAdd(_) => 71,
            DataOp::AtomicAck { .. } => 54,
        };
        if self.config.icrc { headers + ICRC_LEN } else { headers }
    }

    /// IP length of a packet that is in the window; of one beyond its message, that of its headers.
    pub(super) fn ip_len(&self, stream: Stream, msn: Msn, psn: u32) -> u32 {
        let packets = self.stream(stream).window.message(msn).packets;
        if psn >= packets {
            return 0;
        }
        let mut segments = SegmentList::new();
        let op = match stream {
            Stream::Requests => self.request_packet(msn, psn, packets, &mut segments).0,
            Stream::Answers => self.answer_packet(msn, psn, packets, &mut segments),
        };
        segments.iter().map(|segment| segment.len).sum::<u32>() + self.ip_overhead(&op)
    }
}

#[inline]
fn request_op(wqe: &Wqe, psn: u32, packets: u32, offset: u32) -> DataOp {
    let ssn = wqe.ssn;
    let reth = |remote: Remote| Reth {
        va: remote.va.wrapping_add(u64::from(offset)),
        rkey: remote.rkey,
        dma_len: wqe.len,
    };
    match wqe.op {
        SendOp::Write(remote) => DataOp::Write { reth: reth(remote), part: part_of(psn, packets, None) },
        SendOp::WriteImm(remote, imm) => {
            DataOp::Write { reth: reth(remote), part: part_of(psn, packets, Some(WriteImm { ssn, imm })) }
        }
        SendOp::Send => DataOp::Send { ssn, part: part_of(psn, packets, None) },
        SendOp::SendImm(imm) => DataOp::Send { ssn, part: part_of(psn, packets, Some(imm)) },
        SendOp::Read(remote) => DataOp::ReadRequest(reth(remote)),
        SendOp::CmpSwap { remote: Remote { va, rkey }, compare, swap } => {
            DataOp::CmpSwap(AtomicEth { va, rkey, swap_add: swap, compare })
        }
        SendOp::FetchAdd { remote: Remote { va, rkey }, add } => {
            DataOp::FetchAdd(AtomicEth { va, rkey, swap_add: add, compare: 0 })
        }
    }
}

#[inline]
pub(super) fn part_of<I>(psn: u32, packets: u32, end: Option<I>) -> Part<I> {
    match (psn == 0, psn + 1 == packets) {
        (true, true) => Part::Only(end),
        (true, false) => Part::First,
        (false, false) => Part::Middle,
        (false, true) => Part::Last(end),
    }
}

#[cfg(test)]
#[path = "run_twin.rs"]
mod run_twin;
