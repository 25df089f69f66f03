//! Packets that follow a usual one: of the same message, one behind the other in a burst.
//!
//! A shortcut for [`Qp::usual_packet`], whose checks of headers have the same outcome for all of them.

use dcp_wire::{Data, DataOp, Ecn, Kind, PacketName, Part, Psn, Stream};

use super::{Qp, Shared};
use crate::slot::Counted;
use crate::{Instant, RunSink, RxPacket, Segment};

/// A message of which packets follow each other, and what was found out about it. Good until a command is given to the
/// endpoint; frames handled meanwhile do no harm.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Index of the queue pair.
    pub(crate) number: u32,
    name: PacketName,
    /// Where the payload of its first packet goes.
    start: Segment,
    /// Packets of the message.
    packets: u32,
    /// IP length of each packet.
    ip_len: u16,
}

/// Packets of a run behind each other: `first`, `first + 1` …
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Number of the first one.
    pub first: Psn,
    /// How many.
    pub count: u32,
    /// Whether they ask for an ACK: all of them, or none.
    pub ack_req: bool,
}

/// What became of the last packet offered to a [`Run`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Followed {
    /// It was taken, and more may follow.
    On,
    /// It was taken, and the run is over.
    Over,
    /// It is none of the run's: nothing has happened yet.
    Not,
}

impl Qp {
    /// The run that a packet is in which has just been taken. `None`: it is none that others follow.
    pub(crate) fn run_after(&self, number: u32, rx: &RxPacket, shared: &Shared) -> Option<Run> {
        let headers = &rx.packet.headers;
        let Kind::Data(data @ Data { op: DataOp::Write { reth, part }, .. }) = &headers.kind else {
            return None;
        };
        // A mark asks for a CNP, and is looked at packet by packet.
        if *part != Part::Middle || headers.path.ecn == Ecn::Ce || self.check_origin(rx.packet).is_err() {
            return None;
        }
        let usual = self.usual_packet(rx, data, *reth, *part, shared)?;
        let before = u64::from(data.name.psn.get()) * u64::from(self.config.mtu);
        let start = Segment { offset: usual.to.offset - before, ..usual.to };
        Some(Run { number, name: data.name, start, packets: usual.packets, ip_len: rx.packet.ip_len })
    }

    /// for packets of a run. How many were taken, and what became of the last one, or of the one that was
    /// not taken.
    #[inline]
    pub(crate) fn take_followers<S: RunSink>(
        &mut self,
        now: Instant,
        run: &Run,
        Stretch { first, count, ack_req }: Stretch,
        shared: &mut Shared,
        sink: &mut S,
    ) -> (u32, Followed) {
        let Some(slot) = self.recv.counting_slot(run.name) else { return (0, Followed::Not) };
        let is_same = self.state.is_live() && slot.expected() == run.packets;
        // Those of the middle: neither the first nor the last.
        let count = count.min((run.packets - 1).saturating_sub(first.get()));
        if !is_same || count == 0 || first.get() == 0 {
            return (0, Followed::Not);
        }
        if slot.counter() + count >= run.packets {
            return self.take_one_by_one(now, run, Stretch { first, count, ack_req }, shared, sink);
        }
        // None of them completes the message.
        let mut to = self.place_of(run, first);
        for _ in 0..count {
            sink.place(0, to);
            sink.go_on();
            to.offset += u64::from(self.config.mtu);
        }
        self.count_unmarked(count, u32::from(run.ip_len), ack_req, Stream::Requests, shared);
        shared.count_placed(self.id, count);
        self.recv.slot_mut(run.name.msn).count_more(first.get(), count);
        (count, Followed::On)
    }

    /// The same where one of them may complete the message, or tear it.
    #[cold]
    fn take_one_by_one<S: RunSink>(
        &mut self,
        now: Instant,
        run: &Run,
        Stretch { first, count, ack_req }: Stretch,
        shared: &mut Shared,
        sink: &mut S,
    ) -> (u32, Followed) {
        for taken in 0..count {
            let psn = Psn::from_low_bits(first.get() + taken);
            self.count_unmarked(1, u32::from(run.ip_len), ack_req, Stream::Requests, shared);
            let name = PacketName { psn, ..run.name };
            if self.place_and_count(now, name, self.place_of(run, psn), shared, sink) != Counted::More {
                return (taken + 1, Followed::Over);
            }
            sink.go_on();
        }
        (count, Followed::On)
    }

    /// Where a packet of a run goes.
    #[inline]
    fn place_of(&self, run: &Run, psn: Psn) -> Segment {
        let before = u64::from(psn.get()) * u64::from(self.config.mtu);
        Segment { offset: run.start.offset + before, ..run.start }
    }
}
