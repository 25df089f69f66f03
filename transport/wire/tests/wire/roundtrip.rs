//! P-1 at random: what is emitted parses back; anything else is refused without panic.

use crate::support::{OPTIONS, any_frame, every_kind, fix_ip_checksum, frame_of, headers, padded};
use dcp_wire::*;
use proptest::prelude::*;

/// A tag and a UDP payload of random bytes: mostly an opcode of that tag, and a length near the right one.
fn any_body() -> impl Strategy<Value = (Tag, Vec<u8>)> {
    let kinds: Vec<(Tag, u8, usize)> = every_kind()
        .into_iter()
        .map(|(headers, payload_len)| {
            let frame = frame_of(&headers, payload_len);
            (headers.kind.tag(), frame[42], frame.len() - 42)
        })
        .collect();
    let choices = kinds.len();
    (0..choices, any::<Option<u8>>(), -2i32..3, proptest::collection::vec(any::<u8>(), 90)).prop_map(
        move |(choice, wild, extra, mut body)| {
            let (tag, opcode, len) = kinds[choice];
            body[0] = opcode;
            body.truncate(len.saturating_add_signed(if extra.abs() == 2 { extra as isize } else { 0 }));
            // One body in two has something else in a random place.
            if let Some(wild) = wild {
                let at = usize::from(wild) % body.len();
                body[at] = wild.rotate_left(3);
            }
            (tag, body)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_emitted_frame_parses_back((headers, payload_len) in any_frame()) {
        let frame = frame_of(&headers, payload_len);
        let packet = parse_frame(OPTIONS, &frame).unwrap();
        prop_assert_eq!(packet.headers, headers);
        prop_assert_eq!(usize::from(packet.payload_len), payload_len);
        prop_assert_eq!(usize::from(packet.payload_offset), headers.len());
    }

    // A1
    #[test]
    fn padding_changes_nothing((headers, payload_len) in any_frame(), padding in 0usize..80) {
        let mut frame = frame_of(&headers, payload_len);
        let packet = parse_frame(OPTIONS, &frame).unwrap();
        frame.resize(frame.len() + padding, 0xA5);
        prop_assert_eq!(parse_frame(OPTIONS, &frame), Ok(packet));
    }

    // A2
    #[test]
    fn no_prefix_of_a_frame_is_delivered((headers, payload_len) in any_frame()) {
        let frame = frame_of(&headers, payload_len);
        for len in 0..frame.len() {
            prop_assert!(parse_frame(OPTIONS, &frame[..len]).is_err());
            prop_assert!(parse(OPTIONS, &frame[..len.min(PARSE_LEN)], len, || true).is_err());
        }
    }

    // P-1
    #[test]
    fn arbitrary_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), frame_len in 0usize..300) {
        // A wrong IP checksum alone refuses all but one in 65536; the rest must be legal to be taken.
        if let Ok(packet) = parse(OPTIONS, &bytes, frame_len, || true) {
            prop_assert!(usize::from(packet.payload_offset) + usize::from(packet.payload_len) <= frame_len);
        }
        let mut copy = bytes.clone();
        let _ = (trim(&mut copy), mark_ce(&mut copy), classify(&bytes, &[SERVICE_PORT]), icrc_ok(&bytes));
        let rewrite = BounceRewrite { dest_qpn: Qpn::from_low_bits(1), src_port: 1, dst_port: 2 };
        let _ = bounce(&mut copy, &rewrite);
    }

    // P-1, behind the checks of the lower layers: right Ethernet, IPv4 and UDP headers around random bytes.
    #[test]
    fn a_random_body_is_refused_or_reads_as_what_it_says(
        (tag, mut body) in any_body(), masks in any::<[bool; 5]>(),
    ) {
        // Random bits nearly always hit a reserved one; so groups of them are cleared, each half the time.
        let groups: [&[(usize, u8)]; 5] = [
            &[(1, 0xC0)],
            &[(4, 0x3F), (8, 0xFF)],
            &[(1, 0x40), (4, 0), (8, 0)],
            &[(9, 0), (10, 0), (11, 0)],
            &[(12, 0), (13, 0), (14, 0), (15, 0), (16, 0), (17, 0)],
        ];
        for (at, mask) in groups.iter().zip(masks).filter(|(_, on)| *on).flat_map(|(group, _)| *group) {
            if let Some(byte) = body.get_mut(*at) {
                *byte &= mask;
            }
        }
        let mut frame = frame_of(&headers(Kind::Cnp), 0);
        frame.truncate(42);
        frame.extend_from_slice(&body);
        frame[15] = frame[15] & !0x0C | tag.tos_bits();
        frame[16..18].copy_from_slice(&u16::try_from(28 + body.len()).unwrap().to_be_bytes());
        frame[38..40].copy_from_slice(&u16::try_from(8 + body.len()).unwrap().to_be_bytes());
        fix_ip_checksum(&mut frame);
        let result = parse_frame(OPTIONS, &frame);
        prop_assert_eq!(parse_frame(OPTIONS, &padded(frame.clone())).ok(), result.ok());
        if let Ok(packet) = result {
            prop_assert_eq!(packet.headers.kind.tag(), tag);
            let len = packet.headers.len();
            prop_assert_eq!(&frame_of(&packet.headers, usize::from(packet.payload_len))[..len], &frame[..len]);
        }
    }

    /// What is taken in spite of damage is canonical: its headers emit the very bytes that were read.
    #[test]
    fn a_mutated_frame_is_refused_or_reads_as_what_it_now_says(
        (headers, payload_len) in any_frame(), at in 0usize..120, bits in 1u8..=255, fix in any::<bool>(),
    ) {
        let mut frame = frame_of(&headers, payload_len);
        let at = at % frame.len();
        frame[at] ^= bits;
        let l2 = headers.len() - headers.kind.len() + 14;
        if fix && frame.len() > l2 + 20 {
            let sum = ip_checksum(frame[l2..l2 + 20].try_into().unwrap());
            frame[l2 + 10..l2 + 12].copy_from_slice(&sum.to_be_bytes());
        }
        if let Ok(packet) = parse(OPTIONS, &frame, frame.len(), || true) {
            let mut again = vec![0; packet.headers.len()];
            let len = emit(&packet.headers, usize::from(packet.payload_len), &mut again);
            // Not read: IP identification. Not emitted: a UDP checksum.
            let ip = len - packet.headers.kind.len() + 14;
            for offset in [ip + 4, ip + 5, ip + 10, ip + 11, ip + 26, ip + 27] {
                again[offset] = frame[offset];
            }
            prop_assert_eq!(&again[..], &frame[..len]);
        }
    }
}

#[test]
fn every_prefix_of_every_kind_is_refused_by_its_own_length_too() {
    // A2, harder: the lengths inside agree with the cut, so only the header length is wrong.
    for (headers, _) in every_kind() {
        let whole = frame_of(&headers, 0);
        for len in 42..whole.len() {
            let mut frame = whole[..len].to_vec();
            frame[16..18].copy_from_slice(&u16::try_from(len - 14).unwrap().to_be_bytes());
            frame[38..40].copy_from_slice(&u16::try_from(len - 34).unwrap().to_be_bytes());
            fix_ip_checksum(&mut frame);
            let error = parse_frame(OPTIONS, &frame).unwrap_err();
            assert!(matches!(error, ParseError::HeaderLength | ParseError::TooShort), "{error} at {len}");
            let error = parse_frame(OPTIONS, &padded(frame)).unwrap_err();
            assert_eq!(error, ParseError::HeaderLength, "padded, at {len}");
        }
    }
}
