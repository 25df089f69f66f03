//! The usual work: packets of a WRITE out of one piece of memory, one after the other.
//!
//! A shortcut for `Qp::send_next`, which would send the same packets: what stays the same from packet to packet is
//! looked up once.

use dcp_wire::{Middles, Msn, PacketName, Psn, Reth, WritePacket};

use super::send_queue::{Remote, SendOp};
use super::transmit::Budget;
use super::{ICRC_LEN, Qp, WRITE_OVERHEAD};
use crate::{Segment, TxSink, WriteFrame};

/// A WRITE without immediate out of one piece of memory.
#[derive(Clone, Copy)]
pub(super) struct PlainWrite {
    remote: Remote,
    from: Segment,
    solicited: bool,
}

impl Qp {
    /// What a message writes, if it is as plain as that.
    #[inline]
    pub(super) fn plain_write(&self, msn: Msn) -> Option<PlainWrite> {
        let wqe = self.queue.at(self.requests.window.position(msn)?);
        match (wqe.op, &wqe.segments[..]) {
            (SendOp::Write(remote), &[from]) if !self.config.spray => {
                Some(PlainWrite { remote, from, solicited: wqe.flags.solicited })
            }
            _ => None,
        }
    }

    /// Sends the next packets of a message, until all are sent or something ends the turn. There is room for one.
    pub(super) fn send_run<S: TxSink>(
        &mut self,
        msn: Msn,
        write: PlainWrite,
        budget: &mut Budget,
        sink: &mut S,
    ) {
        let (mtu, len, overhead) = (self.config.mtu, write.from.len, self.overhead());
        let message = self.requests.window.message_mut(msn);
        message.life = budget.now;
        let (packets, generation, sent_once) = (message.packets, message.generation, message.sent_once);
        let (first, mut psn) = (message.next_psn, message.next_psn);
        let (mut frames, mut ip_bytes) = (sink.capacity(), 0);
        loop {
            let ahead = self.middles_ahead(packets, psn, frames, budget.bytes);
            if ahead > 1 {
                self.send_middles(
                    PacketName { msn, psn: Psn::from_low_bits(psn), generation },
                    ahead,
                    write,
                    sent_once,
                    sink,
                );
                let bytes = u64::from(mtu + overhead) * u64::from(ahead);
                self.in_flight.sent(bytes);
                ip_bytes += bytes;
                budget.bytes -= ahead * mtu;
                frames -= ahead as usize;
                psn += ahead;
            }
            let offset = psn * mtu;
            let payload_len = mtu.min(len - offset);
            let (last, resend) = (psn + 1 == packets, psn < sent_once);
            self.in_flight.sent(u64::from(payload_len + overhead));
            ip_bytes += u64::from(payload_len + overhead);
            budget.bytes = budget.bytes.saturating_sub(payload_len);
            frames -= 1;
            let asked = self.charge(budget.now, payload_len + overhead);
            let ends = last || budget.bytes == 0 || frames == 0 || !self.may_leave(budget.now);
            if ends {
                self.requests.window.message_mut(msn).sent_up_to(psn + 1, ip_bytes);
            }
            // T-13.
            let ack_req = asked || resend || ends && (!self.may_send() || last && !self.has_data());
            let name = PacketName { msn, psn: Psn::from_low_bits(psn), generation };
            let packet = write.packet(name, offset, last, ack_req);
            self.push_write(&packet, None, write.segment(offset, payload_len), sink);
            psn += 1;
            if ends {
                break;
            }
        }
        budget.sent.packets += u64::from(psn - first);
        budget.sent.bytes += ip_bytes - u64::from(overhead) * u64::from(psn - first);
        budget.sent.resent += u64::from(psn.min(sent_once).saturating_sub(first));
    }

    /// Sends a packet again that came back.
    pub(super) fn resend_plain<S: TxSink>(
        &mut self,
        msn: Msn,
        psn: u32,
        write: PlainWrite,
        budget: &mut Budget,
        sink: &mut S,
    ) {
        let offset = psn * self.config.mtu;
        let payload_len = self.config.mtu.min(write.from.len - offset);
        let ip_len = payload_len + self.overhead();
        self.in_flight.sent(u64::from(ip_len));
        let message = self.requests.window.message_mut(msn);
        message.bytes_sent += u64::from(ip_len);
        message.life = budget.now;
        let last = psn + 1 == message.packets;
        let name = PacketName { msn, psn: Psn::from_low_bits(psn), generation: message.generation };
        budget.bytes = budget.bytes.saturating_sub(payload_len);
        let _ = self.charge(budget.now, ip_len);
        // T-13: it asks for an ACK, being sent again.
        let packet = write.packet(name, offset, last, true);
        self.push_write(&packet, None, write.segment(offset, payload_len), sink);
        budget.sent.packets += 1;
        budget.sent.bytes += u64::from(payload_len);
        budget.sent.resent += 1;
    }

    /// How many packets of the middle of a message leave from `psn` on, before one at which the turn may end.
    #[inline]
    fn middles_ahead(&self, packets: u32, psn: u32, frames: usize, bytes: u32) -> u32 {
        // Congestion control counts each packet.
        if psn == 0 || self.controller.is_some() {
            return 0;
        }
        let (mtu, overhead) = (self.config.mtu, self.overhead());
        let room = self.window_bytes.saturating_sub(self.in_flight.bytes() + u64::from(self.full_packet));
        let by_window = u32::try_from(room / u64::from(mtu + overhead)).unwrap_or(u32::MAX);
        let by_frames = u32::try_from(frames).unwrap_or(u32::MAX).saturating_sub(1);
        let by_bytes = bytes.saturating_sub(1) / mtu;
        (packets - psn - 1).min(by_window).min(by_frames).min(by_bytes)
    }

    /// Sends `count` packets of the middle of a message, from the one named on. One after them has room as well.
    #[inline]
    fn send_middles<S: TxSink>(
        &self,
        from: PacketName,
        count: u32,
        write: PlainWrite,
        sent_once: u32,
        sink: &mut S,
    ) {
        let (mtu, icrc) = (self.config.mtu, self.config.icrc);
        let trailer = if icrc { ICRC_LEN } else { 0 };
        let offset = from.psn.get() * mtu;
        // Said once more, so that it is known to the optimiser: seven instructions a packet.
        let mut packet = WritePacket { first: false, ..write.packet(from, offset, false, false) };
        let middles = self.connection.template.middles(&packet, (mtu + trailer) as usize);
        let mut segment = write.segment(offset, mtu);
        for psn in from.psn.get()..from.psn.get() + count {
            packet.name.psn = Psn::from_low_bits(psn);
            // T-13.
            packet.ack_req = psn < sent_once;
            self.push_write(&packet, Some(&middles), segment, sink);
            packet.reth.va = packet.reth.va.wrapping_add(u64::from(mtu));
            segment.offset += u64::from(mtu);
        }
    }

    #[inline(always)]
    fn push_write<S: TxSink>(
        &self,
        packet: &WritePacket,
        middles: Option<&Middles>,
        segment: Segment,
        sink: &mut S,
    ) {
        let (template, icrc) = (&self.connection.template, self.config.icrc);
        let frame = WriteFrame { packet, template, middles, segment, icrc };
        sink.push_write(frame, |kind| self.connection.headers(kind));
    }

    /// Bytes of IP length of a WRITE's packet beside its payload.
    #[inline]
    fn overhead(&self) -> u32 {
        WRITE_OVERHEAD + if self.config.icrc { ICRC_LEN } else { 0 }
    }
}

impl PlainWrite {
    /// The packet whose payload begins at `offset`.
    #[inline(always)]
    fn packet(&self, name: PacketName, offset: u32, last: bool, ack_req: bool) -> WritePacket {
        let Remote { va, rkey } = self.remote;
        let reth = Reth { va: va.wrapping_add(u64::from(offset)), rkey, dma_len: self.from.len };
        WritePacket { name, ack_req, solicited: self.solicited && last, reth, first: offset == 0, last }
    }

    /// `len` bytes from `offset` on.
    #[inline]
    fn segment(&self, offset: u32, len: u32) -> Segment {
        Segment { offset: self.from.offset + u64::from(offset), len, ..self.from }
    }
}
