//! One queue pair for several workers: the first holds it, and hands frames over to the others and from them.
//!
//! Each worker has a UDP port of its own, so a frame's worker is known before it is parsed. Both directions are bounded
//! rings without a lock. What a worker does not fetch in time is dropped, as a full receive ring of a card would; what
//! the first worker does not send in time stays with the others, as with a full transmit ring.

use std::sync::Arc;

use crossbeam::queue::ArrayQueue;
use dpdk_ffi::{Mbuf, MbufBatch, PortStats, QueuePair};

/// Frames that wait in each direction, per worker.
const LANE_FRAMES: usize = 1024;

/// The way between the worker that has the queue pair and one that has none. Clones are the same way.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    received: Arc<ArrayQueue<Mbuf>>,
    to_send: Arc<ArrayQueue<Mbuf>>,
}

impl Lane {
    pub(crate) fn new() -> Self {
        let ring = || Arc::new(ArrayQueue::new(LANE_FRAMES));
        Self { received: ring(), to_send: ring() }
    }
}

/// What a worker moves frames through.
#[derive(Debug)]
pub(crate) enum Queues {
    /// The device's own, with lanes to workers on the UDP ports behind this one's.
    Own { pair: QueuePair, lanes: Vec<Lane>, relay: Box<MbufBatch>, lanes_first: bool },
    /// Another worker's.
    Lane(Lane),
}

impl Queues {
    pub(crate) fn own(pair: QueuePair) -> Self {
        Self::Own { pair, lanes: Vec::new(), relay: Box::default(), lanes_first: false }
    }

    #[inline]
    pub(super) fn receive(&mut self, batch: &mut MbufBatch) -> usize {
        match self {
            Self::Own { pair, .. } => pair.rx.burst(batch),
            Self::Lane(lane) => take(&lane.received, batch),
        }
    }

    /// Sends from the front of `batch`; what does not go stays there.
    #[inline]
    pub(super) fn send(&mut self, batch: &mut MbufBatch) -> usize {
        match self {
            Self::Own { pair, .. } => pair.tx.burst(batch),
            Self::Lane(lane) => put(&lane.to_send, batch),
        }
    }

    /// Sends frames of workers without queues. They go before and after the own ones in turn, so that a full transmit
    /// ring starves nobody.
    #[inline]
    pub(super) fn relay(&mut self, is_before: bool) -> usize {
        let Self::Own { pair, lanes, relay, lanes_first } = self else { return 0 };
        if lanes.is_empty() || *lanes_first != is_before {
            return 0;
        }
        for lane in lanes.iter() {
            take(&lane.to_send, relay);
        }
        // Another one is first next time.
        lanes.rotate_left(1);
        let sent = pair.tx.burst(relay);
        if sent == 0 && !pair.is_running() {
            relay.free_all();
        }
        sent
    }

    /// After each round.
    #[inline]
    pub(super) fn take_turns(&mut self) {
        if let Self::Own { lanes_first, .. } = self {
            *lanes_first = !*lanes_first;
        }
    }

    pub(super) fn pair_mut(&mut self) -> Option<&mut QueuePair> {
        match self {
            Self::Own { pair, .. } => Some(pair),
            Self::Lane(_) => None,
        }
    }

    fn pair(&self) -> Option<&QueuePair> {
        match self {
            Self::Own { pair, .. } => Some(pair),
            Self::Lane(_) => None,
        }
    }

    /// Whether frames move. Who has no queues leaves that to who has them.
    pub(super) fn is_running(&self) -> bool {
        self.pair().is_none_or(QueuePair::is_running)
    }

    pub(super) fn port_stats(&self) -> Option<PortStats> {
        self.pair().and_then(QueuePair::port_stats)
    }

    pub(super) fn driver(&self) -> String {
        self.pair().map(QueuePair::driver).unwrap_or_default()
    }
}

/// Ways by the number of the worker behind them, which `relay` does not turn.
#[derive(Debug, Default)]
pub(super) struct Others {
    received: Vec<Arc<ArrayQueue<Mbuf>>>,
    service_port: u16,
}

impl Others {
    /// The workers on the UDP ports behind `service_port`.
    pub(super) fn behind(service_port: u16, lanes: &[Lane]) -> Self {
        Self { received: lanes.iter().map(|lane| Arc::clone(&lane.received)).collect(), service_port }
    }

    /// The ring of the worker that a frame is for, if it is another one.
    #[inline]
    pub(super) fn of(&self, frame: &Mbuf) -> Option<&ArrayQueue<Mbuf>> {
        if self.received.is_empty() { None } else { self.ring_of(frame) }
    }

    fn ring_of(&self, frame: &Mbuf) -> Option<&ArrayQueue<Mbuf>> {
        let port = dcp_wire::peek_service_port(frame.head()).or_else(|| {
            let mut head = [0; dcp_wire::PARSE_LEN];
            let len = frame.header_into(&mut head);
            dcp_wire::peek_service_port(&head[..len])
        });
        let steps = port?.checked_sub(self.service_port)?.checked_sub(1)?;
        self.received.get(usize::from(steps)).map(|ring| &**ring)
    }
}

fn take(ring: &ArrayQueue<Mbuf>, batch: &mut MbufBatch) -> usize {
    let mut taken = 0;
    while batch.room() > 0 {
        let Some(frame) = ring.pop() else { break };
        batch.discard(frame);
        taken += 1;
    }
    taken
}

fn put(ring: &ArrayQueue<Mbuf>, batch: &mut MbufBatch) -> usize {
    let offered = batch.len();
    let mut left = MbufBatch::new();
    for frame in batch.drain() {
        if let Err(frame) = ring.push(frame) {
            left.discard(frame);
        }
    }
    let sent = offered - left.len();
    batch.append(&mut left);
    sent
}
