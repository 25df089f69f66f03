//! The channel between the two processes once they are connected.

use std::time::Duration;

use dcp::connect::{Control, ControlEvent, Patience};
use dcp::dpdk::Clock;

use super::words::Word;
use crate::failure::Failure;

/// Time for a line to leave, in seconds: the other side reads all the time.
const SEND_S: u64 = 5;
/// Between looks at the channel while waiting.
const LOOK: Duration = Duration::from_micros(50);

/// One side of the channel.
pub(super) struct Session {
    control: Control,
    clock: Clock,
    /// Who is on the other side.
    other: &'static str,
}

impl Session {
    pub(super) fn new(control: Control, clock: Clock, other: &'static str) -> Self {
        Self { control, clock, other }
    }

    /// Tells both sides' readiness, each to the other.
    pub(super) fn ready(&mut self, timeout: Duration, idle: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
        let mut patience = Patience { clock: &self.clock, timeout, idle };
        self.control.ready(&mut patience).map_err(|error| super::failure(&error, self.other))
    }

    /// The same before each run but the first.
    pub(super) fn ready_again(
        &mut self,
        timeout: Duration,
        idle: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        self.say(&Word::Ready, &mut || {
            idle();
        })?;
        let limit_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut stopped = false;
        let mut go_on = |waited_ns| {
            stopped = !idle();
            !stopped && waited_ns < limit_ns
        };
        let other = self.other;
        match self.wait(&mut go_on)? {
            Some(Word::Ready) => Ok(()),
            Some(_) => Err(nonsense(other)),
            None if stopped => Err(Failure::interrupted()),
            None => Err(Failure::environment(format!("the {other} was not ready for the next run in time"))),
        }
    }

    /// Says something. `idle` drives the worker meanwhile.
    pub(super) fn say(&mut self, word: &Word, idle: &mut dyn FnMut()) -> Result<(), Failure> {
        // Numbers and strings: nothing that could fail.
        let value = serde_json::to_value(word).unwrap_or_default();
        let mut idle = || {
            idle();
            true
        };
        let timeout = Duration::from_secs(SEND_S);
        let mut patience = Patience { clock: &self.clock, timeout, idle: &mut idle };
        self.control.send(&value, &mut patience).map_err(|error| super::failure(&error, self.other))
    }

    /// Tells why the run has failed here; whoever does not hear it sees the channel end.
    pub(super) fn tell_failure(&mut self, failure: &Failure) {
        let status = failure.status.map_or_else(String::new, |status| format!(": {status}"));
        let _ = self.say(&Word::Failed(format!("{}{status}", failure.message)), &mut || {});
    }

    /// What has been said, if anything; never waits.
    ///
    /// # Errors
    /// The other side has failed, has ended, or talks nonsense.
    pub(super) fn hear(&mut self) -> Result<Option<Word>, Failure> {
        let other = self.other;
        match self.control.poll() {
            Ok(None) => Ok(None),
            Ok(Some(ControlEvent::Bye)) => Err(ended_early(other)),
            Ok(Some(ControlEvent::Message(value))) => match serde_json::from_value(value) {
                Ok(Word::Failed(sentence)) => Err(Failure::transfer(format!(
                    "the {other} failed: {}",
                    dcp::connect::printable(&sentence)
                ))),
                Ok(word) => Ok(Some(word)),
                Err(_) => Err(nonsense(other)),
            },
            Err(error) => Err(super::failure(&error, other)),
        }
    }

    /// Waits for a word while `go_on` says so; that drives the worker, and is told how long it has been, in
    /// nanoseconds.
    ///
    /// # Errors
    /// As [`hear`](Self::hear).
    pub(super) fn wait(&mut self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Option<Word>, Failure> {
        let start = self.clock.now_ns();
        loop {
            if let Some(word) = self.hear()? {
                return Ok(Some(word));
            }
            if !go_on(self.clock.now_ns() - start) {
                return Ok(None);
            }
            dcp::dpdk::clock::pause(LOOK);
        }
    }

    /// Who is on the other side.
    pub(super) const fn other(&self) -> &'static str {
        self.other
    }

    /// A word that does not belong where it came.
    pub(super) fn nonsense(&self) -> Failure {
        nonsense(self.other)
    }

    /// Ends the channel in good order.
    pub(super) fn close(self) {
        let timeout = Duration::from_secs(1);
        self.control.close(&mut Patience { clock: &self.clock, timeout, idle: &mut || true });
    }
}

fn nonsense(other: &str) -> Failure {
    Failure::environment(format!("the {other} said what no {other} of this version says"))
        .with_hint("use the same release of dcp-bench on both sides")
}

fn ended_early(other: &str) -> Failure {
    Failure::transfer(format!("the {other} ended the run before it was done"))
}
