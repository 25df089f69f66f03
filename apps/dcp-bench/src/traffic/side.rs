//! The two sides of a run, whatever that is.

use dcp::Worker;

use super::content::Count;
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
}

impl Client<'_> {
    pub(crate) fn worker(&self) -> &Worker {
        match self {
            Self::Sender(sender) => &sender.worker,
            Self::Rally(rally) => &rally.worker,
        }
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Sender(sender) => &mut sender.worker,
            Self::Rally(rally) => &mut rally.worker,
        }
    }

    /// One round.
    ///
    /// # Errors
    /// A message failed.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<(), Failure> {
        match self {
            Self::Sender(sender) => sender.poll(),
            Self::Rally(rally) => rally.poll().map(|_| ()),
        }
    }

    /// Ends the run early: what is under way is finished, nothing else is begun.
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Sender(sender) => sender.stop(),
            Self::Rally(rally) => rally.stop(),
        }
    }

    /// Whether nothing is left to do.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Sender(sender) => sender.is_done(),
            Self::Rally(rally) => rally.is_done(),
        }
    }

    /// Messages completed on all queue pairs.
    pub(crate) fn completed(&self) -> Done {
        match self {
            Self::Sender(sender) => sender.completed(),
            Self::Rally(rally) => rally.received(),
        }
    }

    /// How far each queue pair came.
    pub(crate) fn counts(&self) -> Vec<Count> {
        match self {
            Self::Sender(sender) => sender.counts(),
            Self::Rally(rally) => rally.counts(),
        }
    }

    /// Rate of each queue pair until its last completion, in bytes per second.
    pub(crate) fn rates(&self) -> Vec<f64> {
        match self {
            Self::Sender(sender) => sender.rates(),
            Self::Rally(_) => Vec::new(),
        }
    }

    /// Latencies, where they are measured.
    pub(crate) fn latencies(&self) -> Option<&Latencies> {
        match self {
            Self::Sender(sender) => sender.latencies(),
            Self::Rally(rally) => Some(rally.latencies()),
        }
    }

    /// Messages whose time has come, and that were not sent.
    pub(crate) fn overdue(&self) -> u64 {
        match self {
            Self::Sender(sender) => sender.overdue(),
            Self::Rally(_) => 0,
        }
    }

    /// Whether messages wait for the other process to compare them.
    pub(crate) fn has_unchecked(&self) -> bool {
        match self {
            Self::Sender(sender) => sender.has_unchecked(),
            Self::Rally(_) => false,
        }
    }

    /// The other process has compared what these counts say has completed.
    pub(crate) fn free(&mut self, counts: &[Count]) {
        if let Self::Sender(sender) = self {
            sender.free(counts);
        }
    }

    /// Compares what is in the memory that this process sees, as long as it is not `enough`.
    pub(crate) fn verify(&mut self, enough: &impl Fn() -> bool) -> Verification {
        match self {
            Self::Sender(sender) => sender.verify(enough),
            Self::Rally(rally) => {
                let counts = rally.counts();
                rally.verify(&counts, enough)
            }
        }
    }
}

/// A side that is there for clients.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub(crate) enum Server<'a> {
    Receiver(Receiver),
    Rally(Rally<'a>),
}

impl Server<'_> {
    pub(crate) fn worker(&self) -> &Worker {
        match self {
            Self::Receiver(receiver) => &receiver.worker,
            Self::Rally(rally) => &rally.worker,
        }
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Receiver(receiver) => &mut receiver.worker,
            Self::Rally(rally) => &mut rally.worker,
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
        }
    }

    /// Messages that it has seen come.
    pub(crate) fn received(&self) -> Done {
        match self {
            Self::Receiver(receiver) => receiver.receives.received(),
            Self::Rally(rally) => rally.received(),
        }
    }

    /// Whether as many messages came from a client as it says. `over`: it has posted its last.
    pub(crate) fn check_counts(&self, client: u32, counts: &[Count], over: bool) -> Verification {
        match self {
            Self::Receiver(receiver) => receiver.receives.check_counts(client, counts, over),
            Self::Rally(_) => Verification::Passed,
        }
    }

    /// Compares what came into an inbox of its own, as long as it is not `enough`. `counts`: the client's.
    pub(crate) fn verify_inbox(&mut self, counts: &[Count], enough: &impl Fn() -> bool) -> Verification {
        match self {
            Self::Receiver(_) => Verification::Passed,
            Self::Rally(rally) => rally.verify(counts, enough),
        }
    }
}
