//! What a net_memif device needs done between bursts: its peer noticed when it comes, and outlived when it dies.
//!
//! DPDK's interrupt thread maps the shared memory when a peer comes and unmaps it when the peer goes, without a lock: a
//! peer killed in the middle of traffic crashed the survivor in 7 of 10 runs. So either the interrupt thread stands and
//! bursts run, or bursts are held and the thread runs.

use dpdk_ffi::{Eal, InterruptGate, QueuePair};

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
/// Between looks at a link that is down.
const LOOK_NS: u64 = 1_000_000;
/// Between attempts to reach a peer.
const RETRY_NS: u64 = 250_000_000;

/// Looks after one net_memif device. The thread that runs the device's bursts calls [`poll`](Self::poll) in each round.
///
/// One process can have several only on one thread: the interrupt thread is one, and stands while any device wants it.
#[derive(Debug)]
pub struct Upkeep {
    eal: Eal,
    /// Closed exactly while the link is up and bursts run.
    gate: Option<InterruptGate>,
    next_ns: u64,
    retry_ns: u64,
}

impl Upkeep {
    /// Takes over a device that has just been configured.
    pub(super) fn new(eal: &Eal, queues: &mut QueuePair) -> Self {
        queues.hold();
        Self { eal: eal.clone(), gate: None, next_ns: 0, retry_ns: 0 }
    }

    /// Whether a peer is there.
    pub fn is_connected(&self) -> bool {
        self.gate.is_some()
    }

    /// One round, outside any burst; takes a comparison unless something is due. `now_ns` is on any clock that never
    /// steps back, always the same one.
    #[inline]
    pub fn poll(&mut self, now_ns: u64, queues: &mut QueuePair) -> LinkEvent {
        if now_ns < self.next_ns {
            return LinkEvent::None;
        }
        self.work(now_ns, queues)
    }

    #[cold]
    fn work(&mut self, now_ns: u64, queues: &mut QueuePair) -> LinkEvent {
        if let Some(gate) = &mut self.gate {
            gate.let_through();
            self.next_ns = now_ns + STAND_NS;
            if queues.link_is_up() {
                return LinkEvent::None;
            }
            queues.hold();
            self.gate = None;
            // A server listens all the time; a client asks at once whether there is a new one.
            self.retry_ns = now_ns;
            self.next_ns = now_ns + LOOK_NS;
            return LinkEvent::Down;
        }
        self.next_ns = now_ns + LOOK_NS;
        if queues.link_is_up() {
            let gate = InterruptGate::close(&self.eal);
            // It may have gone while the gate closed.
            if queues.link_is_up() {
                self.gate = Some(gate);
                self.next_ns = now_ns + STAND_NS;
                queues.release();
                return LinkEvent::Up;
            }
        } else if now_ns >= self.retry_ns {
            self.retry_ns = now_ns + RETRY_NS;
            reconnect(queues);
        }
        LinkEvent::None
    }
}

/// net_memif never connects again by itself.
fn reconnect(queues: &mut QueuePair) {
    // Only ever made for a device with one queue pair.
    let _ = queues.stop();
    // Refused as long as there is no server; asked again after a while.
    let _ = queues.start();
    queues.hold();
}
