//! READ and ATOMIC, the responder's side: run once, in order, when emsn reaches the request.

use dcp_wire::{AtomicEth, Data, NakCode, Reth, Stream};

use super::answer::{Answer, AnswerBody, PeerRequest};
use super::recv_window::Admission;
use super::{Qp, Shared};
use crate::memory::{Claim, Need};
use crate::{AtomicOp, DropReason, Instant, RxPacket, RxSink, Segment};

/// Bytes of an atomic.
const ATOMIC_LEN: u32 = 8;

impl Qp {
    /// A request is complete on arrival and waits in its slot until emsn reaches it.
    pub(super) fn handle_request<S: RxSink>(
        &mut self,
        rx: &RxPacket,
        data: &Data,
        request: PeerRequest,
        now: Instant,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<(), DropReason> {
        self.count_received(rx, data.ack_req, Stream::Requests, shared);
        match self.recv.admit(data.name) {
            Admission::Take | Admission::Restart(_) => {}
            Admission::Drop(reason) => {
                self.pending.ack[Stream::Requests as usize] |= reason == DropReason::OldMessage;
                return Err(reason);
            }
        }
        let slot = self.recv.slot_mut(data.name.msn);
        if slot.family().is_some() {
            return Err(DropReason::MixedOperations);
        }
        slot.restart(data.name.generation);
        let mask = self.rare.peer_requests.len().wrapping_sub(1);
        match self.rare.peer_requests.get_mut(data.name.msn.get() as usize & mask) {
            Some(place) => {
                *place = Some(request);
                slot.request();
            }
            // Set up without READs and ATOMICs.
            None => slot.fail(super::receive::Failure::InvalidRequest as u8),
        }
        self.advance(now, shared, sink);
        Ok(())
    }

    /// Whether an answer may be given: those that the peer has not acknowledged fill the window. The peer keeps T-15
    /// as it sees answers complete, which is before its ACK of them comes here.
    pub(super) fn may_answer(&self) -> bool {
        self.rare.answers.window.len() < self.config.max_rd_atomic
    }

    /// Runs the request at emsn. `Err`: it ends the queue pair with that NAK.
    pub(super) fn run_request<S: RxSink>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        sink: &mut S,
    ) -> Result<(), NakCode> {
        let emsn = self.recv.emsn();
        let mask = self.rare.peer_requests.len().wrapping_sub(1);
        let request =
            self.rare.peer_requests[emsn.get() as usize & mask].take().ok_or(NakCode::InvalidRequest)?;
        let (body, packets) = match request {
            PeerRequest::Read(reth) => {
                let segment = self.check_read(reth, shared)?;
                (AnswerBody::Read(segment), segment.len.div_ceil(self.config.mtu).max(1))
            }
            PeerRequest::Atomic(eth, op) => {
                let at = self.check_atomic(eth, shared)?;
                (AnswerBody::Atomic(sink.atomic(at, op)), 1)
            }
        };
        let place = self.rare.answers.window.next.get() as usize & (self.rare.answer_ring.len() - 1);
        self.rare.answer_ring[place] = Answer { rmsn: emsn, body };
        self.rare.answers.window.enter(packets, now);
        self.answering = true;
        Ok(())
    }

    fn check_read(&self, reth: Reth, shared: &Shared) -> Result<Segment, NakCode> {
        if reth.dma_len == 0 {
            return Ok(Segment { region: crate::RegionId(0), offset: 0, len: 0 });
        }
        let claim = Claim { pd: self.config.pd, key: reth.rkey, need: Need::RemoteRead };
        shared.memory.resolve(claim, reth.va, reth.dma_len).ok_or(NakCode::RemoteAccess)
    }

    fn check_atomic(&self, eth: AtomicEth, shared: &Shared) -> Result<Segment, NakCode> {
        if !eth.va.is_multiple_of(u64::from(ATOMIC_LEN)) {
            return Err(NakCode::InvalidRequest);
        }
        let claim = Claim { pd: self.config.pd, key: eth.rkey, need: Need::RemoteAtomic };
        shared.memory.resolve(claim, eth.va, ATOMIC_LEN).ok_or(NakCode::RemoteAccess)
    }
}

/// What an atomic request asks for.
pub(super) const fn cmp_swap(eth: AtomicEth) -> PeerRequest {
    PeerRequest::Atomic(eth, AtomicOp::CmpSwap { compare: eth.compare, swap: eth.swap_add })
}

/// What an atomic request asks for.
pub(super) const fn fetch_add(eth: AtomicEth) -> PeerRequest {
    PeerRequest::Atomic(eth, AtomicOp::FetchAdd(eth.swap_add))
}
