//! Where the IP header of a raw frame lies.

use crate::layout::{ETHERNET_LEN, ETHERTYPE_IPV4, ETHERTYPE_VLAN, VLAN_LEN};

/// Offset of the IPv4 header: 14, or 18 behind one VLAN tag; `None` for any other frame.
#[inline]
pub(crate) fn ip_offset(head: &[u8]) -> Option<usize> {
    let ethernet = head.first_chunk::<ETHERNET_LEN>()?;
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        ETHERTYPE_IPV4 => Some(ETHERNET_LEN),
        ETHERTYPE_VLAN => {
            let tagged = head.first_chunk::<{ ETHERNET_LEN + VLAN_LEN }>()?;
            let inner = u16::from_be_bytes([tagged[16], tagged[17]]);
            (inner == ETHERTYPE_IPV4).then_some(ETHERNET_LEN + VLAN_LEN)
        }
        _ => None,
    }
}
