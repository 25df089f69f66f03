//! The Internet checksum: of an IPv4 header, of a UDP datagram in pieces, and its incremental update.

use crate::layout::{IP_LEN, at};

/// One's-complement sum over pieces of any length; an odd piece is continued by the next.
#[derive(Clone, Copy, Default, Debug)]
pub struct OnesSum {
    sum: u64,
    odd: bool,
}

impl OnesSum {
    /// Adds `bytes`.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.odd
            && let Some((&low, tail)) = rest.split_first()
        {
            self.sum += u64::from(low);
            self.odd = false;
            rest = tail;
        }
        let (words, tail) = rest.as_chunks::<4>();
        let mut sum = 0;
        for word in words {
            sum += u64::from(u32::from_be_bytes(*word));
        }
        // Folding once keeps the sum far below 64 bits over any number of pieces.
        self.sum = (self.sum & 0xFFFF_FFFF) + (self.sum >> 32) + sum;
        let (pairs, last) = tail.as_chunks::<2>();
        for pair in pairs {
            self.sum += u64::from(u16::from_be_bytes(*pair));
        }
        if let [high] = last {
            self.sum += u64::from(*high) << 8;
            self.odd = true;
        }
    }

    /// The folded sum, not complemented.
    pub fn fold(self) -> u16 {
        fold(self.sum)
    }
}

/// Whether the UDP checksum of a datagram is right. `datagram` is the UDP header and payload in pieces, exactly
/// as long as the UDP length says; a checksum field of 0 is the caller's to skip (A7).
pub fn udp_checksum_ok<'a>(
    src_ip: crate::Ipv4Addr,
    dst_ip: crate::Ipv4Addr,
    udp_len: u16,
    datagram: impl IntoIterator<Item = &'a [u8]>,
) -> bool {
    let mut sum = OnesSum::default();
    sum.add(&src_ip.octets());
    sum.add(&dst_ip.octets());
    sum.add(&[0, crate::layout::PROTOCOL_UDP]);
    sum.add(&udp_len.to_be_bytes());
    for piece in datagram {
        sum.add(piece);
    }
    sum.fold() == 0xFFFF
}

/// Sum of an IPv4 header without options, folded; 0xFFFF where its checksum is right.
#[inline(always)]
pub(crate) fn ip_sum(header: &[u8; IP_LEN]) -> u16 {
    let mut sum = 0u64;
    for word in header.as_chunks::<4>().0 {
        sum += u64::from(u32::from_be_bytes(*word));
    }
    fold(sum)
}

/// The IPv4 header checksum, whatever the checksum field holds now.
#[inline]
pub fn ip_checksum(header: &[u8; IP_LEN]) -> u16 {
    let mut header = *header;
    header[at::IP_CHECKSUM] = 0;
    header[at::IP_CHECKSUM + 1] = 0;
    !ip_sum(&header)
}

/// `checksum` after one 16-bit word that it covers changed from `old` to `new`. A wrong one stays wrong, so damage
/// that happened before is still seen.
#[inline]
#[must_use]
pub fn update_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// Adds the carries back in.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "folded below 2^16 first")]
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    sum as u16
}
