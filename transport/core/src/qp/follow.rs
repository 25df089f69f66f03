//! Packets that follow a usual one: of the same message, one behind the other in a burst.
//!
//! A shortcut for [`Qp::usual_packet`], whose checks of headers have the same outcome for all of them.

use dcp_wire::{Data, DataOp, Ecn, Kind, PacketName, Part, Psn, Stream};

use super::{Qp, Shared};
use crate::slot::Counted;
use crate::{Instant, RxPacket, RxSink, Segment};

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

/// What became of a packet offered to a [`Run`].
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
        let Kind::Data(data @ Data { ack_req: false, op: DataOp::Write { reth, part }, .. }) = &headers.kind
        else {
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

    /// for packet `psn` of a run.
    #[inline]
    pub(crate) fn take_follower<S: RxSink>(
        &mut self,
        now: Instant,
        run: &Run,
        psn: Psn,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Option<Counted> {
        let expected = self.recv.counting_slot(run.name)?.expected();
        let is_middle = psn.get() > 0 && psn.get() + 1 < run.packets;
        if !(self.state.is_live() && is_middle && expected == run.packets) {
            return None;
        }
        let before = u64::from(psn.get()) * u64::from(self.config.mtu);
        let to = Segment { offset: run.start.offset + before, ..run.start };
        self.count_unmarked(run.ip_len, false, Stream::Requests, shared);
        Some(self.place_and_count(now, PacketName { psn, ..run.name }, to, shared, sink))
    }
}
