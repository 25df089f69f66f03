//! Frames that are alike to a switch: those that come by one port mostly go from one host to another for a while.

use crate::classify::{Classified, classify};
use crate::layout::{ETHERNET_LEN, ETHERTYPE_VLAN, IP_LEN, UDP_LEN, at};
use crate::{Ecn, MacAddr, Tag};

/// Ethernet, IPv4 without options, UDP: nothing behind decides what a switch sees of an untagged frame.
const LEN: usize = ETHERNET_LEN + IP_LEN + UDP_LEN;

/// What decides: all up to the ToS, flags and fragment and protocol, the UDP destination port. As numbers of the machine,
/// not as bytes, which would be compared in memory.
type Key = (u64, u64, u64, u16);
/// Of the eight bytes from the IP header's length on, what decides.
const DECISIVE: u64 = u64::from_ne_bytes([0, 0, 0, 0, 0xFF, 0xFF, 0, 0xFF]);
/// Of no frame: none has a bit that is not [`DECISIVE`].
const NO_KEY: Key = (u64::MAX, u64::MAX, u64::MAX, u16::MAX);

/// [`classify`](crate::classify()) for frames in sequence: one that agrees with the one before in all that decides is
/// not read again.
#[derive(Clone, Debug)]
pub struct Classifier {
    ports: Box<[u16]>,
    /// Of the frame that `seen` was read of.
    key: Key,
    seen: Classified,
    addresses: (u64, u32),
    address_changes: u64,
}

impl Classifier {
    /// Before the first frame. `ports` are the UDP destination ports that mean DCP.
    pub fn new(ports: impl Into<Box<[u16]>>) -> Self {
        let seen = Classified {
            dst_mac: MacAddr([0; 6]),
            src_mac: MacAddr([0; 6]),
            tag: Tag::NotDcp,
            ecn: Ecn::NotEct,
        };
        Self { ports: ports.into(), key: NO_KEY, seen, addresses: (0, 0), address_changes: 0 }
    }

    /// What [`classify`](crate::classify()) says of a frame that begins with `head`.
    #[inline(always)]
    pub fn classify(&mut self, head: &[u8]) -> Option<&Classified> {
        if head.first_chunk().is_some_and(|bytes| key(bytes) == self.key) {
            return Some(&self.seen);
        }
        self.classify_anew(head)
    }

    #[inline(never)]
    fn classify_anew(&mut self, head: &[u8]) -> Option<&Classified> {
        let seen = classify(head, &self.ports)?;
        let addresses = head.first_chunk().map_or((0, 0), addresses);
        if addresses != self.addresses {
            self.addresses = addresses;
            self.address_changes += 1;
        }
        self.key = head.first_chunk().filter(is_untagged).map_or(NO_KEY, key);
        self.seen = seen;
        Some(&self.seen)
    }

    /// What it said last of a frame that was not a runt.
    #[inline]
    pub fn last(&self) -> &Classified {
        &self.seen
    }

    /// How often a frame had not the Ethernet addresses of the one before: whoever looked them up at this count need not
    /// do so again.
    #[inline]
    pub fn address_changes(&self) -> u64 {
        self.address_changes
    }
}

/// Whether all that decides is in the key: behind a VLAN tag it lies elsewhere.
fn is_untagged(bytes: &&[u8; LEN]) -> bool {
    bytes[12..14] != ETHERTYPE_VLAN.to_be_bytes()
}

#[inline(always)]
fn key(bytes: &[u8; LEN]) -> Key {
    const DST_PORT: usize = ETHERNET_LEN + at::DST_PORT;
    let port = u16::from_ne_bytes([bytes[DST_PORT], bytes[DST_PORT + 1]]);
    (word(bytes, 0), word(bytes, 8), word(bytes, 16) & DECISIVE, port)
}

/// Both Ethernet addresses, as numbers of the machine.
fn addresses(&[a, b, c, d, e, f, g, h, rest @ ..]: &[u8; 12]) -> (u64, u32) {
    (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes(rest))
}

/// Eight bytes in the machine's own order, which is all the same to a comparison.
#[inline(always)]
fn word(bytes: &[u8; LEN], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}
