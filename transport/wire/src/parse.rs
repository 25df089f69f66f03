//! From bytes to a [`Packet`]: every check that needs no queue pair (P-1, P-2).

use crate::datagram::Datagram;
use crate::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_VLAN, ICRC_LEN, IP_LEN, VLAN_LEN, at, be16, take,
};
use crate::parse_control::{parse_control, parse_header_only};
use crate::parse_data::{check_data, data_packet};
use crate::parse_usual::parse_usual;
use crate::{Ipv4Addr, Packet, ParseError, Qpn, SERVICE_PORT, Tag};

/// What a receiver must know to parse its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseOptions {
    /// UDP destination port of our frames. Default 17791.
    pub service_port: u16,
    /// Whether frames other than header-only ones end in a 4-byte ICRC, which is then no payload. `parse` does
    /// not verify it: see [`crate::icrc`]. Default false.
    pub icrc: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { service_port: SERVICE_PORT, icrc: false }
    }
}

/// The queue pair that a frame is for, before anything of it is checked: whether it carries an ICRC is a matter of its
/// connection, so a driver must know that to parse it. `None` for a frame too short.
#[inline]
pub fn peek_dest_qpn(head: &[u8]) -> Option<Qpn> {
    let ether_type = [*head.get(12)?, *head.get(13)?];
    let tag = if u16::from_be_bytes(ether_type) == ETHERTYPE_VLAN { VLAN_LEN } else { 0 };
    let [high, middle, low]: [u8; 3] = *head.get(ETHERNET_LEN + tag + at::DEST_QPN..)?.first_chunk()?;
    Some(Qpn::from_low_bits(u32::from_be_bytes([0, high, middle, low])))
}

/// The UDP port that an IPv4 frame is for, before anything of it is checked: each worker has its own. `None` for a frame
/// that is none or too short.
#[inline]
pub fn peek_service_port(head: &[u8]) -> Option<u16> {
    let word = |at: usize| Some(u16::from_be_bytes([*head.get(at)?, *head.get(at + 1)?]));
    let tag = if word(12)? == ETHERTYPE_VLAN { VLAN_LEN } else { 0 };
    let ip = ETHERNET_LEN + tag;
    // No options in the header, and UDP behind it.
    let is_plain = word(ip - 2)? == ETHERTYPE_IPV4 && *head.get(ip)? == 0x45 && *head.get(ip + 9)? == 17;
    if is_plain { word(ip + IP_LEN + 2) } else { None }
}

/// Parses a contiguous frame, Ethernet header first, padding allowed.
///
/// # Errors
/// The reason to count when the frame is not a legal DCP frame.
pub fn parse_frame(options: ParseOptions, frame: &[u8]) -> Result<Packet, ParseError> {
    parse(options, frame, frame.len(), || udp_checksum_of_frame(frame))
}

/// Parses a frame of which `head` is the beginning.
///
/// `head` holds at least the first `min(frame_len, PARSE_LEN)` bytes in one piece; `frame_len` is the captured
/// length of the whole frame, padding included. `udp_checksum_ok` is called last, and only for a frame that has
/// a UDP checksum ([`crate::udp_checksum_ok`] computes it from segments).
///
/// # Errors
/// The reason to count when the frame is not a legal DCP frame. No bytes make it panic or read beyond `head` (P-1).
#[inline]
pub fn parse(
    options: ParseOptions,
    head: &[u8],
    frame_len: usize,
    udp_checksum_ok: impl FnOnce() -> bool,
) -> Result<Packet, ParseError> {
    if !options.icrc
        && let Some(packet) = parse_usual(options.service_port, head, frame_len)
    {
        return Ok(packet);
    }
    parse_any(options, head, frame_len, udp_checksum_ok)
}

/// Parses any frame, the usual one too.
#[inline(never)]
pub(crate) fn parse_any(
    options: ParseOptions,
    head: &[u8],
    frame_len: usize,
    udp_checksum_ok: impl FnOnce() -> bool,
) -> Result<Packet, ParseError> {
    let mut datagram = Datagram::read(options.service_port, head, frame_len)?;
    let tag = datagram.tag();
    // An HO's tail is gone, and the ICRC with it.
    if options.icrc && tag != Tag::HeaderOnly {
        datagram.end = datagram.end.checked_sub(ICRC_LEN).ok_or(ParseError::HeaderLength)?;
    }
    // All checks come first and the value is built in one go at the end: that keeps it in registers.
    if tag == Tag::Data {
        let opcode = check_data(&datagram)?;
        check_udp(&datagram, udp_checksum_ok)?;
        return Ok(data_packet(&datagram, opcode));
    }
    let (kind, header_end) = match tag {
        Tag::Ack => parse_control(&datagram)?,
        Tag::HeaderOnly => parse_header_only(&datagram)?,
        Tag::NotDcp | Tag::Data => return Err(ParseError::TagOpcode),
    };
    // A surplus byte is as wrong as a missing one.
    match datagram.end {
        end if end < header_end => return Err(ParseError::HeaderLength),
        end if end > header_end => return Err(ParseError::Payload),
        _ => check_udp(&datagram, udp_checksum_ok)?,
    }
    Ok(datagram.packet(kind, header_end))
}

/// A7: 0 means "none".
#[inline(always)]
fn check_udp(datagram: &Datagram<'_>, udp_checksum_ok: impl FnOnce() -> bool) -> Result<(), ParseError> {
    if be16(datagram.ip, at::UDP_CHECKSUM) != 0 && !udp_checksum_ok() {
        return Err(ParseError::UdpChecksum);
    }
    Ok(())
}

/// Checks the UDP checksum of a contiguous frame whose lengths are checked already.
#[cold]
fn udp_checksum_of_frame(frame: &[u8]) -> bool {
    let Some(rest) = crate::shape::ip_offset(frame).and_then(|ip_at| frame.get(ip_at..)) else {
        return false;
    };
    let Some(ip) = rest.first_chunk() else { return false };
    let udp_len = be16(ip, at::UDP_TOTAL);
    let Some(datagram) = rest.get(IP_LEN..IP_LEN + usize::from(udp_len)) else { return false };
    let src = Ipv4Addr::from(take::<4>(ip, at::SRC_IP));
    let dst = Ipv4Addr::from(take::<4>(ip, at::DST_IP));
    crate::udp_checksum_ok(src, dst, udp_len, [datagram])
}
