//! The receiver half: check, place, count (R-1 … R-10).

use dcp_wire::{BounceRewrite, Data, DataOp, HeaderOnly, Nak, NakCode, PacketName, Part, Probe, Reth};

use super::recv_window::Admission;
use super::{Qp, QpState, Shared};
use crate::memory::{Claim, Need};
use crate::slot::{Counted, SlotState};
use crate::{DropReason, RxPacket, RxSink, Segment};

/// Codes of a failed slot.
const INVALID_REQUEST: u8 = 1;
const REMOTE_ACCESS: u8 = 2;

/// A WRITE packet whose lengths agree with each other (P-2).
#[derive(Clone, Copy)]
struct WritePacket {
    name: PacketName,
    reth: Reth,
    /// Packets of the message.
    packets: u32,
    payload_len: u32,
}

impl Qp {
    pub(crate) fn handle_data<S: RxSink>(
        &mut self,
        rx: &RxPacket,
        data: &Data,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<(), DropReason> {
        if self.state == QpState::Error {
            self.pending.nak = true;
            return Err(DropReason::WrongState);
        }
        let DataOp::Write { reth, part } = data.op else { return Err(DropReason::Unsupported) };
        let packet = self.check_write(rx, data.name, reth, part).ok_or(DropReason::BadLength)?;
        // counted whatever happens to it next.
        self.received = self.received.wrapping_add(u32::from(rx.packet.ip_len));
        shared.counters.data_received += 1;
        self.note_ack_due(data.ack_req);
        match self.recv.admit(data.name) {
            Admission::Take => self.take(packet, None, shared, sink),
            Admission::Restart(generation) => self.take(packet, Some(generation), shared, sink),
            Admission::Drop(reason) => {
                // a lost ACK must not livelock.
                self.pending.ack |= reason == DropReason::OldMessage;
                Err(reason)
            }
        }
    }

    ///
    #[inline]
    fn note_ack_due(&mut self, ack_req: bool) {
        let unacknowledged = self.received.wrapping_sub(self.acknowledged);
        let many = self.config.ack_bytes > 0 && unacknowledged >= self.config.ack_bytes;
        self.pending.ack |= ack_req || many;
    }

    /// P-2: payload, PSN, MTU and DMALen of a WRITE packet. Only multiplications: this runs for every packet.
    #[inline]
    fn check_write<I>(
        &self,
        rx: &RxPacket,
        name: PacketName,
        reth: Reth,
        part: Part<I>,
    ) -> Option<WritePacket> {
        let (mtu, psn) = (u64::from(self.config.mtu), u64::from(name.psn.get()));
        let (payload, total) = (u64::from(rx.packet.payload_len), u64::from(reth.dma_len));
        let start = psn * mtu;
        let legal = match part {
            Part::Only(_) => psn == 0 && payload == total && total <= mtu,
            Part::First => psn == 0 && payload == mtu && total > mtu,
            Part::Middle => psn > 0 && payload == mtu && start + mtu < total,
            Part::Last(_) => psn > 0 && payload > 0 && payload <= mtu && start + payload == total,
        };
        if !legal || total > 1 << 31 {
            return None;
        }
        let slot = self.recv.slot(name.msn);
        let known = u64::from(slot.expected());
        let agrees = known > 0 && total <= known * mtu && total + mtu > known * mtu && total > 0;
        let packets = if agrees { slot.expected() } else { reth.dma_len.div_ceil(self.config.mtu).max(1) };
        Some(WritePacket { name, reth, packets, payload_len: u32::from(rx.packet.payload_len) })
    }

    /// R-4 … R-8 for a packet that R-3 lets in; `restart`: in a newer generation than its slot's.
    fn take<S: RxSink>(
        &mut self,
        packet: WritePacket,
        restart: Option<dcp_wire::Generation>,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<(), DropReason> {
        let to = match self.check_access(&packet, shared) {
            Ok(to) => to,
            Err(code) => return self.refuse(packet, code, shared),
        };
        let slot = self.recv.slot_mut(packet.name.msn);
        slot.set_expected(packet.packets);
        if let Some(generation) = restart {
            slot.restart(generation);
            match shared.maps.take(packet.packets) {
                Some(map) => slot.track_exactly(map),
                None => shared.counters.maps_refused += 1,
            }
        }
        let counted = if slot.state() == SlotState::Mapped {
            let inserted =
                shared.maps.insert(slot.map(), packet.name.psn.get()).ok_or(DropReason::Duplicate)?;
            if inserted.seen == packet.packets { Counted::Complete } else { Counted::More }
        } else {
            slot.count(packet.name.psn.get())
        };
        if to.len > 0 {
            sink.place(0, to);
        }
        shared.counters.placed += 1;
        match counted {
            Counted::More => {}
            Counted::Complete => self.complete_message(packet.name, shared),
            Counted::Torn => self.ask_for_restart(packet.name),
        }
        Ok(())
    }

    /// the whole range of the message is checked on every packet.
    #[inline]
    fn check_access(&self, packet: &WritePacket, shared: &Shared) -> Result<Segment, u8> {
        let WritePacket { name, reth, packets, payload_len } = *packet;
        let slot = self.recv.slot(name.msn);
        if slot.expected() != 0 && slot.expected() != packets {
            return Err(INVALID_REQUEST);
        }
        if reth.dma_len == 0 {
            return Ok(Segment { region: crate::RegionId(0), offset: 0, len: 0 });
        }
        let before = u64::from(name.psn.get()) * u64::from(self.config.mtu);
        let start = reth.va.checked_sub(before).ok_or(REMOTE_ACCESS)?;
        let claim = Claim { pd: self.config.pd, key: reth.rkey, need: Need::RemoteWrite };
        let whole = shared.memory.resolve(claim, start, reth.dma_len).ok_or(REMOTE_ACCESS)?;
        Ok(Segment { offset: whole.offset + before, len: payload_len, ..whole })
    }

    /// the message ends, not yet the queue pair.
    #[cold]
    fn refuse(&mut self, packet: WritePacket, code: u8, shared: &mut Shared) -> Result<(), DropReason> {
        let slot = self.recv.slot_mut(packet.name.msn);
        if slot.state() == SlotState::Mapped {
            shared.maps.give_back(slot.map());
        }
        slot.fail(code);
        self.advance(shared);
        Err(DropReason::Refused)
    }

    fn complete_message(&mut self, name: PacketName, shared: &mut Shared) {
        let slot = self.recv.slot_mut(name.msn);
        if slot.state() == SlotState::Mapped {
            shared.maps.give_back(slot.map());
        }
        slot.complete();
        self.advance(shared);
    }

    /// counted as many as expected, but not the right ones.
    #[cold]
    fn ask_for_restart(&mut self, name: PacketName) {
        let slot = self.recv.slot_mut(name.msn);
        slot.poison();
        let generation = slot.generation();
        self.pending.resync(Nak { code: NakCode::Resync, msn: name.msn, generation });
    }

    /// steps over complete messages; a failed one at `emsn` ends the queue pair.
    fn advance(&mut self, shared: &mut Shared) {
        while self.recv.advance() {
            self.pending.ack = true;
        }
        if let Some((code, generation)) = self.recv.failure() {
            let code = if code == REMOTE_ACCESS { NakCode::RemoteAccess } else { NakCode::InvalidRequest };
            self.enter_error(Nak { code, msn: self.recv.emsn(), generation }, shared);
            self.pending.nak = true;
        }
    }

    /// a header that a switch made of one of the peer's packets.
    pub(crate) fn handle_header(
        &mut self,
        header: &HeaderOnly,
        shared: &Shared,
    ) -> Result<BounceRewrite, DropReason> {
        if self.state == QpState::Error {
            self.pending.nak = true;
            return Err(DropReason::WrongState);
        }
        if let Err(reason) = self.recv.admit_header(header.name, &shared.maps) {
            self.pending.ack |= reason == DropReason::OldMessage;
            return Err(reason);
        }
        Ok(BounceRewrite {
            dest_qpn: self.template.dest_qpn,
            src_port: self.template.path.src_port,
            dst_port: self.template.path.dst_port,
        })
    }

    ///
    pub(crate) fn handle_probe(&mut self, rx: &RxPacket, probe: &Probe) {
        if self.state == QpState::Error {
            self.pending.nak = true;
        } else {
            self.pending.probe_ack = Some((probe.t1, rx.arrived.timestamp()));
        }
    }
}
