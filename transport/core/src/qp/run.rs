//! The usual work: packets of a WRITE out of one piece of memory, one after the other.
//!
//! A shortcut for `Qp::send_next`, which would send the same packets: what stays the same from packet to packet is
//! looked up once.

use dcp_wire::{Msn, PacketName, Psn, Reth, WritePacket};

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
        let (icrc, mtu, len) = (self.config.icrc, self.config.mtu, write.from.len);
        let overhead = WRITE_OVERHEAD + if icrc { ICRC_LEN } else { 0 };
        let message = self.requests.window.message_mut(msn);
        message.life = budget.now;
        let (packets, generation, sent_once) = (message.packets, message.generation, message.sent_once);
        let (first, mut psn) = (message.next_psn, message.next_psn);
        let (mut frames, mut ip_bytes) = (sink.capacity(), 0);
        loop {
            let offset = psn * mtu;
            let payload_len = mtu.min(len - offset);
            let (last, resend) = (psn + 1 == packets, psn < sent_once);
            self.in_flight.sent(payload_len + overhead);
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
            let reth = Reth {
                va: write.remote.va.wrapping_add(u64::from(offset)),
                rkey: write.remote.rkey,
                dma_len: len,
            };
            let packet = WritePacket {
                name: PacketName { msn, psn: Psn::from_low_bits(psn), generation },
                ack_req,
                solicited: write.solicited && last,
                reth,
                first: psn == 0,
                last,
            };
            let segment =
                Segment { offset: write.from.offset + u64::from(offset), len: payload_len, ..write.from };
            let template = &self.connection.template;
            sink.push_write(WriteFrame { packet: &packet, template, segment, icrc }, |kind| {
                self.connection.headers(kind)
            });
            psn += 1;
            if ends {
                break;
            }
        }
        budget.sent.packets += u64::from(psn - first);
        budget.sent.bytes += ip_bytes - u64::from(overhead) * u64::from(psn - first);
        budget.sent.resent += u64::from(psn.min(sent_once).saturating_sub(first));
    }
}
