//! S-0: what a switch takes for a DCP frame.

use crate::support::{bytes_of, every_kind, frame_of, headers, write};
use dcp_wire::*;

const PORTS: &[u16] = &[9, SERVICE_PORT];

fn tag(frame: &[u8]) -> Tag {
    classify(frame, PORTS).unwrap().tag
}

#[test]
fn every_kind_is_seen_with_its_tag_addresses_and_ecn() {
    for (mut headers, payload_len) in every_kind() {
        for vlan in [None, Some(VlanTag(7))] {
            headers.path.vlan = vlan;
            let seen = classify(&frame_of(&headers, payload_len), PORTS).unwrap();
            assert_eq!(seen.tag, headers.kind.tag());
            assert_eq!((seen.dst_mac, seen.src_mac), (headers.path.dst_mac, headers.path.src_mac));
            assert_eq!(seen.ecn, Ecn::Ect0);
        }
    }
}

// S-0
#[test]
fn what_is_not_dcp_has_tag_zero_whatever_its_tos_says() {
    let dcp = frame_of(&headers(write(Part::Middle)), 64);
    assert_eq!(tag(&dcp), Tag::Data);
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = dcp.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        tag(&frame)
    };
    assert_eq!(changed(36, &4791u16.to_be_bytes()), Tag::NotDcp, "port not in the set");
    assert_eq!(changed(36, &9u16.to_be_bytes()), Tag::Data, "another port of the set");
    assert_eq!(changed(14, &[0x46]), Tag::NotDcp, "IP options");
    assert_eq!(changed(14, &[0x65]), Tag::NotDcp, "IP version");
    assert_eq!(changed(23, &[6]), Tag::NotDcp, "TCP");
    assert_eq!(changed(20, &[0x20, 0x00]), Tag::NotDcp, "first fragment");
    assert_eq!(changed(20, &[0x00, 0x10]), Tag::NotDcp, "later fragment");
    assert_eq!(changed(12, &[0x86, 0xDD]), Tag::NotDcp, "IPv6");
    assert_eq!(changed(20, &[0x00, 0x00]), Tag::Data, "DF is the receiver's to check");
    assert_eq!(tag(&bytes_of("ffffffffffff020000000001080600010800060400010200")), Tag::NotDcp);
}

#[test]
fn runts_are_nothing_and_short_frames_are_not_dcp() {
    let frame = frame_of(&headers(write(Part::Middle)), 64);
    for len in 0..frame.len() {
        let seen = classify(&frame[..len], PORTS).map(|seen| seen.tag);
        let expected = match len {
            0..14 => None,
            14..42 => Some(Tag::NotDcp),
            _ => Some(Tag::Data),
        };
        assert_eq!(seen, expected, "{len}");
    }
}

#[test]
fn the_flow_hash_tells_flows_apart_and_keeps_one_together() {
    let hash = |src_port: u16, dst_ip: [u8; 4], msn: u32| {
        let mut headers = headers(write(Part::Middle));
        headers.path.src_port = src_port;
        headers.path.dst_ip = Ipv4Addr::from(dst_ip);
        if let Kind::Data(data) = &mut headers.kind {
            data.name.msn = Msn::from_low_bits(msn);
        }
        flow_hash(&frame_of(&headers, 64))
    };
    assert_eq!(hash(1, [10, 0, 0, 2], 1), hash(1, [10, 0, 0, 2], 2));
    // 4096 source ports over 4 and 16 paths: each gets its share ± 20 %.
    for paths in [4u32, 16] {
        let mut per_path = vec![0u32; paths as usize];
        for port in 0..4096 {
            per_path[(hash(port, [10, 0, 0, 2], 0) % paths) as usize] += 1;
        }
        let share = 4096 / paths;
        assert!(per_path.iter().all(|n| (share * 4 / 5..=share * 6 / 5).contains(n)), "{per_path:?}");
    }
}

#[test]
fn service_port_is_seen_before_a_frame_is_parsed() {
    for (mut headers, payload_len) in every_kind() {
        for vlan in [None, Some(VlanTag(7))] {
            headers.path.vlan = vlan;
            headers.path.dst_port = 17_792;
            let frame = frame_of(&headers, payload_len);
            assert_eq!(peek_service_port(&frame), Some(17_792));
            let shortest = if vlan.is_some() { 42 } else { 38 };
            for len in 0..frame.len() {
                assert_eq!(peek_service_port(&frame[..len]), (len >= shortest).then_some(17_792));
            }
        }
    }
    let dcp = frame_of(&headers(write(Part::Middle)), 64);
    for (at, byte) in [(12, 0x86), (13, 0x06), (14, 0x46), (14, 0x65), (23, 6)] {
        let mut other = dcp.clone();
        other[at] = byte;
        assert_eq!(peek_service_port(&other), None, "byte {at} is {byte:#x}");
    }
}
