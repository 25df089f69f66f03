//! The end of a queue pair: completing, flushing, and what the peer is told from then on.

use dcp_wire::{Msn, Nak, NakCode};

use super::control::{Owed, Pending};
use super::rnr::Rnr;
use super::{Qp, QpState, Shared};
use crate::{Completion, Operation, Status};

impl Qp {
    /// Completes, in posting order, every request that is acknowledged and answered.
    #[inline]
    pub(super) fn complete_ready(&mut self, shared: &mut Shared) {
        while self.queue.can_complete() {
            self.complete_oldest(Status::Success, shared);
        }
    }

    /// Completes the oldest work request. Failures complete even when unsignalled.
    #[inline]
    fn complete_oldest(&mut self, status: Status, shared: &mut Shared) {
        let wqe = self.queue.oldest();
        let signalled = wqe.flags.signalled || status != Status::Success;
        if signalled {
            let completion = Completion {
                wr_id: wqe.wr_id,
                qp: self.id,
                status,
                operation: wqe.op.operation(),
                byte_len: wqe.len,
                imm: None,
                solicited: false,
            };
            shared.complete(self.config.send_cq, completion);
        }
        self.queue.retire(signalled);
    }

    /// The oldest work request fails with `status`; the rest is flushed and the queue pair goes to Error.
    #[cold]
    pub(super) fn fail_oldest(&mut self, status: Status, shared: &mut Shared) {
        self.fail_at(self.oldest_msn(), status, shared);
    }

    /// The request of message `msn` fails with `status`; the others are flushed and the queue pair goes to Error.
    #[cold]
    pub(super) fn fail_at(&mut self, msn: Msn, status: Status, shared: &mut Shared) {
        let offender = msn.index_in(self.oldest_msn(), self.queue.outstanding());
        for steps in 0..self.queue.outstanding() {
            let status = if Some(steps) == offender { status } else { Status::Flushed };
            self.complete_oldest(status, shared);
        }
        self.enter_error(self.own_fault(), shared);
    }

    /// What the peer hears when the fault is not its own.
    pub(super) fn own_fault(&self) -> Nak {
        let emsn = self.recv.emsn();
        Nak { code: NakCode::RemoteOperational, msn: emsn, generation: self.recv.slot(emsn).generation() }
    }

    /// The queue pair goes to Error; its peer hears `nak` from now on.
    #[cold]
    pub(super) fn enter_error(&mut self, nak: Nak, shared: &mut Shared) {
        self.state = QpState::Error;
        shared.draining = true;
        self.rare.last_nak = Some(nak);
        self.pending = Pending::default();
        self.rare.owed = Owed::default();
        self.requests.clear();
        self.rare.answers.clear();
        self.answering = false;
        self.rnr = Rnr::default();
        self.rare.held.clear();
        self.in_flight.clear();
        self.unanswered = 0;
        self.recv.clear(&mut shared.maps);
        self.rare.recv_answers.clear(&mut shared.maps);
        self.rare.peer_requests.fill(None);
        self.flush(shared);
    }

    /// Completes everything posted with `Flushed`, in order.
    pub(super) fn flush(&mut self, shared: &mut Shared) {
        while self.queue.outstanding() > 0 {
            self.complete_oldest(Status::Flushed, shared);
        }
        self.queue.restart_empty();
        while let Some(receive) = self.recv_queue.drain() {
            self.complete_failed(receive.wr_id, Status::Flushed, shared);
        }
    }

    /// The receive of the message at emsn fails.
    #[cold]
    pub(super) fn fail_receive(&mut self, status: Status, shared: &mut Shared) {
        if let Some(receive) = self.recv_queue.take_next() {
            self.complete_failed(receive.wr_id, status, shared);
        }
    }

    fn complete_failed(&mut self, wr_id: u64, status: Status, shared: &mut Shared) {
        let completion = Completion {
            wr_id,
            qp: self.id,
            status,
            operation: Operation::Receive,
            byte_len: 0,
            imm: None,
            solicited: false,
        };
        shared.complete(self.config.recv_cq, completion);
    }
}
