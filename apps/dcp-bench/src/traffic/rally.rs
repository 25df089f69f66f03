//! A ping-pong: the client sends a message, the server answers with one of its own as soon as it has come.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::{Completion, PostError, QpId, Remote, SendRequest, Sge, Status};
use dcp::wire::RegionKey;

use super::content::{Content, Count, SERVER};
use super::copies::Copies;
use super::layout::Layout;
use super::memory::{Cqs, Memory, REGION_VA, Role};
use super::receiver::Receives;
use super::sender::failed;
use super::tally::Done;
use crate::failure::Failure;
use crate::op::Op;
use crate::outcome::Verification;
use crate::plan::{Length, Plan, Trigger};
use crate::stats::Latencies;

/// Completions taken at a time.
const COMPLETIONS: usize = 16;

/// What a side is made of.
#[derive(Debug)]
pub(crate) struct RallyParts {
    pub(crate) worker: Worker,
    pub(crate) cqs: Cqs,
    pub(crate) role: Role,
    /// Number of the client, at either side.
    pub(crate) number: u32,
    pub(crate) qp: QpId,
    /// What this side sends.
    pub(crate) outbox: Memory,
    /// Where the other side's messages arrive.
    pub(crate) inbox: Memory,
    /// Key of the other side's inbox.
    pub(crate) rkey: RegionKey,
    /// Copies of messages that are posted inline.
    pub(crate) copies: Option<Copies>,
}

/// One side of a ping-pong.
#[derive(Debug)]
pub(crate) struct Rally<'a> {
    pub(crate) worker: Worker,
    cqs: Cqs,
    role: Role,
    qp: QpId,
    outbox: Memory,
    inbox: Memory,
    rkey: RegionKey,
    copies: Option<Copies>,
    outgoing: Content,
    incoming: Content,
    /// Number of this side.
    own: u32,
    /// Whether the last byte in memory tells that a message has come; else a receive does.
    by_last_byte: bool,
    receives: Receives,
    /// Messages of the client; `u64::MAX` while time limits the run.
    limit: u64,
    sent: u64,
    /// Of those, the ones that have completed.
    completed: u64,
    received: u64,
    posted_ns: u64,
    latencies: Latencies,
    mismatch: Option<String>,
    stopping: bool,
    /// Whether the user has stopped the run.
    interrupted: &'a AtomicBool,
}

impl<'a> Rally<'a> {
    /// A side whose queue pair takes receives already. `plan`: with the MTU that both sides have.
    ///
    /// # Errors
    /// The user stopped it, or a receive was not taken.
    pub(crate) fn new(
        parts: RallyParts,
        plan: &Plan,
        layout: Layout,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Failure> {
        let RallyParts { mut worker, cqs, role, number, qp, outbox, inbox, rkey, copies } = parts;
        let by_last_byte = plan.trigger() == Some(Trigger::LastByte);
        let content = |number| {
            let mut content = Content::new(plan, layout, number);
            if content.op == Op::Write && !by_last_byte {
                content.op = Op::WriteImm;
            }
            content
        };
        let (own, other) = match role {
            Role::Client => (number, SERVER),
            Role::Server => (SERVER, number),
        };
        let (outgoing, incoming) = (content(own), content(other));
        if !outgoing.prepare_client(&outbox.region, &|| interrupted.load(Ordering::Relaxed)) {
            return Err(Failure::interrupted());
        }
        let depth = if by_last_byte { 0 } else { u64::from(plan.rx_depth) };
        let mut receives = Receives::new(cqs.recv, depth);
        receives.add(worker.endpoint_mut(), qp, (number, 0), incoming, inbox.keys.lkey)?;
        let limit = match plan.length {
            Length::Iterations(count) => count.get(),
            Length::Duration(_) => u64::MAX,
        };
        Ok(Self {
            worker,
            cqs,
            role,
            qp,
            outbox,
            inbox,
            rkey,
            copies,
            outgoing,
            incoming,
            own,
            by_last_byte,
            receives,
            limit,
            sent: 0,
            completed: 0,
            received: 0,
            posted_ns: 0,
            latencies: Latencies::default(),
            mismatch: None,
            stopping: false,
            interrupted,
        })
    }

    /// One round: drive the worker, see what came, send what is due. Returns the frames received and sent.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    pub(crate) fn poll(&mut self) -> Result<usize, Failure> {
        let frames = self.worker.poll();
        self.collect()?;
        if self.has_arrived() {
            self.take();
        }
        if self.is_due() && self.post()? {
            // On its way at once, not with the next round.
            self.worker.poll();
        }
        Ok(frames)
    }

    /// Takes the completions that are there.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        let mut batch = [Completion::BLANK; COMPLETIONS];
        loop {
            let count = self.worker.endpoint_mut().poll_completions(self.cqs.send, &mut batch);
            for completion in &batch[..count] {
                if completion.status != Status::Success {
                    return Err(failed(self.worker.endpoint(), completion, self.own));
                }
                self.completed = completion.wr_id + 1;
            }
            if count < COMPLETIONS {
                break;
            }
        }
        self.receives.collect(self.worker.endpoint_mut())
    }

    fn has_arrived(&self) -> bool {
        if self.by_last_byte {
            self.incoming.has_mark(&self.inbox.region, 0, self.received)
        } else {
            self.receives.received().messages > self.received
        }
    }

    /// Takes note of the message that has come.
    fn take(&mut self) {
        if self.role == Role::Client {
            self.latencies.record((self.worker.clock().now_ns() - self.posted_ns) / 2);
        }
        if self.incoming.each && self.mismatch.is_none() {
            let stopped = || self.interrupted.load(Ordering::Relaxed);
            let found = self.incoming.check(&self.inbox.region, 0, self.received, &stopped);
            if let Verification::Failed(mismatch) = found {
                self.mismatch = Some(mismatch);
            }
        }
        self.received += 1;
    }

    /// Whether it is this side's turn, and its queue has room.
    fn is_due(&self) -> bool {
        let turn = match self.role {
            Role::Client => self.sent == self.received && self.sent < self.limit && !self.stopping,
            Role::Server => self.sent < self.received,
        };
        turn && self.sent - self.completed < self.outgoing.layout.depth
    }

    /// Sends the next message. False: the user has stopped the run.
    fn post(&mut self) -> Result<bool, Failure> {
        let (number, outgoing) = (self.sent, &self.outgoing);
        if outgoing.each {
            let stopped = || self.interrupted.load(Ordering::Relaxed);
            if !outgoing.prepare_message(&self.outbox.region, 0, number, &stopped) {
                return Ok(false);
            }
        } else {
            outgoing.write_mark(&self.outbox.region, 0, number);
        }
        let va = REGION_VA + outgoing.layout.offset(0, number);
        let op = outgoing.op.request(Remote { va, rkey: self.rkey }, number, || (0, 0));
        let sge = Sge { va, len: outgoing.layout.len(), lkey: self.outbox.keys.lkey };
        let copies = self.copies.as_mut().filter(|copies| copies.takes(sge.len));
        let copy = |copies: &mut Copies| {
            copies.take(&self.outbox.region, outgoing.layout.offset(0, number), 0, number, sge.len)
        };
        let sges = [copies.map_or(sge, copy)];
        let request = SendRequest::new(number, op, &sges);
        self.posted_ns = self.worker.clock().now_ns();
        match self.worker.endpoint_mut().post_send(self.qp, &request) {
            Ok(()) => {
                self.sent += 1;
                Ok(true)
            }
            Err(error @ PostError::QueueFull { .. }) => unreachable!("the depth is counted here: {error}"),
            Err(error) => Err(Failure::transfer(error.to_string())),
        }
    }

    /// Ends the run early: what is under way is finished, nothing else is begun.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether every message is answered and acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        let ended = self.stopping || self.received == self.limit;
        ended && self.sent == self.received && self.completed == self.sent
    }

    /// Messages of the other side that have come: a client's answered ones.
    pub(crate) fn received(&self) -> Done {
        Done { messages: self.received, bytes: self.received * self.incoming.layout.size as u64 }
    }

    /// Latencies, at the client.
    pub(crate) fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// How far the client came.
    pub(crate) fn counts(&self) -> Vec<Count> {
        vec![Count { posted: self.sent, completed: self.received, checked: 0 }]
    }

    /// Compares what the other side's messages left here, as long as it is not `enough`. `counts`: the client's.
    pub(crate) fn verify(&mut self, counts: &[Count], enough: &impl Fn() -> bool) -> Verification {
        if let Some(mismatch) = self.mismatch.take() {
            return Verification::Failed(mismatch);
        }
        let Count { posted, completed, .. } = counts.first().copied().unwrap_or_default();
        if !(completed..=posted).contains(&self.received) {
            let received = self.received;
            return Verification::Failed(format!(
                "{received} messages came, of {completed} that were answered"
            ));
        }
        self.incoming.check_server(&self.inbox.region, counts, enough)
    }
}
