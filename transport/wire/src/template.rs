//! Headers prepared once per connection: what the packets of its WRITEs have in common.

use crate::checksum::ip_sum;
use crate::emit::retry_bits;
use crate::layout::{ETHERNET_LEN, IP_LEN, WRITE_LEN as LEN, at, bit, word};
use crate::{
    Data, DataOp, DataOpcode, Generation, Headers, Kind, Msn, PKey, PacketName, Part, Path, Psn, Qpn,
    RegionKey, Reth, emit,
};

/// The part of them that a template holds: up to the MSN.
const COMMON: usize = 57;
const TOTAL_AT: usize = ETHERNET_LEN + at::IP_TOTAL;
const CHECKSUM_AT: usize = ETHERNET_LEN + at::IP_CHECKSUM;
const SRC_PORT_AT: usize = ETHERNET_LEN + at::SRC_PORT;
const UDP_TOTAL_AT: usize = ETHERNET_LEN + at::UDP_TOTAL;
const OPCODE_AT: usize = ETHERNET_LEN + at::OPCODE;
const RETRY_HIGH_AT: usize = ETHERNET_LEN + at::RETRY_HIGH;
const RETRY_LOW_AT: usize = ETHERNET_LEN + at::RETRY_LOW;

/// Headers of a connection's WRITE packets, but for what differs from packet to packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    bytes: [u8; COMMON],
    /// Folded sum of the IP header without its length.
    ip_sum: u16,
}

impl Template {
    /// Bytes of the headers of a WRITE without immediate.
    pub const WRITE_LEN: usize = LEN;

    /// For untagged frames on a path to a queue pair; a VLAN tag of the path is left out.
    #[must_use]
    pub fn new(path: &Path, dest_qpn: Qpn, pkey: PKey) -> Self {
        let name = PacketName { msn: Msn::ZERO, psn: Psn::ZERO, generation: Generation::ZERO };
        let op =
            DataOp::Write { reth: Reth { va: 0, rkey: RegionKey(0), dma_len: 0 }, part: Part::Only(None) };
        let kind = Kind::Data(Data { name, ack_req: false, solicited: false, op });
        let mut frame = [0; LEN];
        emit(&Headers { path: Path { vlan: None, ..*path }, dest_qpn, pkey, kind }, 0, &mut frame);
        let mut ip = [0; IP_LEN];
        ip.copy_from_slice(&frame[ETHERNET_LEN..ETHERNET_LEN + IP_LEN]);
        for field in [at::IP_TOTAL, at::IP_CHECKSUM] {
            ip[field..field + 2].fill(0);
        }
        let mut bytes = [0; COMMON];
        bytes.copy_from_slice(&frame[..COMMON]);
        Self { bytes, ip_sum: ip_sum(&ip) }
    }

    /// Frames leave from another UDP port from now on. The IP checksum does not cover it.
    #[inline]
    pub fn set_src_port(&mut self, port: u16) {
        let [high, low] = port.to_be_bytes();
        (self.bytes[SRC_PORT_AT], self.bytes[SRC_PORT_AT + 1]) = (high, low);
    }

    /// Does what [`emit`] does, for a frame with the template's addresses; in fewer steps, if it is a packet of a WRITE
    /// without immediate.
    ///
    /// # Panics
    /// Where [`emit`] does.
    #[inline]
    pub fn emit(&self, headers: &Headers, payload_len: usize, out: &mut [u8]) -> usize {
        match &headers.kind {
            Kind::Data(data) if headers.path.vlan.is_none() => match WritePacket::of(data) {
                Some(packet) => self.emit_write(&packet, payload_len, out),
                None => emit(headers, payload_len, out),
            },
            _ => emit(headers, payload_len, out),
        }
    }

    /// The same for a packet of a WRITE without immediate, of which the first [`Template::WRITE_LEN`] bytes of `out` are
    /// written.
    ///
    /// # Panics
    /// Where [`emit`] does.
    #[inline]
    pub fn emit_write(&self, packet: &WritePacket, payload_len: usize, out: &mut [u8]) -> usize {
        let WritePacket { name, ack_req, solicited, reth, first, last } = packet;
        let out: &mut [u8; LEN] = out.first_chunk_mut().expect("room for the headers of a WRITE");
        let udp_len = u16::try_from(LEN - ETHERNET_LEN - IP_LEN + payload_len)
            .ok()
            .filter(|len| *len <= u16::MAX - 20)
            .expect("an IP datagram is below 64 KiB");
        let ip_len = udp_len + 20;
        let (retry_high, retry_low) = retry_bits(name.generation);
        out[..COMMON].copy_from_slice(&self.bytes);
        put(out, TOTAL_AT, ip_len.to_be_bytes());
        put(out, CHECKSUM_AT, (!fold_once(u32::from(self.ip_sum) + u32::from(ip_len))).to_be_bytes());
        put(out, UDP_TOTAL_AT, udp_len.to_be_bytes());
        put(out, OPCODE_AT, [opcode(*first, *last).number(), if *solicited { bit::SOLICITED } else { 0 }]);
        out[RETRY_HIGH_AT] = retry_high;
        let flags = retry_low | if *ack_req { bit::ACK_REQ } else { 0 };
        // The last byte is the RETH's first, which comes next.
        let name = u64::from(flags) << 56 | u64::from(name.psn.get()) << 32 | u64::from(name.msn.get()) << 8;
        put(out, RETRY_LOW_AT, name.to_be_bytes());
        put(out, COMMON, reth.va.to_be_bytes());
        let rest = u64::from(reth.rkey.0) << 32 | u64::from(reth.dma_len);
        put(out, COMMON + 8, rest.to_be_bytes());
        LEN
    }

    /// Headers of the packets in the middle of the WRITE that `packet` is of, with payloads of `payload_len` bytes.
    ///
    /// # Panics
    /// Where [`emit`] does.
    #[inline]
    #[must_use]
    pub fn middles(&self, packet: &WritePacket, payload_len: usize) -> Middles {
        let plain = WritePacket { ack_req: false, solicited: false, first: false, last: false, ..*packet };
        let mut bytes = [0; LEN];
        self.emit_write(&plain, payload_len, &mut bytes);
        Middles { bytes }
    }
}

/// Headers of the packets in the middle of one WRITE, but for PSN, AckReq and address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Middles {
    bytes: [u8; LEN],
}

impl Middles {
    /// Writes the headers of packet `psn`, whose payload goes to `va`: the first [`Template::WRITE_LEN`] bytes of `out`.
    ///
    /// # Panics
    /// If `out` is shorter.
    #[inline]
    pub fn emit(&self, psn: Psn, va: u64, ack_req: bool, out: &mut [u8]) -> usize {
        let out: &mut [u8; LEN] = out.first_chunk_mut().expect("room for the headers of a WRITE");
        let ack_req = if ack_req { bit::ACK_REQ } else { 0 };
        let name = word(&self.bytes, RETRY_LOW_AT) & !PSN_BITS | u64::from(ack_req) << 56;
        *out = self.bytes;
        put(out, RETRY_LOW_AT, (name | u64::from(psn.get()) << 32).to_be_bytes());
        put(out, COMMON, va.to_be_bytes());
        LEN
    }
}

/// The PSN in the eight bytes at [`RETRY_LOW_AT`].
const PSN_BITS: u64 = 0xFF_FFFF << 32;

/// What a packet of a WRITE without immediate has of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WritePacket {
    /// Message, number, generation.
    pub name: PacketName,
    /// Whether it asks for an ACK.
    pub ack_req: bool,
    /// Whether it asks for a solicited event.
    pub solicited: bool,
    /// Where its payload goes.
    pub reth: Reth,
    /// Whether the message begins with it.
    pub first: bool,
    /// Whether the message ends with it.
    pub last: bool,
}

impl WritePacket {
    #[inline(always)]
    fn of(data: &Data) -> Option<Self> {
        let Data { name, ack_req, solicited, op: DataOp::Write { reth, part } } = *data else { return None };
        let (first, last) = match part {
            Part::First => (true, false),
            Part::Middle => (false, false),
            Part::Last(None) => (false, true),
            Part::Only(None) => (true, true),
            Part::Last(Some(_)) | Part::Only(Some(_)) => return None,
        };
        Some(Self { name, ack_req, solicited, reth, first, last })
    }

    /// The same as one of many kinds of packets.
    #[inline]
    pub fn data(&self) -> Data {
        let Self { name, ack_req, solicited, reth, first, last } = *self;
        let part = match (first, last) {
            (true, false) => Part::First,
            (false, false) => Part::Middle,
            (false, true) => Part::Last(None),
            (true, true) => Part::Only(None),
        };
        Data { name, ack_req, solicited, op: DataOp::Write { reth, part } }
    }
}

#[inline(always)]
fn opcode(first: bool, last: bool) -> DataOpcode {
    match (first, last) {
        (false, false) => DataOpcode::WriteMiddle,
        (true, false) => DataOpcode::WriteFirst,
        (false, true) => DataOpcode::WriteLast,
        (true, true) => DataOpcode::WriteOnly,
    }
}

#[inline(always)]
fn put<const N: usize>(out: &mut [u8; LEN], offset: usize, value: [u8; N]) {
    out[offset..offset + N].copy_from_slice(&value);
}

/// Adds the one carry back in that the sum of two words can have.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 0xFFFF: a carry leaves at most 0xFFFE below it")]
const fn fold_once(sum: u32) -> u16 {
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "drawn bits are cut to the field")]
mod tests {
    use super::*;
    use crate::{Ecn, ImmData, Ipv4Addr, MacAddr, Ssn, VlanTag, WriteImm};

    const SOLICITED_AT: usize = OPCODE_AT + 1;

    /// Twin: the same headers, written field by field.
    #[test]
    fn a_template_writes_the_same_bytes_as_emit() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        for round in 0..50_000 {
            let imm = WriteImm { ssn: Ssn::from_low_bits(draw() as u32), imm: ImmData(draw() as u32) };
            let part = match draw() % 6 {
                0 => Part::First,
                1 => Part::Middle,
                2 => Part::Last(None),
                3 => Part::Last(Some(imm)),
                4 => Part::Only(None),
                _ => Part::Only(Some(imm)),
            };
            let is_first = matches!(part, Part::First | Part::Only(_));
            let psn = if is_first { Psn::ZERO } else { Psn::from_low_bits(draw() as u32 | 1) };
            let name = PacketName {
                msn: Msn::from_low_bits(draw() as u32),
                psn,
                generation: Generation::from_low_bits(draw() as u16),
            };
            let reth =
                Reth { va: draw() << 20 | draw(), rkey: RegionKey(draw() as u32), dma_len: draw() as u32 };
            let op = match draw() % 8 {
                0 if is_first => DataOp::ReadRequest(reth),
                _ => DataOp::Write { reth, part },
            };
            let kind = Kind::Data(Data { name, ack_req: draw() % 2 == 0, solicited: draw() % 2 == 0, op });
            let mac = MacAddr([draw() as u8; 6]);
            let path = Path {
                src_mac: mac,
                dst_mac: MacAddr([2, 0, 0, 0, 0, draw() as u8]),
                vlan: (draw() % 8 == 0).then(|| VlanTag(draw() as u16)),
                src_ip: Ipv4Addr::from(draw() as u32),
                dst_ip: Ipv4Addr::from(draw() as u32),
                src_port: draw() as u16,
                dst_port: draw() as u16,
                class: draw() as u8 % 16,
                ecn: Ecn::from_tos(draw() as u8),
                ttl: draw() as u8,
            };
            let (dest_qpn, pkey) = (Qpn::from_low_bits(draw() as u32), PKey(draw() as u16));
            let headers = Headers { path, dest_qpn, pkey, kind };
            let payload_len = draw() as usize % 9000;
            let (mut expected, mut written) = ([0xAA; 96], [0xAA; 96]);
            let len = emit(&headers, payload_len, &mut expected);
            let template = Template::new(&path, dest_qpn, pkey);
            assert_eq!(template.emit(&headers, payload_len, &mut written), len, "round {round}");
            assert_eq!(written, expected, "round {round}: {headers:?}");
            let Kind::Data(data) = headers.kind else { unreachable!("only those are drawn") };
            assert!(WritePacket::of(&data).is_none_or(|packet| packet.data() == data), "{data:?}");
            if let Some(packet) =
                WritePacket::of(&data).filter(|_| part == Part::Middle && path.vlan.is_none())
            {
                // What it is made from may be any packet of the WRITE.
                let name = PacketName { psn: Psn::from_low_bits(draw() as u32), ..name };
                let other = WritePacket { name, reth: Reth { va: draw(), ..reth }, ..packet };
                let middles = template.middles(&other, payload_len);
                let mut written = [0xAA; 96];
                assert_eq!(middles.emit(psn, reth.va, data.ack_req, &mut written), len);
                expected[SOLICITED_AT] &= !bit::SOLICITED;
                assert_eq!(written, expected, "round {round}: {headers:?}");
            }
        }
    }
}
