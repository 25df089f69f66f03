//! Packets that follow each other: most of a long WRITE's headers are the same, byte for byte.

use crate::layout::{ETHERNET_LEN, WRITE_LEN as LEN, at, bit, raw_word, word};
use crate::{Data, DataOp, Kind, Packet, Part, Psn};

/// Where the UDP checksum stands.
const CHECKSUM: usize = ETHERNET_LEN + at::UDP_CHECKSUM;
/// Where AckReq and sRetryNo stand, and the PSN behind them.
const NAME: usize = 50;
/// Where the address stands: its first byte is the last of the eight at [`NAME`].
const VA: usize = NAME + 7;

/// Recognises packets that differ from one of the middle of a WRITE in nothing but their PSN, the address that goes with
/// it, and whether they ask for an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// The headers it was made from.
    bytes: [u8; LEN],
    /// What stands at [`NAME`], without AckReq, the PSN and the last byte.
    name: u64,
    /// Address of the message's first byte.
    va: u64,
    mtu: u64,
    frame_len_min: usize,
}

impl Follower {
    /// Where the payload of such a frame begins.
    pub const PAYLOAD_OFFSET: usize = LEN;

    /// What follows `packet`, which `head` was parsed to. `None` where no packet follows in this sense.
    #[must_use]
    pub fn of(packet: &Packet, head: &[u8]) -> Option<Self> {
        let Kind::Data(Data { name, op: DataOp::Write { reth, part: Part::Middle }, .. }) =
            packet.headers.kind
        else {
            return None;
        };
        if packet.headers.path.vlan.is_some() || usize::from(packet.payload_offset) != LEN {
            return None;
        }
        let bytes: &[u8; LEN] = head.first_chunk()?;
        // A checksum would be another one for each packet, and right only by adding up the payload.
        if bytes[CHECKSUM..CHECKSUM + 2] != [0, 0] {
            return None;
        }
        let mtu = u64::from(packet.payload_len);
        Some(Self {
            bytes: *bytes,
            name: word(bytes, NAME) & NAME_MASK,
            va: reth.va.wrapping_sub(u64::from(name.psn.get()) * mtu),
            mtu,
            frame_len_min: ETHERNET_LEN + usize::from(packet.ip_len),
        })
    }

    /// The PSN of a frame of `frame_len` bytes that begins with `head`, and whether it asks for an ACK, if it follows:
    /// parsing it would find what it found before, but for these and the address.
    #[inline(always)]
    #[must_use]
    pub fn name_of(&self, head: &[u8], frame_len: usize) -> Option<(Psn, bool)> {
        let name = word(head.first_chunk::<LEN>()?, NAME);
        let (psn, ack_req) = (Psn::from_low_bits((name >> 32) as u32), name & ACK_REQ != 0);
        self.is_packet(psn, ack_req, head, frame_len).then_some((psn, ack_req))
    }

    /// Whether that frame follows and is this packet.
    #[inline(always)]
    #[must_use]
    pub fn is_packet(&self, psn: Psn, ack_req: bool, head: &[u8], frame_len: usize) -> bool {
        let Some(bytes) = head.first_chunk::<LEN>() else { return false };
        let va = self.va.wrapping_add(u64::from(psn.get()) * self.mtu);
        let name = self.name | u64::from(psn.get()) << 32 | if ack_req { ACK_REQ } else { 0 };
        let differs = self.elsewhere(bytes)
            | (raw_word(bytes, NAME) ^ name.to_be()) & (!0xFF_u64).to_be()
            | raw_word(bytes, VA) ^ va.to_be();
        differs == 0 && frame_len >= self.frame_len_min && psn.get() != 0
    }

    /// What differs before and behind the name and the address. By words, two of which overlap: a call of `memcmp` takes
    /// longer.
    #[inline(always)]
    fn elsewhere(&self, bytes: &[u8; LEN]) -> u64 {
        const WHOLE: [usize; 8] = [0, 8, 16, 24, 32, 40, NAME - 8, VA + 8];
        WHOLE.iter().fold(0, |all, &at| all | raw_word(bytes, at) ^ raw_word(&self.bytes, at))
    }
}

/// AckReq, in the eight bytes at [`NAME`].
const ACK_REQ: u64 = (bit::ACK_REQ as u64) << 56;
/// All of them but that, the PSN, and the last, which is the address's first.
const NAME_MASK: u64 = !(ACK_REQ | 0xFF_FFFF << 32 | 0xFF);

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "drawn bits are cut to the field")]
mod tests {
    use super::*;
    use crate::{
        Ecn, Generation, Headers, Ipv4Addr, MacAddr, Msn, PKey, PacketName, ParseOptions, Path, Qpn,
        RegionKey, Reth, SERVICE_PORT, emit, parse,
    };

    const MTU: u32 = 512;

    fn frame(part: Part<crate::WriteImm>, psn: u32) -> Vec<u8> {
        let path = Path {
            src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            vlan: None,
            src_ip: Ipv4Addr::new(10, 0, 0, 1),
            dst_ip: Ipv4Addr::new(10, 0, 0, 2),
            src_port: 0xC123,
            dst_port: SERVICE_PORT,
            class: 0,
            ecn: Ecn::Ect0,
            ttl: 64,
        };
        let name = PacketName {
            msn: Msn::from_low_bits(0xAB_CDEF),
            psn: Psn::from_low_bits(psn),
            generation: Generation::from_low_bits(5),
        };
        // An address whose first byte changes with the PSN.
        let va = 0x11FF_FFFF_FFFF_F000_u64.wrapping_add(u64::from(psn) * u64::from(MTU));
        let reth = Reth { va, rkey: RegionKey(0x1234_5678), dma_len: 1 << 20 };
        let data = Data { name, ack_req: false, solicited: false, op: DataOp::Write { reth, part } };
        let headers =
            Headers { path, dest_qpn: Qpn::from_low_bits(77), pkey: PKey(9), kind: Kind::Data(data) };
        let mut bytes = vec![0; LEN + MTU as usize];
        assert_eq!(emit(&headers, MTU as usize, &mut bytes), LEN);
        bytes
    }

    fn parsed(bytes: &[u8]) -> Option<Packet> {
        parse(ParseOptions { service_port: SERVICE_PORT, icrc: false }, bytes, bytes.len(), || true).ok()
    }

    fn follower(psn: u32) -> Follower {
        let bytes = frame(Part::Middle, psn);
        Follower::of(&parsed(&bytes).unwrap(), &bytes).unwrap()
    }

    /// `packet` with another PSN, and its address, and another AckReq.
    fn renumbered(packet: Packet, psn: Psn, asks: bool) -> Packet {
        let mut other = packet;
        let Kind::Data(Data { name, ack_req, op: DataOp::Write { reth, .. }, .. }) = &mut other.headers.kind
        else {
            panic!("a WRITE");
        };
        *ack_req = asks;
        let moved = i64::from(psn.get()) - i64::from(name.psn.get());
        reth.va = reth.va.wrapping_add_signed(moved * i64::from(MTU));
        name.psn = psn;
        other
    }

    #[test]
    fn packets_of_the_middle_follow_in_any_order() {
        let follower = follower(700);
        for psn in [1, 2, 699, 700, 701, 2046, 0xFF_FFFF] {
            let bytes = frame(Part::Middle, psn);
            assert_eq!(follower.name_of(&bytes, bytes.len()).map(|(psn, _)| psn.get()), Some(psn));
            for other in [1, 2, 700, psn - 1, psn + 1] {
                let is_packet = follower.is_packet(Psn::from_low_bits(other), false, &bytes, bytes.len());
                assert_eq!(is_packet, other == psn, "{psn} for {other}");
            }
        }
    }

    #[test]
    fn nothing_follows_the_ends_of_a_message() {
        for (part, psn) in [(Part::First, 0), (Part::Last(None), 9), (Part::Only(None), 0)] {
            let bytes = frame(part, psn);
            assert!(Follower::of(&parsed(&bytes).unwrap(), &bytes).is_none(), "{part:?}");
            assert_eq!(follower(3).name_of(&bytes, bytes.len()), None, "{part:?}");
        }
    }

    #[test]
    fn nothing_follows_a_packet_with_a_checksum() {
        let mut bytes = frame(Part::Middle, 4);
        let packet = parsed(&bytes).unwrap();
        bytes[CHECKSUM + 1] = 1;
        assert!(Follower::of(&packet, &bytes).is_none());
    }

    #[test]
    fn frames_that_are_cut_do_not_follow() {
        let bytes = frame(Part::Middle, 4);
        let follower = follower(3);
        for len in [0, 13, LEN - 1, LEN, bytes.len() - 1] {
            assert_eq!(follower.name_of(&bytes[..len.min(LEN)], len), None, "{len} bytes");
        }
        assert!(follower.name_of(&bytes[..LEN], bytes.len()).is_some());
    }

    /// Twin: the parser. Whatever follows is a legal packet, and the one expected.
    #[test]
    fn what_follows_parses_to_the_same_but_for_its_number() {
        let first = frame(Part::Middle, 41);
        let packet = parsed(&first).unwrap();
        let follower = Follower::of(&packet, &first).unwrap();
        let mut followed = 0;
        for psn in [1, 40, 41, 300] {
            let bytes = frame(Part::Middle, psn);
            for bit in 0..LEN * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let Some((found, ack_req)) = follower.name_of(&flipped, flipped.len()) else { continue };
                let expected = renumbered(packet, found, ack_req);
                assert_eq!(parsed(&flipped), Some(expected), "bit {bit} of PSN {psn}");
                assert!(!follower.is_packet(found, !ack_req, &flipped, flipped.len()));
                assert!(ack_req, "bit {bit}: a flipped PSN has an address that does not go with it");
                followed += 1;
            }
        }
        assert_eq!(followed, 4, "AckReq of each");
        let (found, ack_req) = follower.name_of(&first, first.len()).unwrap();
        assert_eq!(parsed(&first), Some(renumbered(packet, found, ack_req)));
        assert_eq!((found.get() as u8, ack_req), (41, false));
    }
}
