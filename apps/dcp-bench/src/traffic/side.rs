//! The two sides of a run, whatever that is.

use dcp::Worker;

use super::content::Count;
use super::duplex::Duplex;
use super::rally::Rally;
use super::receiver::Receiver;
use super::sender::Sender;
use super::tally::Done;
use crate::failure::Failure;
use crate::outcome::Verification;
use crate::stats::Latencies;

/// A side that begins, and knows when the run is done.
#[derive(Debug)]
pub(crate) enum Client<'a> {
    Sender(Sender<'a>),
    Rally(Rally<'a>),
    Duplex(Duplex<'a>),
}

impl<'a> Client<'a> {
    /// What it sends with; a ping-pong has none.
    fn sender(&self) -> Option<&Sender<'a>> {
        match self {
            Self::Sender(sender) => Some(sender),
            Self::Duplex(duplex) => Some(&duplex.sender),
            Self::Rally(_) => None,
        }
    }

    pub(crate) fn worker(&self) -> &Worker {
        match self {
            Self::Sender(sender) => &sender.worker,
            Self::Rally(rally) => &rally.worker,
            Self::Duplex(duplex) => &duplex.sender.worker,
        }
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Sender(sender) => &mut sender.worker,
            Self::Rally(rally) => &mut rally.worker,
            Self::Duplex(duplex) => &mut duplex.sender.worker,
        }
    }

    /// What is left when the run is over.
    pub(crate) fn into_worker(self) -> Worker {
        match self {
            Self::Sender(sender) => sender.worker,
            Self::Rally(rally) => rally.worker,
            Self::Duplex(duplex) => duplex.sender.worker,
        }
    }

    /// One round.
    ///
    /// # Errors
    /// A message failed.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<(), Failure> {
        match self {
            Self::Sender(sender) => sender.poll().map(|_| ()),
            Self::Rally(rally) => rally.poll().map(|_| ()),
            Self::Duplex(duplex) => duplex.poll().map(|_| ()),
        }
    }

    /// Ends the run early: what is under way is finished, nothing else is begun.
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Sender(sender) => sender.stop(),
            Self::Rally(rally) => rally.stop(),
            Self::Duplex(duplex) => duplex.sender.stop(),
        }
    }

    /// Whether nothing is left to do.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Sender(sender) => sender.is_done(),
            Self::Rally(rally) => rally.is_done(),
            Self::Duplex(duplex) => duplex.sender.is_done(),
        }
    }

    /// Messages completed on all queue pairs.
    pub(crate) fn completed(&self) -> Done {
        match self {
            Self::Sender(sender) => sender.completed(),
            Self::Rally(rally) => rally.received(),
            Self::Duplex(duplex) => duplex.sender.completed(),
        }
    }

    /// How far each queue pair came.
    pub(crate) fn counts(&self) -> Vec<Count> {
        match self {
            Self::Sender(sender) => sender.counts(),
            Self::Rally(rally) => rally.counts(),
            Self::Duplex(duplex) => duplex.sender.counts(),
        }
    }

    /// Rate of each queue pair until its last completion, in bytes per second.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.sender().map_or_else(Vec::new, Sender::rates)
    }

    /// Latencies, where they are measured.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        match self {
            Self::Rally(rally) => Some(rally.latencies()),
            _ => self.sender().and_then(Sender::latencies),
        }
    }

    /// Messages whose time has come, and that were not sent.
    pub(crate) fn overdue(&self) -> u64 {
        self.sender().map_or(0, Sender::overdue)
    }

    /// Whether messages wait for the other process to compare them.
    pub(crate) fn has_unchecked(&self) -> bool {
        self.sender().is_some_and(Sender::has_unchecked)
    }

    /// The other process has compared what these counts say has completed.
    pub(crate) fn free(&mut self, counts: &[Count]) {
        match self {
            Self::Sender(sender) => sender.free(counts),
            Self::Duplex(duplex) => duplex.sender.free(counts),
            Self::Rally(_) => {}
        }
    }

    /// Takes the completions of what came.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        if let Self::Duplex(duplex) = self { duplex.collect() } else { Ok(()) }
    }

    /// Whether as many messages came from the server as it says, when all of them have.
    pub(crate) fn check_received(&self, counts: &[Count]) -> Verification {
        match self {
            Self::Duplex(duplex) => duplex.check_received(counts, true),
            Self::Sender(_) | Self::Rally(_) => Verification::Passed,
        }
    }

    /// Compares what is in the memory that this process sees, as long as it is not `enough`.
    pub(crate) fn verify(&mut self, enough: &impl Fn() -> bool) -> Verification {
        match self {
            Self::Sender(sender) => sender.verify(enough),
            Self::Duplex(duplex) => duplex.sender.verify(enough),
            Self::Rally(rally) => {
                let counts = rally.counts();
                rally.verify(&counts, enough)
            }
        }
    }
}

/// A side that is there for clients.
#[derive(Debug)]
pub(crate) enum Server<'a> {
    Receiver(Receiver),
    Rally(Rally<'a>),
    Duplex(Duplex<'a>),
}

impl<'a> Server<'a> {
    /// What it sends with, if the run is in both directions.
    pub(crate) fn sender(&self) -> Option<&Sender<'a>> {
        if let Self::Duplex(duplex) = self { Some(&duplex.sender) } else { None }
    }

    /// Whether it has nothing left to send.
    pub(crate) fn is_done(&self) -> bool {
        self.sender().is_none_or(Sender::is_done)
    }

    /// Messages of its own that have completed.
    pub(crate) fn completed(&self) -> Done {
        self.sender().map_or_else(Done::default, Sender::completed)
    }

    /// Ends the run early: nothing else is begun.
    pub(crate) fn stop(&mut self) {
        if let Self::Duplex(duplex) = self {
            duplex.sender.stop();
        }
    }

    /// What is left when the run is over.
    pub(crate) fn into_worker(self) -> Worker {
        match self {
            Self::Receiver(receiver) => receiver.worker,
            Self::Rally(rally) => rally.worker,
            Self::Duplex(duplex) => duplex.sender.worker,
        }
    }

    pub(crate) fn worker(&self) -> &Worker {
        match self {
            Self::Receiver(receiver) => &receiver.worker,
            Self::Rally(rally) => &rally.worker,
            Self::Duplex(duplex) => &duplex.sender.worker,
        }
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Receiver(receiver) => &mut receiver.worker,
            Self::Rally(rally) => &mut rally.worker,
            Self::Duplex(duplex) => &mut duplex.sender.worker,
        }
    }

    /// One round; returns the frames received and sent.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<usize, Failure> {
        match self {
            Self::Receiver(receiver) => receiver.poll(),
            Self::Rally(rally) => rally.poll(),
            Self::Duplex(duplex) => duplex.poll(),
        }
    }

    /// Takes the completions that are there.
    ///
    /// # Errors
    /// A message failed, or brought what was not sent.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        match self {
            Self::Receiver(receiver) => receiver.collect(),
            Self::Rally(rally) => rally.collect(),
            Self::Duplex(duplex) => duplex.collect(),
        }
    }

    /// Messages that it has seen come.
    pub(crate) fn received(&self) -> Done {
        match self {
            Self::Receiver(receiver) => receiver.receives.received(),
            Self::Rally(rally) => rally.received(),
            Self::Duplex(_) => Done::default(),
        }
    }

    /// Whether as many messages came from a client as it says. `over`: it has posted its last.
    pub(crate) fn check_counts(&self, client: u32, counts: &[Count], over: bool) -> Verification {
        match self {
            Self::Receiver(receiver) => receiver.receives.check_counts(client, counts, over),
            Self::Rally(_) => Verification::Passed,
            Self::Duplex(duplex) => duplex.check_received(counts, over),
        }
    }

    /// Compares what came into an inbox of its own, and what its own messages left, as long as it is not `enough`.
    /// `counts`: the client's.
    pub(crate) fn verify_inbox(&mut self, counts: &[Count], enough: &impl Fn() -> bool) -> Verification {
        match self {
            Self::Receiver(_) => Verification::Passed,
            Self::Rally(rally) => rally.verify(counts, enough),
            Self::Duplex(duplex) => duplex.sender.verify(enough),
        }
    }
}
