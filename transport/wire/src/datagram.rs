//! The layers below the BTH: Ethernet, IPv4, UDP.

use crate::checksum::ip_sum;
use crate::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_VLAN, FLAG_DF, IP_LEN, IP_TO_MSN, PROTOCOL_UDP, VLAN_LEN, at,
    be16, be24, take,
};
use crate::{
    Ecn, Headers, Ipv4Addr, Kind, MacAddr, PKey, Packet, PacketName, ParseError, Path, Qpn, Tag, VlanTag,
};
use crate::{Generation, Msn, Psn, layout::bit};

/// A frame whose Ethernet, IPv4 and UDP headers are right. Offsets count from the IP header.
pub(crate) struct Datagram<'a> {
    macs: &'a [u8; 12],
    vlan: Option<VlanTag>,
    /// Everything up to the MSN.
    pub(crate) ip: &'a [u8; IP_TO_MSN],
    /// From the IP header to the end of what is in hand; may be longer or shorter than the datagram.
    pub(crate) rest: &'a [u8],
    /// Where the payload ends; at least [`IP_TO_MSN`], the length of an HO.
    pub(crate) end: usize,
}

impl<'a> Datagram<'a> {
    /// P-2, the part below the BTH.
    #[inline(always)]
    pub(crate) fn read(service_port: u16, head: &'a [u8], frame_len: usize) -> Result<Self, ParseError> {
        let macs: &[u8; 12] = head.first_chunk().ok_or(ParseError::TooShort)?;
        let (ip_at, vlan) = ethernet(head)?;
        let rest = head.get(ip_at..).ok_or(ParseError::TooShort)?;
        let ip: &[u8; IP_TO_MSN] = rest.first_chunk().ok_or(ParseError::TooShort)?;
        if ip[0] != 0x45 {
            return Err(ParseError::IpHeader);
        }
        if ip[at::PROTOCOL] != PROTOCOL_UDP {
            return Err(ParseError::NotUdp);
        }
        if be16(ip, at::FLAGS) != FLAG_DF {
            return Err(ParseError::Fragment);
        }
        if be16(ip, at::DST_PORT) != service_port {
            return Err(ParseError::OtherPort);
        }
        if ip.first_chunk().map(ip_sum) != Some(0xFFFF) {
            return Err(ParseError::IpChecksum);
        }
        // A1, A2: padding makes the frame longer than the datagram; nothing makes it shorter.
        let end = usize::from(be16(ip, at::IP_TOTAL));
        if ip_at + end > frame_len {
            return Err(ParseError::IpLength);
        }
        if usize::from(be16(ip, at::UDP_TOTAL)) + IP_LEN != end {
            return Err(ParseError::UdpLength);
        }
        // The smallest frame is an HO. (A padded one would else have fields read out of its padding.)
        if end < IP_TO_MSN {
            return Err(ParseError::HeaderLength);
        }
        Ok(Self { macs, vlan, ip, rest, end })
    }

    #[inline(always)]
    pub(crate) fn tag(&self) -> Tag {
        Tag::from_tos(self.ip[at::TOS])
    }

    /// The frame as a value. Its headers end at `header_end`.
    #[inline(always)]
    pub(crate) fn packet(&self, kind: Kind, header_end: usize) -> Packet {
        let vlan_len = if self.vlan.is_some() { VLAN_LEN } else { 0 };
        Packet {
            headers: Headers {
                path: self.path(),
                dest_qpn: Qpn::from_low_bits(be24(self.ip, at::DEST_QPN)),
                pkey: PKey(be16(self.ip, at::PKEY)),
                kind,
            },
            ip_len: be16(self.ip, at::IP_TOTAL),
            payload_offset: narrow(ETHERNET_LEN + vlan_len + header_end),
            payload_len: narrow(self.end - header_end),
        }
    }

    #[inline(always)]
    fn path(&self) -> Path {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *self.macs;
        let ip = self.ip;
        Path {
            src_mac: MacAddr([s0, s1, s2, s3, s4, s5]),
            dst_mac: MacAddr([d0, d1, d2, d3, d4, d5]),
            vlan: self.vlan,
            src_ip: Ipv4Addr::from(take::<4>(ip, at::SRC_IP)),
            dst_ip: Ipv4Addr::from(take::<4>(ip, at::DST_IP)),
            src_port: be16(ip, at::SRC_PORT),
            dst_port: be16(ip, at::DST_PORT),
            class: ip[at::TOS] >> 4,
            ecn: Ecn::from_tos(ip[at::TOS]),
            ttl: ip[at::TTL],
        }
    }

    /// The packet that a data or header-only frame is.
    #[inline(always)]
    pub(crate) fn name(&self) -> PacketName {
        PacketName {
            msn: Msn::from_low_bits(be24(self.ip, at::MSN)),
            psn: self.psn(),
            generation: self.generation(),
        }
    }

    #[inline(always)]
    pub(crate) fn psn(&self) -> Psn {
        Psn::from_low_bits(be24(self.ip, at::PSN))
    }

    /// sRetryNo: five bits of BTH byte 4, seven of byte 8.
    #[inline(always)]
    pub(crate) fn generation(&self) -> Generation {
        let high = u16::from(self.ip[at::RETRY_HIGH] & bit::RETRY_HIGH) << 6;
        Generation::from_low_bits(high | u16::from(self.ip[at::RETRY_LOW] & bit::RETRY_LOW))
    }

    #[inline(always)]
    pub(crate) fn ack_req(&self) -> bool {
        self.ip[at::RETRY_LOW] & bit::ACK_REQ != 0
    }

    #[inline(always)]
    pub(crate) fn solicited(&self) -> bool {
        self.ip[at::BTH_FLAGS] & bit::SOLICITED != 0
    }

    /// Transport version and padding 0, and of the two flags none but `allowed`.
    #[inline(always)]
    pub(crate) fn check_flags(&self, allowed: u8) -> Result<(), ParseError> {
        let flags = self.ip[at::BTH_FLAGS];
        if flags & !allowed == 0 { Ok(()) } else { Err(wrong_flags(flags)) }
    }
}

#[cold]
fn wrong_flags(flags: u8) -> ParseError {
    match flags {
        _ if flags & bit::VERSION != 0 => ParseError::TransportVersion,
        _ if flags & bit::PAD != 0 => ParseError::PadCount,
        _ => ParseError::ReservedBits,
    }
}

/// Where the IP header begins, and the VLAN tag in front of it.
#[inline(always)]
fn ethernet(head: &[u8]) -> Result<(usize, Option<VlanTag>), ParseError> {
    let header: &[u8; ETHERNET_LEN] = head.first_chunk().ok_or(ParseError::TooShort)?;
    match u16::from_be_bytes([header[12], header[13]]) {
        ETHERTYPE_IPV4 => Ok((ETHERNET_LEN, None)),
        ETHERTYPE_VLAN => {
            let header: &[u8; ETHERNET_LEN + VLAN_LEN] = head.first_chunk().ok_or(ParseError::TooShort)?;
            if u16::from_be_bytes([header[16], header[17]]) != ETHERTYPE_IPV4 {
                return Err(ParseError::EtherType);
            }
            Ok((ETHERNET_LEN + VLAN_LEN, Some(VlanTag(u16::from_be_bytes([header[14], header[15]])))))
        }
        _ => Err(ParseError::EtherType),
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "both are below an IP total length plus a header")]
fn narrow(length: usize) -> u16 {
    length as u16
}
