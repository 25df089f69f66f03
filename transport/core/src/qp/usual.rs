//! The usual packet: of a WRITE without immediate, in which no check finds anything.
//!
//! A shortcut for `Qp::handle_data`, which would do the same with it, by a longer way.

use dcp_wire::{Data, Part, Reth, Stream, WriteImm};

use super::{Qp, Shared};
use crate::memory::{Claim, Need};
use crate::slot::Counted;
use crate::{Instant, RxPacket, RxSink, Segment};

/// What is left to know of a usual packet.
pub(crate) struct Usual {
    to: Segment,
    /// Packets of its message.
    packets: u32,
}

impl Qp {
    /// P-2 and R-2 … R-6 at once, after [`Qp::check_origin`]. `None`: the packet is not that usual, and nothing has happened yet.
    #[inline]
    pub(crate) fn usual_packet(
        &self,
        rx: &RxPacket,
        data: &Data,
        reth: Reth,
        part: Part<WriteImm>,
        shared: &Shared,
    ) -> Option<Usual> {
        #[cfg(feature = "test-faults")]
        if shared.config.counter_only {
            return None;
        }
        if !self.state.is_live() || matches!(part, Part::Last(Some(_)) | Part::Only(Some(_))) {
            return None;
        }
        let is_first = matches!(part, Part::First | Part::Only(_));
        let is_last = matches!(part, Part::Last(_) | Part::Only(_));
        let expected = self.recv.counting_slot(data.name)?.expected();
        let (mtu, psn) = (u64::from(self.config.mtu), data.name.psn.get());
        let (payload_len, total) = (u32::from(rx.packet.payload_len), u64::from(reth.dma_len));
        let before = u64::from(psn) * mtu;
        let end = before + u64::from(payload_len);
        // Every length but the last packet's is an MTU, so that the last one says how many packets there are.
        let (packets, fits) = if is_last {
            let packets = psn + 1;
            let known = expected == packets || expected == 0;
            (packets, known && payload_len > 0 && u64::from(payload_len) <= mtu && end == total)
        } else {
            let most = u64::from(expected) * mtu;
            let agrees = total <= most && total + mtu > most;
            (expected, agrees && u64::from(payload_len) == mtu && end < total)
        };
        if !fits || (psn == 0) != is_first {
            return None;
        }
        let claim = Claim { pd: self.config.pd, key: reth.rkey, need: Need::RemoteWrite };
        let whole = shared.memory.resolve(claim, reth.va.checked_sub(before)?, reth.dma_len)?;
        Some(Usual { to: Segment { offset: whole.offset + before, len: payload_len, ..whole }, packets })
    }

    /// Counts and places it. True: emsn moved.
    #[inline]
    pub(crate) fn take_usual<S: RxSink>(
        &mut self,
        now: Instant,
        rx: &RxPacket,
        data: &Data,
        usual: &Usual,
        shared: &mut Shared,
        sink: &mut S,
    ) -> bool {
        self.count_received(rx, data.ack_req, Stream::Requests, shared);
        shared.count_placed(self.id);
        sink.place(0, usual.to);
        let slot = self.recv.slot_mut(data.name.msn);
        slot.set_expected(usual.packets);
        let counted = slot.count(data.name.psn.get());
        match counted {
            Counted::More => {}
            Counted::Complete => {
                slot.complete();
                self.advance(now, shared, sink);
            }
            Counted::Torn => self.ask_for_restart(Stream::Requests, data.name),
        }
        counted == Counted::Complete
    }
}
