//! From BTH and extension headers to a [`Kind`].

use bytes::Buf;

use crate::extension::{Aeth, get_24};
use crate::layout::{HO_IP_LEN, IP_TO_MSN, at, be24, bit, opcode};
use crate::{
    Ack, AtomicEth, Data, DataOp, DataOpcode, Generation, HeaderOnly, ImmData, Kind, MESSAGE_BYTES_MAX, Msn,
    Nak, PacketName, ParseError, Part, Probe, ProbeAck, Psn, Reth, Ssn, Stream, Tag, Timestamp, WriteImm,
};

/// Offset of AETH and probe fields from the IP header: they lie where data packets have the MSN.
const AFTER_BTH: usize = at::MSN;

/// The kind, and where its headers end. `ip` is the checked beginning of `rest`; the datagram (without ICRC) ends
/// at `end`. All offsets count from the IP header.
#[inline]
pub(crate) fn parse_kind(
    tag: Tag,
    ip: &[u8; IP_TO_MSN],
    rest: &[u8],
    end: usize,
) -> Result<(Kind, usize), ParseError> {
    match tag {
        Tag::Data => parse_data(ip, rest, end),
        Tag::HeaderOnly => parse_header_only(ip, end),
        Tag::Ack => parse_control(ip, rest, end),
        Tag::NotDcp => Err(ParseError::TagOpcode),
    }
}

#[inline]
fn parse_data(ip: &[u8; IP_TO_MSN], rest: &[u8], end: usize) -> Result<(Kind, usize), ParseError> {
    let opcode = DataOpcode::from_number(ip[at::OPCODE]).ok_or(ParseError::TagOpcode)?;
    let header_end = IP_TO_MSN + opcode.extension_len();
    if end < header_end {
        return Err(ParseError::HeaderLength);
    }
    check_bth_flags(ip, bit::SOLICITED)?;
    if ip[at::RETRY_HIGH] & !bit::RETRY_HIGH != 0 {
        return Err(ParseError::ReservedBits);
    }
    let name = packet_name(ip, opcode)?;
    let extension = rest.get(IP_TO_MSN..header_end).ok_or(ParseError::TooShort)?;
    let op = parse_op(opcode, extension)?;
    let data = Data { name, ack_req: ack_req(ip), solicited: solicited(ip), op };
    Ok((Kind::Data(data), header_end))
}

#[inline]
fn parse_op(opcode: DataOpcode, mut ext: &[u8]) -> Result<DataOp, ParseError> {
    use DataOpcode as O;
    debug_assert_eq!(ext.len(), opcode.extension_len());
    Ok(match opcode {
        O::WriteFirst => DataOp::Write { reth: reth(ext)?, part: Part::First },
        O::WriteMiddle => DataOp::Write { reth: reth(ext)?, part: Part::Middle },
        O::WriteLast => DataOp::Write { reth: reth(ext)?, part: Part::Last(None) },
        O::WriteOnly => DataOp::Write { reth: reth(ext)?, part: Part::Only(None) },
        O::WriteLastImm => {
            let (reth, imm) = write_imm(ext)?;
            DataOp::Write { reth, part: Part::Last(Some(imm)) }
        }
        O::WriteOnlyImm => {
            let (reth, imm) = write_imm(ext)?;
            DataOp::Write { reth, part: Part::Only(Some(imm)) }
        }
        O::SendFirst => DataOp::Send { ssn: ssn(&mut ext), part: Part::First },
        O::SendMiddle => DataOp::Send { ssn: ssn(&mut ext), part: Part::Middle },
        O::SendLast => DataOp::Send { ssn: ssn(&mut ext), part: Part::Last(None) },
        O::SendOnly => DataOp::Send { ssn: ssn(&mut ext), part: Part::Only(None) },
        O::SendLastImm => DataOp::Send { ssn: ssn(&mut ext), part: Part::Last(Some(imm(&mut ext))) },
        O::SendOnlyImm => DataOp::Send { ssn: ssn(&mut ext), part: Part::Only(Some(imm(&mut ext))) },
        O::ReadRequest => DataOp::ReadRequest(reth(ext)?),
        O::CmpSwap => DataOp::CmpSwap(AtomicEth::get(&mut ext)),
        O::FetchAdd => {
            let atomic = AtomicEth::get(&mut ext);
            if atomic.compare != 0 {
                return Err(ParseError::ReservedBits);
            }
            DataOp::FetchAdd(atomic)
        }
        O::ReadResponseFirst => DataOp::ReadResponse { rmsn: msn(&mut ext), part: Part::First },
        O::ReadResponseMiddle => DataOp::ReadResponse { rmsn: msn(&mut ext), part: Part::Middle },
        O::ReadResponseLast => DataOp::ReadResponse { rmsn: msn(&mut ext), part: Part::Last(None) },
        O::ReadResponseOnly => DataOp::ReadResponse { rmsn: msn(&mut ext), part: Part::Only(None) },
        O::AtomicAck => DataOp::AtomicAck { rmsn: msn(&mut ext), original: ext.get_u64() },
    })
}

#[inline]
fn parse_header_only(ip: &[u8; IP_TO_MSN], end: usize) -> Result<(Kind, usize), ParseError> {
    let opcode = DataOpcode::from_number(ip[at::OPCODE]).ok_or(ParseError::TagOpcode)?;
    check_bth_flags(ip, bit::SOLICITED)?;
    if ip[at::RETRY_HIGH] & (bit::FECN | bit::BECN) != 0 {
        return Err(ParseError::ReservedBits);
    }
    if end != usize::from(HO_IP_LEN) {
        return Err(ParseError::HeaderLength);
    }
    let header_only = HeaderOnly {
        name: packet_name(ip, opcode)?,
        opcode,
        returned: ip[at::RETRY_HIGH] & bit::RETURNED != 0,
        ack_req: ack_req(ip),
        solicited: solicited(ip),
    };
    Ok((Kind::HeaderOnly(header_only), IP_TO_MSN))
}

fn parse_control(ip: &[u8; IP_TO_MSN], rest: &[u8], end: usize) -> Result<(Kind, usize), ParseError> {
    let number = ip[at::OPCODE];
    check_bth_flags(ip, if number == opcode::CNP { 0 } else { bit::ANSWERS })?;
    let becn = if number == opcode::CNP { bit::BECN } else { 0 };
    if ip[at::RETRY_HIGH] & !bit::RETRY_HIGH != becn || ip[at::RETRY_LOW] & bit::ACK_REQ != 0 {
        return Err(ParseError::ReservedBits);
    }
    let (kind, len) = match number {
        opcode::ACK => (parse_ack(ip, fields(rest, end)?)?, 8),
        opcode::CNP => (parse_cnp(ip, fields(rest, end)?)?, 16),
        opcode::PROBE => (parse_probe(ip, fields(rest, end)?)?, 6),
        opcode::PROBE_ACK => (parse_probe_ack(ip, fields(rest, end)?)?, 20),
        _ => return Err(ParseError::TagOpcode),
    };
    Ok((kind, AFTER_BTH + len))
}

fn parse_ack(ip: &[u8; IP_TO_MSN], fields: &[u8; 8]) -> Result<Kind, ParseError> {
    let mut buf = &fields[..];
    let aeth = Aeth::get(&mut buf)?;
    let nak = match aeth.nak {
        Some(code) => {
            Some(Nak { code, msn: Msn::from_low_bits(be24(ip, at::PSN)), generation: generation(ip) })
        }
        None => {
            check_unnamed(ip)?;
            None
        }
    };
    Ok(Kind::Ack(Ack { stream: stream(ip), emsn: aeth.emsn, received: buf.get_u32(), nak }))
}

fn parse_cnp(ip: &[u8; IP_TO_MSN], fields: &[u8; 16]) -> Result<Kind, ParseError> {
    check_unnamed(ip)?;
    if *fields != [0; 16] {
        return Err(ParseError::ReservedBits);
    }
    Ok(Kind::Cnp)
}

fn parse_probe(ip: &[u8; IP_TO_MSN], fields: &[u8; 6]) -> Result<Kind, ParseError> {
    check_unnamed(ip)?;
    let mut buf = &fields[..];
    let t1 = Timestamp(buf.get_u32());
    if buf.get_u16() != 0 {
        return Err(ParseError::ReservedBits);
    }
    Ok(Kind::Probe(Probe { stream: stream(ip), t1 }))
}

fn parse_probe_ack(ip: &[u8; IP_TO_MSN], fields: &[u8; 20]) -> Result<Kind, ParseError> {
    check_unnamed(ip)?;
    let mut buf = &fields[..];
    let aeth = Aeth::get(&mut buf)?;
    if aeth.nak.is_some() {
        return Err(ParseError::Syndrome);
    }
    Ok(Kind::ProbeAck(ProbeAck {
        stream: stream(ip),
        emsn: aeth.emsn,
        received: buf.get_u32(),
        t1: Timestamp(buf.get_u32()),
        t2: Timestamp(buf.get_u32()),
        t3: Timestamp(buf.get_u32()),
    }))
}

/// Transport version and padding 0, and of the two flags none but `allowed`.
#[inline]
fn check_bth_flags(ip: &[u8; IP_TO_MSN], allowed: u8) -> Result<(), ParseError> {
    let flags = ip[at::BTH_FLAGS];
    if flags & !allowed == 0 {
        return Ok(());
    }
    Err(match flags {
        _ if flags & bit::VERSION != 0 => ParseError::TransportVersion,
        _ if flags & bit::PAD != 0 => ParseError::PadCount,
        _ => ParseError::ReservedBits,
    })
}

/// The frame names no packet: PSN and sRetryNo are 0.
fn check_unnamed(ip: &[u8; IP_TO_MSN]) -> Result<(), ParseError> {
    if be24(ip, at::PSN) != 0 || generation(ip) != Generation::ZERO {
        return Err(ParseError::ReservedBits);
    }
    Ok(())
}

/// The `N` bytes behind the BTH, which must lie inside the datagram.
fn fields<const N: usize>(rest: &[u8], end: usize) -> Result<&[u8; N], ParseError> {
    if end < AFTER_BTH + N {
        return Err(ParseError::HeaderLength);
    }
    rest.get(AFTER_BTH..).and_then(|bytes| bytes.first_chunk()).ok_or(ParseError::TooShort)
}

#[inline]
fn packet_name(ip: &[u8; IP_TO_MSN], opcode: DataOpcode) -> Result<PacketName, ParseError> {
    let psn = Psn::from_low_bits(be24(ip, at::PSN));
    // A4: a FIRST or ONLY lies at offset 0, a MIDDLE or LAST behind it.
    if (psn == Psn::ZERO) != opcode.is_first() {
        return Err(ParseError::PsnOpcode);
    }
    Ok(PacketName { msn: Msn::from_low_bits(be24(ip, at::MSN)), psn, generation: generation(ip) })
}

#[inline]
fn generation(ip: &[u8; IP_TO_MSN]) -> Generation {
    let high = u16::from(ip[at::RETRY_HIGH] & bit::RETRY_HIGH) << 6;
    Generation::from_low_bits(high | u16::from(ip[at::RETRY_LOW] & bit::RETRY_LOW))
}

#[inline]
fn ack_req(ip: &[u8; IP_TO_MSN]) -> bool {
    ip[at::RETRY_LOW] & bit::ACK_REQ != 0
}

#[inline]
fn solicited(ip: &[u8; IP_TO_MSN]) -> bool {
    ip[at::BTH_FLAGS] & bit::SOLICITED != 0
}

#[inline]
fn stream(ip: &[u8; IP_TO_MSN]) -> Stream {
    if ip[at::BTH_FLAGS] & bit::ANSWERS != 0 { Stream::Answers } else { Stream::Requests }
}

#[inline]
fn reth(mut ext: &[u8]) -> Result<Reth, ParseError> {
    let reth = Reth::get(&mut ext);
    if reth.dma_len > MESSAGE_BYTES_MAX {
        return Err(ParseError::MessageLength);
    }
    Ok(reth)
}

#[inline]
fn write_imm(mut ext: &[u8]) -> Result<(Reth, WriteImm), ParseError> {
    let ssn = ssn(&mut ext);
    let reth = reth(ext)?;
    ext.advance(16);
    Ok((reth, WriteImm { ssn, imm: imm(&mut ext) }))
}

#[inline]
fn ssn(ext: &mut &[u8]) -> Ssn {
    Ssn::from_low_bits(get_24(ext))
}

#[inline]
fn msn(ext: &mut &[u8]) -> Msn {
    Msn::from_low_bits(get_24(ext))
}

/// A8: network order.
#[inline]
fn imm(ext: &mut &[u8]) -> ImmData {
    ImmData(ext.get_u32())
}
