//! Packets of one message behind each other in a burst: what is the same in all of them is looked at once.

use dcp_core::{Endpoint, Run, RxPacket, Stretch};
use dcp_wire::{Data, Follower, Kind, Msn, Psn, Qpn};
use dpdk_ffi::Mbuf;

/// The run that a burst is in, if it is in one.
#[derive(Default)]
pub(super) struct Chain {
    link: Option<(Follower, Run)>,
    /// Whose the last data packet was.
    last: Option<(Qpn, Msn)>,
}

impl Chain {
    /// The run that the first of these frames is in, and those of them that are numbered from there on.
    #[inline]
    pub(super) fn stretch(&self, frames: &[Mbuf]) -> Option<(&Run, Stretch)> {
        let (follower, run) = self.link.as_ref()?;
        let (frame, others) = frames.split_first()?;
        let (first, ack_req) = follower.name_of(frame.head(), frame.frame_len())?;
        let mut count = 1;
        for frame in others {
            let next = Psn::from_low_bits(first.get() + count);
            if !follower.is_packet(next, ack_req, frame.head(), frame.frame_len()) {
                break;
            }
            count += 1;
        }
        Some((run, Stretch { first, count, ack_req }))
    }

    /// No more packets of this run.
    pub(super) fn end(&mut self) {
        self.link = None;
    }

    /// After a packet that was used up: the second one of a message in a row begins a run.
    #[inline]
    pub(super) fn begin_after(&mut self, endpoint: &Endpoint, rx: &RxPacket<'_>, frame: &Mbuf) {
        let headers = &rx.packet.headers;
        let Kind::Data(Data { name, .. }) = &headers.kind else { return };
        let this = Some((headers.dest_qpn, name.msn));
        if self.last == this {
            self.link = link(endpoint, rx, frame);
        }
        self.last = this;
    }
}

fn link(endpoint: &Endpoint, rx: &RxPacket<'_>, frame: &Mbuf) -> Option<(Follower, Run)> {
    let follower = Follower::of(rx.packet, frame.head())?;
    Some((follower, endpoint.run_after(rx)?))
}
