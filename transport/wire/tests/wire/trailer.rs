//! The ICRC, against frames of real NICs (facts §7).

use crate::support::{OPTIONS, bytes_of, frame_of, headers, padded, write};
use dcp_wire::*;

const CNP: &str = concat!(
    "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b700280000",
    "8100ffff40000118000000000000000000000000000000000000000082fd002a",
);
const SEND: &str = concat!(
    "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca2",
    "2460ffff000000d300cf17104630818be28935d90e9a95505401be885e50000078f353f3",
);

#[test]
fn the_icrc_of_real_frames_is_golden() {
    for (hex, golden) in [(CNP, [0x82, 0xFD, 0x00, 0x2A]), (SEND, [0x78, 0xF3, 0x53, 0xF3])] {
        let frame = bytes_of(hex);
        let (frame_body, _) = frame.split_at(frame.len() - 4);
        assert_eq!(icrc(frame_body, []), Some(golden));
        assert_eq!(icrc(&frame_body[..57], frame_body[57..].chunks(5)), Some(golden), "in pieces");
        assert!(icrc_ok(&frame));
        assert!(icrc_ok(&[&frame[..], &[0; 9]].concat()), "padding");
    }
}

fn with_icrc(headers: &Headers, payload_len: usize) -> Vec<u8> {
    let mut frame = frame_of(headers, payload_len + 4);
    let end = frame.len() - 4;
    let crc = icrc(&frame[..end], []).unwrap();
    frame[end..].copy_from_slice(&crc);
    frame
}

#[test]
fn the_icrc_is_no_payload_and_covers_the_payload() {
    let options = ParseOptions { icrc: true, ..OPTIONS };
    for (headers, payload_len) in crate::support::every_kind() {
        if matches!(headers.kind, Kind::HeaderOnly(_)) {
            continue;
        }
        let frame = with_icrc(&headers, payload_len);
        let packet = parse_frame(options, &frame).unwrap();
        assert_eq!(packet.headers, headers);
        assert_eq!(usize::from(packet.payload_len), payload_len);
        assert!(icrc_ok(&padded(frame.clone())));
        for at in headers.len()..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x01;
            assert!(!icrc_ok(&damaged));
        }
    }
}

#[test]
fn what_changes_on_the_way_is_not_covered() {
    let frame = with_icrc(&headers(write(Part::Middle)), 100);
    let mut marked = frame.clone();
    assert_eq!(mark_ce(&mut marked), Ok(true));
    marked[22] = 1; // TTL
    marked[40] = 0xAA; // UDP checksum
    marked[46] |= 0x80; // BTH byte 4
    assert!(icrc_ok(&marked));
}

#[test]
fn a_trimmed_packet_has_no_icrc() {
    let options = ParseOptions { icrc: true, ..OPTIONS };
    let mut frame = with_icrc(&headers(write(Part::Middle)), 100);
    let len = trim(&mut frame).unwrap();
    assert!(matches!(parse_frame(options, &frame[..len]).unwrap().headers.kind, Kind::HeaderOnly(_)));
}

#[test]
fn a_frame_too_short_for_an_icrc_is_refused() {
    let options = ParseOptions { icrc: true, ..OPTIONS };
    let bare = frame_of(&headers(Kind::Cnp), 0);
    assert_eq!(parse_frame(options, &bare), Err(ParseError::HeaderLength));
    for len in 0..bare.len() {
        assert!(!icrc_ok(&bare[..len]));
    }
}
