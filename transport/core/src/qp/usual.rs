//! The usual packet: of a WRITE without immediate, in which no check finds anything.
//!
//! A shortcut for `Qp::handle_data`, which would do the same with it, by a longer way.

use dcp_wire::{Data, PacketName, Part, Reth, Stream, WriteImm};

use super::{Qp, Shared};
use crate::memory::{Claim, Need};
use crate::slot::Counted;
use crate::{Instant, RxPacket, RxSink, Segment};

/// What is left to know of a usual packet.
pub(crate) struct Usual {
    pub(super) to: Segment,
    /// Packets of its message.
    pub(super) packets: u32,
}

impl Qp {
    /// P-2 and R-2 … R-6 at once, after [`Qp::check_origin`]. `None`: the packet is not that usual, and nothing has happened yet.
    #[inline]
    pub(crate) fn usual_packet(
        &self,
        rx: &RxPacket,
        data: &Data,
        reth: Reth,
        part: Part<WriteImm>,
        shared: &Shared,
    ) -> Option<Usual> {
        #[cfg(feature = "test-faults")]
        if shared.config.counter_only {
            return None;
        }
        if !self.state.is_live() || matches!(part, Part::Last(Some(_)) | Part::Only(Some(_))) {
            return None;
        }
        let is_first = matches!(part, Part::First | Part::Only(_));
        let is_last = matches!(part, Part::Last(_) | Part::Only(_));
        let expected = self.recv.counting_slot(data.name)?.expected();
        let (mtu, psn) = (u64::from(self.config.mtu), data.name.psn.get());
        let (payload_len, total) = (u32::from(rx.packet.payload_len), u64::from(reth.dma_len));
        let before = u64::from(psn) * mtu;
        let end = before + u64::from(payload_len);
        // Every length but the last packet's is an MTU, so that the last one says how many packets there are.
        let (packets, fits) = if is_last {
            let packets = psn + 1;
            let known = expected == packets || expected == 0;
            (packets, known && payload_len > 0 && u64::from(payload_len) <= mtu && end == total)
        } else {
            let most = u64::from(expected) * mtu;
            let agrees = total <= most && total + mtu > most;
            (expected, agrees && u64::from(payload_len) == mtu && end < total)
        };
        if !fits || (psn == 0) != is_first {
            return None;
        }
        let claim = Claim { pd: self.config.pd, key: reth.rkey, need: Need::RemoteWrite };
        let whole = shared.memory.resolve(claim, reth.va.checked_sub(before)?, reth.dma_len)?;
        Some(Usual { to: Segment { offset: whole.offset + before, len: payload_len, ..whole }, packets })
    }

    /// Counts and places it. True: emsn moved.
    #[inline(always)]
    pub(crate) fn take_usual<S: RxSink>(
        &mut self,
        now: Instant,
        rx: &RxPacket,
        data: &Data,
        usual: &Usual,
        shared: &mut Shared,
        sink: &mut S,
    ) -> bool {
        self.count_received(rx, data.ack_req, Stream::Requests, shared);
        self.recv.slot_mut(data.name.msn).set_expected(usual.packets);
        self.place_and_count(now, data.name, usual.to, shared, sink) == Counted::Complete
    }

    /// for a packet of a message that counts.
    #[inline(always)]
    pub(super) fn place_and_count<S: RxSink>(
        &mut self,
        now: Instant,
        name: PacketName,
        to: Segment,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Counted {
        shared.count_placed(self.id, 1);
        sink.place(0, to);
        let slot = self.recv.slot_mut(name.msn);
        let counted = slot.count(name.psn.get());
        match counted {
            Counted::More => {}
            Counted::Complete => {
                slot.complete();
                self.advance(now, shared, sink);
            }
            Counted::Torn => self.ask_for_restart(Stream::Requests, name),
        }
        counted
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "drawn bits are cut to the field")]
mod tests {
    use dcp_wire::{
        DataOp, Ecn, Generation, Headers, ImmData, Ipv4Addr, Kind, MacAddr, Msn, PKey, Packet, Path, Psn,
        Qpn, RegionKey, Ssn,
    };

    use super::*;
    use crate::{
        Access, AtomicOp, Endpoint, EndpointConfig, Followed, Mixer, MrAttr, Peer, Prefetch, QpConfig, QpId,
        RegionId, RunSink, Stretch, TxFrame, TxSink,
    };

    const MTU: u32 = 256;
    const QP: QpId = QpId(0);

    /// What was placed, in order.
    #[derive(Default, PartialEq, Debug)]
    struct Placed(Vec<(u32, Segment)>);

    impl RxSink for Placed {
        fn place(&mut self, payload_offset: u32, to: Segment) {
            self.0.push((payload_offset, to));
        }

        fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
            0
        }

        fn store(&mut self, _: Segment, _: u64) {}
    }

    impl RunSink for Placed {
        fn go_on(&mut self) {}
    }

    /// Takes every frame; knows the eMSN of the newest ACK.
    struct Answers(Msn);

    impl Prefetch for Answers {}

    impl TxSink for Answers {
        fn capacity(&self) -> usize {
            64
        }

        fn push(&mut self, frame: TxFrame<'_>) {
            if let Kind::Ack(ack) = frame.headers.kind {
                self.0 = ack.emsn;
            }
        }
    }

    fn receiver() -> (Endpoint, RegionKey) {
        let mut endpoint = Endpoint::new(EndpointConfig::new(MacAddr([2; 6]), Ipv4Addr::new(10, 0, 0, 1)));
        let pd = endpoint.create_pd();
        let cq = endpoint.create_cq(64).unwrap();
        let attr =
            MrAttr { pd, region: RegionId(3), offset: 64, va: 4096, len: 1 << 16, access: Access::ALL };
        let rkey = endpoint.register(attr).unwrap().rkey;
        let config = QpConfig { mtu: MTU, window: 8, ack_bytes: 2048, ..QpConfig::new(pd, cq) };
        let qp = endpoint.create_qp(config).unwrap();
        let peer = Peer {
            qpn: Qpn::from_low_bits(7),
            pkey: PKey(7),
            mac: MacAddr([3; 6]),
            ip: Ipv4Addr::new(10, 0, 0, 2),
            service_port: 17791,
            start_msn: Msn::ZERO,
            start_ssn: Ssn::ZERO,
        };
        endpoint.modify_to_init(qp).unwrap();
        endpoint.modify_to_rtr(qp, peer).unwrap();
        (endpoint, rkey)
    }

    /// A packet that is mostly right, of a message near `emsn` whose length its number gives.
    fn packet(endpoint: &Endpoint, rkey: RegionKey, emsn: Msn, mut draw: impl FnMut(u64) -> u64) -> Packet {
        let msn = emsn.plus(draw(10) as u32).plus(dcp_wire::SPACE_24 - 1);
        let dma_len =
            [1, MTU, MTU + 1, 2 * MTU, 3 * MTU - 1, 8 * MTU][msn.get() as usize % 6] + draw(80) as u32 / 79;
        let packets = dma_len.div_ceil(MTU);
        let psn = draw(u64::from(packets)) as u32 + draw(60) as u32 / 59;
        let imm = (draw(12) == 0).then_some(WriteImm { ssn: Ssn::ZERO, imm: ImmData(1) });
        let part = match (psn == 0, psn + 1 >= packets) {
            (false, false) => Part::Middle,
            (true, false) => Part::First,
            (false, true) => Part::Last(imm),
            (true, true) => Part::Only(imm),
        };
        let rest = dma_len.saturating_sub(psn * MTU).min(MTU);
        let payload_len = if draw(40) == 0 { draw(300) as u32 } else { rest } as u16;
        let rkey = if draw(200) == 0 { RegionKey(1) } else { rkey };
        let va = 4096 + u64::from(msn.get() % 8) * 2048 + u64::from(psn * MTU);
        let va = if draw(200) == 0 { draw(u64::MAX) } else { va };
        let op = match draw(60) {
            0 => DataOp::ReadRequest(Reth { va, rkey, dma_len: 8 }),
            _ => DataOp::Write { reth: Reth { va, rkey, dma_len }, part },
        };
        let name = PacketName {
            msn,
            psn: Psn::from_low_bits(psn),
            generation: Generation::from_low_bits(draw(40) as u16 / 39),
        };
        let path = Path {
            src_mac: MacAddr([3; 6]),
            dst_mac: MacAddr([2; 6]),
            vlan: None,
            src_ip: Ipv4Addr::new(10, 0, 0, 2 + draw(40) as u8 / 39),
            dst_ip: Ipv4Addr::new(10, 0, 0, 1),
            src_port: 0xC000,
            dst_port: 17791,
            class: 0,
            ecn: if draw(20) == 0 { Ecn::Ce } else { Ecn::Ect0 },
            ttl: 64,
        };
        let data = Data { name, ack_req: draw(8) == 0, solicited: false, op };
        let pkey = PKey(7 + draw(40) as u16 / 39);
        let headers = Headers { path, dest_qpn: endpoint.qpn(QP), pkey, kind: Kind::Data(data) };
        Packet { headers, ip_len: payload_len + 59, payload_offset: 73, payload_len }
    }

    fn assert_alike(endpoint: &Endpoint, twin: &Endpoint, now: Instant, context: &str) {
        assert_eq!(endpoint.state_hash(now), twin.state_hash(now), "{context}");
        assert_eq!(endpoint.counters(), twin.counters(), "{context}");
        assert_eq!(endpoint.qp_counters(QP), twin.qp_counters(QP), "{context}");
        assert_eq!(endpoint.next_timeout(), twin.next_timeout(), "{context}");
    }

    /// Seeds' draws: below a bound each.
    fn dice(mut step: u64) -> impl FnMut(u64) -> u64 {
        move |bound| {
            step += 1;
            Mixer::mix(step) % bound
        }
    }

    /// Twin: the general path, from the same state on.
    #[test]
    fn usual_packets_do_what_they_do_on_the_longer_way() {
        let (mut placed_packets, mut failed) = (0, 0);
        for seed in 0..60u64 {
            let (mut endpoint, rkey) = receiver();
            let (mut draw, mut answers) = (dice(seed << 32), Answers(Msn::ZERO));
            for round in 0..400u64 {
                let now = Instant::from_ns(round * 100_000);
                let packet = packet(&endpoint, rkey, answers.0, &mut draw);
                let rx = RxPacket { packet: &packet, arrived: now };
                let mut twin = endpoint.clone();
                let (mut here, mut there) = (Placed::default(), Placed::default());
                let verdict = endpoint.handle_packet(now, &rx, &mut here);
                let expected = twin.handle_unusual(now, QP.0, &rx, &mut there);
                let context = format!("seed {seed} round {round}: {packet:?}");
                assert_eq!((verdict, &here), (expected, &there), "{context}");
                assert_alike(&endpoint, &twin, now, &context);
                if draw(4) == 0 {
                    endpoint.poll_transmit(now, &mut answers);
                }
            }
            placed_packets += endpoint.counters().placed;
            failed += u32::from(endpoint.qp_state(QP) == crate::QpState::Error);
        }
        assert!(
            placed_packets > 1000 && failed > 10,
            "{placed_packets} packets placed, {failed} ended in Error"
        );
    }

    /// `packet` with another PSN, the address that goes with it, and another AckReq.
    fn renumbered(packet: &Packet, psn: u32, asks: bool) -> Packet {
        let mut other = *packet;
        let Kind::Data(Data { name, ack_req, op: DataOp::Write { reth, .. }, .. }) = &mut other.headers.kind
        else {
            unreachable!("runs are of WRITEs");
        };
        *ack_req = asks;
        let moved = (i64::from(psn) - i64::from(name.psn.get())) * i64::from(MTU);
        reth.va = reth.va.wrapping_add_signed(moved);
        name.psn = Psn::from_low_bits(psn);
        other
    }

    /// Twin: each packet by itself, from the same state on.
    #[test]
    fn packets_that_follow_do_what_they_do_by_themselves() {
        let (mut ends, mut together) = ([0; 3], 0);
        for seed in 0..300u64 {
            let (mut endpoint, rkey) = receiver();
            let (mut draw, mut answers) = (dice(seed << 32 | 1 << 60), Answers(Msn::ZERO));
            for round in 0..400u64 {
                let now = Instant::from_ns(round * 100_000);
                let packet = packet(&endpoint, rkey, answers.0, &mut draw);
                let rx = RxPacket { packet: &packet, arrived: now };
                let _ = endpoint.handle_packet(now, &rx, &mut Placed::default());
                let run = endpoint.run_after(&rx);
                while let Some(run) = &run {
                    let (first, count, asks) = (draw(8) as u32, 1 + draw(4) as u32, draw(6) == 0);
                    let context = format!("seed {seed} round {round}: {count} from {first} of {packet:?}");
                    let mut twin = endpoint.clone();
                    let (mut here, mut there) = (Placed::default(), Placed::default());
                    let stretch = Stretch { first: Psn::from_low_bits(first), count, ack_req: asks };
                    let (taken, followed) = endpoint.handle_followers(now, run, stretch, &mut here);
                    ends[followed as usize] += 1;
                    together += u32::from(taken > 1);
                    for psn in first..first + taken {
                        let next = renumbered(&packet, psn, asks);
                        let rx = RxPacket { packet: &next, arrived: now };
                        let verdict = twin.handle_packet(now, &rx, &mut there);
                        assert_eq!(verdict, crate::RxVerdict::Done, "{context}");
                    }
                    assert_eq!(here, there, "{context}");
                    assert_alike(&endpoint, &twin, now, &context);
                    if followed == Followed::Not {
                        break;
                    }
                }
                if draw(4) == 0 {
                    endpoint.poll_transmit(now, &mut answers);
                }
            }
        }
        assert!(together > 500, "{together} times several together");
        assert!(ends.iter().all(|&count| count > 100), "on, over, not: {ends:?}");
    }
}
