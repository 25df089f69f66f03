//! From [`Headers`] to bytes.

use bytes::BufMut;

use crate::checksum::ip_sum;
use crate::extension::{Aeth, put_24};
use crate::layout::{
    ETHERTYPE_IPV4, ETHERTYPE_VLAN, FLAG_DF, IP_LEN, IP_TO_MSN, PROTOCOL_UDP, VLAN_LEN, at, bit, low24,
    opcode, put, take,
};
use crate::{AtomicEth, DataOp, Generation, Headers, Kind, PacketName, Part, Path, Psn, Stream};

/// Writes the headers of a frame whose payload is `payload_len` bytes long (plus 4 where an ICRC follows it), and
/// returns their length, [`Headers::len`]. The IP checksum is right; the UDP checksum is 0, "none".
///
/// # Panics
/// If `out` is shorter than [`Headers::len`], or the datagram would be longer than 65535 bytes.
#[inline]
pub fn emit(headers: &Headers, payload_len: usize, out: &mut [u8]) -> usize {
    let len = headers.len();
    let out = &mut out[..len];
    let rest = put_ethernet(&headers.path, out);
    let ip_len = u16::try_from(rest.len() + payload_len).expect("an IP datagram is at most 65535 bytes long");

    let bth = Bth::of(&headers.kind);
    // AETH and probe frames have other fields where the MSN is; three bytes of them at least, so the array fits.
    let (ip, extension) = rest.split_first_chunk_mut::<IP_TO_MSN>().expect("every kind is as long as an HO");
    put_ip_udp(headers, ip_len, ip);
    ip[at::OPCODE] = bth.opcode;
    ip[at::BTH_FLAGS] = bth.flags;
    put(ip, at::PKEY, headers.pkey.0.to_be_bytes());
    ip[at::RETRY_HIGH] = bth.retry_high;
    put(ip, at::DEST_QPN, low24(headers.dest_qpn.get()));
    ip[at::RETRY_LOW] = bth.retry_low;
    put(ip, at::PSN, low24(bth.psn));
    put(ip, at::MSN, low24(bth.msn));
    match &headers.kind {
        Kind::Data(data) => put_op(&data.op, extension),
        Kind::HeaderOnly(_) => {}
        control => put_control(control, &mut rest[at::MSN..]),
    }
    len
}

/// Writes MAC addresses, VLAN tag and EtherType; returns the rest of `out`.
#[inline]
fn put_ethernet<'a>(path: &Path, out: &'a mut [u8]) -> &'a mut [u8] {
    let mut buf = out;
    buf.put_slice(&path.dst_mac.0);
    buf.put_slice(&path.src_mac.0);
    if let Some(vlan) = path.vlan {
        const { assert!(VLAN_LEN == 4) }
        buf.put_u16(ETHERTYPE_VLAN);
        buf.put_u16(vlan.0);
    }
    buf.put_u16(ETHERTYPE_IPV4);
    buf
}

#[inline]
fn put_ip_udp(headers: &Headers, ip_len: u16, ip: &mut [u8; IP_TO_MSN]) {
    let path = &headers.path;
    ip[0] = 0x45;
    // A5: a class above 15 loses its high bits here, and harms no neighbour.
    ip[at::TOS] = path.class << 4 | headers.kind.tag().tos_bits() | path.ecn as u8;
    put(ip, at::IP_TOTAL, ip_len.to_be_bytes());
    put(ip, at::IP_TOTAL + 2, [0; 2]);
    put(ip, at::FLAGS, FLAG_DF.to_be_bytes());
    ip[at::TTL] = path.ttl;
    ip[at::PROTOCOL] = PROTOCOL_UDP;
    put(ip, at::IP_CHECKSUM, [0; 2]);
    put(ip, at::SRC_IP, path.src_ip.octets());
    put(ip, at::DST_IP, path.dst_ip.octets());
    let sum = !ip_sum(&take::<IP_LEN>(ip, 0));
    put(ip, at::IP_CHECKSUM, sum.to_be_bytes());
    put(ip, at::SRC_PORT, path.src_port.to_be_bytes());
    put(ip, at::DST_PORT, path.dst_port.to_be_bytes());
    put(ip, at::UDP_TOTAL, (ip_len - 20).to_be_bytes());
    put(ip, at::UDP_CHECKSUM, [0; 2]);
}

/// The kind-dependent fields up to the MSN.
struct Bth {
    opcode: u8,
    flags: u8,
    retry_high: u8,
    retry_low: u8,
    psn: u32,
    msn: u32,
}

impl Bth {
    #[inline]
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Data(data) => {
                Self::named(data.opcode().number(), data.name, data.ack_req, data.solicited, false)
            }
            Kind::HeaderOnly(ho) => {
                Self::named(ho.opcode.number(), ho.name, ho.ack_req, ho.solicited, ho.returned)
            }
            Kind::Ack(ack) => {
                let (psn, generation) =
                    ack.nak.map_or((0, Generation::ZERO), |nak| (nak.msn.get(), nak.generation));
                Self { psn, ..Self::control(opcode::ACK, ack.stream, generation) }
            }
            Kind::Cnp => Self {
                retry_high: bit::BECN,
                ..Self::control(opcode::CNP, Stream::Requests, Generation::ZERO)
            },
            Kind::Probe(probe) => Self::control(opcode::PROBE, probe.stream, Generation::ZERO),
            Kind::ProbeAck(ack) => Self::control(opcode::PROBE_ACK, ack.stream, Generation::ZERO),
        }
    }

    #[inline]
    fn named(opcode: u8, name: PacketName, ack_req: bool, solicited: bool, returned: bool) -> Self {
        debug_assert!(
            crate::DataOpcode::from_number(opcode).is_some_and(|o| o.is_first() == (name.psn == Psn::ZERO)),
            "PSN {} with opcode {opcode:#x}",
            name.psn.get(),
        );
        let (high, low) = retry_bits(name.generation);
        Self {
            opcode,
            flags: if solicited { bit::SOLICITED } else { 0 },
            retry_high: high | if returned { bit::RETURNED } else { 0 },
            retry_low: low | if ack_req { bit::ACK_REQ } else { 0 },
            psn: name.psn.get(),
            msn: name.msn.get(),
        }
    }

    #[inline]
    fn control(opcode: u8, stream: Stream, generation: Generation) -> Self {
        let (retry_high, retry_low) = retry_bits(generation);
        let flags = if stream == Stream::Answers { bit::ANSWERS } else { 0 };
        Self { opcode, flags, retry_high, retry_low, psn: 0, msn: 0 }
    }
}

/// sRetryNo as it lies in BTH bytes 4 and 8.
#[inline]
fn retry_bits(generation: Generation) -> (u8, u8) {
    let [high, low] = (generation.get() << 1).to_be_bytes();
    // Shifted by one, the high five bits are one byte and the low seven the other, at its top.
    ((high << 1) & bit::RETRY_HIGH, low >> 1)
}

#[inline]
fn put_op(op: &DataOp, mut out: &mut [u8]) {
    let buf = &mut out;
    match op {
        DataOp::Write { reth, part: Part::Last(Some(end)) | Part::Only(Some(end)) } => {
            put_24(buf, end.ssn.get());
            reth.put(buf);
            buf.put_u32(end.imm.0);
        }
        DataOp::Write { reth, .. } | DataOp::ReadRequest(reth) => reth.put(buf),
        DataOp::Send { ssn, part } => {
            put_24(buf, ssn.get());
            if let Part::Last(Some(imm)) | Part::Only(Some(imm)) = part {
                buf.put_u32(imm.0);
            }
        }
        DataOp::CmpSwap(atomic) => atomic.put(buf),
        DataOp::FetchAdd(atomic) => AtomicEth { compare: 0, ..*atomic }.put(buf),
        DataOp::ReadResponse { rmsn, .. } => put_24(buf, rmsn.get()),
        DataOp::AtomicAck { rmsn, original } => {
            put_24(buf, rmsn.get());
            buf.put_u64(*original);
        }
    }
}

fn put_control(kind: &Kind, mut out: &mut [u8]) {
    let buf = &mut out;
    match kind {
        Kind::Ack(ack) => {
            Aeth::put(buf, ack.nak.as_ref(), ack.emsn);
            buf.put_u32(ack.received);
        }
        Kind::Cnp => buf.put_slice(&[0; 16]),
        Kind::Probe(probe) => {
            buf.put_u32(probe.t1.0);
            buf.put_u16(0);
        }
        Kind::ProbeAck(ack) => {
            Aeth::put(buf, None, ack.emsn);
            buf.put_u32(ack.received);
            buf.put_u32(ack.t1.0);
            buf.put_u32(ack.t2.0);
            buf.put_u32(ack.t3.0);
        }
        Kind::Data(_) | Kind::HeaderOnly(_) => {}
    }
}
