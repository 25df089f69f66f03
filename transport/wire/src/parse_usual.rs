//! The usual frame: a WRITE without immediate, neither tagged nor with a UDP checksum, in which all is right.
//!
//! A shortcut for the rest of [`crate::parse`], which finds the same in such a frame, by a longer way: one check of the
//! length, and fields from fixed places.

use crate::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, FLAG_DF, IP_LEN, PROTOCOL_UDP, WRITE_LEN as LEN, bit, word,
};
use crate::{
    Data, DataOp, DataOpcode, Ecn, Generation, Headers, Ipv4Addr, Kind, MESSAGE_BYTES_MAX, MacAddr, Msn,
    PKey, Packet, PacketName, Part, Path, Psn, Qpn, RegionKey, Reth, Tag,
};

/// The same without the Ethernet header.
const IP_LEN_MIN: u16 = 59;

/// Its value; `None`: not that usual, or not right.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "fields are cut out of the words that hold them")]
pub(crate) fn parse_usual(service_port: u16, head: &[u8], frame_len: usize) -> Option<Packet> {
    let bytes: &[u8; LEN] = head.first_chunk()?;
    // IPv4 from offset 14 on in words of eight bytes: length, flags · TTL, protocol, source · destination, ports · UDP.
    let [start, middle, end] = [word(bytes, 14), word(bytes, 22), word(bytes, 30)];
    let is_plain = half(bytes, 12) == ETHERTYPE_IPV4
        && start & START_MASK == START
        && (middle >> 48) as u8 == PROTOCOL_UDP
        && end as u16 == service_port;
    let sum = [start, middle].map(|word| (word >> 32) + (word & 0xFFFF_FFFF));
    let (tos, ip_len) = ((start >> 48) as u8, (start >> 32) as u16);
    let udp = u32::from(ip_len.wrapping_sub(IP_LEN as u16)) << 16;
    // The sum is a multiple of 65535 exactly if it folds to 65535 or is 0, which the version's bits rule out.
    let is_right = (sum[0] + sum[1] + (end >> 32)).is_multiple_of(0xFFFF)
        && ip_len >= IP_LEN_MIN
        && ETHERNET_LEN + usize::from(ip_len) <= frame_len
        && (word(bytes, 38) >> 32) as u32 == udp;
    // BTH: opcode, flags, key, sRetryNo, queue pair · AckReq, sRetryNo, PSN, MSN.
    let [bth, name] = [word(bytes, 42), word(bytes, 50)];
    let flags_right = bth & FLAGS_MASK == 0;
    if !(is_plain && is_right && flags_right) {
        return None;
    }
    let (part, psn) = (part_of((bth >> 56) as u8)?, (name >> 32) as u32 & MASK_24);
    let dma_len = word(bytes, 65) as u32;
    if (psn == 0) != matches!(part, Part::First | Part::Only(_)) || dma_len > MESSAGE_BYTES_MAX {
        return None;
    }
    let (retry_high, retry_low) = ((bth >> 24) as u8 & bit::RETRY_HIGH, (name >> 56) as u8);
    let name = PacketName {
        msn: Msn::from_low_bits((name >> 8) as u32),
        psn: Psn::from_low_bits(psn),
        generation: Generation::from_low_bits(
            u16::from(retry_high) << 6 | u16::from(retry_low & bit::RETRY_LOW),
        ),
    };
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *bytes;
    let path = Path {
        src_mac: MacAddr([s0, s1, s2, s3, s4, s5]),
        dst_mac: MacAddr([d0, d1, d2, d3, d4, d5]),
        vlan: None,
        src_ip: Ipv4Addr::from(middle as u32),
        dst_ip: Ipv4Addr::from((end >> 32) as u32),
        src_port: (end >> 16) as u16,
        dst_port: service_port,
        class: tos >> 4,
        ecn: Ecn::from_tos(tos),
        ttl: (middle >> 56) as u8,
    };
    let reth = Reth { va: word(bytes, 57), rkey: RegionKey((word(bytes, 65) >> 32) as u32), dma_len };
    let data = Data {
        name,
        ack_req: retry_low & bit::ACK_REQ != 0,
        solicited: (bth >> 48) as u8 & bit::SOLICITED != 0,
        op: DataOp::Write { reth, part },
    };
    let headers = Headers {
        path,
        dest_qpn: Qpn::from_low_bits(bth as u32),
        pkey: PKey((bth >> 32) as u16),
        kind: Kind::Data(data),
    };
    Some(Packet { headers, ip_len, payload_offset: LEN as u16, payload_len: ip_len - IP_LEN_MIN })
}

const MASK_24: u32 = (1 << 24) - 1;
/// Version and header length, the tag for data, no fragment: of the IP header's first eight bytes.
const START: u64 = 0x45 << 56 | (Tag::Data.tos_bits() as u64) << 48 | FLAG_DF as u64;
const START_MASK: u64 = 0xFF << 56 | (Tag::MASK as u64) << 48 | 0xFFFF;
/// Bits of a data packet's first eight BTH bytes that are 0: all flags but "solicited", reserved ones beside sRetryNo.
const FLAGS_MASK: u64 = ((!bit::SOLICITED as u64) << 48) | ((!bit::RETRY_HIGH as u64) << 24);

#[inline(always)]
fn part_of<I>(opcode: u8) -> Option<Part<I>> {
    const FIRST: u8 = DataOpcode::WriteFirst.number();
    const MIDDLE: u8 = DataOpcode::WriteMiddle.number();
    const LAST: u8 = DataOpcode::WriteLast.number();
    const ONLY: u8 = DataOpcode::WriteOnly.number();
    // Compared one by one: a jump table is slower.
    if opcode == MIDDLE {
        Some(Part::Middle)
    } else if opcode == ONLY {
        Some(Part::Only(None))
    } else if opcode == FIRST {
        Some(Part::First)
    } else if opcode == LAST {
        Some(Part::Last(None))
    } else {
        None
    }
}

/// Big-endian 16 bits at `offset`.
#[inline(always)]
fn half(bytes: &[u8; LEN], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "drawn bits are cut to the field")]
mod tests {
    use super::*;
    use crate::parse::parse_any;
    use crate::{ICRC_LEN, ParseOptions, emit, ip_checksum};

    fn headers(part: Part<crate::WriteImm>, bits: u64) -> Headers {
        let path = Path {
            src_mac: MacAddr([2, 0, 0, 0, 0, bits as u8]),
            dst_mac: MacAddr([2, 0, 0, 0, 1, bits as u8]),
            vlan: None,
            src_ip: Ipv4Addr::from(bits as u32),
            dst_ip: Ipv4Addr::from((bits >> 8) as u32),
            src_port: bits as u16,
            dst_port: crate::SERVICE_PORT,
            class: (bits >> 30) as u8 & 15,
            ecn: Ecn::from_tos((bits >> 34) as u8),
            ttl: (bits >> 36) as u8,
        };
        let first = matches!(part, Part::First | Part::Only(_));
        let name = PacketName {
            msn: Msn::from_low_bits((bits >> 3) as u32),
            psn: Psn::from_low_bits(if first { 0 } else { (bits >> 5) as u32 | 1 }),
            generation: Generation::from_low_bits((bits >> 7) as u16),
        };
        let reth = Reth {
            va: bits << 9,
            rkey: RegionKey((bits >> 4) as u32),
            dma_len: (bits >> 17) as u32 & 0x7FFF_FFFF,
        };
        let op = DataOp::Write { reth, part };
        let data = Data { name, ack_req: bits & 1 == 1, solicited: bits & 2 == 2, op };
        let (dest_qpn, pkey) = (Qpn::from_low_bits((bits >> 11) as u32), PKey((bits >> 13) as u16));
        Headers { path, dest_qpn, pkey, kind: Kind::Data(data) }
    }

    /// Twin: right frames and damaged ones, with the checksum made right again or not, by the longer way.
    #[test]
    fn what_the_shortcut_takes_the_longer_way_reads_alike() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 16
        };
        let options = ParseOptions::default();
        let mut taken = 0;
        for round in 0..200_000 {
            let part = [Part::First, Part::Middle, Part::Last(None), Part::Only(None)][draw() as usize % 4];
            let (headers, payload_len) = (headers(part, draw()), draw() as usize % 1500);
            let mut frame = vec![0; LEN + payload_len + draw() as usize % 3];
            emit(&headers, payload_len, &mut frame);
            for _ in 0..draw() % 3 {
                frame[draw() as usize % LEN] ^= 1 << (draw() % 8);
            }
            if draw() % 2 == 0 {
                let ip = frame[14..].first_chunk_mut().expect("long enough");
                let checksum = ip_checksum(ip);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            let frame_len = frame.len() - (draw() % 16 / 15) as usize * (1 + draw() as usize % ICRC_LEN);
            let head = &frame[..frame_len.min(if draw() % 8 == 0 { 70 } else { frame_len })];
            if let Some(packet) = parse_usual(options.service_port, head, frame_len) {
                taken += 1;
                assert_eq!(
                    parse_any(options, head, frame_len, || false),
                    Ok(packet),
                    "round {round}: {frame:?}"
                );
            }
        }
        assert!(taken > 50_000, "the shortcut took {taken} frames only");
    }
}
