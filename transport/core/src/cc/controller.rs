//! A queue pair's congestion control as the rest of it sees it: a window, a pace, probes; R = min(R_rev, R_cc) (C-1).

use std::hash::{Hash, Hasher};

use super::dcqcn::Dcqcn;
use super::rhcc::Rhcc;
use super::swift::Swift;
use super::{CongestionControl, Pacer, Rate};
use crate::{Instant, QpConfig};

/// What a probe's answer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delay {
    /// From the probe's leaving to its answer's arrival, in nanoseconds.
    pub(crate) round_trip_ns: u64,
    /// The receiver's part of it, in nanoseconds.
    pub(crate) receiver_ns: u64,
}

/// What is to be done for a packet that left.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sent {
    /// A probe is due behind it.
    pub(crate) probe: bool,
    /// It is to be acknowledged.
    pub(crate) ack: bool,
}

/// Bytes between two probes where only the scheme asks for them.
const PROBE_BYTES: u32 = 32 << 10;

#[derive(Clone, Debug)]
enum Scheme {
    /// A window that does not move, or none.
    Static,
    Dcqcn(Dcqcn),
    Swift {
        swift: Swift,
        unprobed: u32,
    },
}

/// The moving parts of one queue pair; those without any have none.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    scheme: Scheme,
    rhcc: Option<Rhcc>,
    /// Fastest rate.
    line: Rate,
    pub(crate) pacer: Pacer,
}

impl Controller {
    /// What a configuration needs: `None` without anything that moves. `packet`: bytes of a full packet.
    pub(crate) fn new(config: &QpConfig, packet: u32) -> Option<Box<Self>> {
        let line = config.rate_max;
        let scheme = match config.cc {
            CongestionControl::None | CongestionControl::Window { .. } => Scheme::Static,
            CongestionControl::Dcqcn(dcqcn) => Scheme::Dcqcn(Dcqcn::new(dcqcn, line)),
            CongestionControl::Swift(swift) => {
                Scheme::Swift { swift: Swift::new(swift, packet), unprobed: PROBE_BYTES }
            }
        };
        let rhcc = config.rhcc.map(Rhcc::new);
        if matches!(scheme, Scheme::Static) && rhcc.is_none() && line.is_unlimited() {
            return None;
        }
        Some(Box::new(Self { scheme, rhcc, line, pacer: Pacer::new(line) }))
    }

    /// The window, if the scheme moves it.
    pub(crate) const fn window(&self) -> Option<u64> {
        match &self.scheme {
            Scheme::Swift { swift, .. } => Some(swift.window()),
            _ => None,
        }
    }

    /// R = min(R_rev, R_cc).
    pub(crate) const fn rate(&self) -> Rate {
        self.pacer.rate()
    }

    fn set_pace(&mut self, now: Instant) {
        let scheme = match &self.scheme {
            Scheme::Dcqcn(dcqcn) => dcqcn.rate(),
            _ => self.line,
        };
        let rate = self.rhcc.as_ref().map_or(scheme, |rhcc| scheme.min(rhcc.rate(self.line)));
        self.pacer.set_rate(now, rate);
    }

    /// A turn begins: the rate as of now, and the credit.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now: Instant, quota: u32) {
        if let Scheme::Dcqcn(dcqcn) = &mut self.scheme
            && dcqcn.is_due(now)
        {
            dcqcn.handle_time(now);
            self.set_pace(now);
        }
        self.pacer.begin_turn(now, quota);
    }

    /// A packet left; with it `in_flight` bytes are under way.
    #[inline]
    pub(crate) fn handle_sent(&mut self, now: Instant, bytes: u32, in_flight: u64) -> Sent {
        self.pacer.charge(bytes);
        let mut sent = Sent::default();
        match &mut self.scheme {
            Scheme::Static => {}
            Scheme::Dcqcn(dcqcn) => dcqcn.handle_sent(bytes),
            Scheme::Swift { swift, unprobed } => {
                sent.ack = swift.handle_sent(now, in_flight);
                *unprobed = unprobed.saturating_add(bytes);
                if *unprobed >= PROBE_BYTES {
                    *unprobed = 0;
                    sent.probe = true;
                }
            }
        }
        sent.probe |= self.rhcc.as_mut().is_some_and(|rhcc| rhcc.handle_sent(bytes));
        sent
    }

    /// R-13's answer.
    pub(crate) fn handle_cnp(&mut self, now: Instant) {
        if let Scheme::Dcqcn(dcqcn) = &mut self.scheme {
            dcqcn.handle_cnp(now);
            self.set_pace(now);
        }
    }

    /// The header of a packet of `bytes` came back: a sign of congestion where the scheme is told so.
    #[inline]
    pub(crate) fn handle_returned(&mut self, now: Instant, bytes: u32) {
        match &mut self.scheme {
            Scheme::Static => {}
            Scheme::Dcqcn(dcqcn) if dcqcn.takes_headers() => self.handle_cnp(now),
            Scheme::Dcqcn(_) => {}
            Scheme::Swift { swift, .. } => swift.handle_returned(now, bytes),
        }
    }

    /// What was in flight is taken for lost.
    #[cold]
    pub(crate) fn handle_loss(&mut self, now: Instant) {
        if let Scheme::Swift { swift, .. } = &mut self.scheme {
            swift.handle_loss(now);
        }
    }

    /// Bytes that the peer has received since its last word.
    #[inline]
    pub(crate) fn handle_acknowledged(&mut self, now: Instant, bytes: u64) {
        if let Scheme::Swift { swift, .. } = &mut self.scheme {
            swift.handle_acknowledged(now, bytes);
        }
    }

    /// A probe leaves.
    pub(crate) fn handle_probe_sent(&mut self, now: Instant) {
        if let Some(rhcc) = &mut self.rhcc {
            rhcc.handle_probe_sent(now);
        }
    }

    /// A probe's answer.
    pub(crate) fn handle_delay(&mut self, now: Instant, delay: Delay) {
        if let Scheme::Swift { swift, .. } = &mut self.scheme {
            swift.handle_delay(delay);
        }
        if let Some(rhcc) = &mut self.rhcc {
            rhcc.handle_delay(now, delay, self.line);
            self.set_pace(now);
        }
    }

    /// The next moment at which time alone changes something: while data waits for its pace (`paced`), its opening or
    /// a faster rate; a probe.
    pub(crate) fn deadline(&self, now: Instant, paced: bool) -> Option<Instant> {
        let opens = paced.then(|| self.pacer.opens());
        let rise = match &self.scheme {
            Scheme::Dcqcn(dcqcn) if paced => dcqcn.next_rise(),
            _ => None,
        };
        let probe = self.rhcc.as_ref().and_then(|rhcc| rhcc.next_probe(now));
        [opens, rise, probe].into_iter().flatten().min()
    }

    /// Time passes. True: a probe is due.
    pub(crate) fn handle_time(&mut self, now: Instant) -> bool {
        if let Scheme::Dcqcn(dcqcn) = &mut self.scheme {
            dcqcn.handle_time(now);
            self.set_pace(now);
        }
        self.rhcc.as_ref().is_some_and(|rhcc| rhcc.is_due(now))
    }

    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        match &self.scheme {
            Scheme::Static => {}
            Scheme::Dcqcn(dcqcn) => dcqcn.state_hash(now, hasher),
            Scheme::Swift { swift, unprobed } => {
                swift.state_hash(now, hasher);
                unprobed.hash(hasher);
            }
        }
        if let Some(rhcc) = &self.rhcc {
            rhcc.state_hash(now, hasher);
        }
        self.pacer.state_hash(now, hasher);
    }
}
