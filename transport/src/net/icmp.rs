//! ICMP echo: `ping` finds out whether a device answers.

use std::net::Ipv4Addr;

use dcp_wire::{ETHERNET_LEN, IP_LEN, MacAddr, OnesSum, ip_checksum};

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const PROTOCOL_ICMP: u8 = 1;
/// Type, code, checksum, identifier, sequence number.
const ICMP_LEN: usize = 8;
const ICMP_AT: usize = ETHERNET_LEN + IP_LEN;
const TTL: u8 = 64;

/// Turns an echo request to `mac` and `ip` into its answer, in place, and returns the answer's length; `None`, and
/// nothing changed, for any other frame.
///
/// Not for fragments, nor where a checksum is wrong, nor for requests to or from groups: an answer to those is a weapon.
pub(super) fn answer_echo(frame: &mut [u8], mac: MacAddr, ip: Ipv4Addr) -> Option<usize> {
    let len = check(frame, mac, ip)?;
    let frame = &mut frame[..len];
    let (destination, rest) = frame.split_at_mut(6);
    destination.swap_with_slice(&mut rest[..6]);
    let (source, rest) = frame[ETHERNET_LEN + 12..].split_at_mut(4);
    source.swap_with_slice(&mut rest[..4]);
    frame[ETHERNET_LEN + 8] = TTL;
    let header: [u8; IP_LEN] = *frame[ETHERNET_LEN..].first_chunk()?;
    let checksum = ip_checksum(&header);
    frame[ETHERNET_LEN + 10..][..2].copy_from_slice(&checksum.to_be_bytes());
    frame[ICMP_AT] = ECHO_REPLY;
    frame[ICMP_AT + 2..][..2].fill(0);
    let checksum = !sum(&frame[ICMP_AT..]);
    frame[ICMP_AT + 2..][..2].copy_from_slice(&checksum.to_be_bytes());
    Some(len)
}

/// Length of an echo request without padding.
fn check(frame: &[u8], mac: MacAddr, ip: Ipv4Addr) -> Option<usize> {
    let header: &[u8; IP_LEN] = frame.get(ETHERNET_LEN..)?.first_chunk()?;
    let for_us = frame[..6] == mac.0 && header[16..20] == ip.octets();
    let is_icmp = frame[12..14] == [8, 0] && header[0] == 0x45 && header[9] == PROTOCOL_ICMP;
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
    let from_host =
        frame[6] & 1 == 0 && !source.is_multicast() && !source.is_broadcast() && !source.is_unspecified();
    if !(for_us && is_icmp && is_whole && from_host) || sum(header) != 0xffff {
        return None;
    }
    let len = ETHERNET_LEN + usize::from(u16::from_be_bytes([header[2], header[3]]));
    let message = frame.get(ICMP_AT..len)?;
    let is_echo = message.len() >= ICMP_LEN && message[0] == ECHO_REQUEST && message[1] == 0;
    (is_echo && sum(message) == 0xffff).then_some(len)
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum = OnesSum::default();
    sum.add(bytes);
    sum.fold()
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEM: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const OUR_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn request(payload: usize) -> Vec<u8> {
        let mut frame = [US.0, THEM.0].concat();
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(u16::try_from(IP_LEN + ICMP_LEN + payload).unwrap().to_be_bytes());
        frame.extend([0, 7, 0x40, 0, 63, PROTOCOL_ICMP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
        frame.extend([ECHO_REQUEST, 0, 0, 0, 0x12, 0x34, 0, 1]);
        frame.extend((0..payload).map(|it| u8::try_from(it % 251).unwrap()));
        seal(&mut frame);
        frame
    }

    fn seal(frame: &mut [u8]) {
        frame[24..26].fill(0);
        let checksum = ip_checksum(frame[ETHERNET_LEN..].first_chunk().unwrap());
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[36..38].fill(0);
        let checksum = !sum(&frame[ICMP_AT..]);
        frame[36..38].copy_from_slice(&checksum.to_be_bytes());
    }

    #[test]
    fn answer_goes_back_with_the_same_payload_and_right_checksums() {
        for payload in [0, 1, 56, 1472] {
            let asked = request(payload);
            let mut frame = asked.clone();
            // Padding of short frames is not sent back.
            frame.resize(frame.len().max(60), 0);
            assert_eq!(answer_echo(&mut frame, US, OUR_IP), Some(asked.len()));
            let frame = &frame[..asked.len()];
            assert_eq!((&frame[..6], &frame[6..12]), (&THEM.0[..], &US.0[..]));
            assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
            assert_eq!((frame[22], frame[ICMP_AT]), (TTL, ECHO_REPLY));
            assert_eq!(frame[ICMP_AT + 4..], asked[ICMP_AT + 4..]);
            assert_eq!((sum(&frame[ETHERNET_LEN..ICMP_AT]), sum(&frame[ICMP_AT..])), (0xffff, 0xffff));
        }
    }

    #[test]
    fn anything_else_is_left_alone() {
        // Other MAC, sender is a group, EtherType, options, fragment, TTL without checksum, protocol, other address,
        // source is a group, answer, code, checksum.
        let changes = [(5, 9), (6, 3), (12, 9), (14, 0x46), (20, 0x20), (21, 1), (22, 9), (23, 17), (33, 9)];
        let more = [(26, 224), (ICMP_AT, 0), (ICMP_AT + 1, 1)];
        for (at, value) in changes.into_iter().chain(more) {
            let mut frame = request(56);
            frame[at] = value;
            if at != 22 {
                seal(&mut frame);
            }
            let before = frame.clone();
            assert_eq!(answer_echo(&mut frame, US, OUR_IP), None, "byte {at}");
            assert_eq!(frame, before);
        }
        let mut damaged = request(56);
        damaged[60] ^= 1;
        assert_eq!(answer_echo(&mut damaged, US, OUR_IP), None);
    }

    #[test]
    fn short_and_lying_frames_are_left_alone() {
        let whole = request(56);
        for len in 0..whole.len() {
            assert_eq!(answer_echo(&mut whole[..len].to_vec(), US, OUR_IP), None, "{len}");
        }
        for total in [0, 19, 20, 27, 85, 0xffff_u16] {
            let mut frame = whole.clone();
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            seal(&mut frame);
            assert_eq!(answer_echo(&mut frame, US, OUR_IP), None, "{total}");
        }
    }
}
