//! What a net_memif device needs done between bursts: its peer noticed when it comes, and outlived when it dies.
//!
//! DPDK's interrupt thread maps the shared memory when a peer comes and unmaps it when the peer goes, without a lock: a
//! peer killed in the middle of traffic crashed the survivor in 7 of 10 runs. So either the interrupt thread stands and
//! bursts run, or bursts are held and the thread runs.

use dpdk_ffi::{Eal, InterruptGate, QueuePair};

use super::uri::MemifRole;

/// What happened to the link in one [`Upkeep::poll`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkEvent {
    /// Nothing.
    None,
    /// A peer came.
    Up,
    /// The peer left or died. Frames not yet sent are for nobody: free them.
    Down,
}

/// How long the interrupt thread stands at a time: what a peer's death can stay unnoticed.
const STAND_NS: u64 = 100_000_000;
/// The same while another device waits for a peer: shaking hands takes up to ten turns of the thread.
const SHORT_STAND_NS: u64 = 25_000_000;
/// Between looks at a link that is down.
const LOOK_NS: u64 = 1_000_000;
/// Between attempts to reach a peer that is not there.
const RETRY_NS: u64 = 250_000_000;
/// How long a peer that is there may take to shake hands; its interrupt thread may stand most of the time. To connect and
/// leave early is worse than slow: DPDK's server aborts when it greets a client that has gone.
const HANDSHAKE_NS: u64 = 1_000_000_000;

/// Looks after one net_memif device. The thread that runs the device's bursts calls [`poll`](Self::poll) in each round.
///
/// The interrupt thread is one for the process, and stands while any device wants it. So several devices need one thread,
/// and [`Upkeeps`] to look after them together; on several threads, or one by one, no peer would be seen to come or go
/// while two of them have a link.
#[derive(Debug)]
pub struct Upkeep(Upkeeps);

impl Upkeep {
    /// Takes over a device that has just been configured.
    pub(super) fn new(eal: &Eal, queues: &mut QueuePair, role: MemifRole) -> Self {
        queues.hold();
        let link = Link { role, is_up: false, look_ns: 0, retry_ns: 0 };
        Self(Upkeeps { eal: eal.clone(), gate: None, pass_ns: 0, next_ns: 0, links: vec![link] })
    }

    /// Whether a peer is there.
    pub fn is_connected(&self) -> bool {
        self.0.is_connected(0)
    }

    /// One round, outside any burst; takes a comparison unless something is due. `now_ns` is on any clock that never
    /// steps back, always the same one.
    #[inline]
    pub fn poll(&mut self, now_ns: u64, queues: &mut QueuePair) -> LinkEvent {
        if !self.0.is_due(now_ns) {
            return LinkEvent::None;
        }
        match self.0.poll(now_ns, [queues]) {
            false => LinkEvent::None,
            true if self.is_connected() => LinkEvent::Up,
            true => LinkEvent::Down,
        }
    }
}

/// Looks after several net_memif devices whose bursts run on one thread.
#[derive(Debug)]
pub struct Upkeeps {
    eal: Eal,
    /// Closed exactly while a link is up and bursts run.
    gate: Option<InterruptGate>,
    /// When the interrupt thread is let through next.
    pass_ns: u64,
    next_ns: u64,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    role: MemifRole,
    is_up: bool,
    look_ns: u64,
    retry_ns: u64,
}

impl Upkeeps {
    /// Looks after all those devices; none of them may be inside a burst. `None` for none.
    pub fn of(each: impl IntoIterator<Item = Upkeep>) -> Option<Self> {
        let mut each = each.into_iter();
        let mut all = each.next()?.0;
        for upkeep in each {
            all.links.extend(upkeep.0.links);
            all.gate = all.gate.or(upkeep.0.gate);
        }
        (all.pass_ns, all.next_ns) = (0, 0);
        Some(all)
    }

    /// Whether the peer of a device, by its index, is there.
    pub fn is_connected(&self, index: usize) -> bool {
        self.links.get(index).is_some_and(|link| link.is_up)
    }

    /// Whether [`poll`](Self::poll) has something to do.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// One round, outside any burst of theirs, with the queues of every device in order. Returns whether a link came up
    /// or went down. Frames not yet sent to a peer that left are for nobody: free them.
    #[cold]
    pub fn poll<'a>(&mut self, now_ns: u64, queues: impl IntoIterator<Item = &'a mut QueuePair>) -> bool {
        let has_passed = self.let_through(now_ns);
        let mut has_changed = false;
        for (link, queues) in self.links.iter_mut().zip(queues) {
            has_changed |= if link.is_up {
                has_passed && link.has_fallen(now_ns, queues)
            } else {
                now_ns >= link.look_ns && link.has_risen(now_ns, queues, &self.eal, &mut self.gate)
            };
        }
        if !self.links.iter().any(|link| link.is_up) {
            self.gate = None;
        }
        let looks = self.links.iter().filter(|link| !link.is_up).map(|link| link.look_ns);
        let pass = self.gate.as_ref().map(|_| self.pass_ns.max(now_ns));
        self.next_ns = looks.chain(pass).min().unwrap_or(now_ns);
        has_changed
    }

    /// Lets the interrupt thread do what has come up, if it is time for that.
    fn let_through(&mut self, now_ns: u64) -> bool {
        match &mut self.gate {
            Some(gate) if now_ns >= self.pass_ns => {
                gate.let_through();
                let all_up = self.links.iter().all(|link| link.is_up);
                self.pass_ns = now_ns + if all_up { STAND_NS } else { SHORT_STAND_NS };
                true
            }
            _ => false,
        }
    }
}

impl Link {
    /// An up link, right after the interrupt thread ran.
    fn has_fallen(&mut self, now_ns: u64, queues: &mut QueuePair) -> bool {
        if queues.link_is_up() {
            return false;
        }
        queues.hold();
        self.is_up = false;
        // A server listens all the time; a client asks at once whether there is a new one.
        self.retry_ns = now_ns;
        self.look_ns = now_ns + LOOK_NS;
        true
    }

    /// A down link.
    fn has_risen(
        &mut self,
        now_ns: u64,
        queues: &mut QueuePair,
        eal: &Eal,
        gate: &mut Option<InterruptGate>,
    ) -> bool {
        self.look_ns = now_ns + LOOK_NS;
        if queues.link_is_up() {
            gate.get_or_insert_with(|| InterruptGate::close(eal));
            // It may have gone while the gate closed.
            self.is_up = queues.link_is_up();
            if self.is_up {
                queues.release();
            }
            return self.is_up;
        }
        if now_ns >= self.retry_ns {
            self.connect(now_ns, queues, gate.is_some());
        }
        false
    }

    /// net_memif never connects again by itself.
    fn connect(&mut self, now_ns: u64, queues: &mut QueuePair, is_gated: bool) {
        if self.role == MemifRole::Server && is_gated && queues.is_started() {
            // It listens, and would only break off what it is about.
            self.retry_ns = now_ns + HANDSHAKE_NS;
            return;
        }
        // Only ever made for a device with one queue pair.
        let _ = queues.stop();
        // Refused as long as there is no server; asked again after a while.
        let is_there = queues.start().is_ok();
        queues.hold();
        self.retry_ns = now_ns + if is_there { HANDSHAKE_NS } else { RETRY_NS };
    }
}
