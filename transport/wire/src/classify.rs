//! What a switch reads of a frame: addresses, tag, ECN. Once per frame.

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
    };
    match ip_offset(head).and_then(|offset| head.get(offset..)) {
        Some(ip) if ip.first() == Some(&0x45) => classify_ip(ip, ports, &mut frame),
        _ if head.len() < crate::ETHERNET_LEN => return None,
        _ => {}
    }
    Some(frame)
}

#[inline]
fn classify_ip(ip: &[u8], ports: &[u16], frame: &mut Classified) {
    let Some(ip_header) = ip.first_chunk::<IP_LEN>() else { return };
    frame.ecn = Ecn::from_tos(ip_header[at::TOS]);
    let protocol = ip_header[at::PROTOCOL];
    let fragment = u16::from_be_bytes([ip_header[at::FLAGS], ip_header[at::FLAGS + 1]]) & FRAGMENT_MASK != 0;
    let Some(udp) = ip.first_chunk::<{ IP_LEN + UDP_LEN }>() else { return };
    let dst_port = u16::from_be_bytes([udp[at::DST_PORT], udp[at::DST_PORT + 1]]);
    // S-0: IPv4, IHL 5, UDP, not a fragment, destination port in the set.
    if protocol == PROTOCOL_UDP && !fragment && ports.contains(&dst_port) {
        frame.tag = Tag::from_tos(ip_header[at::TOS]);
    }
}
