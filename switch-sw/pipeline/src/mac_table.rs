//! Which way an Ethernet address is.

use dcp_wire::MacAddr;

use crate::port::PortId;
use crate::route::Route;

/// Places looked at before an address is given up.
const PROBES_MAX: usize = 8;
/// An address lives for this many ticks after it was last seen, or one less.
pub(crate) const TICKS_TO_LIVE: u32 = 4;
const OCCUPIED: u64 = 1 << 63;
const STATIC: u64 = 1 << 62;
const KEY: u64 = !STATIC;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The address and two flags; 0 for a free place.
    key: u64,
    route: Route,
    /// Tick at which it was seen last.
    seen: u32,
}

/// Open addressing with a bounded number of probes. What is too old is as good as gone: its place is free.
#[derive(Clone, Debug)]
pub(crate) struct MacTable {
    entries: Box<[Entry]>,
    shift: u32,
    tick: u32,
    /// Changes with every entry and tick: what was looked up before is to be looked up again.
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
        let free = Entry { key: 0, route: Route::port(PortId(0)), seen: 0 };
        Self {
            entries: vec![free; places].into_boxed_slice(),
            shift: 64 - places.trailing_zeros(),
            tick: 0,
            version: 0,
        }
    }

    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Time passes: addresses that were not seen for [`TICKS_TO_LIVE`] ticks are forgotten.
    pub(crate) fn pass(&mut self, ticks: u32) {
        self.tick = self.tick.wrapping_add(ticks);
        self.version = self.version.wrapping_add(1);
        // Only a jump this long could make old entries look young again.
        if ticks >= u32::MAX / 2 {
            self.forget(|_| true);
        }
    }

    /// Forgets learned addresses whose way `is_gone`.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(Route) -> bool) {
        for entry in self.entries.iter_mut().filter(|entry| entry.key & STATIC == 0 && is_gone(entry.route)) {
            entry.key = 0;
        }
        self.version = self.version.wrapping_add(1);
    }

    #[inline]
    fn is_live(&self, entry: &Entry) -> bool {
        entry.key & STATIC != 0 || (entry.key != 0 && self.tick.wrapping_sub(entry.seen) < TICKS_TO_LIVE)
    }

    /// The way to `address`.
    #[inline]
    pub(crate) fn get(&self, address: MacAddr) -> Option<Route> {
        let key = key(address);
        let mut entries = self.places(key).map(|at| &self.entries[at]);
        entries.find(|entry| entry.key & KEY == key && self.is_live(entry)).map(|entry| entry.route)
    }

    /// Remembers where `address` was seen. Static entries stay.
    pub(crate) fn learn(&mut self, address: MacAddr, route: Route) -> Learned {
        self.insert(address, route, 0)
    }

    /// Adds an address that is never learned over nor forgotten; false if it is there already or finds no place.
    pub(crate) fn add_static(&mut self, address: MacAddr, route: Route) -> bool {
        self.get(address).is_none() && self.insert(address, route, STATIC) == Learned::Yes
    }

    fn insert(&mut self, address: MacAddr, route: Route, flag: u64) -> Learned {
        let key = key(address);
        // Its own place first: a free one may lie before it.
        let own = self.places(key).find(|&at| self.entries[at].key & KEY == key);
        let Some(at) = own.or_else(|| self.places(key).find(|&at| !self.is_live(&self.entries[at]))) else {
            return Learned::Full;
        };
        let known = self.is_live(&self.entries[at]);
        let entry = &mut self.entries[at];
        if entry.key == key | STATIC {
            return Learned::Yes;
        }
        let moved = !known || entry.route != route;
        *entry = Entry { key: key | flag, route, seen: self.tick };
        if moved {
            self.version = self.version.wrapping_add(1);
        }
        Learned::Yes
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

    fn port(number: u16) -> Route {
        Route::port(PortId(number))
    }

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
            let port = port(u16::try_from(step % 7).unwrap());
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
        let refused = (0..100).filter(|&n| table.learn(mac(n), port(1)) == Learned::Full).count();
        assert!(refused >= 84, "{refused}");
        assert_eq!((0..100).filter(|&n| table.get(mac(n)).is_some()).count(), 100 - refused);
    }

    #[test]
    fn a_host_that_moves_is_found_at_its_new_port() {
        let mut table = MacTable::new(8);
        table.learn(mac(1), port(1));
        let version = table.version();
        table.learn(mac(1), port(1));
        assert_eq!(table.version(), version);
        table.learn(mac(1), port(2));
        assert_eq!(table.get(mac(1)), Some(port(2)));
        assert_ne!(table.version(), version);
    }

    #[test]
    fn a_static_address_is_not_learned_over() {
        let mut table = MacTable::new(8);
        assert!(table.add_static(mac(0), port(3)));
        assert!(!table.add_static(mac(0), port(4)));
        assert_eq!(table.learn(mac(0), port(1)), Learned::Yes);
        assert_eq!(table.get(mac(0)), Some(port(3)));
    }

    #[test]
    fn an_address_that_is_not_seen_is_forgotten_and_one_that_is_seen_stays() {
        let mut table = MacTable::new(8);
        table.add_static(mac(0), port(3));
        for _ in 0..3 {
            table.learn(mac(1), port(1));
            table.learn(mac(2), port(2));
            table.pass(TICKS_TO_LIVE - 1);
        }
        assert_eq!((table.get(mac(1)), table.get(mac(2))), (Some(port(1)), Some(port(2))));
        table.learn(mac(1), port(1));
        table.pass(1);
        assert_eq!((table.get(mac(1)), table.get(mac(2))), (Some(port(1)), None));
        table.pass(u32::MAX);
        assert_eq!((table.get(mac(1)), table.get(mac(0))), (None, Some(port(3))));
    }

    // A random walk beside a map with times.
    #[test]
    fn ageing_agrees_with_a_map_of_times() {
        let (mut table, mut twin, mut now) = (MacTable::new(64), BTreeMap::new(), 0u32);
        for step in 0u32..20_000 {
            let draw = step.wrapping_mul(2_654_435_761) >> 7;
            let address = mac(draw % 24);
            if draw % 5 == 0 {
                table.pass(1);
                now += 1;
            }
            let way = port(u16::try_from(draw % 3).unwrap());
            assert_eq!(table.learn(address, way), Learned::Yes);
            twin.insert(address, (way, now));
            let asked = mac((draw >> 5) % 24);
            let known = twin.get(&asked).filter(|(_, seen)| now - seen < TICKS_TO_LIVE);
            assert_eq!(table.get(asked), known.map(|(way, _)| *way));
        }
    }

    #[test]
    fn addresses_behind_a_port_can_be_forgotten() {
        let mut table = MacTable::new(8);
        table.learn(mac(1), port(1));
        table.learn(mac(2), port(2));
        table.forget(|way| way == port(1));
        assert_eq!((table.get(mac(1)), table.get(mac(2))), (None, Some(port(2))));
    }
}
