//! P-1 at random: what is emitted parses back; anything else is refused without panic.

use crate::support::{OPTIONS, any_frame, every_kind, frame_of, padded};
use dcp_wire::*;
use proptest::prelude::*;

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
            crate::support::fix_ip_checksum(&mut frame);
            let error = parse_frame(OPTIONS, &frame).unwrap_err();
            assert!(matches!(error, ParseError::HeaderLength | ParseError::TooShort), "{error} at {len}");
            let error = parse_frame(OPTIONS, &padded(frame)).unwrap_err();
            assert_eq!(error, ParseError::HeaderLength, "padded, at {len}");
        }
    }
}
