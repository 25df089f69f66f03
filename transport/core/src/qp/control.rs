//! Frames without payload that a queue pair owes its peer: ACKs, NAKs, probes and their answers.

use dcp_wire::{Ack, Kind, Nak, NakCode, Probe, ProbeAck, Stream, Timestamp};
use smallvec::SmallVec;

use super::{Qp, Shared};
use crate::{Instant, TxFrame, TxSink};

/// NAKs of single messages that wait at once; one that does not fit is left to the peer's timers.
const NAKS_MAX: usize = 16;
const STREAMS: [Stream; 2] = [Stream::Requests, Stream::Answers];

/// What is owed; pairs by [`Stream`].
#[derive(Clone, Hash, Default, Debug)]
pub(super) struct Pending {
    ///
    pub(super) ack: [bool; 2],
    /// The fatal NAK.
    pub(super) nak: bool,
    /// T-14.
    pub(super) probe: [bool; 2],
    /// A probe to answer is in [`Owed::probe_times`].
    probe_ack: [bool; 2],
    /// [`Owed::naks`] is not empty.
    naks: bool,
    /// R-13, unless the last one left too short a time ago.
    pub(super) cnp: bool,
}

/// What the rarer frames that are owed say.
#[derive(Clone, Hash, Default, Debug)]
pub(super) struct Owed {
    /// t1 and t2 of the newest probe to answer.
    probe_times: [(Timestamp, Timestamp); 2],
    /// messages to send again, now or later.
    naks: SmallVec<[(Stream, Nak); 1]>,
    /// When the newest CNP left.
    pub(super) cnp_sent: Option<Instant>,
}

impl Pending {
    #[inline]
    fn is_empty(&self) -> bool {
        let Self { ack, nak, probe, probe_ack, naks, cnp } = *self;
        !(ack[0] | ack[1] | nak | probe[0] | probe[1] | probe_ack[0] | probe_ack[1] | naks | cnp)
    }
}

impl Qp {
    /// Owes a NAK of one message; once per message until it has left.
    pub(super) fn nak_once(&mut self, stream: Stream, nak: Nak) {
        let naks = &mut self.rare.owed.naks;
        let known = naks.iter().any(|(of, other)| *of == stream && other.msn == nak.msn);
        if !known && naks.len() < NAKS_MAX {
            naks.push((stream, nak));
            self.pending.naks = true;
        }
    }

    /// owes an answer to a probe; only the newest is answered.
    pub(super) fn owe_probe_ack(&mut self, stream: Stream, t1: Timestamp, t2: Timestamp) {
        self.rare.owed.probe_times[stream as usize] = (t1, t2);
        self.pending.probe_ack[stream as usize] = true;
    }

    /// Whether an ACK of requests is due.
    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        self.pending.ack[Stream::Requests as usize]
    }

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
            sink.push(TxFrame {
                headers: &self.connection.headers(kind),
                template: &self.connection.template,
                payload_len: 0,
                segments: &[],
                icrc: self.config.icrc,
            });
        }
        self.pending.is_empty()
    }

    /// NAKs first: they carry progress too.
    fn next_control(&mut self, now: Instant, shared: &mut Shared) -> Option<Kind> {
        if let Some((stream, nak)) = self.next_nak() {
            match nak.code {
                NakCode::Rnr(_) => {
                    shared.counters.rnr_naks += 1;
                    shared.by_qp[self.id.index()].rnr_naks += 1;
                }
                _ => shared.counters.naks += 1,
            }
            return Some(self.ack(stream, Some(nak)));
        }
        if std::mem::take(&mut self.pending.cnp) && self.may_send_cnp(now, shared) {
            return Some(Kind::Cnp);
        }
        STREAMS.into_iter().find_map(|stream| self.next_of_stream(now, stream, shared))
    }

    fn next_of_stream(&mut self, now: Instant, stream: Stream, shared: &mut Shared) -> Option<Kind> {
        let index = stream as usize;
        if std::mem::take(&mut self.pending.probe_ack[index]) {
            let (t1, t2) = std::mem::take(&mut self.rare.owed.probe_times[index]);
            let (emsn, received, t3) = (self.recv_window(stream).emsn(), self.received, now.timestamp());
            return Some(Kind::ProbeAck(ProbeAck { stream, emsn, received, t1, t2, t3 }));
        }
        if std::mem::take(&mut self.pending.ack[index]) {
            shared.counters.acks += 1;
            self.acknowledged = self.received;
            return Some(self.ack(stream, None));
        }
        if std::mem::take(&mut self.pending.probe[index]) {
            shared.counters.probes += 1;
            if let Some(controller) = &mut self.controller {
                controller.handle_probe_sent(now);
            }
            return Some(Kind::Probe(Probe { stream, t1: now.timestamp() }));
        }
        None
    }

    fn ack(&self, stream: Stream, nak: Option<Nak>) -> Kind {
        Kind::Ack(Ack { stream, emsn: self.recv_window(stream).emsn(), received: self.received, nak })
    }

    fn next_nak(&mut self) -> Option<(Stream, Nak)> {
        if std::mem::take(&mut self.pending.nak) {
            return self.rare.last_nak.map(|nak| (Stream::Requests, nak));
        }
        if !self.pending.naks {
            return None;
        }
        let nak = self.rare.owed.naks.pop();
        self.pending.naks &= !self.rare.owed.naks.is_empty();
        nak
    }
}
