//! The server: drives its worker, keeps receives posted where the operation takes them, and counts what came.

use dcp::Worker;
use dcp::core::{Completion, CqId, Endpoint, QpId, RecvRequest, Sge, Status};
use dcp::wire::RegionKey;

use super::content::{Content, Count, name};
use super::memory::REGION_VA;
use super::tally::Done;
use crate::failure::{self, Failure};
use crate::op::immediate;
use crate::outcome::Verification;
use crate::plan::Plan;

/// Completions taken at a time.
const COMPLETIONS: usize = 64;

/// One queue pair's receives.
#[derive(Clone, Copy, Debug)]
struct Lane {
    content: Content,
    /// Number of the client, or of the server where that sends too.
    client: u32,
    /// The queue pair's number among the sender's.
    flow: usize,
    lkey: RegionKey,
    posted: u64,
    received: u64,
}

/// Receives that are kept posted, and what came in them.
#[derive(Debug)]
pub(crate) struct Receives {
    cq: CqId,
    /// Receives of a queue pair that are posted at any time; 0 where messages take none.
    depth: u64,
    /// By queue pair.
    lanes: Vec<Lane>,
    received: Done,
}

impl Receives {
    pub(crate) fn new(cq: CqId, depth: u64) -> Self {
        Self { cq, depth, lanes: Vec::new(), received: Done::default() }
    }

    /// Takes over the next queue pair, one that receives can be posted to, and posts them.
    ///
    /// # Errors
    /// A receive was not taken.
    pub(crate) fn add(
        &mut self,
        endpoint: &mut Endpoint,
        qp: QpId,
        (client, flow): (u32, usize),
        content: Content,
        lkey: RegionKey,
    ) -> Result<(), Failure> {
        assert_eq!(qp.index(), self.lanes.len(), "queue pairs are added in the order they were made in");
        self.lanes.push(Lane { content, client, flow, lkey, posted: 0, received: 0 });
        for _ in 0..self.depth {
            self.post(endpoint, qp)?;
        }
        Ok(())
    }

    /// Messages that took a receive, of all queue pairs.
    #[inline]
    pub(crate) fn received(&self) -> Done {
        self.received
    }

    /// Takes the completions that are there, and posts a receive for each.
    ///
    /// # Errors
    /// A receive failed, or brought what was not sent.
    pub(crate) fn collect(&mut self, endpoint: &mut Endpoint) -> Result<(), Failure> {
        if self.depth == 0 {
            return Ok(());
        }
        let mut batch = [Completion::BLANK; COMPLETIONS];
        loop {
            let count = endpoint.poll_completions(self.cq, &mut batch);
            for completion in &batch[..count] {
                self.complete(endpoint, completion)?;
            }
            if count < COMPLETIONS {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, endpoint: &mut Endpoint, completion: &Completion) -> Result<(), Failure> {
        let lane = &mut self.lanes[completion.qp.index()];
        let number = lane.received;
        let whose = format_args!("message {number} on queue pair {} of {}", lane.flow, name(lane.client));
        if completion.status != Status::Success {
            let status = completion.status;
            return Err(Failure::transfer(format!("the receive for {whose} failed"))
                .with_status(failure::Status { name: status.name(), number: status as u32 }));
        }
        let len = lane.content.request_len(lane.flow, number);
        let expected = lane.content.op.has_immediate().then(|| immediate(number));
        if completion.byte_len != len || completion.imm != expected {
            let (found, imm) = (completion.byte_len, completion.imm);
            return Err(Failure::transfer(format!(
                "the data arrived wrong: {whose} came with {found} bytes and {imm:?}, not with {len} and {expected:?}"
            )));
        }
        lane.received += 1;
        self.received.add(1, len.into());
        self.post(endpoint, completion.qp)
    }

    fn post(&mut self, endpoint: &mut Endpoint, qp: QpId) -> Result<(), Failure> {
        let lane = &mut self.lanes[qp.index()];
        let layout = lane.content.layout;
        let buffer =
            Sge { va: REGION_VA + layout.offset(lane.flow, lane.posted), len: layout.len(), lkey: lane.lkey };
        let sges: &[Sge] = if lane.content.op.fills_receives() { &[buffer] } else { &[] };
        let request = RecvRequest { wr_id: lane.posted, sges };
        let posted = endpoint.post_recv(qp, &request);
        posted.map_err(|error| Failure::transfer(error.to_string()))?;
        lane.posted += 1;
        Ok(())
    }

    /// Whether as many messages came from a client as it says. `over`: it has posted its last.
    pub(crate) fn check_counts(&self, client: u32, counts: &[Count], over: bool) -> Verification {
        if self.depth == 0 {
            return Verification::Passed;
        }
        // While the run goes on, others have come since.
        let fits = |lane: &&Lane| {
            let Count { posted, completed, .. } = counts[lane.flow];
            lane.received >= completed && (!over || lane.received <= posted)
        };
        match self.lanes.iter().filter(|lane| lane.client == client).find(|lane| !fits(lane)) {
            None => Verification::Passed,
            Some(Lane { flow, received, .. }) => Verification::Failed(format!(
                "{}, queue pair {flow}: {received} messages were received of {} that completed",
                name(client),
                counts[*flow].completed
            )),
        }
    }
}

/// A server and what it received.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) worker: Worker,
    pub(crate) receives: Receives,
}

impl Receiver {
    pub(crate) fn new(worker: Worker, cq: CqId, plan: &Plan) -> Self {
        let depth = if plan.op.takes_receives() { u64::from(plan.rx_depth) } else { 0 };
        Self { worker, receives: Receives::new(cq, depth) }
    }

    /// Takes over the next queue pair, as [`Receives::add`] does.
    ///
    /// # Errors
    /// A receive was not taken.
    pub(crate) fn add(
        &mut self,
        qp: QpId,
        whose: (u32, usize),
        content: Content,
        lkey: RegionKey,
    ) -> Result<(), Failure> {
        self.receives.add(self.worker.endpoint_mut(), qp, whose, content, lkey)
    }

    /// One round: drive the worker, collect. Returns the frames received and sent.
    ///
    /// # Errors
    /// A receive failed, or brought what was not sent.
    pub(crate) fn poll(&mut self) -> Result<usize, Failure> {
        let frames = self.worker.poll();
        self.collect()?;
        Ok(frames)
    }

    /// Takes the completions that are there.
    ///
    /// # Errors
    /// A receive failed, or brought what was not sent.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        self.receives.collect(self.worker.endpoint_mut())
    }
}
