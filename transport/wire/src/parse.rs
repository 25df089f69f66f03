//! From bytes to a [`Packet`]: every check that needs no queue pair (P-1, P-2).

use crate::checksum::ip_sum;
use crate::layout::{
    ETHERTYPE_IPV4, ETHERTYPE_VLAN, FLAG_DF, ICRC_LEN, IP_LEN, IP_TO_MSN, PROTOCOL_UDP, VLAN_LEN, at, be16,
    take,
};
use crate::parse_kind::parse_kind;
use crate::{
    Ecn, Headers, Ipv4Addr, Kind, MacAddr, PKey, Packet, ParseError, Path, Qpn, SERVICE_PORT, Tag, VlanTag,
};

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

/// Parses a contiguous frame, Ethernet header first, padding allowed.
///
/// # Errors
/// The reason to count when the frame is not a legal DCP frame.
#[inline]
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
    let Ethernet { macs, vlan, rest } = split_ethernet(head)?;
    let ip: &[u8; IP_TO_MSN] = rest.first_chunk().ok_or(ParseError::TooShort)?;
    check_ip_udp(options, ip, frame_len.saturating_sub(head.len() - rest.len()))?;

    let ip_len = be16(ip, at::IP_TOTAL);
    let tag = Tag::from_tos(ip[at::TOS]);
    // An HO's tail is gone, and the ICRC with it.
    let trailer = if options.icrc && tag != Tag::HeaderOnly { ICRC_LEN } else { 0 };
    let end = usize::from(ip_len).checked_sub(trailer).ok_or(ParseError::HeaderLength)?;
    // The smallest frame is an HO. (A padded one would else have fields read out of its padding.)
    if end < IP_TO_MSN {
        return Err(ParseError::HeaderLength);
    }
    let (kind, header_end) = parse_kind(tag, ip, rest, end)?;
    let payload_len = end.checked_sub(header_end).ok_or(ParseError::HeaderLength)?;
    if payload_len > 0 && !carries_payload(&kind) {
        return Err(ParseError::Payload);
    }
    // A7: 0 means "none".
    if be16(ip, at::UDP_CHECKSUM) != 0 && !udp_checksum_ok() {
        return Err(ParseError::UdpChecksum);
    }
    let headers = Headers {
        path: path(macs, vlan, ip),
        dest_qpn: Qpn::from_low_bits(crate::layout::be24(ip, at::DEST_QPN)),
        pkey: PKey(be16(ip, at::PKEY)),
        kind,
    };
    let payload_offset = head.len() - rest.len() + header_end;
    Ok(Packet { headers, ip_len, payload_offset: narrow(payload_offset), payload_len: narrow(payload_len) })
}

/// An Ethernet header, taken apart.
struct Ethernet<'a> {
    macs: &'a [u8; 12],
    vlan: Option<VlanTag>,
    /// From the IP header on.
    rest: &'a [u8],
}

#[inline]
fn split_ethernet(head: &[u8]) -> Result<Ethernet<'_>, ParseError> {
    let (macs, rest) = head.split_first_chunk::<12>().ok_or(ParseError::TooShort)?;
    let (ether_type, rest) = rest.split_first_chunk::<2>().ok_or(ParseError::TooShort)?;
    match u16::from_be_bytes(*ether_type) {
        ETHERTYPE_IPV4 => Ok(Ethernet { macs, vlan: None, rest }),
        ETHERTYPE_VLAN => {
            let (tag, rest) = rest.split_first_chunk::<VLAN_LEN>().ok_or(ParseError::TooShort)?;
            if u16::from_be_bytes([tag[2], tag[3]]) != ETHERTYPE_IPV4 {
                return Err(ParseError::EtherType);
            }
            let vlan = VlanTag(u16::from_be_bytes([tag[0], tag[1]]));
            Ok(Ethernet { macs, vlan: Some(vlan), rest })
        }
        _ => Err(ParseError::EtherType),
    }
}

/// P-2, the part below the BTH. `room` is what the frame has from the IP header on.
#[inline]
fn check_ip_udp(options: ParseOptions, ip: &[u8; IP_TO_MSN], room: usize) -> Result<(), ParseError> {
    if ip[0] != 0x45 {
        return Err(ParseError::IpHeader);
    }
    if ip[at::PROTOCOL] != PROTOCOL_UDP {
        return Err(ParseError::NotUdp);
    }
    if be16(ip, at::FLAGS) != FLAG_DF {
        return Err(ParseError::Fragment);
    }
    if be16(ip, at::DST_PORT) != options.service_port {
        return Err(ParseError::OtherPort);
    }
    if ip_sum(&take::<IP_LEN>(ip, 0)) != 0xFFFF {
        return Err(ParseError::IpChecksum);
    }
    // A1, A2: padding makes the frame longer than the datagram; nothing makes it shorter.
    let ip_len = be16(ip, at::IP_TOTAL);
    if usize::from(ip_len) > room {
        return Err(ParseError::IpLength);
    }
    if usize::from(be16(ip, at::UDP_TOTAL)) + IP_LEN != usize::from(ip_len) {
        return Err(ParseError::UdpLength);
    }
    Ok(())
}

/// Kinds with a length of their own: a surplus byte is as wrong as a missing one.
#[inline]
fn carries_payload(kind: &Kind) -> bool {
    use crate::DataOp::{ReadResponse, Send, Write};
    matches!(kind, Kind::Data(data) if matches!(data.op, Send { .. } | Write { .. } | ReadResponse { .. }))
}

#[inline]
fn path(macs: &[u8; 12], vlan: Option<VlanTag>, ip: &[u8; IP_TO_MSN]) -> Path {
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *macs;
    Path {
        src_mac: MacAddr([s0, s1, s2, s3, s4, s5]),
        dst_mac: MacAddr([d0, d1, d2, d3, d4, d5]),
        vlan,
        src_ip: Ipv4Addr::from(take::<4>(ip, at::SRC_IP)),
        dst_ip: Ipv4Addr::from(take::<4>(ip, at::DST_IP)),
        src_port: be16(ip, at::SRC_PORT),
        dst_port: be16(ip, at::DST_PORT),
        class: ip[at::TOS] >> 4,
        ecn: Ecn::from_tos(ip[at::TOS]),
        ttl: ip[at::TTL],
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both are below an IP total length plus a header")]
fn narrow(length: usize) -> u16 {
    length as u16
}

/// Checks the UDP checksum of a contiguous frame whose lengths are checked already.
#[cold]
fn udp_checksum_of_frame(frame: &[u8]) -> bool {
    let Ok(Ethernet { rest, .. }) = split_ethernet(frame) else { return false };
    let Some(ip) = rest.first_chunk::<IP_TO_MSN>() else { return false };
    let udp_len = be16(ip, at::UDP_TOTAL);
    let Some(datagram) = rest.get(IP_LEN..IP_LEN + usize::from(udp_len)) else { return false };
    let src = Ipv4Addr::from(take::<4>(ip, at::SRC_IP));
    let dst = Ipv4Addr::from(take::<4>(ip, at::DST_IP));
    crate::udp_checksum_ok(src, dst, udp_len, [datagram])
}
