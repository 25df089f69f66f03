//! The RoCEv2 invariant CRC, an option of the connection (protocol §1).

use crate::layout::{ICRC_LEN, IP_LEN, IP_TO_MSN, UDP_LEN, at};
use crate::shape::ip_offset;

/// Fields that may change on the way count as all ones, and so do 8 bytes in front.
const MASKED_PREFIX: [u8; 8] = [0xFF; 8];

/// ICRC of a frame given in pieces. `head` is the beginning of the frame, through the BTH at least; `rest` are the
/// pieces that follow it up to the end of the payload (ICRC and padding excluded). `head` may hold payload too.
///
/// Returns the bytes as they follow the payload, or `None` if `head` is not IPv4, UDP and BTH.
pub fn icrc<'a>(head: &[u8], rest: impl IntoIterator<Item = &'a [u8]>) -> Option<[u8; ICRC_LEN]> {
    let ip = head.get(ip_offset(head)?..)?;
    let (header, tail) = ip.split_first_chunk::<IP_TO_MSN>()?;
    if header[0] != 0x45 {
        return None;
    }
    let mut masked = *header;
    for offset in [at::TOS, at::TTL, at::IP_CHECKSUM, at::UDP_CHECKSUM, at::RETRY_HIGH] {
        masked[offset] = 0xFF;
    }
    masked[at::IP_CHECKSUM + 1] = 0xFF;
    masked[at::UDP_CHECKSUM + 1] = 0xFF;

    let mut crc = crc32fast::Hasher::new();
    crc.update(&MASKED_PREFIX);
    crc.update(&masked);
    crc.update(tail);
    for piece in rest {
        crc.update(piece);
    }
    Some(crc.finalize().to_le_bytes())
}

/// Whether a contiguous frame ends in the right ICRC; padding behind it is skipped. False for a frame that has no
/// room for one, and for one that is not IPv4 and UDP.
pub fn icrc_ok(frame: &[u8]) -> bool {
    let Some(ip_at) = ip_offset(frame) else { return false };
    let Some(ip) = frame.get(ip_at..).and_then(|ip| ip.first_chunk::<{ IP_LEN + UDP_LEN }>()) else {
        return false;
    };
    let ip_len = usize::from(u16::from_be_bytes([ip[at::IP_TOTAL], ip[at::IP_TOTAL + 1]]));
    let Some((datagram, trailer)) =
        frame.get(..ip_at + ip_len).and_then(|frame| frame.split_last_chunk::<ICRC_LEN>())
    else {
        return false;
    };
    icrc(datagram, []) == Some(*trailer)
}
