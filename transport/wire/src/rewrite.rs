//! What switches and receivers change in a frame in place: trim, bounce, mark.

use crate::checksum::update_checksum;
use crate::layout::{
    ETHERNET_LEN, HO_IP_LEN, HO_UDP_LEN, IP_LEN, IP_TO_MSN, PROTOCOL_UDP, TTL, UDP_LEN, at, bit, low24,
};
use crate::shape::ip_offset;
use crate::{Ecn, Qpn, Tag};

/// The frame is not IPv4 and UDP, or too short for what it says: nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotDcp;

impl core::fmt::Display for NotDcp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not a DCP frame")
    }
}

impl core::error::Error for NotDcp {}

/// S-2: makes a header-only packet of a data packet, in place, and returns the frame's new length.
///
/// `head` is the beginning of the frame in one piece. The caller cuts the frame to the length returned, and must be
/// its only owner: a shared buffer is never edited. A frame whose datagram ends at or before byte 57 (VLAN tag not
/// counted) keeps its lengths and only changes its tag; padding goes in any case.
///
/// # Errors
/// [`NotDcp`] if `head` is shorter than what is to be kept, or not IPv4 without options and UDP.
#[inline]
pub fn trim(head: &mut [u8]) -> Result<usize, NotDcp> {
    let ip_at = ip_offset(head).ok_or(NotDcp)?;
    let ip = head.get_mut(ip_at..).ok_or(NotDcp)?;
    let in_hand = ip.len();
    let header = ip.first_chunk_mut::<{ IP_LEN + UDP_LEN }>().ok_or(NotDcp)?;
    let ip_len = word(header, at::IP_TOTAL);
    let kept = usize::from(ip_len.min(HO_IP_LEN));
    if header[0] != 0x45 || header[at::PROTOCOL] != PROTOCOL_UDP || kept < header.len() || kept > in_hand {
        return Err(NotDcp);
    }

    let tos = header[at::TOS] & !Tag::MASK | Tag::HeaderOnly.tos_bits();
    set_tos(header, tos);
    if ip_len > HO_IP_LEN {
        set_checksummed(header, at::IP_TOTAL, HO_IP_LEN);
        set_word(header, at::UDP_TOTAL, HO_UDP_LEN);
        set_word(header, at::UDP_CHECKSUM, 0);
    }
    Ok(ip_at + kept)
}

/// What a bounce cannot read from the frame itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BounceRewrite {
    /// The peer's queue pair, which sent the trimmed packet.
    pub dest_qpn: Qpn,
    /// Our path entropy.
    pub src_port: u16,
    /// The peer's service port.
    pub dst_port: u16,
}

/// turns a header-only packet round to its sender, in place: addresses swapped, DestQP and UDP ports from
/// `rewrite`, TTL 64, R = 1. VLAN tag, ECN field and lengths stay.
///
/// After [`trim`] it makes the return-to-sender packet of R-12.
///
/// # Errors
/// [`NotDcp`] if `head` does not hold the 57 bytes (plus VLAN tag) of a header-only packet; cannot happen behind
/// [`crate::parse`].
#[inline]
pub fn bounce(head: &mut [u8], rewrite: &BounceRewrite) -> Result<(), NotDcp> {
    let ip_at = ip_offset(head).ok_or(NotDcp)?;
    let (ethernet, ip) = head.split_at_mut_checked(ip_at).ok_or(NotDcp)?;
    let ip: &mut [u8; IP_TO_MSN] = ip.first_chunk_mut().ok_or(NotDcp)?;
    if ip[0] != 0x45 || Tag::from_tos(ip[at::TOS]) != Tag::HeaderOnly {
        return Err(NotDcp);
    }
    let macs: &mut [u8; 12] = ethernet.first_chunk_mut().ok_or(NotDcp)?;
    macs.rotate_left(6);
    // A swap inside what the checksum covers leaves it as it is.
    ip[at::SRC_IP..at::DST_IP + 4].rotate_left(4);
    let old = word(ip, at::TTL);
    let [_, protocol] = old.to_be_bytes();
    set_checksummed(ip, at::TTL, u16::from_be_bytes([TTL, protocol]));
    debug_assert_eq!(old & 0xFF, u16::from(PROTOCOL_UDP));

    set_word(ip, at::SRC_PORT, rewrite.src_port);
    set_word(ip, at::DST_PORT, rewrite.dst_port);
    set_word(ip, at::UDP_CHECKSUM, 0);
    ip[at::RETRY_HIGH] |= bit::RETURNED;
    ip[at::DEST_QPN..at::DEST_QPN + 3].copy_from_slice(&low24(rewrite.dest_qpn.get()));
    Ok(())
}

/// S-6: marks an ECN-capable IPv4 frame "congestion experienced". False if the frame cannot be marked: it is not
/// ECN-capable, and unchanged.
///
/// # Errors
/// [`NotDcp`] if `head` is no IPv4 frame, or shorter than its IP header.
#[inline]
pub fn mark_ce(head: &mut [u8]) -> Result<bool, NotDcp> {
    let ip_at = ip_offset(head).ok_or(NotDcp)?;
    let ip: &mut [u8; IP_LEN] = head.get_mut(ip_at..).and_then(|ip| ip.first_chunk_mut()).ok_or(NotDcp)?;
    if ip[0] != 0x45 {
        return Err(NotDcp);
    }
    let tos = ip[at::TOS];
    if !Ecn::from_tos(tos).is_ect() {
        return Ok(false);
    }
    set_tos(ip, tos | Ecn::Ce as u8);
    Ok(true)
}

/// Changes the ToS byte and updates the checksum.
#[inline]
fn set_tos<const N: usize>(ip: &mut [u8; N], tos: u8) {
    let version = ip[0];
    set_checksummed(ip, 0, u16::from_be_bytes([version, tos]));
}

/// Changes a 16-bit word of the IP header and updates the checksum.
#[inline]
fn set_checksummed<const N: usize>(ip: &mut [u8; N], offset: usize, new: u16) {
    let sum = update_checksum(word(ip, at::IP_CHECKSUM), word(ip, offset), new);
    set_word(ip, offset, new);
    set_word(ip, at::IP_CHECKSUM, sum);
}

#[inline]
fn word<const N: usize>(bytes: &[u8; N], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

#[inline]
fn set_word<const N: usize>(bytes: &mut [u8; N], offset: usize, value: u16) {
    let [high, low] = value.to_be_bytes();
    bytes[offset] = high;
    bytes[offset + 1] = low;
}

const _: () = assert!(ETHERNET_LEN + IP_TO_MSN == crate::HO_LEN);
