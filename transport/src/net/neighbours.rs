//! Which Ethernet address an IPv4 neighbour has: asked with patience, remembered for a while.

use std::net::Ipv4Addr;

use dcp_core::Instant;
use dcp_wire::MacAddr;

/// What is known of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Resolution {
    /// Its Ethernet address.
    Known(MacAddr),
    /// It has been asked, or will be at the next poll.
    Pending,
    /// It did not answer five requests in three seconds. Asked again when it is resolved again a second later.
    Unreachable,
    /// Too many neighbours are being asked at once.
    Full,
}

/// Neighbours remembered at most; the one not heard of for longest makes room.
pub(super) const NEIGHBOURS_MAX: usize = 256;
/// Requests before a neighbour counts as unreachable.
pub(super) const REQUESTS_MAX: u32 = 5;
/// Between the first request and the second; doubles from there.
const FIRST_WAIT_NS: u64 = 100_000_000;
/// How long an address is believed without being confirmed.
const BELIEVED_NS: u64 = 60_000_000_000;
/// How long an unreachable neighbour is not asked again.
const SULK_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Known { mac: MacAddr, until: Instant },
    Asked { requests: u32, next: Instant },
    Unreachable { until: Instant },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Neighbour {
    ip: Ipv4Addr,
    state: State,
    heard: Instant,
}

/// The table. A list: a host has few neighbours, and looks one up when it connects.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Neighbours {
    list: Vec<Neighbour>,
}

impl Neighbours {
    pub(super) fn resolve(&mut self, now: Instant, ip: Ipv4Addr) -> Resolution {
        let asked = State::Asked { requests: 0, next: now };
        let Some(neighbour) = self.list.iter_mut().find(|it| it.ip == ip) else {
            return if self.insert(Neighbour { ip, state: asked, heard: now }) {
                Resolution::Pending
            } else {
                Resolution::Full
            };
        };
        match neighbour.state {
            State::Known { mac, until } if now < until => Resolution::Known(mac),
            State::Unreachable { until } if now < until => Resolution::Unreachable,
            State::Asked { .. } => Resolution::Pending,
            State::Known { .. } | State::Unreachable { .. } => {
                neighbour.state = asked;
                Resolution::Pending
            }
        }
    }

    /// RFC 826: who is known is updated; who asks for us (`is_for_us`) is remembered, for we shall soon speak to it.
    pub(super) fn learn(&mut self, now: Instant, ip: Ipv4Addr, mac: MacAddr, is_for_us: bool) {
        let state = State::Known { mac, until: now.after(BELIEVED_NS) };
        match self.list.iter_mut().find(|it| it.ip == ip) {
            Some(neighbour) => (neighbour.state, neighbour.heard) = (state, now),
            None if is_for_us => drop(self.insert(Neighbour { ip, state, heard: now })),
            None => {}
        }
    }

    /// Whom to ask now, if anyone.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<Ipv4Addr> {
        for neighbour in &mut self.list {
            let State::Asked { requests, next } = neighbour.state else { continue };
            if now < next {
                continue;
            }
            if requests == REQUESTS_MAX {
                neighbour.state = State::Unreachable { until: now.after(SULK_NS) };
                continue;
            }
            let next = now.after(FIRST_WAIT_NS << requests);
            neighbour.state = State::Asked { requests: requests + 1, next };
            return Some(neighbour.ip);
        }
        None
    }

    /// When [`poll_request`](Self::poll_request) has something to do.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let waits = self.list.iter().filter_map(|neighbour| match neighbour.state {
            State::Asked { next, .. } => Some(next),
            State::Known { .. } | State::Unreachable { .. } => None,
        });
        waits.min()
    }

    /// Neighbours that are being asked do not make room for others.
    fn insert(&mut self, neighbour: Neighbour) -> bool {
        if self.list.len() == NEIGHBOURS_MAX {
            let idle =
                self.list.iter().enumerate().filter(|(_, it)| !matches!(it.state, State::Asked { .. }));
            let Some((oldest, _)) = idle.min_by_key(|(_, it)| it.heard) else { return false };
            self.list.swap_remove(oldest);
        }
        self.list.push(neighbour);
        true
    }
}
