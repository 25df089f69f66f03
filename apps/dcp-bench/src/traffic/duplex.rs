//! A side that sends and receives at once: one end of a run in both directions.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::Worker;
use dcp::core::QpId;
use dcp::dpdk::Region;
use dcp::wire::RegionKey;

use super::content::{Content, Count, SERVER};
use super::copies::Copies;
use super::layout::Layout;
use super::memory::{Cqs, Memory, Role};
use super::receiver::Receives;
use super::sender::{Sender, SenderParts};
use crate::failure::Failure;
use crate::outcome::Verification;
use crate::plan::Plan;

/// What a side is made of.
#[derive(Debug)]
pub(crate) struct DuplexParts {
    pub(crate) worker: Worker,
    pub(crate) cqs: Cqs,
    pub(crate) role: Role,
    /// Number of the client, at either side.
    pub(crate) number: u32,
    pub(crate) qps: Vec<QpId>,
    /// What this side sends, or where it reads to.
    pub(crate) outbox: Memory,
    /// What the other side writes to or reads from.
    pub(crate) inbox: Memory,
    /// Key of the other side's inbox.
    pub(crate) rkey: RegionKey,
    /// The other side's inbox, if it is in this process.
    pub(crate) other: Option<Region>,
    pub(crate) copies: Option<Copies>,
}

/// One side.
#[derive(Debug)]
pub(crate) struct Duplex<'a> {
    pub(crate) sender: Sender<'a>,
    receives: Receives,
    incoming: Content,
    inbox: Region,
    /// Number of the other side.
    other: u32,
}

impl<'a> Duplex<'a> {
    /// A side whose queue pairs take receives already. Fills its buffers.
    ///
    /// # Errors
    /// The user stopped it, or a receive was not taken.
    pub(crate) fn new(
        parts: DuplexParts,
        plan: &Plan,
        layout: Layout,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Failure> {
        let DuplexParts { mut worker, cqs, role, number, qps, outbox, inbox, rkey, other, copies } = parts;
        let (own, peer) = match role {
            Role::Client => (number, SERVER),
            Role::Server => (SERVER, number),
        };
        let incoming = Content::new(plan, layout, peer);
        if !incoming.prepare_server(&inbox.region, &|| interrupted.load(Ordering::Relaxed)) {
            return Err(Failure::interrupted());
        }
        let depth = if plan.op.takes_receives() { u64::from(plan.rx_depth) } else { 0 };
        let mut receives = Receives::new(cqs.recv, depth);
        for (flow, &qp) in qps.iter().enumerate() {
            receives.add(worker.endpoint_mut(), qp, (peer, flow), incoming, inbox.keys.lkey)?;
        }
        let content = Content::new(plan, layout, own);
        let parts = SenderParts {
            worker,
            cq: cqs.send,
            number: own,
            qps,
            memory: outbox,
            rkey,
            server: other,
            content,
            copies,
        };
        let sender = Sender::new(parts, plan, interrupted)?;
        Ok(Self { sender, receives, incoming, inbox: inbox.region, other: peer })
    }

    /// One round: post, drive the worker, collect. Returns the frames received and sent.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<usize, Failure> {
        let frames = self.sender.poll()?;
        self.receives.collect(self.sender.worker.endpoint_mut())?;
        Ok(frames)
    }

    /// Takes the completions that are there.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        self.sender.collect()?;
        self.receives.collect(self.sender.worker.endpoint_mut())
    }

    /// Whether as many messages came as the other side says. `over`: it has posted its last.
    pub(crate) fn check_received(&self, counts: &[Count], over: bool) -> Verification {
        self.receives.check_counts(self.other, counts, over)
    }

    /// Compares what the other side's messages left here, as long as it is not `enough`. `counts`: the other side's.
    pub(crate) fn check_inbox(&self, counts: &[Count], enough: &impl Fn() -> bool) -> Verification {
        self.incoming.check_server(&self.inbox, counts, enough)
    }

    /// The other side's messages, of which these counts say how many have completed.
    pub(crate) const fn incoming(&self) -> &Content {
        &self.incoming
    }
}
