//! A1–A5, A7–A10: broken frames are dropped by reason, odd but legal ones parse.

use crate::support::{
    OPTIONS, ack, every_kind, fix_ip_checksum, frame_of, has_payload, header_only, headers, padded,
    probe_ack, write,
};
use dcp_wire::*;

fn refusal(frame: &[u8]) -> ParseError {
    parse_frame(OPTIONS, frame).unwrap_err()
}

fn put16(frame: &mut [u8], at: usize, value: usize) {
    frame[at..at + 2].copy_from_slice(&u16::try_from(value).unwrap().to_be_bytes());
}

/// Sets both lengths of an untagged frame as if its datagram had `extra` bytes more.
fn lengthen(frame: &mut Vec<u8>, extra: usize) {
    frame.resize(frame.len() + extra, 0);
    let len = frame.len();
    put16(frame, 16, len - 14);
    put16(frame, 38, len - 34);
    fix_ip_checksum(frame);
}

// A1
#[test]
fn short_frames_parse_alike_with_and_without_padding() {
    for kind in
        [write(Part::Only(None)), header_only(false, DataOpcode::SendMiddle), ack(Stream::Requests, None)]
    {
        let frame = frame_of(&headers(kind), 0);
        let packet = parse_frame(OPTIONS, &frame).unwrap();
        assert_eq!(packet.payload_len, 0);
        assert_eq!(parse_frame(OPTIONS, &padded(frame)), Ok(packet));
    }
}

// A2
#[test]
fn an_ip_length_beyond_the_frame_is_refused() {
    for (headers, payload_len) in every_kind() {
        let mut frame = frame_of(&headers, payload_len);
        let len = frame.len();
        put16(&mut frame, 16, len - 14 + 1);
        put16(&mut frame, 38, len - 34 + 1);
        fix_ip_checksum(&mut frame);
        assert_eq!(refusal(&frame), ParseError::IpLength);
    }
}

// A2
#[test]
fn ip_and_udp_lengths_that_disagree_are_refused() {
    let good = frame_of(&headers(write(Part::Middle)), 64);
    for wrong in [0, 7, 8, 22, good.len() - 35, good.len() - 33, 65_535] {
        let mut frame = good.clone();
        put16(&mut frame, 38, wrong);
        assert_eq!(refusal(&frame), ParseError::UdpLength, "UDP length {wrong}");
    }
    for wrong in [0, 19, 20, 27, good.len() - 15] {
        let mut frame = good.clone();
        put16(&mut frame, 16, wrong);
        fix_ip_checksum(&mut frame);
        assert_eq!(refusal(&frame), ParseError::UdpLength, "IP length {wrong}");
    }
}

// P-2
#[test]
fn kinds_without_payload_have_exactly_one_length() {
    for (headers, _) in every_kind() {
        let mut frame = frame_of(&headers, 0);
        lengthen(&mut frame, 1);
        match headers.kind {
            Kind::Data(data) if has_payload(data.opcode()) => assert!(parse_frame(OPTIONS, &frame).is_ok()),
            Kind::HeaderOnly(_) => assert_eq!(refusal(&frame), ParseError::HeaderLength, "UDP length 23"),
            _ => assert_eq!(refusal(&frame), ParseError::Payload, "{:?}", headers.kind),
        }
    }
}

// P-2
#[test]
fn a_tag_that_disagrees_with_the_opcode_is_refused() {
    for (headers, payload_len) in every_kind() {
        for tag in [Tag::NotDcp, Tag::Ack, Tag::Data, Tag::HeaderOnly] {
            let own = headers.kind.tag();
            let mut frame = frame_of(&headers, payload_len);
            frame[15] = frame[15] & !0x0C | tag.tos_bits();
            fix_ip_checksum(&mut frame);
            let result = parse_frame(OPTIONS, &frame);
            match (own, tag) {
                _ if own == tag => assert!(result.is_ok()),
                // Same opcodes: the length tells, and R.
                (Tag::Data, Tag::HeaderOnly) => assert_eq!(result, Err(ParseError::HeaderLength)),
                (Tag::HeaderOnly, Tag::Data) => assert_eq!(result, Err(ParseError::HeaderLength)),
                _ => assert!(result.is_err(), "{:?} as {tag:?}", headers.kind),
            }
        }
    }
}

#[test]
fn unknown_opcodes_are_refused_with_every_tag() {
    for (headers, _) in every_kind() {
        let own = headers.kind.tag();
        for opcode in 0..=255u8 {
            let mut frame = frame_of(&headers, 0);
            frame.resize(200, 0);
            lengthen(&mut frame, 0);
            frame[42] = opcode;
            let known = match own {
                Tag::Ack => matches!(opcode, 0x11 | 0x81 | 0xC0 | 0xC1),
                _ => opcode <= 0x14 && opcode != 0x11,
            };
            if !known {
                let error = refusal(&frame);
                assert!(
                    matches!(error, ParseError::TagOpcode | ParseError::ReservedBits),
                    "{opcode:#x}: {error}"
                );
            }
        }
    }
}

#[test]
fn reserved_bits_are_refused_where_the_kind_has_none() {
    // (BTH byte 1, BTH byte 4, BTH byte 8): bits that the kind may have.
    let legal = |kind: &Kind| match kind {
        Kind::Data(_) => (0x80, 0x3E, 0xFF),
        Kind::HeaderOnly(_) => (0x80, 0x3F, 0xFF),
        Kind::Ack(ack) if ack.nak.is_some() => (0x40, 0x3E, 0x7F),
        Kind::Ack(_) | Kind::Probe(_) | Kind::ProbeAck(_) => (0x40, 0x00, 0x00),
        Kind::Cnp => (0x00, 0x00, 0x00),
    };
    for (headers, payload_len) in every_kind() {
        let (flags, high, low) = legal(&headers.kind);
        for (at, mask) in [(43, flags), (46, high), (50, low)] {
            for bit in (0..8).map(|shift| 1u8 << shift) {
                let mut frame = frame_of(&headers, payload_len);
                frame[at] ^= bit;
                let result = parse_frame(OPTIONS, &frame);
                assert_eq!(result.is_ok(), mask & bit != 0, "{:?}: byte {at} bit {bit:#x}", headers.kind);
                if at == 43 && mask & bit == 0 {
                    let reason = match bit {
                        0x01..=0x08 => ParseError::TransportVersion,
                        0x10 | 0x20 => ParseError::PadCount,
                        _ => ParseError::ReservedBits,
                    };
                    assert_eq!(result, Err(reason));
                }
            }
        }
    }
}

#[test]
fn reserved_bytes_of_cnp_and_probe_are_zero() {
    let cnp = frame_of(&headers(Kind::Cnp), 0);
    for at in 54..70 {
        let mut frame = cnp.clone();
        frame[at] = 1;
        assert_eq!(refusal(&frame), ParseError::ReservedBits);
    }
    let mut probe = frame_of(&headers(Kind::Probe(Probe { stream: Stream::Requests, t1: Timestamp(0) })), 0);
    probe[59] = 1;
    assert_eq!(refusal(&probe), ParseError::ReservedBits);
}

// A3
#[test]
fn extreme_numbers_parse_as_they_are() {
    for (headers, payload_len) in every_kind() {
        for fill in [0x00, 0xFF] {
            let mut frame = frame_of(&headers, payload_len);
            frame[47..50].fill(fill);
            if matches!(headers.kind, Kind::Data(_) | Kind::HeaderOnly(_)) {
                frame[54..57].fill(fill);
            }
            let packet = parse_frame(OPTIONS, &frame).unwrap();
            assert_eq!(packet.headers.dest_qpn.get(), if fill == 0 { 0 } else { 0xFF_FFFF });
        }
    }
}

// A3: 2^31 bytes are the longest message.
#[test]
fn a_message_length_beyond_the_maximum_is_refused() {
    for (opcode, at) in [(0x07, 69), (0x0C, 69), (0x09, 72)] {
        let kind = match opcode {
            0x07 => write(Part::Middle),
            0x09 => write(Part::Last(Some(crate::support::write_imm(1)))),
            _ => crate::support::data(0, false, false, DataOp::ReadRequest(crate::support::RETH)),
        };
        let mut frame = frame_of(&headers(kind), 0);
        frame[at..at + 4].copy_from_slice(&0x8000_0000u32.to_be_bytes());
        assert!(parse_frame(OPTIONS, &frame).is_ok());
        frame[at..at + 4].copy_from_slice(&0x8000_0001u32.to_be_bytes());
        assert_eq!(refusal(&frame), ParseError::MessageLength);
        frame[at..at + 4].fill(0xFF);
        assert_eq!(refusal(&frame), ParseError::MessageLength);
    }
}

// A4: the part that needs no MTU.
#[test]
fn a_psn_that_disagrees_with_the_opcode_is_refused() {
    for (headers, payload_len) in every_kind() {
        let first = match headers.kind {
            Kind::Data(data) => data.opcode().is_first(),
            Kind::HeaderOnly(ho) => ho.opcode.is_first(),
            _ => continue,
        };
        for psn in [0u32, 1, 0xFF_FFFF] {
            let mut frame = frame_of(&headers, payload_len);
            frame[51..54].copy_from_slice(&psn.to_be_bytes()[1..]);
            let legal = first == (psn == 0);
            assert_eq!(parse_frame(OPTIONS, &frame).err(), (!legal).then_some(ParseError::PsnOpcode));
        }
    }
}

#[test]
fn unknown_syndromes_are_refused() {
    for syndrome in 0..=255u8 {
        let mut frame = frame_of(&headers(ack(Stream::Requests, Some(NakCode::Resync))), 0);
        frame[54] = syndrome;
        let known = matches!(syndrome, 0x20..=0x3F | 0x60..=0x63);
        let expected = match syndrome {
            0x1F => Some(ParseError::ReservedBits), // a plain ACK names no packet
            _ => (!known).then_some(ParseError::Syndrome),
        };
        assert_eq!(parse_frame(OPTIONS, &frame).err(), expected, "{syndrome:#x}");

        let mut frame = frame_of(&headers(probe_ack()), 0);
        frame[54] = syndrome;
        let expected = (syndrome != 0x1F).then_some(ParseError::Syndrome);
        assert_eq!(parse_frame(OPTIONS, &frame).err(), expected, "{syndrome:#x} in a PROBE_ACK");
    }
}

// A7
#[test]
fn a_udp_checksum_of_zero_is_legal_and_a_wrong_one_is_not() {
    for payload_len in [64, 63] {
        let mut frame = frame_of(&headers(write(Part::Middle)), payload_len);
        let never = || panic!("asked for a checksum that is not there");
        let packet = parse(OPTIONS, &frame, frame.len(), never).unwrap();
        // By hand: pseudo header, UDP header, payload; 16 bits at a time.
        let mut sum: u64 = 17 + u64::try_from(frame.len() - 34).unwrap();
        for pair in frame[26..].chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        let right = !u16::try_from(sum).unwrap();
        frame[40..42].copy_from_slice(&right.to_be_bytes());
        assert_eq!(parse_frame(OPTIONS, &padded(frame.clone())), Ok(packet));
        for bit in 0..16 {
            frame[40..42].copy_from_slice(&(right ^ (1 << bit)).to_be_bytes());
            assert_eq!(refusal(&frame), ParseError::UdpChecksum);
        }
        frame[40..42].copy_from_slice(&right.to_be_bytes());
        *frame.last_mut().unwrap() ^= 1;
        assert_eq!(refusal(&frame), ParseError::UdpChecksum);
    }
}

// A7
#[test]
fn a_wrong_ip_checksum_is_refused_for_every_bit_of_the_header() {
    let good = frame_of(&headers(write(Part::Middle)), 64);
    for at in 14..34 {
        for bit in 0..8 {
            let mut frame = good.clone();
            frame[at] ^= 1 << bit;
            assert!(parse_frame(OPTIONS, &frame).is_err(), "byte {at} bit {bit}");
        }
    }
}

// A7, golden: headers of two real NICs' frames.
#[test]
fn ip_checksum_is_golden() {
    let header = |hex| -> [u8; 20] { crate::support::bytes_of(hex).try_into().unwrap() };
    assert_eq!(ip_checksum(&header("45010040047840004011b4d5c0a80007c0a80007")), 0xB4D5);
    assert_eq!(ip_checksum(&header("45c2003c718c4000401191610a0011010a001201")), 0x9161);
}

// A8
#[test]
fn tagged_and_untagged_frames_parse_alike() {
    for (mut headers, payload_len) in every_kind() {
        let plain = parse_frame(OPTIONS, &frame_of(&headers, payload_len)).unwrap();
        for tag in [0x0000, 0x0FFF, 0xFFFF] {
            headers.path.vlan = Some(VlanTag(tag));
            let packet = parse_frame(OPTIONS, &padded(frame_of(&headers, payload_len))).unwrap();
            assert_eq!(packet.headers, headers);
            assert_eq!(packet.payload_offset, plain.payload_offset + 4);
            assert_eq!((packet.ip_len, packet.payload_len), (plain.ip_len, plain.payload_len));
        }
    }
}

// A8
#[test]
fn immediate_data_travels_in_network_order() {
    let kind = write(Part::Last(Some(WriteImm { ssn: Ssn::ZERO, imm: ImmData(0xDEAD_BEEF) })));
    let frame = frame_of(&headers(kind), 0);
    assert_eq!(frame[76..80], [0xDE, 0xAD, 0xBE, 0xEF]);
}

// A9
#[test]
fn a_frame_cut_short_is_not_a_trimmed_packet() {
    let frame = frame_of(&headers(write(Part::Middle)), 4096);
    for len in [1982, 73, 60, 57] {
        assert_eq!(refusal(&frame[..len]), ParseError::IpLength);
        let head = &frame[..len.min(PARSE_LEN)];
        assert_eq!(parse(OPTIONS, head, len, || true), Err(ParseError::IpLength));
    }
}

// A10: the driver gathers the first 128 bytes; what it gathers them from shows nowhere.
#[test]
fn headers_split_over_segments_parse_like_contiguous_ones() {
    for (headers, payload_len) in every_kind() {
        let frame = frame_of(&headers, payload_len);
        let whole = parse_frame(OPTIONS, &frame).unwrap();
        for cuts in [&[10, 32][..], &[14, 20, 8, 12]] {
            let mut head = Vec::new();
            let mut rest = &frame[..];
            for &cut in cuts {
                let (segment, tail) = rest.split_at(cut);
                head.extend_from_slice(segment);
                rest = tail;
            }
            head.extend_from_slice(rest);
            head.truncate(PARSE_LEN);
            assert_eq!(parse(OPTIONS, &head, frame.len(), || true), Ok(whole));
        }
    }
}

#[test]
fn a_udp_checksum_does_not_depend_on_how_the_datagram_is_cut() {
    let frame = frame_of(&headers(write(Part::Middle)), 301);
    let path = crate::support::path();
    let udp_len = u16::try_from(frame.len() - 34).unwrap();
    let mut datagram = frame[34..].to_vec();
    let mut sum = OnesSum::default();
    sum.add(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 17]);
    sum.add(&udp_len.to_be_bytes());
    sum.add(&datagram);
    datagram[6..8].copy_from_slice(&(!sum.fold()).to_be_bytes());
    for size in [1, 2, 3, 5, 7, 64, 1000] {
        assert!(
            udp_checksum_ok(path.src_ip, path.dst_ip, udp_len, datagram.chunks(size)),
            "pieces of {size}"
        );
    }
}

#[test]
fn fewer_bytes_in_hand_than_the_headers_need_is_too_short() {
    let frame = frame_of(&headers(write(Part::Middle)), 1024);
    for len in 0..73 {
        assert_eq!(parse(OPTIONS, &frame[..len], frame.len(), || true), Err(ParseError::TooShort), "{len}");
    }
    assert!(parse(OPTIONS, &frame[..73], frame.len(), || true).is_ok());
}
