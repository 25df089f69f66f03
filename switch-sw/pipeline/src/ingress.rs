//! The receive side of a port: counters, faults, and what it read and looked up last.

use dcp_wire::{Classified, Classifier, MacAddr};

use crate::counters::IngressCounters;
use crate::fault::FaultConfig;
use crate::fault_point::FaultPoint;
use crate::frame::Frame;
use crate::mac_table::{Learned, MacTable};
use crate::port::PortId;
use crate::route::Route;

#[derive(Debug)]
pub(crate) struct Ingress<F> {
    pub(crate) classifier: Classifier,
    pub(crate) faults: Option<Box<FaultPoint<F>>>,
    pub(crate) origin: Origin,
}

/// Where frames come from, as forwarding sees it.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) counters: IngressCounters,
    /// The port itself.
    own: Route,
    /// What the world behind the port is behind: the port, or its group.
    pub(crate) home: Route,
    /// The addresses that were looked up last, as [`Classifier::address_changes`] counts them, and the table's version
    /// then: frames of one port mostly go one way, and no address is to be compared.
    settled: (u64, u32),
    /// The last answers, which save the table where frames go two ways.
    last_destination: Cached<Way>,
    last_source: Cached<()>,
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// To a port or a group.
    To(Route),
    /// Back to where it came from.
    Back,
    /// Nobody knows.
    Unknown,
}

/// Stands for a count of address changes that no classifier comes to.
pub(crate) const NEVER_AGAIN: u64 = u64::MAX;

/// An answer of the table, good while the table has the version that gave it.
#[derive(Clone, Copy, Debug)]
struct Cached<T> {
    address: (u16, u32),
    version: u32,
    answer: T,
}

impl<T> Cached<T> {
    #[inline]
    fn is_for(&self, address: &MacAddr, version: u32) -> bool {
        self.address == parts(address) && self.version == version
    }
}

/// The address in two pieces, read through a reference. Neither crosses a multiple of eight bytes in the twelve that
/// destination and source take in [`dcp_wire::Classified`]: those were just written as eight and four bytes, and a read
/// across both stalls the processor, for a third of all the time that a frame takes here.
#[inline(always)]
fn parts(address: &MacAddr) -> (u16, u32) {
    let [a, b, c, d, e, f] = address.0;
    (u16::from_ne_bytes([a, b]), u32::from_ne_bytes([c, d, e, f]))
}

impl<F: Frame> Ingress<F> {
    pub(crate) fn new(port: PortId, home: Route, service_ports: &[u16]) -> Self {
        Self { classifier: Classifier::new(service_ports), faults: None, origin: Origin::new(port, home) }
    }

    /// The place where faults strike; made when it is needed first.
    pub(crate) fn fault_point(&mut self, seed: u64, port: PortId) -> &mut FaultPoint<F> {
        let point = || Box::new(FaultPoint::new(FaultConfig::NONE, seed, u64::from(port.0) << 8));
        self.faults.get_or_insert_with(point)
    }

    pub(crate) fn counters(&self) -> IngressCounters {
        IngressCounters {
            held: self.faults.as_ref().map_or(0, |faults| faults.held() as u64),
            faults: self.faults.as_ref().map_or_else(Default::default, |faults| faults.counters),
            ..self.origin.counters
        }
    }
}

impl Origin {
    fn new(port: PortId, home: Route) -> Self {
        // Of a version that the table does not have: nothing is cached yet.
        let (address, version) = ((0, 0), u32::MAX);
        Self {
            counters: IngressCounters::default(),
            own: Route::port(port),
            home,
            settled: (NEVER_AGAIN, version),
            last_destination: Cached { address, version, answer: Way::Unknown },
            last_source: Cached { address, version, answer: () },
        }
    }

    /// Whether a frame from this port that went `route` would go back to where it came from.
    #[inline]
    pub(crate) fn is_behind(&self, route: Route) -> bool {
        route == self.home || route == self.own
    }

    /// Whether the addresses to which there were so many changes are the ones looked up last.
    #[inline(always)]
    pub(crate) fn is_settled(&self, table: &MacTable, address_changes: u64) -> bool {
        self.settled == (address_changes, table.version())
    }

    /// The way that was looked up last.
    #[inline(always)]
    pub(crate) fn way(&self) -> Way {
        self.last_destination.answer
    }

    /// Looks up the way to a frame's destination; if `learns`, remembers where it came from.
    #[inline(never)]
    pub(crate) fn settle(
        &mut self,
        table: &mut MacTable,
        learns: bool,
        seen: &Classified,
        address_changes: u64,
    ) {
        if learns && !self.last_source.is_for(&seen.src_mac, table.version()) {
            self.learn(table, seen.src_mac);
        }
        if !self.last_destination.is_for(&seen.dst_mac, table.version()) {
            self.look_up(table, seen.dst_mac);
        }
        self.settled = (address_changes, table.version());
    }

    #[inline(never)]
    fn look_up(&mut self, table: &MacTable, address: MacAddr) {
        let answer = match table.get(address) {
            Some(route) if self.is_behind(route) => Way::Back,
            Some(route) => Way::To(route),
            None => Way::Unknown,
        };
        self.last_destination = Cached { address: parts(&address), version: table.version(), answer };
    }

    /// Learns that `address` is behind this port or its group, unless it is a group address or all zero.
    #[inline(never)]
    fn learn(&mut self, table: &mut MacTable, address: MacAddr) {
        if address.0[0] & 1 != 0 || address == MacAddr([0; 6]) {
            return;
        }
        if table.learn(address, self.home) == Learned::Full {
            self.counters.unlearned += 1;
        }
        self.last_source = Cached { address: parts(&address), version: table.version(), answer: () };
    }
}
