//! What the sender half hears from its peer: ACKs, NAKs, returned headers, probe answers.

use dcp_wire::{HeaderOnly, Msn, Nak, NakCode};

use super::{Qp, QpState, Shared, WRITE_IP_OVERHEAD};
use crate::{DropReason, Instant, Status};

/// What every acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) emsn: Msn,
    pub(crate) received: u32,
}

impl Qp {
    /// T-6, T-12.
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        progress: Progress,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        if self.state != QpState::Rts {
            return Err(DropReason::WrongState);
        }
        let done = self.acknowledged_messages(progress.emsn).ok_or(DropReason::BadAck)?;
        self.heard = now;
        self.in_flight.received(progress.received);
        if done > 0 {
            self.expiries = 0;
            self.silences = 0;
        }
        for _ in 0..done {
            let message = self.window.retire();
            self.in_flight.retire(message.bytes_sent);
            self.complete_oldest(Status::Success, shared);
        }
        if self.window.is_empty() {
            self.in_flight.clear();
        }
        Ok(())
    }

    /// T-6: how many messages an eMSN retires; `None` if it is no word that the peer can honestly give.
    fn acknowledged_messages(&self, emsn: Msn) -> Option<u32> {
        let done = emsn.index_in(self.window.una, self.window.len() + 1)?;
        if done > 0 {
            let last = self.window.message(self.window.una.plus(done - 1));
            if last.sent_once < last.packets {
                return None;
            }
        }
        Some(done)
    }

    /// T-9, T-11.
    pub(crate) fn handle_nak(
        &mut self,
        now: Instant,
        progress: Progress,
        nak: Nak,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        self.handle_ack(now, progress, shared)?;
        match nak.code {
            NakCode::Resync => self.resync(now, nak, shared),
            NakCode::InvalidRequest => self.refused(nak, Status::RemoteInvalidRequest, shared),
            NakCode::RemoteAccess => self.refused(nak, Status::RemoteAccess, shared),
            NakCode::RemoteOperational => self.refused(nak, Status::RemoteOperation, shared),
            NakCode::Rnr(_) => Err(DropReason::Unsupported),
        }
    }

    /// T-9: the receiver cannot tell what is missing; the message starts again.
    fn resync(&mut self, now: Instant, nak: Nak, shared: &mut Shared) -> Result<(), DropReason> {
        self.window.position(nak.msn).ok_or(DropReason::StaleNak)?;
        let message = self.window.message(nak.msn);
        if message.generation != nak.generation || message.sent_once < message.packets {
            return Err(DropReason::StaleNak);
        }
        self.window.restart(nak.msn, now);
        shared.counters.resyncs += 1;
        Ok(())
    }

    /// T-11: what is before the offender has been retired; it fails, the rest is flushed.
    fn refused(&mut self, nak: Nak, status: Status, shared: &mut Shared) -> Result<(), DropReason> {
        if self.window.position(nak.msn) != Some(0) {
            return Err(DropReason::StaleNak);
        }
        self.fail_oldest(status, shared);
        Ok(())
    }

    /// T-4: an own packet came back without its payload.
    pub(crate) fn handle_returned(
        &mut self,
        now: Instant,
        header: &HeaderOnly,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        if self.state != QpState::Rts {
            return Err(DropReason::WrongState);
        }
        self.heard = now;
        let name = header.name;
        let Some(steps) = self.window.position(name.msn) else {
            self.in_flight.returned(self.full_packet);
            return Err(DropReason::StaleHeaderOnly);
        };
        let payload = self.payload_of(steps, name.psn.get());
        self.in_flight.returned(WRITE_IP_OVERHEAD + payload);
        let message = self.window.message_mut(name.msn);
        if name.psn.get() >= message.next_psn || name.generation != message.generation {
            return Err(DropReason::StaleHeaderOnly);
        }
        if !self.retrans.push(name) {
            return Err(DropReason::RetransFull);
        }
        message.waiting += 1;
        message.life = now;
        shared.counters.ho_returned += 1;
        Ok(())
    }

    /// Payload bytes of packet `psn` of the message `steps` after the oldest; 0 beyond its end.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "not above the MTU")]
    pub(super) fn payload_of(&self, steps: u32, psn: u32) -> u32 {
        let before = u64::from(psn) * u64::from(self.config.mtu);
        let left = u64::from(self.queue.at(steps).len).saturating_sub(before);
        left.min(u64::from(self.config.mtu)) as u32
    }
}
