//! Which flow a frame belongs to, for switches with several ways to one place.

use crate::layout::{FRAGMENT_MASK, IP_LEN, PROTOCOL_UDP, UDP_LEN, at};
use crate::shape::ip_offset;

/// Hash of the 5-tuple, or of the MAC addresses where there is none. Equal for all frames of a flow. Of a frame's first
/// bytes 46 are enough.
#[inline]
pub fn flow_hash(head: &[u8]) -> u32 {
    match ip_offset(head).and_then(|offset| head.get(offset..)) {
        Some(ip) if ip.first() == Some(&0x45) => hash_ip(ip),
        _ => head.first_chunk().map_or(0, hash_macs),
    }
}

#[inline]
fn hash_ip(ip: &[u8]) -> u32 {
    let Some(header) = ip.first_chunk::<IP_LEN>() else { return 0 };
    let protocol = header[at::PROTOCOL];
    let fragment = u16::from_be_bytes([header[at::FLAGS], header[at::FLAGS + 1]]) & FRAGMENT_MASK != 0;
    let addresses = u64::from_be_bytes(core::array::from_fn(|i| header[at::SRC_IP + i]));
    // Only UDP and TCP have ports there, and a fragment may not.
    let udp = ip.first_chunk::<{ IP_LEN + UDP_LEN }>().filter(|_| !fragment && protocol == PROTOCOL_UDP);
    let port = |at: usize| udp.map_or(0, |udp| u64::from(u16::from_be_bytes([udp[at], udp[at + 1]])));
    hash(addresses, port(at::SRC_PORT) << 32 | port(at::DST_PORT) << 16 | u64::from(protocol))
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
