//! From [`Headers`] to bytes.

use bytes::BufMut;

use crate::checksum::fold;
use crate::extension::{Aeth, put_24};
use crate::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_VLAN, EXTENSION_LEN_MAX, FLAG_DF, HEADER_LEN_MAX, IP_TO_MSN,
    PROTOCOL_UDP, VLAN_LEN, at, bit, low24, opcode, put,
};
use crate::{AtomicEth, DataOp, Generation, Headers, Kind, PacketName, Part, Path, Psn, Stream};

/// Writes the headers of a frame whose payload is `payload_len` bytes long (plus 4 where an ICRC follows it), and
/// returns their length, [`Headers::len`]. The IP checksum is right; the UDP checksum is 0, "none".
///
/// # Panics
/// If `out` is shorter than [`Headers::len`], or the datagram would be longer than 65535 bytes.
#[inline]
pub fn emit(headers: &Headers, payload_len: usize, out: &mut [u8]) -> usize {
    match out.first_chunk_mut() {
        Some(out) => emit_fixed(headers, payload_len, out),
        None => emit_tight(headers, payload_len, out),
    }
}

/// For an `out` that has no room for the longest header, perhaps for this one.
#[cold]
fn emit_tight(headers: &Headers, payload_len: usize, out: &mut [u8]) -> usize {
    let mut scratch = [0; HEADER_LEN_MAX];
    let len = emit_fixed(headers, payload_len, &mut scratch);
    out[..len].copy_from_slice(&scratch[..len]);
    len
}

/// Writes into an array that any header fits, so that no offset is checked; touches no byte behind the header.
#[inline]
fn emit_fixed(headers: &Headers, payload_len: usize, out: &mut [u8; HEADER_LEN_MAX]) -> usize {
    let len = headers.len();
    let (ip_at, rest) = put_ethernet(&headers.path, out);
    let ip_len =
        u16::try_from(len - ip_at + payload_len).expect("an IP datagram is at most 65535 bytes long");

    let bth = Bth::of(&headers.kind);
    let (ip, extension) = split(rest);
    put_ip_udp(headers, ip_len, ip);
    ip[at::OPCODE] = bth.opcode;
    ip[at::BTH_FLAGS] = bth.flags;
    put(ip, at::PKEY, headers.pkey.0.to_be_bytes());
    ip[at::RETRY_HIGH] = bth.retry_high;
    put(ip, at::DEST_QPN, low24(headers.dest_qpn.get()));
    ip[at::RETRY_LOW] = bth.retry_low;
    put(ip, at::PSN, low24(bth.psn));
    match &headers.kind {
        Kind::Data(data) => {
            put(ip, at::MSN, low24(data.name.msn.get()));
            put_op(&data.op, extension);
        }
        Kind::HeaderOnly(ho) => put(ip, at::MSN, low24(ho.name.msn.get())),
        control => put_control(control, rest),
    }
    len
}

/// The part of the longest header that begins with IPv4.
type IpAndRest = [u8; HEADER_LEN_MAX - ETHERNET_LEN - VLAN_LEN];

/// Writes MAC addresses, VLAN tag and EtherType; returns where the IP header begins, and what begins there.
#[inline(always)]
fn put_ethernet<'a>(path: &Path, out: &'a mut [u8; HEADER_LEN_MAX]) -> (usize, &'a mut IpAndRest) {
    out[..6].copy_from_slice(&path.dst_mac.0);
    out[6..12].copy_from_slice(&path.src_mac.0);
    let ip_at = match path.vlan {
        None => {
            out[12..14].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
            ETHERNET_LEN
        }
        Some(vlan) => {
            let mut tag = &mut out[12..18];
            tag.put_u16(ETHERTYPE_VLAN);
            tag.put_u16(vlan.0);
            tag.put_u16(ETHERTYPE_IPV4);
            ETHERNET_LEN + VLAN_LEN
        }
    };
    let rest = out[ip_at..].first_chunk_mut().expect("the array is that long behind both");
    (ip_at, rest)
}

#[inline(always)]
fn split(rest: &mut IpAndRest) -> (&mut [u8; IP_TO_MSN], &mut [u8; EXTENSION_LEN_MAX]) {
    let (ip, extension) = rest.split_first_chunk_mut().expect("both are part of it");
    (ip, extension.first_chunk_mut().expect("both are part of it"))
}

#[inline(always)]
fn put_ip_udp(headers: &Headers, ip_len: u16, ip: &mut [u8; IP_TO_MSN]) {
    let path = &headers.path;
    // A5: a class above 15 loses its high bits here, and harms no neighbour.
    let tos = path.class << 4 | headers.kind.tag().tos_bits() | path.ecn as u8;
    let first = u32::from_be_bytes([0x45, tos, 0, 0]) | u32::from(ip_len);
    // Identification 0, then flags.
    let second = u32::from(FLAG_DF);
    let third = u32::from_be_bytes([path.ttl, PROTOCOL_UDP, 0, 0]);
    let (src, dst) = (u32::from(path.src_ip), u32::from(path.dst_ip));
    // From the values: reading back bytes that were just written piecemeal would stall.
    let sum = !fold([first, second, third, src, dst].into_iter().map(u64::from).sum());
    put(ip, 0, first.to_be_bytes());
    put(ip, at::FLAGS - 2, second.to_be_bytes());
    put(ip, at::TTL, (third | u32::from(sum)).to_be_bytes());
    put(ip, at::SRC_IP, src.to_be_bytes());
    put(ip, at::DST_IP, dst.to_be_bytes());
    let ports = u32::from(path.src_port) << 16 | u32::from(path.dst_port);
    put(ip, at::SRC_PORT, ports.to_be_bytes());
    let udp_len = u32::from(ip_len) - 20;
    put(ip, at::UDP_TOTAL, (udp_len << 16).to_be_bytes());
}

/// The kind-dependent fields up to the MSN.
struct Bth {
    opcode: u8,
    flags: u8,
    retry_high: u8,
    retry_low: u8,
    psn: u32,
}

impl Bth {
    #[inline(always)]
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

    #[inline(always)]
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
        }
    }

    #[inline(always)]
    fn control(opcode: u8, stream: Stream, generation: Generation) -> Self {
        let (retry_high, retry_low) = retry_bits(generation);
        let flags = if stream == Stream::Answers { bit::ANSWERS } else { 0 };
        Self { opcode, flags, retry_high, retry_low, psn: 0 }
    }
}

/// sRetryNo as it lies in BTH bytes 4 and 8.
#[inline(always)]
fn retry_bits(generation: Generation) -> (u8, u8) {
    let [high, low] = (generation.get() << 1).to_be_bytes();
    // Shifted by one, the high five bits are one byte and the low seven the other, at its top.
    ((high << 1) & bit::RETRY_HIGH, low >> 1)
}

#[inline(always)]
fn put_op(op: &DataOp, out: &mut [u8; EXTENSION_LEN_MAX]) {
    let buf = &mut &mut out[..];
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

/// AETH and probe fields lie where data packets have the MSN.
fn put_control(kind: &Kind, rest: &mut IpAndRest) {
    let buf = &mut &mut rest[at::MSN..];
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
