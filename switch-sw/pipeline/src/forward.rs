//! Which egress port a frame goes to: routes, groups, flooding (S-1, S-5).

use dcp_wire::{Classified, Classifier};

use crate::config::PipelineConfig;
use crate::config_error::ConfigError;
use crate::counters::DropReason;
use crate::egress::{Egress, Handling};
use crate::fault_point::Passing;
use crate::frame::Frame;
use crate::group::Group;
use crate::ingress::{NEVER_AGAIN, Origin, Way};
use crate::mac_table::{MacTable, TICKS_TO_LIVE};
use crate::port::PortId;
use crate::random::Random;
use crate::route::{GroupId, Route};

/// Purpose of the dice of groups.
const GROUP_STREAM: u64 = 32;

/// Routes, and the memory of addresses.
#[derive(Debug)]
pub(crate) struct Forwarding {
    table: MacTable,
    groups: Box<[Group]>,
    /// One for each place that frames may be flooded to: the ports without a group, then the groups.
    places: Box<[Route]>,
    default_route: Option<Route>,
    learn_macs: bool,
    tick_ns: u64,
    next_tick_ns: u64,
}

impl Forwarding {
    /// From a configuration that was checked.
    pub(crate) fn new(config: &PipelineConfig) -> Result<Self, ConfigError> {
        let mut table = MacTable::new(config.mac_entries_max);
        let ports = config.static_macs.iter().map(|&(address, port)| (address, Route::port(port)));
        let groups = config.group_macs.iter().map(|&(address, group)| (address, Route::group(group)));
        for (address, route) in ports.chain(groups) {
            if !table.add_static(address, route) {
                return Err(ConfigError::StaticMacTable { address });
            }
        }
        let group = |(number, group)| {
            Group::new(Clone::clone(group), Random::new(config.seed, number << 8 | GROUP_STREAM))
        };
        let groups: Box<[Group]> = (0u64..).zip(&config.groups).map(group).collect();
        let single = (0..config.ports).map(PortId).filter(|&port| home(&groups, port) == Route::port(port));
        let places = single.map(Route::port).chain((0..).take(groups.len()).map(GroupId).map(Route::group));
        Ok(Self {
            table,
            places: places.collect(),
            groups,
            default_route: config.default_group.map(Route::group),
            learn_macs: config.learn_macs,
            tick_ns: config.mac_age_ns.div_ceil(TICKS_TO_LIVE.into()),
            next_tick_ns: if config.mac_age_ns == 0 { u64::MAX } else { 0 },
        })
    }

    /// What frames that come by `port` come from.
    pub(crate) fn home(&self, port: PortId) -> Route {
        home(&self.groups, port)
    }

    /// Forgets learned addresses behind `port`.
    pub(crate) fn forget(&mut self, port: PortId) {
        self.table.forget(|route| route == Route::port(port));
    }

    /// Tells groups about a link.
    pub(crate) fn set_down(&mut self, port: PortId, down: bool) {
        for group in &mut self.groups {
            group.set_down(port, down);
        }
    }

    /// Time passes for addresses.
    #[inline]
    pub(crate) fn pass_time(&mut self, now_ns: u64) {
        if now_ns >= self.next_tick_ns {
            self.tick(now_ns);
        }
    }

    #[cold]
    fn tick(&mut self, now_ns: u64) {
        let ticks = (now_ns - self.next_tick_ns) / self.tick_ns + 1;
        self.next_tick_ns = self.next_tick_ns.saturating_add(ticks.saturating_mul(self.tick_ns));
        self.table.pass(u32::try_from(ticks).unwrap_or(u32::MAX));
    }

    /// Sends a frame on its way, which was shown to the classifier last.
    #[inline(always)]
    pub(crate) fn route<F: Frame>(
        &mut self,
        now_ns: u64,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: F,
        classifier: &Classifier,
        handling: Handling,
    ) {
        let (seen, address_changes) = (classifier.last(), classifier.address_changes());
        if !origin.is_settled(&self.table, address_changes) {
            origin.settle(&mut self.table, self.learn_macs, seen, address_changes);
        }
        self.send_on(now_ns, origin, egress, frame, seen, handling);
    }

    /// Sends a frame the way that was looked up last.
    #[inline(always)]
    fn send_on<F: Frame>(
        &mut self,
        now_ns: u64,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: F,
        seen: &Classified,
        handling: Handling,
    ) {
        match origin.way() {
            Way::To(route) => self.send(now_ns, route, origin, egress, frame, seen, handling),
            Way::Back => origin.counters.drops.count(DropReason::SamePort, 1),
            Way::Unknown => self.route_unknown(now_ns, origin, egress, frame, seen, handling),
        }
    }

    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a part of `route`")]
    fn send<F: Frame>(
        &mut self,
        now_ns: u64,
        route: Route,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: F,
        seen: &Classified,
        handling: Handling,
    ) {
        let index = match route.split() {
            Ok(port) => port,
            Err(group) => {
                let lengths = |port: PortId| egress[port.index()].data_bytes();
                self.groups[group].choose(|| frame.flow_hash(), lengths).index()
            }
        };
        origin.counters.routed += 1;
        egress[index].offer(now_ns, frame, seen, handling);
    }

    /// Nobody knows where: the default way if there is one, or everywhere.
    #[cold]
    #[inline(never)]
    fn route_unknown<F: Frame>(
        &mut self,
        now_ns: u64,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: F,
        seen: &Classified,
        handling: Handling,
    ) {
        let is_unicast = seen.dst_mac.0[0] & 1 == 0;
        match self.default_route.filter(|&route| is_unicast && !origin.is_behind(route)) {
            Some(route) => self.send(now_ns, route, origin, egress, frame, seen, handling),
            None => self.flood(now_ns, origin, egress, frame, seen),
        }
    }

    /// The same for frames that take longer anyway.
    #[cold]
    #[inline(never)]
    pub(crate) fn route_passing<F: Frame>(
        &mut self,
        now_ns: u64,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: Passing<F>,
    ) {
        let Passing { frame, seen, handling } = frame;
        origin.settle(&mut self.table, self.learn_macs, &seen, NEVER_AGAIN);
        self.send_on(now_ns, origin, egress, frame, &seen, handling);
    }

    /// Sends a frame to every place but its own: its destination is unknown, or many.
    #[cold]
    fn flood<F: Frame>(
        &self,
        now_ns: u64,
        origin: &mut Origin,
        egress: &mut [Egress<F>],
        frame: F,
        seen: &Classified,
    ) {
        let copies = self.places.len() - 1;
        if copies == 0 {
            return origin.counters.drops.count(DropReason::NoPort, 1);
        }
        origin.counters.routed += copies as u64;
        origin.counters.flood_copies += copies as u64 - 1;
        let is_other = |place: &&Route| **place != origin.home;
        let port = |place: &Route| match place.split() {
            Ok(port) => port,
            Err(group) => self.groups[group].by_hash(frame.flow_hash()).index(),
        };
        // The last one gets the frame itself.
        let mut ports = self.places.iter().filter(is_other).map(port);
        for index in ports.by_ref().take(copies - 1) {
            match frame.try_clone() {
                Some(copy) => egress[index].offer(now_ns, copy, seen, Handling::Flooded),
                None => egress[index].offer_failed(DropReason::NoCopy),
            }
        }
        if let Some(index) = ports.next() {
            egress[index].offer(now_ns, frame, seen, Handling::Flooded);
        }
    }
}

fn home(groups: &[Group], port: PortId) -> Route {
    let of_port = |group: &Group| group.members().iter().any(|member| member.port == port);
    let group = (0..).zip(groups).find(|(_, group)| of_port(group));
    group.map_or(Route::port(port), |(number, _)| Route::group(GroupId(number)))
}
