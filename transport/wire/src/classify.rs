//! What a switch reads of a frame: addresses, tag, ECN, flow. Once per frame.

use crate::layout::{FRAGMENT_MASK, IP_LEN, PROTOCOL_UDP, UDP_LEN, at};
use crate::shape::ip_offset;
use crate::{Ecn, MacAddr, Tag};

/// A switch's view of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Classified {
    /// Ethernet destination.
    pub dst_mac: MacAddr,
    /// Ethernet source.
    pub src_mac: MacAddr,
    /// DCP tag; [`Tag::NotDcp`] unless the frame is DCP by S-0.
    pub tag: Tag,
    /// ECN field; [`Ecn::NotEct`] unless the frame is IPv4 without options.
    pub ecn: Ecn,
    /// Hash of the 5-tuple, or of the MAC addresses where there is none. Equal for all frames of a flow.
    pub flow_hash: u32,
}

/// Classifies a frame by its first bytes; 46 are enough. `ports` are the UDP destination ports that mean DCP.
/// `None` for a runt shorter than an Ethernet header.
///
/// Checks no checksum: a switch forwards what it is given, and the receiver judges it.
#[inline]
pub fn classify(head: &[u8], ports: &[u16]) -> Option<Classified> {
    let macs = head.first_chunk::<12>()?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *macs;
    let mut frame = Classified {
        dst_mac: MacAddr([d0, d1, d2, d3, d4, d5]),
        src_mac: MacAddr([s0, s1, s2, s3, s4, s5]),
        tag: Tag::NotDcp,
        ecn: Ecn::NotEct,
        flow_hash: 0,
    };
    match ip_offset(head).and_then(|offset| head.get(offset..)) {
        Some(ip) if ip.first() == Some(&0x45) => classify_ip(ip, ports, &mut frame),
        _ if head.len() < crate::ETHERNET_LEN => return None,
        _ => frame.flow_hash = hash_macs(macs),
    }
    Some(frame)
}

#[inline]
fn classify_ip(ip: &[u8], ports: &[u16], frame: &mut Classified) {
    let Some(ip_header) = ip.first_chunk::<IP_LEN>() else { return };
    frame.ecn = Ecn::from_tos(ip_header[at::TOS]);
    let protocol = ip_header[at::PROTOCOL];
    let fragment = u16::from_be_bytes([ip_header[at::FLAGS], ip_header[at::FLAGS + 1]]) & FRAGMENT_MASK != 0;
    let addresses = u64::from_be_bytes(core::array::from_fn(|i| ip_header[at::SRC_IP + i]));
    // Only UDP and TCP have ports there, and a fragment may not.
    let udp = ip.first_chunk::<{ IP_LEN + UDP_LEN }>().filter(|_| !fragment && protocol == PROTOCOL_UDP);
    let Some(udp) = udp else {
        frame.flow_hash = hash(addresses, u64::from(protocol));
        return;
    };
    let dst_port = u16::from_be_bytes([udp[at::DST_PORT], udp[at::DST_PORT + 1]]);
    let src_port = u16::from_be_bytes([udp[at::SRC_PORT], udp[at::SRC_PORT + 1]]);
    let tail = u64::from(src_port) << 32 | u64::from(dst_port) << 16 | u64::from(protocol);
    frame.flow_hash = hash(addresses, tail);
    // S-0: IPv4, IHL 5, UDP, not a fragment, destination port in the set.
    if ports.contains(&dst_port) {
        frame.tag = Tag::from_tos(ip_header[at::TOS]);
    }
}

#[cold]
fn hash_macs(macs: &[u8; 12]) -> u32 {
    let (head, tail) = macs.split_at(8);
    let mut last = [0; 8];
    last[..4].copy_from_slice(tail);
    let first = head.try_into().map_or(0, u64::from_be_bytes);
    hash(first, u64::from_be_bytes(last))
}

/// Mixes both words so that each output bit depends on each input bit (two multiply-xorshift rounds).
#[inline]
fn hash(a: u64, b: u64) -> u32 {
    let mut h = (a ^ b.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    h = (h ^ (h >> 32) ^ b).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    u32::try_from((h ^ (h >> 32)) & 0xFFFF_FFFF).unwrap_or(0)
}
