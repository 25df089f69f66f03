//! One worker as the library runs it: the driver, and what crosses between it and the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam::channel::Receiver;
use crossbeam::queue::ArrayQueue;
use dcp_core::{
    CqId, CreateError, Endpoint, ModifyError, MrAttr, MrKeys, Operation, Peer, QpConfig, QpId, QpState,
    RecvRequest, RegionId, RegisterError, SendOp, SendRequest, Sge, Status,
};
use dcp_wire::Qpn;
use dpdk_ffi::Region;
use smallvec::SmallVec;

use super::cq::{Completion, CqShared};
use super::qp::QpShared;
use super::stats::{QpStats, WorkerStats};
use crate::net::{AddressError, Resolution};
use crate::worker::Worker;

/// Something that a worker does between two polls.
pub(super) type Control = Box<dyn FnOnce(&mut Engine) + Send>;

/// A work request on its way to the worker.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) qp: QpId,
    pub(super) wr_id: u64,
    pub(super) kind: PostKind,
    pub(super) sges: SmallVec<[Sge; 2]>,
}

#[derive(Debug)]
pub(super) enum PostKind {
    Send { op: SendOp, signalled: bool, solicited: bool, fence: bool },
    Receive,
}

/// Posts taken in one poll.
const POSTS_MAX: usize = 256;
/// Completions moved at a time.
const BATCH: usize = 32;
/// Polls between two looks at regions that wait to be given back.
const SWEEP_POLLS: u64 = 64;

#[derive(Debug)]
pub(super) struct Engine {
    worker: Worker,
    controls: Receiver<Control>,
    posts: Arc<ArrayQueue<Post>>,
    number: usize,
    /// By [`CqId`].
    cqs: Vec<Arc<CqShared>>,
    /// By [`QpId`].
    qps: Vec<Arc<QpShared>>,
    dying: Vec<Dying>,
    polls: u64,
    sleeps: u64,
    sleep_ns: u64,
}

/// A deregistered region that work or frames may still refer to.
#[derive(Debug)]
struct Dying {
    id: RegionId,
    /// Workers that still hold it.
    holders: Arc<AtomicUsize>,
}

impl Engine {
    pub(super) fn new(
        worker: Worker,
        controls: Receiver<Control>,
        posts: Arc<ArrayQueue<Post>>,
        number: usize,
    ) -> Self {
        Self {
            worker,
            controls,
            posts,
            number,
            cqs: Vec::new(),
            qps: Vec::new(),
            dying: Vec::new(),
            polls: 0,
            sleeps: 0,
            sleep_ns: 0,
        }
    }

    /// One round. Returns what it moved: posts, frames, completions.
    pub(super) fn poll(&mut self) -> usize {
        self.run_controls();
        let posts = self.take_posts();
        let frames = self.worker.poll();
        let completions = self.publish();
        self.polls += 1;
        if !self.dying.is_empty() && self.polls.is_multiple_of(SWEEP_POLLS) {
            self.sweep();
        }
        posts + frames + completions
    }

    pub(super) fn run_controls(&mut self) {
        while let Ok(control) = self.controls.try_recv() {
            control(self);
        }
    }

    pub(super) fn endpoint(&mut self) -> &mut Endpoint {
        self.worker.endpoint_mut()
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(super) fn stats(&self) -> WorkerStats {
        WorkerStats {
            endpoint: *self.worker.endpoint().counters(),
            worker: *self.worker.counters(),
            polls: self.polls,
            sleeps: self.sleeps,
            sleep_ns: self.sleep_ns,
            qps: u32::try_from(self.live_qps().count()).unwrap_or(u32::MAX),
        }
    }

    /// Of the queue pairs that there are.
    pub(super) fn qp_stats(&self) -> Vec<QpStats> {
        let endpoint = self.worker.endpoint();
        let of = |id| QpStats {
            qpn: endpoint.qpn(id).get(),
            worker: self.number,
            state: endpoint.qp_state(id),
            peer: endpoint.peer(id).map(|peer| (peer.ip, peer.qpn.get())),
            outstanding: endpoint.outstanding(id),
            in_flight: endpoint.in_flight(id),
            receives: endpoint.receives(id),
            counters: *endpoint.qp_counters(id),
        };
        self.live_qps().map(of).collect()
    }

    /// A destroyed one is reset, and none is in that state otherwise.
    fn live_qps(&self) -> impl Iterator<Item = QpId> {
        let ids = (0..self.qps.len()).filter_map(|index| u32::try_from(index).ok().map(QpId));
        ids.filter(|&id| self.worker.endpoint().qp_state(id) != QpState::Reset)
    }

    /// The thread that drives it slept.
    pub(super) fn note_sleep(&mut self, sleep: Duration) {
        self.sleeps += u64::from(!sleep.is_zero());
        self.sleep_ns += u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Time until the endpoint's next timer.
    pub(super) fn time_to_timer(&self) -> Option<Duration> {
        let next = self.worker.endpoint().next_timeout()?;
        Some(Duration::from_nanos(next.since(self.worker.now())))
    }

    /// Asks the worker's network stack for a neighbour; `None` if it has none.
    pub(super) fn resolve(&mut self, ip: dcp_wire::Ipv4Addr) -> Option<Result<Resolution, AddressError>> {
        self.worker.resolve(ip)
    }

    fn take_posts(&mut self) -> usize {
        for taken in 0..POSTS_MAX {
            let Some(post) = self.posts.pop() else { return taken };
            self.take_post(&post);
        }
        POSTS_MAX
    }

    fn take_post(&mut self, post: &Post) {
        let Post { qp, wr_id, kind, sges } = post;
        let endpoint = self.worker.endpoint_mut();
        let posted = match *kind {
            PostKind::Send { op, signalled, solicited, fence } => {
                let request = SendRequest { wr_id: *wr_id, op, sges, signalled, solicited, fence };
                endpoint.post_send(*qp, &request)
            }
            PostKind::Receive => endpoint.post_recv(*qp, &RecvRequest { wr_id: *wr_id, sges }),
        };
        if posted.is_err() {
            self.refuse(post);
        }
    }

    /// What the application could not know to be refused completes as flushed: nothing posted is ever lost.
    #[cold]
    fn refuse(&mut self, post: &Post) {
        let config = self.worker.endpoint().qp_config(post.qp);
        let (cq, operation) = match post.kind {
            PostKind::Send { op, .. } => (config.send_cq, op.operation()),
            PostKind::Receive => (config.recv_cq, Operation::Receive),
        };
        let completion = Completion {
            wr_id: post.wr_id,
            qpn: self.worker.endpoint().qpn(post.qp).get(),
            status: Status::Flushed,
            operation,
            byte_len: 0,
            imm: None,
            solicited: false,
        };
        self.push(cq, completion);
    }

    /// Moves completions to the application's rings.
    fn publish(&mut self) -> usize {
        let mut published = 0;
        for index in 0..self.cqs.len() {
            let cq = CqId(u32::try_from(index).expect("few completion queues"));
            loop {
                let count = self.publish_batch(cq);
                published += count;
                if count < BATCH {
                    break;
                }
            }
        }
        published
    }

    fn publish_batch(&mut self, cq: CqId) -> usize {
        let mut batch = [dcp_core::Completion::BLANK; BATCH];
        let count = self.worker.endpoint_mut().poll_completions(cq, &mut batch);
        // The core's own queue has the same depth: what one round completed may have been too much for it already.
        if count > 0 && self.worker.endpoint().cq_overflowed(cq) {
            self.cqs[cq.index()].overflowed.store(true, Ordering::Release);
        }
        for completion in &batch[..count] {
            self.publish_one(cq, completion);
        }
        count
    }

    fn publish_one(&mut self, cq: CqId, completion: &dcp_core::Completion) {
        let endpoint = self.worker.endpoint();
        let shared = &self.qps[completion.qp.index()];
        match completion.operation {
            Operation::Receive | Operation::ReceiveWriteImm => {
                shared.receives_freed.fetch_add(1, Ordering::AcqRel);
            }
            _ => shared.sends_freed.store(endpoint.sends_freed(completion.qp), Ordering::Release),
        }
        if completion.status != Status::Success {
            shared.set_state(endpoint.qp_state(completion.qp));
        }
        let completion = Completion {
            wr_id: completion.wr_id,
            qpn: endpoint.qpn(completion.qp).get(),
            status: completion.status,
            operation: completion.operation,
            byte_len: completion.byte_len,
            imm: completion.imm.map(|imm| imm.0),
            solicited: completion.solicited,
        };
        self.push(cq, completion);
    }

    fn push(&self, cq: CqId, completion: Completion) {
        let shared = &self.cqs[cq.index()];
        if shared.rings[self.number].push(completion).is_err() {
            shared.overflowed.store(true, Ordering::Release);
        }
        shared.event.notify();
    }

    pub(super) fn create_cq(&mut self, depth: usize, shared: Arc<CqShared>) -> Result<CqId, CreateError> {
        let id = self.endpoint().create_cq(depth)?;
        self.cqs.push(shared);
        debug_assert_eq!(self.cqs.len(), id.index() + 1);
        Ok(id)
    }

    pub(super) fn create_qp(
        &mut self,
        config: QpConfig,
        shared: Arc<QpShared>,
    ) -> Result<(QpId, Qpn), CreateError> {
        let id = self.endpoint().create_qp(config)?;
        self.endpoint().modify_to_init(id).expect("a fresh queue pair");
        shared.set_state(self.worker.endpoint().qp_state(id));
        if id.index() == self.qps.len() {
            self.qps.push(shared);
        } else {
            self.qps[id.index()] = shared;
        }
        Ok((id, self.worker.endpoint().qpn(id)))
    }

    pub(super) fn connect(&mut self, qp: QpId, peer: Peer) -> Result<(), ModifyError> {
        let endpoint = self.worker.endpoint_mut();
        endpoint.modify_to_rtr(qp, peer)?;
        endpoint.modify_to_rts(qp)?;
        self.qps[qp.index()].set_state(endpoint.qp_state(qp));
        Ok(())
    }

    pub(super) fn close_qp(&mut self, qp: QpId) {
        // What was posted before the end is flushed with the rest.
        self.take_posts();
        let endpoint = self.worker.endpoint_mut();
        let _ = endpoint.modify_to_error(qp);
        self.qps[qp.index()].set_state(endpoint.qp_state(qp));
    }

    pub(super) fn destroy_qp(&mut self, qp: QpId) {
        self.take_posts();
        self.endpoint().destroy_qp(qp);
    }

    pub(super) fn register(&mut self, region: Region, attr: MrAttr) -> Result<MrKeys, RegisterError> {
        self.worker.set_region(attr.region, region);
        self.endpoint().register(attr).inspect_err(|_| self.worker.clear_region(attr.region))
    }

    /// Ends every access under the keys; the memory stays as long as something refers to it.
    pub(super) fn deregister(&mut self, keys: MrKeys, id: RegionId, holders: Arc<AtomicUsize>) {
        self.take_posts();
        self.endpoint().deregister(keys);
        self.dying.push(Dying { id, holders });
        self.sweep();
    }

    fn sweep(&mut self) {
        let worker = &mut self.worker;
        self.dying.retain(|dying| {
            let referred = worker.endpoint().refers_to(dying.id) || worker.region_in_flight(dying.id);
            if !referred {
                worker.clear_region(dying.id);
                dying.holders.fetch_sub(1, Ordering::AcqRel);
            }
            referred
        });
    }
}
