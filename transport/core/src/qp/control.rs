//! Frames without payload that a queue pair owes its peer: ACKs, NAKs, probes and their answers.

use dcp_wire::{Ack, Kind, Nak, Probe, ProbeAck, Stream, Timestamp};
use smallvec::SmallVec;

use super::{Qp, Shared};
use crate::{Instant, TxFrame, TxSink};

/// Restarts asked for at once; one that does not fit is left to the coarse timer.
const RESYNCS_MAX: usize = 8;

/// What is owed.
#[derive(Clone, Hash, Default, Debug)]
pub(super) struct Pending {
    ///
    pub(super) ack: bool,
    /// The fatal NAK.
    pub(super) nak: bool,
    /// T-14.
    pub(super) probe: bool,
    /// t1 and t2 of the newest probe to answer.
    pub(super) probe_ack: Option<(Timestamp, Timestamp)>,
    /// messages to restart.
    resyncs: SmallVec<[Nak; 2]>,
}

impl Pending {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn resync(&mut self, nak: Nak) {
        if self.resyncs.len() < RESYNCS_MAX {
            self.resyncs.push(nak);
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        !(self.ack || self.nak || self.probe) && self.probe_ack.is_none() && self.resyncs.is_empty()
    }
}

impl Qp {
    /// Whether control frames wait.
    #[inline]
    pub(crate) fn owes_control(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Sends what is owed. False: the sink filled up first.
    pub(crate) fn transmit_control<S: TxSink>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        sink: &mut S,
    ) -> bool {
        while sink.capacity() > 0 {
            let Some(kind) = self.next_control(now, shared) else { return true };
            self.template.kind = kind;
            sink.push(TxFrame { headers: &self.template, payload_len: 0, segments: &[] });
        }
        self.pending.is_empty()
    }

    /// NAKs first: they carry progress too.
    fn next_control(&mut self, now: Instant, shared: &mut Shared) -> Option<Kind> {
        let stream = Stream::Requests;
        let (emsn, received) = (self.recv.emsn(), self.received);
        if let Some(nak) = self.next_nak() {
            shared.counters.naks += 1;
            return Some(Kind::Ack(Ack { stream, emsn, received, nak: Some(nak) }));
        }
        if let Some((t1, t2)) = self.pending.probe_ack.take() {
            let t3 = now.timestamp();
            return Some(Kind::ProbeAck(ProbeAck { stream, emsn, received, t1, t2, t3 }));
        }
        if std::mem::take(&mut self.pending.ack) {
            shared.counters.acks += 1;
            self.acknowledged = received;
            return Some(Kind::Ack(Ack { stream, emsn, received, nak: None }));
        }
        if std::mem::take(&mut self.pending.probe) {
            shared.counters.probes += 1;
            return Some(Kind::Probe(Probe { stream, t1: now.timestamp() }));
        }
        None
    }

    fn next_nak(&mut self) -> Option<Nak> {
        if std::mem::take(&mut self.pending.nak) {
            return self.last_nak;
        }
        self.pending.resyncs.pop()
    }
}
