//! The receive side of a port: counters, faults, and what it looked up last.

use dcp_wire::MacAddr;

use crate::counters::IngressCounters;
use crate::fault::FaultConfig;
use crate::fault_point::FaultPoint;
use crate::frame::Frame;
use crate::mac_table::{Learned, MacTable};
use crate::port::PortId;
use crate::route::Route;

#[derive(Debug)]
pub(crate) struct Ingress<F> {
    pub(crate) counters: IngressCounters,
    pub(crate) faults: Option<Box<FaultPoint<F>>>,
    /// The port itself.
    own: Route,
    /// What the world behind the port is behind: the port, or its group.
    pub(crate) home: Route,
    /// Frames of one port mostly go one way, so the last answer saves the table.
    last_destination: Cached<Option<Route>>,
    last_source: Cached<()>,
}

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
    pub(crate) fn new(port: PortId, home: Route) -> Self {
        // Of a version that the table does not have: nothing is cached yet.
        let address = (0, 0);
        Self {
            counters: IngressCounters::default(),
            faults: None,
            own: Route::port(port),
            home,
            last_destination: Cached { address, version: u32::MAX, answer: None },
            last_source: Cached { address, version: u32::MAX, answer: () },
        }
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
            ..self.counters
        }
    }

    /// Whether a frame from this port that went `route` would go back to where it came from.
    #[inline]
    pub(crate) fn is_behind(&self, route: Route) -> bool {
        route == self.home || route == self.own
    }

    /// The way to `address`.
    #[inline]
    pub(crate) fn look_up(&mut self, table: &MacTable, address: &MacAddr) -> Option<Route> {
        let version = table.version();
        if !self.last_destination.is_for(address, version) {
            self.look_up_anew(table, address);
        }
        self.last_destination.answer
    }

    #[inline(never)]
    fn look_up_anew(&mut self, table: &MacTable, address: &MacAddr) {
        let (version, answer) = (table.version(), table.get(*address));
        self.last_destination = Cached { address: parts(address), version, answer };
    }

    /// Learns that `address` is behind this port or its group, unless it is a group address or all zero.
    #[inline]
    pub(crate) fn learn(&mut self, table: &mut MacTable, address: &MacAddr) {
        if !self.last_source.is_for(address, table.version()) {
            self.learn_anew(table, address);
        }
    }

    #[inline(never)]
    fn learn_anew(&mut self, table: &mut MacTable, address: &MacAddr) {
        if address.0[0] & 1 != 0 || *address == MacAddr([0; 6]) {
            return;
        }
        if table.learn(*address, self.home) == Learned::Full {
            self.counters.unlearned += 1;
        }
        self.last_source = Cached { address: parts(address), version: table.version(), answer: () };
    }
}
