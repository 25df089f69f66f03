//! One client: posts messages on its queue pairs, collects completions, checks data.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::{Completion, CqId, Operation, PostError, QpId, Remote, SendOp, SendRequest, Sge, Status};
use dcp::dpdk::Region;
use dcp::wire::RegionKey;

use super::fabric::REGION_VA;
use super::layout::{GUARD, Layout};
use crate::failure::{self, Failure};
use crate::hint;
use crate::outcome::Verification;
use crate::pattern::Pattern;
use crate::plan::{Length, Plan};

/// Completions taken at a time.
const COMPLETIONS: usize = 64;
/// Bytes compared at a time.
const CHUNK: usize = 4096;

/// Memory that messages come from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) region: Region,
    pub(super) lkey: RegionKey,
}

/// Memory at the server that messages go to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) region: Region,
    pub(super) rkey: RegionKey,
}

/// One queue pair's part of the run.
#[derive(Clone, Copy, Debug)]
struct Flow {
    qp: QpId,
    posted: u64,
    completed: u64,
    /// Whether the last message posted asks for a completion.
    settled: bool,
}

/// A client and its traffic.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) worker: Worker,
    cq: CqId,
    number: u32,
    flows: Vec<Flow>,
    /// Flows that may have room for another message.
    open: Vec<usize>,
    source: Source,
    target: Target,
    layout: Layout,
    /// Messages per queue pair; `u64::MAX` while time limits the run.
    limit: u64,
    /// No more messages than needed to end.
    stopping: bool,
    cq_mod: u64,
    seed: u64,
    verify_each: bool,
    completed: u64,
    unfinished: usize,
    mismatch: Option<String>,
    /// Whether the user has stopped the run: nothing long is begun or gone on with then.
    interrupted: &'a AtomicBool,
}

impl<'a> Client<'a> {
    #[expect(clippy::too_many_arguments, reason = "called once, with everything a client is made of")]
    pub(super) fn new(
        worker: Worker,
        cq: CqId,
        number: u32,
        qps: Vec<QpId>,
        source: Source,
        target: Target,
        layout: Layout,
        plan: &Plan,
        interrupted: &'a AtomicBool,
    ) -> Self {
        let flows: Vec<_> =
            qps.into_iter().map(|qp| Flow { qp, posted: 0, completed: 0, settled: true }).collect();
        Self {
            worker,
            cq,
            number,
            open: (0..flows.len()).collect(),
            unfinished: flows.len(),
            flows,
            source,
            target,
            layout,
            limit: match plan.length {
                Length::Iterations(count) => count.get(),
                Length::Duration(_) => u64::MAX,
            },
            stopping: false,
            cq_mod: if plan.verify_each { 1 } else { u64::from(plan.cq_mod).min(layout.depth) },
            seed: plan.seed,
            verify_each: plan.verify_each,
            completed: 0,
            mismatch: None,
            interrupted,
        }
    }

    /// Fills the buffers, unless each message is to bring its own data: the same for every message that uses a buffer.
    ///
    /// # Errors
    /// The user stopped it.
    pub(super) fn fill_slots(&self) -> Result<(), Failure> {
        if self.verify_each {
            return Ok(());
        }
        for flow in 0..self.flows.len() {
            for slot in 0..self.layout.slots.min(self.limit) {
                if !self.fill(flow, slot) {
                    return Err(Failure::interrupted());
                }
            }
        }
        Ok(())
    }

    fn pattern(&self, flow: usize, index: u64) -> Pattern {
        let message = if self.verify_each { index } else { index % self.layout.slots };
        let place = u64::from(self.number) << 16 | flow as u64;
        Pattern { seed: self.seed, message: place << 40 | message & ((1 << 40) - 1) }
    }

    /// Whether it came to the end of the buffer before the user stopped the run.
    fn fill(&self, flow: usize, index: u64) -> bool {
        let pattern = self.pattern(flow, index);
        let start = self.layout.offset(flow, index);
        let mut chunk = [0; CHUNK];
        for at in (0..self.layout.size).step_by(CHUNK) {
            if self.interrupted.load(Ordering::Relaxed) {
                return false;
            }
            let chunk = &mut chunk[..CHUNK.min(self.layout.size - at)];
            pattern.fill_from(at as u64, chunk);
            self.source.region.write(start + at as u64, chunk).expect("the layout fits the region");
        }
        true
    }

    /// One round: post, drive the worker, collect.
    ///
    /// # Errors
    /// A message failed, or its data is wrong.
    pub(super) fn poll(&mut self) -> Result<(), Failure> {
        while let Some(flow) = self.open.pop() {
            self.post(flow)?;
        }
        self.worker.poll();
        self.collect()
    }

    /// Ends the run early: what is under way is finished, nothing else is begun.
    pub(super) fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.open = (0..self.flows.len()).collect();
            self.unfinished = self.flows.iter().filter(|flow| flow.posted > flow.completed).count();
        }
    }

    /// Whether every message has completed.
    pub(super) fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Messages completed on all queue pairs.
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// The first message whose data was wrong when it completed.
    pub(super) fn mismatch(&mut self) -> Option<String> {
        self.mismatch.take()
    }

    fn post(&mut self, index: usize) -> Result<(), Failure> {
        loop {
            let flow = self.flows[index];
            let full = flow.posted - flow.completed >= self.layout.depth;
            let enough = if self.stopping { flow.settled } else { flow.posted >= self.limit };
            if full || enough {
                return Ok(());
            }
            if self.verify_each && !self.fill(index, flow.posted) {
                return Ok(());
            }
            self.post_one(index)?;
        }
    }

    fn post_one(&mut self, index: usize) -> Result<(), Failure> {
        let flow = &mut self.flows[index];
        let number = flow.posted;
        let va = REGION_VA + self.layout.offset(index, number);
        let last = number + 1 == self.limit || self.stopping;
        let signalled = last || (number + 1).is_multiple_of(self.cq_mod);
        let request = SendRequest {
            wr_id: number,
            op: SendOp::Write(Remote { va, rkey: self.target.rkey }),
            sges: &[Sge {
                va,
                len: u32::try_from(self.layout.size).unwrap_or(u32::MAX),
                lkey: self.source.lkey,
            }],
            signalled,
            solicited: false,
            fence: false,
        };
        match self.worker.endpoint_mut().post_send(flow.qp, &request) {
            Ok(()) => {
                flow.posted += 1;
                flow.settled = signalled;
                Ok(())
            }
            Err(error @ PostError::QueueFull { .. }) => {
                unreachable!("the depth is counted here: {error}")
            }
            Err(error) => Err(Failure::transfer(error.to_string())),
        }
    }

    fn collect(&mut self) -> Result<(), Failure> {
        let blank = Completion {
            wr_id: 0,
            qp: QpId(0),
            status: Status::Success,
            operation: Operation::Write,
            byte_len: 0,
            imm: None,
            solicited: false,
        };
        let mut batch = [blank; COMPLETIONS];
        loop {
            let count = self.worker.endpoint_mut().poll_completions(self.cq, &mut batch);
            for completion in &batch[..count] {
                self.complete(completion)?;
            }
            if count < COMPLETIONS {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, completion: &Completion) -> Result<(), Failure> {
        if completion.status != Status::Success {
            return Err(self.failed(completion));
        }
        let index = completion.qp.index();
        if self.verify_each && self.mismatch.is_none() {
            let stopped = || self.interrupted.load(Ordering::Relaxed);
            if let Verification::Failed(mismatch) = self.check(index, completion.wr_id, &stopped) {
                self.mismatch = Some(mismatch);
            }
        }
        let flow = &mut self.flows[index];
        self.completed += completion.wr_id + 1 - flow.completed;
        flow.completed = completion.wr_id + 1;
        let ended = if self.stopping { flow.settled } else { flow.posted == self.limit };
        if ended && flow.completed == flow.posted {
            self.unfinished -= 1;
        } else {
            self.open.push(index);
        }
        Ok(())
    }

    fn failed(&self, completion: &Completion) -> Failure {
        let status = completion.status;
        let qpn = self.worker.endpoint().qpn(completion.qp).get();
        let message = format!(
            "message {} on queue pair {qpn} of client {} to the server ({}) failed",
            completion.wr_id,
            self.number,
            self.worker.endpoint().peer(completion.qp).map_or_else(String::new, |peer| peer.ip.to_string()),
        );
        let number = failure::Status { name: status.name(), number: status as u32 };
        let failure = Failure::transfer(message).with_status(number);
        match status {
            // The counters of all hosts and of the switch tell.
            Status::RetryExceeded => failure,
            Status::RemoteAccess => failure.with_hint("the server refused the access to its memory"),
            _ => failure.with_hint(hint::TRANSPORT),
        }
    }

    /// Compares every buffer that a completed message has filled, as long as it is not `enough`.
    pub(super) fn verify(&self, enough: &impl Fn() -> bool) -> Verification {
        for (index, flow) in self.flows.iter().enumerate() {
            // With `--verify`, a buffer may hold a part of the next message already, when a stopped run left that.
            let reused = if self.verify_each { flow.posted } else { flow.completed };
            let first = reused.saturating_sub(self.layout.slots);
            for number in first..flow.completed {
                match self.check(index, number, enough) {
                    Verification::Passed => {}
                    other => return other,
                }
            }
        }
        Verification::Passed
    }

    /// Compares a completed message.
    fn check(&self, flow: usize, number: u64, enough: &impl Fn() -> bool) -> Verification {
        let start = self.layout.offset(flow, number);
        let pattern = self.pattern(flow, number);
        let mut chunk = [0; CHUNK];
        for at in (0..self.layout.size).step_by(CHUNK) {
            if enough() {
                return Verification::NotChecked;
            }
            let chunk = &mut chunk[..CHUNK.min(self.layout.size - at)];
            self.target.region.read(start + at as u64, chunk).expect("the layout fits the region");
            if let Some(offset) = pattern.first_mismatch(at as u64, chunk) {
                return Verification::Failed(format!(
                    "client {}, queue pair {}, message {number}, offset {offset} of {}",
                    self.number, flow, self.layout.size
                ));
            }
        }
        let mut guard = [0; GUARD];
        self.target
            .region
            .read(start + self.layout.size as u64, &mut guard)
            .expect("guards are in the region");
        if guard.iter().all(|&byte| byte == 0) {
            return Verification::Passed;
        }
        Verification::Failed(format!(
            "client {}, queue pair {flow}, message {number}: bytes behind its buffer changed",
            self.number
        ))
    }
}
