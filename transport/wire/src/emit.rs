//! From [`Headers`] to bytes.

use bytes::BufMut;

use crate::checksum::fold;
use crate::extension::{Aeth, put_24};
use crate::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_VLAN, FLAG_DF, IP_TO_MSN, PROTOCOL_UDP, VLAN_LEN, at, bit, low24,
    opcode, put,
};
use crate::{
    AtomicEth, Data, DataOp, DataOpcode, Generation, HO_LEN, Headers, Kind, PacketName, Part, Path, Psn,
    Stream, Tag,
};

/// Writes the headers of a frame whose payload is `payload_len` bytes long (plus 4 where an ICRC follows it), and
/// returns their length, [`Headers::len`]. The IP checksum is right; the UDP checksum is 0, "none".
///
/// # Panics
/// If `out` is shorter than [`Headers::len`], or the datagram would be longer than 65535 bytes.
#[inline]
pub fn emit(headers: &Headers, payload_len: usize, out: &mut [u8]) -> usize {
    match &headers.kind {
        Kind::Data(data) => emit_data(headers, data, payload_len, out),
        Kind::HeaderOnly(ho) => {
            let bth = Bth {
                tag: Tag::HeaderOnly,
                ..Bth::named(ho.opcode, ho.name, ho.ack_req, ho.solicited, ho.returned)
            };
            let (len, _) = put_common(headers, &bth, HO_LEN, payload_len, out);
            len
        }
        control => emit_control(headers, control, payload_len, out),
    }
}

#[inline]
fn emit_data(headers: &Headers, data: &Data, payload_len: usize, out: &mut [u8]) -> usize {
    let opcode = data.opcode();
    let bth = Bth::named(opcode, data.name, data.ack_req, data.solicited, false);
    let (len, rest) = put_common(headers, &bth, HO_LEN + opcode.extension_len(), payload_len, out);
    put_op(&data.op, &mut rest[IP_TO_MSN..]);
    len
}

fn emit_control(headers: &Headers, kind: &Kind, payload_len: usize, out: &mut [u8]) -> usize {
    let bth = Bth::control(kind);
    let (len, rest) = put_common(headers, &bth, kind.len(), payload_len, out);
    // AETH and probe fields lie where data packets have the MSN.
    put_control(kind, &mut rest[at::MSN..]);
    len
}

/// Writes everything up to the MSN; returns the length of all headers, and what begins with the IP header.
/// `untagged_len` is the length without a VLAN tag.
#[inline(always)]
fn put_common<'a>(
    headers: &Headers,
    bth: &Bth,
    untagged_len: usize,
    payload_len: usize,
    out: &'a mut [u8],
) -> (usize, &'a mut [u8]) {
    let len = untagged_len + if headers.path.vlan.is_some() { VLAN_LEN } else { 0 };
    let ip_len =
        u16::try_from(untagged_len - ETHERNET_LEN + payload_len).expect("an IP datagram is below 64 KiB");
    let rest = put_ethernet(&headers.path, &mut out[..len]);
    let (ip, _) = rest.split_first_chunk_mut().expect("no kind is shorter than an HO");
    put_ip_udp(&headers.path, bth.tag, ip_len, ip);
    ip[at::OPCODE] = bth.opcode;
    ip[at::BTH_FLAGS] = bth.flags;
    put(ip, at::PKEY, headers.pkey.0.to_be_bytes());
    ip[at::RETRY_HIGH] = bth.retry_high;
    put(ip, at::DEST_QPN, low24(headers.dest_qpn.get()));
    ip[at::RETRY_LOW] = bth.retry_low;
    put(ip, at::PSN, low24(bth.psn));
    put(ip, at::MSN, low24(bth.msn));
    (len, rest)
}

/// Writes MAC addresses, VLAN tag and EtherType; returns what follows them.
#[inline(always)]
fn put_ethernet<'a>(path: &Path, out: &'a mut [u8]) -> &'a mut [u8] {
    let (ethernet, rest) =
        out.split_first_chunk_mut::<ETHERNET_LEN>().expect("no kind is shorter than an HO");
    ethernet[..6].copy_from_slice(&path.dst_mac.0);
    ethernet[6..12].copy_from_slice(&path.src_mac.0);
    let Some(vlan) = path.vlan else {
        ethernet[12..].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
        return rest;
    };
    ethernet[12..].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
    let (tag, rest) = rest.split_first_chunk_mut::<VLAN_LEN>().expect("no kind is shorter than an HO");
    tag[..2].copy_from_slice(&vlan.0.to_be_bytes());
    tag[2..].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    rest
}

#[inline(always)]
fn put_ip_udp(path: &Path, tag: Tag, ip_len: u16, ip: &mut [u8; IP_TO_MSN]) {
    // A5: a class above 15 loses its high bits here, and harms no neighbour.
    let tos = path.class << 4 | tag.tos_bits() | path.ecn as u8;
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
    tag: Tag,
    opcode: u8,
    flags: u8,
    retry_high: u8,
    retry_low: u8,
    psn: u32,
    /// 0 where other fields have its place.
    msn: u32,
}

impl Bth {
    /// Of a data or header-only packet.
    #[inline(always)]
    fn named(opcode: DataOpcode, name: PacketName, ack_req: bool, solicited: bool, returned: bool) -> Self {
        debug_assert_eq!(opcode.is_first(), name.psn == Psn::ZERO, "{opcode:?} with {:?}", name.psn);
        let (high, low) = retry_bits(name.generation);
        Self {
            tag: Tag::Data,
            opcode: opcode.number(),
            flags: if solicited { bit::SOLICITED } else { 0 },
            retry_high: high | if returned { bit::RETURNED } else { 0 },
            retry_low: low | if ack_req { bit::ACK_REQ } else { 0 },
            psn: name.psn.get(),
            msn: name.msn.get(),
        }
    }

    /// Of the ACK class.
    fn control(kind: &Kind) -> Self {
        let (opcode, stream, nak) = match kind {
            Kind::Ack(ack) => (opcode::ACK, ack.stream, ack.nak),
            Kind::Probe(probe) => (opcode::PROBE, probe.stream, None),
            Kind::ProbeAck(ack) => (opcode::PROBE_ACK, ack.stream, None),
            Kind::Cnp | Kind::Data(_) | Kind::HeaderOnly(_) => (opcode::CNP, Stream::Requests, None),
        };
        let becn = if opcode == opcode::CNP { bit::BECN } else { 0 };
        let (psn, generation) = nak.map_or((0, Generation::ZERO), |nak| (nak.msn.get(), nak.generation));
        let (high, retry_low) = retry_bits(generation);
        let flags = if stream == Stream::Answers { bit::ANSWERS } else { 0 };
        Self { tag: Tag::Ack, opcode, flags, retry_high: high | becn, retry_low, psn, msn: 0 }
    }
}

/// sRetryNo as it lies in BTH bytes 4 and 8.
#[inline(always)]
pub(crate) fn retry_bits(generation: Generation) -> (u8, u8) {
    let [high, low] = (generation.get() << 1).to_be_bytes();
    // Shifted by one, the high five bits are one byte and the low seven the other, at its top.
    ((high << 1) & bit::RETRY_HIGH, low >> 1)
}

/// `out` is as long as the extension.
#[inline(always)]
fn put_op(op: &DataOp, out: &mut [u8]) {
    match op {
        DataOp::Write { reth, part: Part::Last(Some(end)) | Part::Only(Some(end)) } => {
            let buf = &mut &mut sized::<23>(out)[..];
            put_24(buf, end.ssn.get());
            reth.put(buf);
            buf.put_u32(end.imm.0);
        }
        DataOp::Write { reth, .. } | DataOp::ReadRequest(reth) => reth.put(&mut &mut sized::<16>(out)[..]),
        DataOp::Send { ssn, part: Part::Last(Some(imm)) | Part::Only(Some(imm)) } => {
            let buf = &mut &mut sized::<7>(out)[..];
            put_24(buf, ssn.get());
            buf.put_u32(imm.0);
        }
        DataOp::Send { ssn, .. } => put_24(&mut &mut sized::<3>(out)[..], ssn.get()),
        DataOp::CmpSwap(atomic) => atomic.put(&mut &mut sized::<28>(out)[..]),
        DataOp::FetchAdd(atomic) => {
            AtomicEth { compare: 0, ..*atomic }.put(&mut &mut sized::<28>(out)[..]);
        }
        DataOp::ReadResponse { rmsn, .. } => put_24(&mut &mut sized::<3>(out)[..], rmsn.get()),
        DataOp::AtomicAck { rmsn, original } => {
            let buf = &mut &mut sized::<11>(out)[..];
            put_24(buf, rmsn.get());
            buf.put_u64(*original);
        }
    }
}

/// One check of the length, so that the writes behind it need none.
#[inline(always)]
fn sized<const N: usize>(out: &mut [u8]) -> &mut [u8; N] {
    out.try_into().expect("Kind::len() says the same")
}

/// `out` is as long as the fields are.
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
