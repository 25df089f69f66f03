//! Frames without a message's bytes: header-only packets, ACK, CNP, probes. Each has one legal length.

use bytes::Buf;

use crate::datagram::Datagram;
use crate::extension::Aeth;
use crate::layout::{HO_IP_LEN, IP_TO_MSN, at, be24, bit, opcode};
use crate::parse_data::check_psn;
use crate::{
    Ack, DataOpcode, Generation, HeaderOnly, Kind, Msn, Nak, ParseError, Probe, ProbeAck, Psn, Stream,
    Timestamp,
};

/// AETH and probe fields lie where data packets have the MSN.
const AFTER_BTH: usize = at::MSN;

/// The kind, and where its headers end.
pub(crate) fn parse_header_only(datagram: &Datagram<'_>) -> Result<(Kind, usize), ParseError> {
    let ip = datagram.ip;
    let opcode = DataOpcode::from_number(ip[at::OPCODE]).ok_or(ParseError::TagOpcode)?;
    if datagram.end != usize::from(HO_IP_LEN) {
        return Err(ParseError::HeaderLength);
    }
    datagram.check_flags(bit::SOLICITED)?;
    if ip[at::RETRY_HIGH] & (bit::FECN | bit::BECN) != 0 {
        return Err(ParseError::ReservedBits);
    }
    check_psn(datagram, opcode)?;
    let header_only = HeaderOnly {
        name: datagram.name(),
        opcode,
        returned: ip[at::RETRY_HIGH] & bit::RETURNED != 0,
        ack_req: datagram.ack_req(),
        solicited: datagram.solicited(),
    };
    Ok((Kind::HeaderOnly(header_only), IP_TO_MSN))
}

/// The kind, and where its headers end.
pub(crate) fn parse_control(datagram: &Datagram<'_>) -> Result<(Kind, usize), ParseError> {
    let ip = datagram.ip;
    let number = ip[at::OPCODE];
    let (flags, becn) = if number == opcode::CNP { (0, bit::BECN) } else { (bit::ANSWERS, 0) };
    datagram.check_flags(flags)?;
    if ip[at::RETRY_HIGH] & !bit::RETRY_HIGH != becn || datagram.ack_req() {
        return Err(ParseError::ReservedBits);
    }
    let (kind, len) = match number {
        opcode::ACK => (parse_ack(datagram, fields(datagram)?)?, 8),
        opcode::CNP => (parse_cnp(datagram, fields(datagram)?)?, 16),
        opcode::PROBE => (parse_probe(datagram, fields(datagram)?)?, 6),
        opcode::PROBE_ACK => (parse_probe_ack(datagram, fields(datagram)?)?, 20),
        _ => return Err(ParseError::TagOpcode),
    };
    Ok((kind, AFTER_BTH + len))
}

fn parse_ack(datagram: &Datagram<'_>, fields: &[u8; 8]) -> Result<Kind, ParseError> {
    let mut buf = &fields[..];
    let aeth = Aeth::get(&mut buf)?;
    if aeth.nak.is_none() {
        check_unnamed(datagram)?;
    }
    // A NAK's PSN field is the offender's MSN.
    let msn = Msn::from_low_bits(be24(datagram.ip, at::PSN));
    let nak = aeth.nak.map(|code| Nak { code, msn, generation: datagram.generation() });
    Ok(Kind::Ack(Ack { stream: stream(datagram), emsn: aeth.emsn, received: buf.get_u32(), nak }))
}

fn parse_cnp(datagram: &Datagram<'_>, fields: &[u8; 16]) -> Result<Kind, ParseError> {
    check_unnamed(datagram)?;
    if *fields != [0; 16] {
        return Err(ParseError::ReservedBits);
    }
    Ok(Kind::Cnp)
}

fn parse_probe(datagram: &Datagram<'_>, fields: &[u8; 6]) -> Result<Kind, ParseError> {
    check_unnamed(datagram)?;
    let mut buf = &fields[..];
    let t1 = Timestamp(buf.get_u32());
    if buf.get_u16() != 0 {
        return Err(ParseError::ReservedBits);
    }
    Ok(Kind::Probe(Probe { stream: stream(datagram), t1 }))
}

fn parse_probe_ack(datagram: &Datagram<'_>, fields: &[u8; 20]) -> Result<Kind, ParseError> {
    check_unnamed(datagram)?;
    let mut buf = &fields[..];
    let aeth = Aeth::get(&mut buf)?;
    if aeth.nak.is_some() {
        return Err(ParseError::Syndrome);
    }
    Ok(Kind::ProbeAck(ProbeAck {
        stream: stream(datagram),
        emsn: aeth.emsn,
        received: buf.get_u32(),
        t1: Timestamp(buf.get_u32()),
        t2: Timestamp(buf.get_u32()),
        t3: Timestamp(buf.get_u32()),
    }))
}

/// The frame names no packet: PSN and sRetryNo are 0.
fn check_unnamed(datagram: &Datagram<'_>) -> Result<(), ParseError> {
    if datagram.psn() != Psn::ZERO || datagram.generation() != Generation::ZERO {
        return Err(ParseError::ReservedBits);
    }
    Ok(())
}

/// The `N` bytes behind the BTH, which must lie inside the datagram.
fn fields<'a, const N: usize>(datagram: &Datagram<'a>) -> Result<&'a [u8; N], ParseError> {
    if datagram.end < AFTER_BTH + N {
        return Err(ParseError::HeaderLength);
    }
    datagram.rest.get(AFTER_BTH..).and_then(|bytes| bytes.first_chunk()).ok_or(ParseError::TooShort)
}

fn stream(datagram: &Datagram<'_>) -> Stream {
    if datagram.ip[at::BTH_FLAGS] & bit::ANSWERS != 0 { Stream::Answers } else { Stream::Requests }
}
