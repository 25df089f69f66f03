//! One client: posts messages on its queue pairs, collects completions, checks data.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::{Completion, CqId, Endpoint, PostError, QpId, Remote, SendRequest, Sge, Status};
use dcp::dpdk::Region;
use dcp::wire::RegionKey;

use super::content::{Content, Count, SERVER};
use super::copies::Copies;
use super::memory::{Memory, REGION_VA};
use super::schedule::Schedule;
use super::tally::Done;
use crate::failure::{self, Failure};
use crate::hint;
use crate::outcome::Verification;
use crate::plan::{Length, Mode, Plan};
use crate::stats::Latencies;

/// Completions taken at a time.
const COMPLETIONS: usize = 64;

/// One queue pair's part of the run.
#[derive(Clone, Copy, Debug)]
struct Flow {
    qp: QpId,
    posted: u64,
    completed: u64,
    /// Messages whose buffers may be used again.
    free: u64,
    /// Whether the last message posted asks for a completion.
    settled: bool,
    /// Bytes of the messages completed.
    bytes: u64,
    /// When the last message completed.
    ended_ns: Option<u64>,
}

/// What a sender is made of.
#[derive(Debug)]
pub(crate) struct SenderParts {
    pub(crate) worker: Worker,
    pub(crate) cq: CqId,
    /// Number of the client.
    pub(crate) number: u32,
    pub(crate) qps: Vec<QpId>,
    /// The client's memory.
    pub(crate) memory: Memory,
    /// Key of the server's memory.
    pub(crate) rkey: RegionKey,
    /// The server's memory, if it is in this process.
    pub(crate) server: Option<Region>,
    pub(crate) content: Content,
    /// Copies of messages that are posted inline.
    pub(crate) copies: Option<Copies>,
}

/// Latencies, and when each message under way was begun.
#[derive(Clone, Debug)]
struct Timed {
    latencies: Latencies,
    /// By queue pair, oldest first, in nanoseconds.
    begun: Vec<VecDeque<u64>>,
}

impl Timed {
    fn new(plan: &Plan, flows: usize) -> Option<Self> {
        let wanted = plan.mode == Mode::Latency || plan.load.arrivals.is_some();
        wanted.then(|| Self { latencies: Latencies::default(), begun: vec![VecDeque::new(); flows] })
    }
}

/// A client and its traffic.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) worker: Worker,
    cq: CqId,
    number: u32,
    flows: Vec<Flow>,
    /// Flows that may have room for another message.
    open: Vec<usize>,
    memory: Memory,
    rkey: RegionKey,
    server: Option<Region>,
    content: Content,
    copies: Option<Copies>,
    /// Messages per queue pair; `u64::MAX` while time limits the run.
    limit: u64,
    /// No more messages than needed to end.
    stopping: bool,
    cq_mod: u64,
    completed: Done,
    unfinished: usize,
    mismatch: Option<String>,
    timed: Option<Timed>,
    /// When messages are to be sent, if not as soon as there is room.
    schedule: Option<Schedule>,
    /// Messages posted together.
    post_list: u64,
    /// When the first round was.
    start_ns: Option<u64>,
    /// Whether the user has stopped the run: nothing long is begun or gone on with then.
    interrupted: &'a AtomicBool,
}

impl<'a> Sender<'a> {
    /// A client whose queue pairs are connected or about to be. Fills its buffers.
    ///
    /// # Errors
    /// The user stopped it.
    pub(crate) fn new(parts: SenderParts, plan: &Plan, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        let SenderParts { worker, cq, number, qps, memory, rkey, server, content, copies } = parts;
        let blank =
            |qp| Flow { qp, posted: 0, completed: 0, free: 0, settled: true, bytes: 0, ended_ns: None };
        let flows: Vec<_> = qps.into_iter().map(blank).collect();
        let schedule = Schedule::new(plan, number, flows.len());
        let timed = Timed::new(plan, flows.len());
        if !content.prepare_client(&memory.region, &|| interrupted.load(Ordering::Relaxed)) {
            return Err(Failure::interrupted());
        }
        Ok(Self {
            worker,
            cq,
            number,
            open: (0..flows.len()).collect(),
            unfinished: flows.len(),
            flows,
            memory,
            rkey,
            server,
            content,
            copies,
            limit: match plan.length {
                Length::Iterations(count) => count.get(),
                Length::Duration(_) => u64::MAX,
            },
            stopping: false,
            cq_mod: if plan.verify_each { 1 } else { u64::from(plan.cq_mod).min(content.layout.depth) },
            completed: Done::default(),
            mismatch: None,
            timed,
            schedule,
            post_list: u64::from(plan.load.post_list),
            start_ns: None,
            interrupted,
        })
    }

    /// One round: post, drive the worker, collect. Returns the frames received and sent.
    ///
    /// # Errors
    /// A message failed.
    pub(crate) fn poll(&mut self) -> Result<usize, Failure> {
        let start_ns = *self.start_ns.get_or_insert_with(|| self.worker.clock().now_ns());
        if let (Some(schedule), false) = (&mut self.schedule, self.stopping) {
            let now_ns = self.worker.clock().now_ns();
            schedule.release(now_ns - start_ns, &mut self.open);
        }
        // In the order in which they opened: so they take their turns, and so their buffers lie in memory.
        let mut open = std::mem::take(&mut self.open);
        for flow in open.drain(..) {
            self.post(flow)?;
        }
        self.open = open;
        let frames = self.worker.poll();
        self.collect()?;
        Ok(frames)
    }

    /// Ends the run early: what is under way is finished, nothing else is begun.
    pub(crate) fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.open = (0..self.flows.len()).collect();
            self.unfinished = self.flows.iter().filter(|flow| flow.posted > flow.completed).count();
        }
    }

    /// Whether every message has completed.
    pub(crate) fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Messages completed on all queue pairs.
    pub(crate) fn completed(&self) -> Done {
        self.completed
    }

    /// When the last message completed, if all have.
    pub(crate) fn ended_ns(&self) -> Option<u64> {
        if self.is_done() { self.flows.iter().filter_map(|flow| flow.ended_ns).max() } else { None }
    }

    /// Latencies, where they are measured.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        self.timed.as_ref().map(|timed| &timed.latencies)
    }

    /// Messages whose time has come, and that were not sent.
    pub(crate) fn overdue(&self) -> u64 {
        let Some(schedule) = &self.schedule else { return 0 };
        let of_flow = |(index, flow): (usize, &Flow)| schedule.overdue(index, self.limit - flow.posted);
        self.flows.iter().enumerate().map(of_flow).sum()
    }

    /// Rate of each queue pair until its last completion, in bytes per second; messages count where they are empty.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let now_ns = self.worker.clock().now_ns();
        let rate = |flow: &Flow| {
            let amount = if self.completed.bytes == 0 { flow.completed } else { flow.bytes };
            let ns = flow.ended_ns.unwrap_or(now_ns).saturating_sub(self.start_ns.unwrap_or(now_ns)).max(1);
            amount as f64 * 1e9 / ns as f64
        };
        self.flows.iter().map(rate).collect()
    }

    /// How far each queue pair came.
    pub(crate) fn counts(&self) -> Vec<Count> {
        let count = |flow: &Flow| Count { posted: flow.posted, completed: flow.completed, checked: 0 };
        self.flows.iter().map(count).collect()
    }

    /// Whether the other process must compare messages before their buffers can be used again.
    fn needs_checks(&self) -> bool {
        self.content.each && !self.content.op.is_answered() && self.server.is_none()
    }

    /// Whether messages wait for the other process to compare them.
    pub(crate) fn has_unchecked(&self) -> bool {
        self.needs_checks() && self.flows.iter().any(|flow| flow.completed > flow.free)
    }

    /// The other process has compared what these counts say has completed.
    pub(crate) fn free(&mut self, counts: &[Count]) {
        for (index, (flow, count)) in self.flows.iter_mut().zip(counts).enumerate() {
            if count.completed > flow.free {
                flow.free = count.completed;
                self.open.push(index);
            }
        }
    }

    fn post(&mut self, index: usize) -> Result<(), Failure> {
        loop {
            let flow = self.flows[index];
            let full = flow.posted - flow.free >= self.content.layout.depth;
            let enough = if self.stopping { flow.settled } else { flow.posted >= self.limit };
            if full || enough || !self.has_room_for_list(&flow) {
                return Ok(());
            }
            if self.schedule.as_mut().is_some_and(|it| !it.is_due(index)) {
                return Ok(());
            }
            let stopped = || self.interrupted.load(Ordering::Relaxed);
            let region = &self.memory.region;
            if self.content.each && !self.content.prepare_message(region, index, flow.posted, &stopped) {
                return Ok(());
            }
            self.post_one(index)?;
        }
    }

    /// Whether a list of messages that begins with the next one could be posted as a whole.
    fn has_room_for_list(&self, flow: &Flow) -> bool {
        let within = !flow.posted.is_multiple_of(self.post_list);
        let list = self.post_list.min(self.limit.saturating_sub(flow.posted));
        within || self.stopping || flow.posted - flow.free + list <= self.content.layout.depth
    }

    fn post_one(&mut self, index: usize) -> Result<(), Failure> {
        let flow = &mut self.flows[index];
        let number = flow.posted;
        let (content, local) = (&self.content, self.content.layout.offset(index, number));
        let last = number + 1 == self.limit || self.stopping;
        let next = number + 1;
        // The end of a list tells that there is room for another.
        let ends = self.post_list > 1 && next.is_multiple_of(self.post_list);
        let signalled = last || ends || next.is_multiple_of(self.cq_mod);
        let remote = Remote { va: REGION_VA + content.remote_offset(index, number), rkey: self.rkey };
        let step = || (content.value(index, number), content.value(index, number + 1));
        let sge = Sge {
            va: REGION_VA + local,
            len: content.request_len(index, number),
            lkey: self.memory.keys.lkey,
        };
        let copies = self.copies.as_mut().filter(|copies| copies.takes(sge.len));
        let sge =
            copies.map_or(sge, |copies| copies.take(&self.memory.region, local, index, number, sge.len));
        let request = SendRequest {
            wr_id: number,
            op: content.op.request(remote, number, step),
            sges: &[sge],
            signalled,
            solicited: false,
            fence: false,
        };
        if let Some(timed) = &mut self.timed {
            let due =
                self.schedule.as_mut().zip(self.start_ns).map(|(it, start_ns)| start_ns + it.take(index));
            timed.begun[index].push_back(due.unwrap_or_else(|| self.worker.clock().now_ns()));
        }
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

    /// Takes the completions that are there.
    ///
    /// # Errors
    /// A message failed.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        let mut batch = [Completion::BLANK; COMPLETIONS];
        // What was only flushed does not tell why; the request that failed is among the others.
        let mut flushed = None;
        loop {
            let count = self.worker.endpoint_mut().poll_completions(self.cq, &mut batch);
            for completion in &batch[..count] {
                match completion.status {
                    Status::Success => self.complete(completion),
                    Status::Flushed if flushed.is_none() => flushed = Some(*completion),
                    Status::Flushed => {}
                    _ => return Err(self.failed(completion)),
                }
            }
            if count < COMPLETIONS {
                return flushed.map_or(Ok(()), |completion| Err(self.failed(&completion)));
            }
        }
    }

    fn complete(&mut self, completion: &Completion) {
        let index = completion.qp.index();
        if let Some(Timed { latencies, begun }) = &mut self.timed {
            let now_ns = self.worker.clock().now_ns();
            for _ in self.flows[index].completed..=completion.wr_id {
                latencies.record(now_ns.saturating_sub(begun[index].pop_front().unwrap_or(now_ns)));
            }
        }
        if self.content.each && self.mismatch.is_none() {
            self.check_completed(index, completion.wr_id);
        }
        let waits = self.needs_checks();
        let flow = &mut self.flows[index];
        let (first, end) = (flow.completed, completion.wr_id + 1);
        let bytes = self.content.bytes_of(index, first..end);
        self.completed.add(end - first, bytes);
        flow.completed = end;
        flow.bytes += bytes;
        if !waits {
            flow.free = flow.completed;
        }
        let ended = if self.stopping { flow.settled } else { flow.posted == self.limit };
        if ended && flow.completed == flow.posted {
            self.unfinished -= 1;
            flow.ended_ns = Some(self.worker.clock().now_ns());
        } else {
            self.open.push(index);
        }
    }

    fn check_completed(&mut self, index: usize, number: u64) {
        let here = self.content.op.is_answered().then_some(&self.memory.region);
        let Some(region) = here.or(self.server.as_ref()) else { return };
        let stopped = || self.interrupted.load(Ordering::Relaxed);
        if let Verification::Failed(mismatch) = self.content.check(region, index, number, &stopped) {
            self.mismatch = Some(mismatch);
        }
    }

    fn failed(&self, completion: &Completion) -> Failure {
        failed(self.worker.endpoint(), completion, self.number)
    }

    /// Compares what completed messages left in the memory that this process sees, as long as it is not `enough`.
    pub(crate) fn verify(&mut self, enough: &impl Fn() -> bool) -> Verification {
        if let Some(mismatch) = self.mismatch.take() {
            return Verification::Failed(mismatch);
        }
        let counts = self.counts();
        let here = self.content.check_client(&self.memory.region, &counts, enough);
        match &self.server {
            Some(region) => here.and(|| self.content.check_server(region, &counts, enough)),
            None => here,
        }
    }
}

/// Why a message failed. `number`: of the client that sent it, or of the server.
pub(super) fn failed(endpoint: &Endpoint, completion: &Completion, number: u32) -> Failure {
    let status = completion.status;
    let qpn = endpoint.qpn(completion.qp).get();
    let peer = endpoint.peer(completion.qp).map_or_else(String::new, |peer| peer.ip.to_string());
    let way = match number {
        SERVER => format!("of the server to the client ({peer})"),
        number => format!("of client {number} to the server ({peer})"),
    };
    let message = format!("message {} on queue pair {qpn} {way} failed", completion.wr_id);
    let number = failure::Status { name: status.name(), number: status as u32 };
    let failure = Failure::transfer(message).with_status(number);
    match status {
        // The counters of all hosts and of the switch tell.
        Status::RetryExceeded => failure,
        Status::RnrRetryExceeded => failure
            .with_hint("the server had no receive posted in time: raise --rx-depth there, or --rnr-retry"),
        Status::RemoteAccess => failure.with_hint("the server refused the access to its memory"),
        _ => failure.with_hint(hint::TRANSPORT),
    }
}
