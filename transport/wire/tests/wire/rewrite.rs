//! D1, R-10, R-12, S-2, S-6: frames changed in place.

use crate::support::{
    OPTIONS, any_frame, bytes_of, every_kind, fix_ip_checksum, frame_of, headers, padded, reference_checksum,
    write,
};
use dcp_wire::*;
use proptest::prelude::*;

const REWRITE: BounceRewrite =
    BounceRewrite { dest_qpn: Qpn::from_low_bits(0xABCDEF), src_port: 0x1234, dst_port: 0x5678 };

fn trimmed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let len = trim(&mut frame).unwrap();
    frame.truncate(len);
    frame
}

// D1, golden: the WRITE_MIDDLE of `golden.rs` and what S-2 makes of it.
#[test]
fn a_trimmed_frame_has_its_golden_bytes() {
    let mut frame = bytes_of(concat!(
        "0200000000020200000000010800",
        "4559003f00004000401126530a0000010a000002c123457f002b1234",
        "0700beef2a0a1b2c3c000002fffffe",
        "0000000100000010000000070000200361626364",
    ));
    frame[24..26].copy_from_slice(&[0, 0]);
    fix_ip_checksum(&mut frame);
    let golden = bytes_of(concat!(
        "0200000000020200000000010800",
        "455d002b000040004011",
        "2663",
        "0a0000010a000002c123457f00170000",
        "0700beef2a0a1b2c3c000002fffffe",
    ));
    assert_eq!(trimmed(&frame), golden);
}

// D1
#[test]
fn every_trimmed_data_packet_is_a_header_only_packet() {
    for (headers, payload_len) in every_kind() {
        let Kind::Data(data) = headers.kind else { continue };
        for vlan in [None, Some(VlanTag(0xFFFF))] {
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let mut headers = headers;
                headers.path.vlan = vlan;
                headers.path.ecn = ecn;
                let ho = trimmed(&frame_of(&headers, payload_len));
                assert_eq!(ho.len(), 57 + if vlan.is_some() { 4 } else { 0 });
                let packet = parse_frame(OPTIONS, &padded(ho)).unwrap();
                let expected = HeaderOnly {
                    name: data.name,
                    opcode: data.opcode(),
                    returned: false,
                    ack_req: data.ack_req,
                    solicited: data.solicited,
                };
                assert_eq!(packet.headers.kind, Kind::HeaderOnly(expected));
                assert_eq!(packet.headers.path, headers.path, "ECN, class and addresses are kept");
                assert_eq!((packet.ip_len, packet.payload_len), (43, 0));
            }
        }
    }
}

// D1, S-2: not longer than 57 bytes, so only the tag changes.
#[test]
fn a_short_frame_is_only_retagged() {
    for udp_payload in [0usize, 7, 15] {
        let mut frame = frame_of(&headers(write(Part::Middle)), 0);
        frame.truncate(42 + udp_payload);
        frame[16..18].copy_from_slice(&u16::try_from(28 + udp_payload).unwrap().to_be_bytes());
        frame[38..40].copy_from_slice(&u16::try_from(8 + udp_payload).unwrap().to_be_bytes());
        frame[40..42].copy_from_slice(&[0xAB, 0xCD]);
        fix_ip_checksum(&mut frame);
        let mut expected = frame.clone();
        expected[15] |= 0x0C;
        fix_ip_checksum(&mut expected);
        assert_eq!(trimmed(&frame), expected);
        assert_eq!(trimmed(&padded(frame)), expected, "padding is no part of the frame");
    }
}

#[test]
fn a_trimmed_frame_trims_to_itself() {
    let once = trimmed(&frame_of(&headers(write(Part::Middle)), 1000));
    assert_eq!(trimmed(&once), once);
}

#[test]
fn a_frame_that_lies_about_its_length_is_not_trimmed_nor_changed() {
    let whole = frame_of(&headers(write(Part::Middle)), 1000);
    for len in 0..57 {
        let mut frame = whole[..len].to_vec();
        assert_eq!(trim(&mut frame), Err(NotDcp));
        assert_eq!(frame, whole[..len]);
    }
    let mut frame = whole;
    frame[16..18].copy_from_slice(&27u16.to_be_bytes());
    assert_eq!(trim(&mut frame), Err(NotDcp), "no room for a UDP header");
}

// A damaged header must not be made whole by a switch.
#[test]
fn trimming_and_marking_keep_a_wrong_ip_checksum_wrong() {
    let mut frame = frame_of(&headers(write(Part::Middle)), 1000);
    frame[30] ^= 0x10;
    assert_eq!(parse_frame(OPTIONS, &trimmed(&frame)), Err(ParseError::IpChecksum));
    assert_eq!(mark_ce(&mut frame), Ok(true));
    assert_eq!(parse_frame(OPTIONS, &frame), Err(ParseError::IpChecksum));
}

// A7
#[test]
fn incremental_checksum_equals_full_recompute_for_all_tos_values() {
    for from in 0..=255u8 {
        let mut frame = frame_of(&headers(write(Part::Middle)), 8);
        frame[15] = from;
        fix_ip_checksum(&mut frame);
        let header: [u8; 20] = frame[14..34].try_into().unwrap();
        for to in 0..=255u8 {
            let mut changed = header;
            changed[1] = to;
            let old = u16::from_be_bytes([header[10], header[11]]);
            let word = |h: &[u8; 20]| u16::from_be_bytes([h[0], h[1]]);
            assert_eq!(update_checksum(old, word(&header), word(&changed)), reference_checksum(&changed));
        }
        // And as marking and trimming use it.
        let mut marked = frame.clone();
        assert_eq!(mark_ce(&mut marked), Ok(from & 3 != 0));
        assert_eq!(marked[15], if from & 3 == 0 { from } else { from | 3 });
        let ho = trimmed(&frame);
        assert_eq!(ho[15], from | 0x0C);
        for frame in [marked, ho] {
            let header: &[u8; 20] = frame[14..34].try_into().unwrap();
            assert_eq!(header[10..12], reference_checksum(header).to_be_bytes());
        }
    }
}

//
#[test]
fn a_bounced_header_only_packet_goes_back_to_its_sender() {
    for vlan in [None, Some(VlanTag(0x0123))] {
        let mut sent = headers(write(Part::Middle));
        sent.path.vlan = vlan;
        sent.path.ecn = Ecn::Ce;
        sent.path.ttl = 3;
        let mut ho = trimmed(&frame_of(&sent, 1000));
        bounce(&mut ho, &REWRITE).unwrap();
        let packet = parse_frame(ParseOptions { service_port: 0x5678, ..OPTIONS }, &ho).unwrap();
        let path = Path {
            src_mac: sent.path.dst_mac,
            dst_mac: sent.path.src_mac,
            src_ip: sent.path.dst_ip,
            dst_ip: sent.path.src_ip,
            src_port: 0x1234,
            dst_port: 0x5678,
            ttl: 64,
            ..sent.path
        };
        assert_eq!(packet.headers.path, path, "VLAN tag, class and ECN are kept");
        assert_eq!(packet.headers.dest_qpn.get(), 0xABCDEF);
        assert_eq!(packet.headers.pkey, sent.pkey);
        let (Kind::HeaderOnly(ho), Kind::Data(data)) = (packet.headers.kind, sent.kind) else { panic!() };
        assert!(ho.returned);
        assert_eq!(ho.name, data.name);
    }
}

#[test]
fn only_a_header_only_packet_is_bounced() {
    let mut data = frame_of(&headers(write(Part::Middle)), 1000);
    let before = data.clone();
    assert_eq!(bounce(&mut data, &REWRITE), Err(NotDcp));
    assert_eq!(data, before);
    let ho = trimmed(&data);
    for len in 0..57 {
        assert_eq!(bounce(&mut ho[..len].to_vec(), &REWRITE), Err(NotDcp));
    }
}

proptest! {
    // S-2, R-10, R-12 against building the same frame from scratch.
    #[test]
    fn trim_and_bounce_equal_a_fresh_header_only_packet((mut headers, payload_len) in any_frame()) {
        let mut frame = frame_of(&headers, payload_len);
        if let Kind::Data(data) = headers.kind {
            headers.kind = Kind::HeaderOnly(HeaderOnly {
                name: data.name,
                opcode: data.opcode(),
                returned: false,
                ack_req: data.ack_req,
                solicited: data.solicited,
            });
            let len = trim(&mut frame).unwrap();
            frame.truncate(len);
            prop_assert_eq!(&frame, &frame_of(&headers, 0));
        }
        if let Kind::HeaderOnly(ho) = &mut headers.kind {
            bounce(&mut frame, &REWRITE).unwrap();
            ho.returned = true;
            headers.dest_qpn = REWRITE.dest_qpn;
            let path = &mut headers.path;
            core::mem::swap(&mut path.src_mac, &mut path.dst_mac);
            core::mem::swap(&mut path.src_ip, &mut path.dst_ip);
            (path.src_port, path.dst_port, path.ttl) = (REWRITE.src_port, REWRITE.dst_port, 64);
            prop_assert_eq!(&frame, &frame_of(&headers, 0));
        }
    }
}
