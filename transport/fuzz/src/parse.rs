//! Any bytes as a frame: nothing panics, and what parses is emitted as what it says (P-1, A2).

use dcp_wire::{ICRC_LEN, Kind, ParseOptions, SERVICE_PORT};

use super::input::Input;

/// Parses a frame in every way, and rewrites it.
///
/// # Panics
/// When something does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let options = ParseOptions { icrc: input.byte() & 1 == 1, ..ParseOptions::default() };
    let mut frame = input.0.to_vec();
    mend(&mut frame);
    let _ = dcp_wire::peek_dest_qpn(&frame);
    let _ = dcp_wire::classify(&frame, &[SERVICE_PORT]);
    let _ = dcp_wire::icrc_ok(&frame);
    if let Ok(packet) = dcp_wire::parse_frame(options, &frame) {
        let (start, len) = (usize::from(packet.payload_offset), usize::from(packet.payload_len));
        assert!(start + len <= frame.len(), "payload inside the frame");
        assert_eq!(start, packet.headers.len());
        let header_only = matches!(packet.headers.kind, Kind::HeaderOnly(_));
        let trailer = if options.icrc && !header_only { ICRC_LEN } else { 0 };
        let mut copy = vec![0; start + len + trailer];
        dcp_wire::emit(&packet.headers, len + trailer, &mut copy);
        let again = dcp_wire::parse_frame(options, &copy).expect("what was parsed is legal");
        assert_eq!(again, packet);
    }
    let mut marked = frame.clone();
    let _ = dcp_wire::mark_ce(&mut marked);
    if let Ok(len) = dcp_wire::trim(&mut frame) {
        assert!(len <= frame.len());
        frame.truncate(len);
        let rewrite =
            dcp_wire::BounceRewrite { dest_qpn: dcp_wire::Qpn::default(), src_port: 1, dst_port: 2 };
        let _ = dcp_wire::bounce(&mut frame, &rewrite);
    }
}

/// Repairs the IP checksum, behind which a fuzzer would get only by luck.
pub fn mend(frame: &mut [u8]) {
    let tagged = frame.get(12..14) == Some(&[0x81, 0x00]);
    let ip_at = if tagged { 18 } else { 14 };
    if let Some(header) = frame.get_mut(ip_at..).and_then(|ip| ip.first_chunk_mut::<20>()) {
        let sum = dcp_wire::ip_checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
