//! The end of a queue pair: completing, flushing, and what the peer is told from then on.

use dcp_wire::{Nak, NakCode};

use super::send_queue::{SendOp, Wqe};
use super::{Qp, QpState, Shared};
use crate::{Completion, Operation, Status};

impl Qp {
    /// Completes the oldest work request. Failures complete even when unsignalled.
    #[inline]
    pub(super) fn complete_oldest(&mut self, status: Status, shared: &mut Shared) {
        let wqe = self.queue.at(0);
        let signalled = wqe.signalled || status != Status::Success;
        if signalled {
            let completion = Completion {
                wr_id: wqe.wr_id,
                qp: self.id,
                status,
                operation: operation_of(wqe),
                byte_len: wqe.len,
            };
            shared.complete(self.config.send_cq, completion);
        }
        self.queue.retire(signalled);
    }

    /// The oldest work request fails with `status`; the rest is flushed and the queue pair goes to Error.
    #[cold]
    pub(super) fn fail_oldest(&mut self, status: Status, shared: &mut Shared) {
        if self.queue.outstanding() > 0 {
            self.complete_oldest(status, shared);
        }
        let own_fault = Nak {
            code: NakCode::RemoteOperational,
            msn: self.recv.emsn(),
            generation: self.recv.slot(self.recv.emsn()).generation(),
        };
        self.enter_error(own_fault, shared);
    }

    /// The queue pair goes to Error; its peer hears `nak` from now on.
    #[cold]
    pub(super) fn enter_error(&mut self, nak: Nak, shared: &mut Shared) {
        self.state = QpState::Error;
        self.last_nak = Some(nak);
        self.pending.clear();
        self.retrans.clear();
        self.in_flight.clear();
        self.window.clear();
        self.recv.clear(&mut shared.maps);
        self.flush(shared);
    }

    /// Completes everything posted with `Flushed`, in order.
    pub(super) fn flush(&mut self, shared: &mut Shared) {
        while self.queue.outstanding() > 0 {
            self.complete_oldest(Status::Flushed, shared);
        }
        self.queue.restart_empty();
    }
}

const fn operation_of(wqe: &Wqe) -> Operation {
    match wqe.op {
        SendOp::Write { .. } => Operation::Write,
    }
}
