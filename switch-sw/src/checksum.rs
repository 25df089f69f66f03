//! Checksums that the kernel left for a network card to finish.
//!
//! Between interfaces such as veth there is no card: the kernel hands over TCP and UDP with the sum of the pseudo header in
//! the place of the checksum, trusting that nobody looks. A packet socket gives such frames away as they are, and a real
//! receiver drops them.

use dcp_wire::{ETHERNET_LEN, OnesSum, VLAN_LEN};
use dpdk_ffi::MbufBatch;

/// What was found in a burst.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Found {
    /// Checksums finished.
    pub(crate) finished: u64,
    /// Frames shorter than their IP header says: cut on their way here.
    pub(crate) cut: u64,
}

impl Found {
    pub(crate) fn add(&mut self, more: Self) {
        self.finished += more.finished;
        self.cut += more.cut;
    }
}

/// Finishes what is unfinished in a burst.
pub(crate) fn finish(batch: &mut MbufBatch) -> Found {
    let mut found = Found::default();
    for frame in batch.as_mut_slice() {
        if frame.head_len() != frame.frame_len() {
            continue;
        }
        match frame.head_mut().map_or(Outcome::Whole, finish_frame) {
            Outcome::Whole => {}
            Outcome::Finished => found.finished += 1,
            Outcome::Cut => found.cut += 1,
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Nothing to do.
    Whole,
    Finished,
    Cut,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Where a datagram or segment lies, and the sum of its pseudo header.
struct Transport {
    protocol: u8,
    start: usize,
    end: usize,
    pseudo: u16,
}

fn finish_frame(frame: &mut [u8]) -> Outcome {
    let Some(transport) = transport(frame) else { return Outcome::Whole };
    let Some(segment) = frame.get_mut(transport.start..transport.end) else { return Outcome::Cut };
    let at = if transport.protocol == TCP { 16 } else { 6 };
    let Some(&[high, low]) = segment.get(at..at + 2) else { return Outcome::Whole };
    // A right checksum that looks like this by chance stays what it is. 0 is UDP without one, as DCP's.
    if u16::from_be_bytes([high, low]) != transport.pseudo {
        return Outcome::Whole;
    }
    let mut sum = OnesSum::default();
    sum.add(segment);
    let checksum = match !sum.fold() {
        0 => u16::MAX,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Outcome::Finished
}

/// TCP or UDP in one piece, over IPv4 or directly over IPv6.
fn transport(frame: &[u8]) -> Option<Transport> {
    let tag = if frame.get(12..14)? == [0x81, 0x00] { VLAN_LEN } else { 0 };
    let ip_at = ETHERNET_LEN + tag;
    let ip = frame.get(ip_at..)?;
    let (protocol, header_len, total_len, addresses) = match frame.get(ip_at - 2..ip_at)? {
        [0x08, 0x00] => {
            let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3FFF;
            let header_len = usize::from(ip[0] & 0x0F) * 4;
            if ip[0] >> 4 != 4 || fragment != 0 || header_len < 20 {
                return None;
            }
            (*ip.get(9)?, header_len, usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.get(12..20)?)
        }
        [0x86, 0xDD] => {
            let payload = usize::from(u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?]));
            (*ip.get(6)?, 40, 40 + payload, ip.get(8..40)?)
        }
        _ => return None,
    };
    let len = u16::try_from(total_len.checked_sub(header_len)?).ok()?;
    if !matches!(protocol, TCP | UDP) {
        return None;
    }
    let mut sum = OnesSum::default();
    sum.add(addresses);
    sum.add(&[0, protocol]);
    sum.add(&len.to_be_bytes());
    Some(Transport { protocol, start: ip_at + header_len, end: ip_at + total_len, pseudo: sum.fold() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IP and a segment of `protocol` with `payload` bytes; the checksum as the kernel leaves it.
    fn unfinished(protocol: u8, is_v6: bool, is_tagged: bool, payload: usize) -> Vec<u8> {
        let header = if protocol == TCP { 20 } else { 8 };
        let len = u16::try_from(header + payload).unwrap();
        let mut frame = vec![2; 12];
        if is_tagged {
            frame.extend([0x81, 0, 0, 5]);
        }
        if is_v6 {
            frame.extend([0x86, 0xDD, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend((0..32).map(|byte| byte * 7));
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((len + 20).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 8, 0, 1, 10, 8, 0, 2]);
        }
        let start = frame.len();
        frame.extend((0..usize::from(len)).map(|byte| u8::try_from(byte * 31 % 251).unwrap()));
        let pseudo = transport(&frame).unwrap().pseudo;
        let at = start + if protocol == TCP { 16 } else { 6 };
        frame[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        frame
    }

    /// The sum over pseudo header and segment, 0xFFFF where the checksum is right.
    fn sum(frame: &[u8]) -> u16 {
        let transport = transport(frame).unwrap();
        let mut sum = OnesSum::default();
        sum.add(&transport.pseudo.to_be_bytes());
        sum.add(&frame[transport.start..transport.end]);
        sum.fold()
    }

    #[test]
    fn unfinished_checksums_are_finished_once_and_for_all() {
        for protocol in [TCP, UDP] {
            for (is_v6, is_tagged) in [(false, false), (false, true), (true, false), (true, true)] {
                for payload in [0, 1, 2, 999, 1460] {
                    let mut frame = unfinished(protocol, is_v6, is_tagged, payload);
                    assert_eq!(finish_frame(&mut frame), Outcome::Finished);
                    assert_eq!(sum(&frame), 0xFFFF, "{protocol} {is_v6} {is_tagged} {payload}");
                    let finished = frame.clone();
                    finish_frame(&mut frame);
                    assert_eq!(frame, finished);
                }
            }
        }
    }

    #[test]
    fn padding_behind_a_segment_does_not_count() {
        let mut frame = unfinished(TCP, false, false, 0);
        frame.extend([0xAA; 6]);
        finish_frame(&mut frame);
        assert_eq!(sum(&frame), 0xFFFF);
    }

    #[test]
    fn wrong_checksums_missing_ones_and_other_frames_stay_as_they_are() {
        let mut wrong = unfinished(UDP, false, false, 50);
        wrong[40] ^= 0x55;
        let mut none = unfinished(UDP, false, false, 50);
        none[40..42].fill(0);
        let mut fragment = unfinished(UDP, false, false, 50);
        fragment[20] = 0x20;
        let mut icmp = unfinished(UDP, false, false, 50);
        icmp[23] = 1;
        for mut frame in [wrong, none, fragment, icmp, vec![0; 60], vec![0x45; 14]] {
            let before = frame.clone();
            assert_eq!(finish_frame(&mut frame), Outcome::Whole);
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn frames_of_every_shorter_length_are_cut_and_left_alone() {
        let whole = unfinished(TCP, false, true, 100);
        for len in 0..whole.len() {
            let mut frame = whole[..len].to_vec();
            assert_ne!(finish_frame(&mut frame), Outcome::Finished);
            assert_eq!(frame, whole[..len]);
        }
    }
}
