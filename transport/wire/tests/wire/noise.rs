//! A6: what else arrives on an Ethernet port is ignored, and counted by reason.

use crate::support::{OPTIONS, bytes_of, fix_ip_checksum, frame_of, headers, padded, write};
use dcp_wire::*;

fn refusal(frame: &[u8]) -> ParseError {
    parse_frame(OPTIONS, frame).unwrap_err()
}

/// A right frame, changed and given its IP checksum again.
fn changed(edit: impl FnOnce(&mut Vec<u8>)) -> ParseError {
    let mut frame = frame_of(&headers(write(Part::Middle)), 64);
    edit(&mut frame);
    fix_ip_checksum(&mut frame);
    refusal(&frame)
}

#[test]
fn arp_is_another_ether_type() {
    let arp =
        bytes_of("ffffffffffff02000000000108060001080006040001020000000001c0a800010000000000000a000002");
    assert_eq!(refusal(&arp), ParseError::EtherType);
    assert_eq!(refusal(&padded(arp)), ParseError::EtherType);
}

#[test]
fn ipv6_neighbour_discovery_is_another_ether_type() {
    let mut frame = bytes_of("3333ff00000202000000000186dd6000000000203aff");
    frame.resize(86, 0);
    assert_eq!(refusal(&frame), ParseError::EtherType);
}

#[test]
fn all_zero_frames_of_net_null_are_noise() {
    for len in 0..200 {
        assert!(refusal(&vec![0; len]).is_noise());
    }
}

#[test]
fn all_ones_frames_are_noise() {
    for len in 0..200 {
        assert!(refusal(&vec![0xFF; len]).is_noise());
    }
}

#[test]
fn another_udp_port_is_noise() {
    assert_eq!(changed(|f| f[36..38].copy_from_slice(&4791u16.to_be_bytes())), ParseError::OtherPort);
}

#[test]
fn the_service_port_is_a_parameter() {
    let mut frame = frame_of(&headers(write(Part::Middle)), 64);
    frame[36..38].copy_from_slice(&9u16.to_be_bytes());
    let options = ParseOptions { service_port: 9, ..OPTIONS };
    assert_eq!(parse_frame(options, &frame).unwrap().headers.path.dst_port, 9);
}

#[test]
fn tcp_is_noise() {
    assert_eq!(changed(|f| f[23] = 6), ParseError::NotUdp);
}

// P-2
#[test]
fn ip_options_and_other_versions_are_refused() {
    for first in [0x46, 0x4F, 0x44, 0x55, 0x65, 0x00] {
        assert_eq!(changed(|f| f[14] = first), ParseError::IpHeader);
    }
}

// P-2
#[test]
fn fragments_and_fragmentable_datagrams_are_refused() {
    for flags in [0x2000u16, 0x6000, 0x4001, 0x5FFF, 0x0001, 0x0000, 0x8000, 0xC000] {
        assert_eq!(changed(|f| f[20..22].copy_from_slice(&flags.to_be_bytes())), ParseError::Fragment);
    }
}

#[test]
fn a_second_vlan_tag_is_another_ether_type() {
    let mut tagged = headers(write(Part::Middle));
    tagged.path.vlan = Some(VlanTag(5));
    let mut frame = frame_of(&tagged, 64);
    frame[16..18].copy_from_slice(&[0x81, 0x00]);
    assert_eq!(refusal(&frame), ParseError::EtherType);
}

#[test]
fn a_frame_to_a_broadcast_address_parses_and_leaves_the_verdict_to_the_queue_pair() {
    // The core compares addresses: it knows the QP's peer.
    let mut to_all = headers(write(Part::Middle));
    to_all.path.dst_mac = MacAddr([0xFF; 6]);
    assert_eq!(parse_frame(OPTIONS, &frame_of(&to_all, 64)).unwrap().headers, to_all);
}

#[test]
fn a_roce_cnp_of_a_real_nic_is_noise_on_our_port_and_untagged_on_its_own() {
    let cnp = bytes_of(concat!(
        "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201",
        "000012b700280000",
        "8100ffff4000011800000000",
        "0000000000000000000000000000000082fd002a",
    ));
    assert_eq!(refusal(&cnp), ParseError::OtherPort);
    let roce = ParseOptions { service_port: 4791, icrc: true };
    assert_eq!(parse_frame(roce, &cnp), Err(ParseError::TagOpcode));
    // With our tag it is our CNP: QPN 0x118, P_Key 0xFFFF, the ICRC no payload.
    let mut ours = cnp;
    ours[15] = 0x46;
    fix_ip_checksum(&mut ours);
    let packet = parse_frame(roce, &ours).unwrap();
    assert_eq!((packet.headers.kind, packet.headers.dest_qpn.get()), (Kind::Cnp, 0x118));
    assert_eq!((packet.headers.pkey, packet.payload_len, packet.ip_len), (PKey(0xFFFF), 0, 60));
}

#[test]
fn a_roce_send_of_a_real_nic_has_our_bth_fields() {
    // Its BTH byte 1 has PadCnt 2, bit 6 (RoCE's MigReq, our M) and SE 0: not ours, and said so.
    let send = bytes_of(concat!(
        "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007",
        "c00012b7002caca2",
        "2460ffff000000d300cf1710",
        "4630818be28935d90e9a95505401be885e50000078f353f3",
    ));
    let mut ours = send;
    let roce = ParseOptions { service_port: 4791, icrc: true };
    ours[15] = 0x49;
    ours[40..42].copy_from_slice(&[0, 0]);
    fix_ip_checksum(&mut ours);
    assert_eq!(parse_frame(roce, &ours), Err(ParseError::TagOpcode), "UC opcode 0x24");
    ours[42] = 0x04;
    assert_eq!(parse_frame(roce, &ours), Err(ParseError::PadCount));
    ours[43] = 0x40;
    assert_eq!(parse_frame(roce, &ours), Err(ParseError::ReservedBits));
    ours[43] = 0x00;
    assert_eq!(parse_frame(roce, &ours), Err(ParseError::PsnOpcode), "PSN 0xCF1710 of an ONLY");
    ours[42] = 0x01;
    let packet = parse_frame(roce, &ours).unwrap();
    let Kind::Data(data) = packet.headers.kind else { panic!("{packet:?}") };
    assert_eq!((data.name.psn.get(), data.name.msn.get()), (0x00CF_1710, 0x0046_3081));
    assert_eq!((packet.headers.dest_qpn.get(), packet.headers.pkey), (0xD3, PKey(0xFFFF)));
    // 24 bytes behind the BTH: MSN, SSN, payload, ICRC.
    assert_eq!(packet.payload_len, 24 - 3 - 3 - 4);
}

#[test]
fn every_reason_has_its_own_counter() {
    for (index, reason) in ParseError::ALL.into_iter().enumerate() {
        assert_eq!(reason.index(), index);
        assert_eq!(ParseError::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
    }
}
