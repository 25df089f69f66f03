//! What a swarm seed does: work requests on lanes, receives, and when each is posted.

use dcp_core::{Completion, Operation, Remote, SendOp, SendRequest, Sge};
use dcp_pair::{Host, MR_VA, Pair, Side};
use dcp_wire::ImmData;

/// Offset and length in a host's memory.
pub(crate) type Piece = (u64, u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Send,
    /// To this offset at the peer.
    Write(u64),
    /// From this offset at the peer.
    Read(u64),
    CmpSwap {
        cell: u64,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        cell: u64,
        add: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) wr_id: u64,
    pub(crate) verb: Verb,
    pub(crate) imm: Option<u32>,
    /// Where the bytes come from, or where the answer goes.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) signalled: bool,
    pub(crate) solicited: bool,
    pub(crate) fence: bool,
}

impl Op {
    pub(crate) fn len(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.1).sum()
    }

    pub(crate) fn is_two_sided(&self) -> bool {
        self.verb == Verb::Send || self.imm.is_some()
    }

    /// How its completion must name it.
    pub(crate) fn operation(&self) -> Operation {
        match self.verb {
            Verb::Send => Operation::Send,
            Verb::Write(_) => Operation::Write,
            Verb::Read(_) => Operation::Read,
            Verb::CmpSwap { .. } => Operation::CmpSwap,
            Verb::FetchAdd { .. } => Operation::FetchAdd,
        }
    }

    /// How the completion of its receive must name it.
    pub(crate) fn receive_operation(&self) -> Operation {
        if self.verb == Verb::Send { Operation::Receive } else { Operation::ReceiveWriteImm }
    }

    fn send_op(&self, peer: &Host) -> SendOp {
        let remote = |to| Remote { va: MR_VA + to, rkey: peer.keys.rkey };
        match (self.verb, self.imm.map(ImmData)) {
            (Verb::Send, None) => SendOp::Send,
            (Verb::Send, Some(imm)) => SendOp::SendImm(imm),
            (Verb::Write(to), None) => SendOp::Write(remote(to)),
            (Verb::Write(to), Some(imm)) => SendOp::WriteImm(remote(to), imm),
            (Verb::Read(from), _) => SendOp::Read(remote(from)),
            (Verb::CmpSwap { cell, compare, swap }, _) => {
                SendOp::CmpSwap { remote: remote(cell), compare, swap }
            }
            (Verb::FetchAdd { cell, add }, _) => SendOp::FetchAdd { remote: remote(cell), add },
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    pub(crate) pieces: Vec<Piece>,
}

/// One direction of one queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Who posts the work requests.
    pub(crate) side: Side,
    pub(crate) qp: usize,
    pub(crate) ops: Vec<Op>,
    /// At the peer, in order; none with a shared queue.
    pub(crate) receives: Vec<Receive>,
    /// How many of them were posted so far.
    pub(crate) posted: usize,
    pub(crate) receives_posted: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// The lane's next work request.
    Send(usize),
    /// The lane's next receive.
    Receive(usize),
    /// The next shared receive of a side.
    Shared(Side),
    /// A host is preempted for so many nanoseconds.
    Pause(Side, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) lanes: Vec<Lane>,
    /// Receives of shared queues, by side: those that the timeline posts, then as many to replace flushed ones.
    pub(crate) shared: [Vec<Receive>; 2],
    pub(crate) shared_posted: [usize; 2],
    /// Nanoseconds since the start, in order.
    pub(crate) timeline: Vec<(u64, Action)>,
    /// First byte behind everything that it may write, by side.
    pub(crate) free: [u64; 2],
}

impl Program {
    pub(crate) fn act(&mut self, pair: &mut Pair, action: Action) {
        match action {
            Action::Send(lane) => self.post_send(pair, lane),
            Action::Receive(lane) => {
                let lane = &mut self.lanes[lane];
                let receive = &lane.receives[lane.receives_posted];
                lane.receives_posted += 1;
                let host = pair.host_mut(lane.side.peer());
                let sges = sges(host, &receive.pieces);
                let request = dcp_core::RecvRequest { wr_id: receive.wr_id, sges: &sges };
                host.endpoint.post_recv(host.qps[lane.qp], &request).expect("there is room");
            }
            Action::Shared(side) => self.post_shared(pair, side),
            Action::Pause(side, ns) => pair.pause(side, ns),
        }
    }

    fn post_send(&mut self, pair: &mut Pair, lane: usize) {
        let lane = &mut self.lanes[lane];
        let op = &lane.ops[lane.posted];
        lane.posted += 1;
        let send_op = op.send_op(pair.host(lane.side.peer()));
        let host = pair.host_mut(lane.side);
        let request = SendRequest {
            wr_id: op.wr_id,
            op: send_op,
            sges: &sges(host, &op.pieces),
            signalled: op.signalled,
            solicited: op.solicited,
            fence: op.fence,
        };
        host.endpoint.post_send(host.qps[lane.qp], &request).expect("there is room");
    }

    /// Posts the next shared receive of `side`, if one is left.
    pub(crate) fn post_shared(&mut self, pair: &mut Pair, side: Side) {
        let posted = &mut self.shared_posted[side as usize];
        let Some(receive) = self.shared[side as usize].get(*posted) else { return };
        *posted += 1;
        let host = pair.host_mut(side);
        let sges = sges(host, &receive.pieces);
        let request = dcp_core::RecvRequest { wr_id: receive.wr_id, sges: &sges };
        host.endpoint.post_srq_recv(host.srq.expect("a shared queue"), &request).expect("there is room");
    }

    /// Receives of a failed queue pair took shared ones with them, so that others may lack theirs.
    pub(crate) fn replace_flushed(&mut self, pair: &mut Pair) {
        for side in [Side::Client, Side::Server] {
            let host = pair.host(side);
            let failed = |qp: &dcp_core::QpId| host.endpoint.qp_state(*qp) == dcp_core::QpState::Error;
            if host.srq.is_some() && host.qps.iter().any(failed) {
                while self.shared_posted[side as usize] < self.shared[side as usize].len() {
                    self.post_shared(pair, side);
                }
            }
        }
    }
}

/// Whether a completion is one of a receive.
pub(crate) fn is_receive(completion: &Completion) -> bool {
    matches!(completion.operation, Operation::Receive | Operation::ReceiveWriteImm)
}

fn sges(host: &Host, pieces: &[Piece]) -> Vec<Sge> {
    pieces.iter().map(|&(at, len)| host.sge(at, len)).collect()
}

impl Program {
    /// Shared receives of an earlier program come first.
    pub(crate) fn adopt(&mut self, side: dcp_pair::Side, left: Vec<Receive>) {
        self.shared_posted[side as usize] = left.len();
        self.shared[side as usize].splice(0..0, left);
    }
}
