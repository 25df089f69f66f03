//! What the sender half hears from its peer: ACKs, NAKs, returned headers, probe answers.

use dcp_wire::{HeaderOnly, Msn, Nak, NakCode, Stream};

use super::{Qp, QpState, Shared};
use crate::{DropReason, Instant, Status};

/// Restarts of one message that a receiver may ask for. With a map one is enough; without map memory, where every packet
/// comes twice, none would ever do.
const RESYNCS_MAX: u16 = 256;

/// What every acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) stream: Stream,
    pub(crate) emsn: Msn,
    pub(crate) received: u32,
}

impl Qp {
    /// A stream may be acknowledged once it can have been sent: answers from RTR on, requests from RTS on.
    fn sends(&self, stream: Stream) -> bool {
        match stream {
            Stream::Requests => self.state == QpState::Rts,
            Stream::Answers => self.state.is_live(),
        }
    }

    /// T-6, T-12.
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        progress: Progress,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        let Progress { stream, emsn, received } = progress;
        if !self.sends(stream) {
            return Err(DropReason::WrongState);
        }
        let done = self.stream(stream).acknowledged(emsn).ok_or(DropReason::BadAck)?;
        self.heard = now;
        let news = self.in_flight.received(received);
        if let Some(controller) = &mut self.controller {
            controller.handle_acknowledged(now, news.into());
            self.follow_window();
        }
        for _ in 0..done {
            let message = self.stream_mut(stream).retire();
            self.in_flight.retire(message.bytes_sent);
            if stream == Stream::Requests {
                self.queue.acknowledge();
            }
        }
        if stream == Stream::Answers {
            self.answering = !self.rare.answers.window.is_empty();
        }
        if stream == Stream::Requests && done > 0 {
            self.rnr.progressed();
            self.complete_ready(shared);
        }
        if self.requests.window.is_empty() && !self.owes_answers() {
            self.in_flight.clear();
        }
        Ok(())
    }

    /// T-9, T-10, T-11.
    pub(crate) fn handle_nak(
        &mut self,
        now: Instant,
        progress: Progress,
        nak: Nak,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        self.handle_ack(now, progress, shared)?;
        let status = match (nak.code, progress.stream) {
            (NakCode::Resync, stream) => return self.resync(now, stream, nak, shared),
            (_, Stream::Answers) => return Err(DropReason::StaleNak),
            (NakCode::Rnr(code), _) => return self.handle_rnr(now, nak, code, shared),
            (NakCode::InvalidRequest, _) => Status::RemoteInvalidRequest,
            (NakCode::RemoteAccess, _) => Status::RemoteAccess,
            (NakCode::RemoteOperational, _) => Status::RemoteOperation,
        };
        // T-11: what is before the offender has been retired; it fails, the rest is flushed.
        if self.requests.window.position(nak.msn) == Some(0) {
            self.fail_at(nak.msn, status, shared);
            return Ok(());
        }
        // The peer took everything and failed by itself: the answers that are still awaited never come.
        if self.requests.window.is_empty()
            && nak.msn == self.requests.window.next
            && self.queue.awaiting() > 0
        {
            self.fail_oldest(status, shared);
            return Ok(());
        }
        Err(DropReason::StaleNak)
    }

    /// T-9: the receiver cannot tell what is missing; the message starts again.
    fn resync(
        &mut self,
        now: Instant,
        stream: Stream,
        nak: Nak,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        let window = &mut self.stream_mut(stream).window;
        window.position(nak.msn).ok_or(DropReason::StaleNak)?;
        // Duplicates can fill its counter before its last packet was even sent.
        if window.message(nak.msn).generation != nak.generation {
            return Err(DropReason::StaleNak);
        }
        window.restart(nak.msn, now);
        shared.counters.resyncs += 1;
        let message = window.message_mut(nak.msn);
        message.resyncs += 1;
        if message.resyncs > RESYNCS_MAX {
            self.give_up(stream, nak.msn, shared);
        }
        Ok(())
    }

    /// T-4: an own packet came back without its payload.
    pub(crate) fn handle_returned(
        &mut self,
        now: Instant,
        header: &HeaderOnly,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        let (name, stream) = (header.name, header.opcode.stream());
        if !self.sends(stream) {
            return Err(DropReason::WrongState);
        }
        self.heard = now;
        let Some(steps) = self.stream(stream).window.position(name.msn) else {
            self.in_flight.returned(self.full_packet);
            return Err(DropReason::StaleHeaderOnly);
        };
        let returned = self.ip_len(stream, name.msn, name.psn.get());
        self.in_flight.returned(returned);
        let held = stream == Stream::Requests && self.is_held(steps);
        let message = self.stream_mut(stream).window.message_mut(name.msn);
        if name.psn.get() >= message.next_psn || name.generation != message.generation {
            return Err(DropReason::StaleHeaderOnly);
        }
        message.life = now;
        let queue = if held { &mut self.rare.held } else { &mut self.stream_mut(stream).retrans };
        if !queue.push(name) {
            return Err(DropReason::RetransFull);
        }
        self.stream_mut(stream).window.message_mut(name.msn).waiting += 1;
        shared.counters.ho_returned += 1;
        shared.by_qp[self.id.index()].ho_returned += 1;
        if let Some(controller) = &mut self.controller {
            controller.handle_returned(now, returned);
            self.follow_window();
        }
        Ok(())
    }
}
