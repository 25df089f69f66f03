//! Which port an Ethernet address is behind.

use dcp_wire::MacAddr;

use crate::port::PortId;

/// Places looked at before an address is given up.
const PROBES_MAX: usize = 8;
const OCCUPIED: u64 = 1 << 63;
const STATIC: u64 = 1 << 62;
const KEY: u64 = !STATIC;

/// Open addressing with a bounded number of probes; entries move, and are never removed.
#[derive(Clone, Debug)]
pub(crate) struct MacTable {
    entries: Box<[(u64, PortId)]>,
    shift: u32,
    /// Changes with every entry: what was looked up before is to be looked up again.
    version: u32,
}

/// What became of an address to be learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Learned {
    /// The table says so now.
    Yes,
    /// The table has no place for it.
    Full,
}

impl MacTable {
    /// A table for `entries_max` addresses.
    pub(crate) fn new(entries_max: u32) -> Self {
        // Twice as many places as addresses, so that eight probes find a free one nearly always.
        let places = (entries_max as usize * 2).next_power_of_two().max(16);
        Self {
            entries: vec![(0, PortId(0)); places].into_boxed_slice(),
            shift: 64 - places.trailing_zeros(),
            version: 0,
        }
    }

    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The port that `address` is behind.
    #[inline]
    pub(crate) fn get(&self, address: MacAddr) -> Option<PortId> {
        let key = key(address);
        self.places(key).map(|at| self.entries[at]).find(|entry| entry.0 & KEY == key).map(|entry| entry.1)
    }

    /// Remembers where `address` was seen. Static entries stay.
    pub(crate) fn learn(&mut self, address: MacAddr, port: PortId) -> Learned {
        self.insert(address, port, 0)
    }

    /// Adds an address that is never learned over; false if it is there already or finds no place.
    pub(crate) fn add_static(&mut self, address: MacAddr, port: PortId) -> bool {
        self.get(address).is_none() && self.insert(address, port, STATIC) == Learned::Yes
    }

    fn insert(&mut self, address: MacAddr, port: PortId, flag: u64) -> Learned {
        let key = key(address);
        for at in self.places(key) {
            let entry = &mut self.entries[at];
            let taken = entry.0 & KEY;
            if taken == key && (entry.0 & STATIC != 0 || entry.1 == port) {
                return Learned::Yes;
            }
            if taken == key || taken == 0 {
                *entry = (key | flag, port);
                self.version = self.version.wrapping_add(1);
                return Learned::Yes;
            }
        }
        Learned::Full
    }

    #[inline]
    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.entries.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "shifted below the number of places")]
        let home = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        (0..PROBES_MAX).map(move |step| (home + step) & mask)
    }
}

/// The address as a number that is never 0.
#[inline]
fn key(address: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f]) | OCCUPIED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn mac(number: u32) -> MacAddr {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr([2, 0, a, b, c, d])
    }

    #[test]
    fn every_learned_address_is_found_like_in_a_map() {
        let mut table = MacTable::new(4096);
        let mut twin = BTreeMap::new();
        for step in 0u32..8192 {
            let address = mac(step.wrapping_mul(2_654_435_761) % 4096);
            let port = PortId(u16::try_from(step % 7).unwrap());
            if table.learn(address, port) == Learned::Yes {
                twin.insert(address, port);
            }
        }
        assert!(twin.len() > 4000, "{}", twin.len());
        for number in 0..5000 {
            assert_eq!(table.get(mac(number)), twin.get(&mac(number)).copied());
        }
    }

    #[test]
    fn a_full_table_refuses_and_keeps_what_it_has() {
        let mut table = MacTable::new(1);
        let refused = (0..100).filter(|&n| table.learn(mac(n), PortId(1)) == Learned::Full).count();
        assert!(refused >= 84, "{refused}");
        assert_eq!((0..100).filter(|&n| table.get(mac(n)).is_some()).count(), 100 - refused);
    }

    #[test]
    fn a_host_that_moves_is_found_at_its_new_port() {
        let mut table = MacTable::new(8);
        table.learn(mac(1), PortId(1));
        let version = table.version();
        table.learn(mac(1), PortId(1));
        assert_eq!(table.version(), version);
        table.learn(mac(1), PortId(2));
        assert_eq!(table.get(mac(1)), Some(PortId(2)));
        assert_ne!(table.version(), version);
    }

    #[test]
    fn a_static_address_is_not_learned_over() {
        let mut table = MacTable::new(8);
        assert!(table.add_static(mac(0), PortId(3)));
        assert!(!table.add_static(mac(0), PortId(4)));
        assert_eq!(table.learn(mac(0), PortId(1)), Learned::Yes);
        assert_eq!(table.get(mac(0)), Some(PortId(3)));
    }
}
