//! Data packets: checks of BTH and extension, then the value.

use bytes::Buf;

use crate::datagram::Datagram;
use crate::extension::get_24;
use crate::layout::{EXTENSION_LEN_MAX, IP_TO_MSN, at, bit};
use crate::{
    AtomicEth, Data, DataOp, DataOpcode, ImmData, Kind, MESSAGE_BYTES_MAX, Msn, Packet, ParseError, Part,
    Psn, Reth, Ssn, WriteImm,
};

/// Opcode of a legal data packet.
#[inline(always)]
pub(crate) fn check_data(datagram: &Datagram<'_>) -> Result<DataOpcode, ParseError> {
    let ip = datagram.ip;
    let opcode = DataOpcode::from_number(ip[at::OPCODE]).ok_or(ParseError::TagOpcode)?;
    let header_end = IP_TO_MSN + opcode.extension_len();
    if datagram.end < header_end {
        return Err(ParseError::HeaderLength);
    }
    if datagram.end > header_end && !opcode.has_payload() {
        return Err(ParseError::Payload);
    }
    let extension = datagram.rest.get(IP_TO_MSN..header_end).ok_or(ParseError::TooShort)?;
    datagram.check_flags(bit::SOLICITED)?;
    if ip[at::RETRY_HIGH] & !bit::RETRY_HIGH != 0 {
        return Err(ParseError::ReservedBits);
    }
    check_psn(datagram, opcode)?;
    check_extension(opcode, extension)?;
    Ok(opcode)
}

/// A4: a FIRST or ONLY lies at offset 0, a MIDDLE or LAST behind it.
#[inline(always)]
pub(crate) fn check_psn(datagram: &Datagram<'_>, opcode: DataOpcode) -> Result<(), ParseError> {
    if (datagram.psn() == Psn::ZERO) == opcode.is_first() { Ok(()) } else { Err(ParseError::PsnOpcode) }
}

#[inline(always)]
fn check_extension(opcode: DataOpcode, mut extension: &[u8]) -> Result<(), ParseError> {
    use DataOpcode as O;
    match opcode {
        O::WriteFirst | O::WriteMiddle | O::WriteLast | O::WriteOnly | O::ReadRequest => {}
        O::WriteLastImm | O::WriteOnlyImm => extension.advance(3),
        O::FetchAdd if AtomicEth::get(&mut extension).compare != 0 => return Err(ParseError::ReservedBits),
        _ => return Ok(()),
    }
    if Reth::get(&mut extension).dma_len > MESSAGE_BYTES_MAX {
        Err(ParseError::MessageLength)
    } else {
        Ok(())
    }
}

/// The value of a frame that [`check_data`] has passed.
#[inline(always)]
pub(crate) fn data_packet(datagram: &Datagram<'_>, opcode: DataOpcode) -> Packet {
    match datagram.rest[IP_TO_MSN..].first_chunk() {
        Some(extension) => build(datagram, opcode, extension),
        None => build_short(datagram, opcode),
    }
}

/// For a frame that ends before the longest extension would.
#[inline(never)]
fn build_short(datagram: &Datagram<'_>, opcode: DataOpcode) -> Packet {
    let mut extension = [0; EXTENSION_LEN_MAX];
    let present = &datagram.rest[IP_TO_MSN..];
    extension[..present.len()].copy_from_slice(present);
    build(datagram, opcode, &extension)
}

#[inline(always)]
fn build(datagram: &Datagram<'_>, opcode: DataOpcode, extension: &[u8; EXTENSION_LEN_MAX]) -> Packet {
    use DataOpcode as O;
    let header_end = IP_TO_MSN + opcode.extension_len();
    let (name, ack_req, solicited) = (datagram.name(), datagram.ack_req(), datagram.solicited());
    // One complete expression per family: the value is written once, field by field, where it is wanted.
    let packet = |op| datagram.packet(Kind::Data(Data { name, ack_req, solicited, op }), header_end);
    match opcode {
        O::WriteFirst | O::WriteMiddle | O::WriteLast | O::WriteOnly => {
            let reth = Reth::get(&mut &extension[..]);
            packet(DataOp::Write { reth, part: part(opcode, None) })
        }
        O::WriteLastImm | O::WriteOnlyImm => {
            let mut ext = &extension[..];
            let ssn = Ssn::from_low_bits(get_24(&mut ext));
            let reth = Reth::get(&mut ext);
            packet(DataOp::Write { reth, part: part(opcode, Some(WriteImm { ssn, imm: imm(&mut ext) })) })
        }
        O::SendFirst | O::SendMiddle | O::SendLast | O::SendOnly => {
            let ssn = Ssn::from_low_bits(get_24(&mut &extension[..]));
            packet(DataOp::Send { ssn, part: part(opcode, None) })
        }
        O::SendLastImm | O::SendOnlyImm => {
            let mut ext = &extension[..];
            let ssn = Ssn::from_low_bits(get_24(&mut ext));
            packet(DataOp::Send { ssn, part: part(opcode, Some(imm(&mut ext))) })
        }
        O::ReadResponseFirst | O::ReadResponseMiddle | O::ReadResponseLast | O::ReadResponseOnly => {
            let rmsn = Msn::from_low_bits(get_24(&mut &extension[..]));
            packet(DataOp::ReadResponse { rmsn, part: part(opcode, None) })
        }
        O::ReadRequest => packet(DataOp::ReadRequest(Reth::get(&mut &extension[..]))),
        O::CmpSwap => packet(DataOp::CmpSwap(AtomicEth::get(&mut &extension[..]))),
        O::FetchAdd => packet(DataOp::FetchAdd(AtomicEth::get(&mut &extension[..]))),
        O::AtomicAck => {
            let mut ext = &extension[..];
            let rmsn = Msn::from_low_bits(get_24(&mut ext));
            packet(DataOp::AtomicAck { rmsn, original: ext.get_u64() })
        }
    }
}

/// Place in the message; `end` is what its last packet carries.
#[inline(always)]
fn part<I>(opcode: DataOpcode, end: Option<I>) -> Part<I> {
    match (opcode.is_first(), opcode.is_last()) {
        (true, false) => Part::First,
        (false, false) => Part::Middle,
        (false, true) => Part::Last(end),
        (true, true) => Part::Only(end),
    }
}

/// A8: network order.
#[inline(always)]
fn imm(ext: &mut &[u8]) -> ImmData {
    ImmData(ext.get_u32())
}
