//! Time on the sender half: the coarse timer with its generations (T-8) and probes (T-14).

use super::{Qp, QpState, Shared};
use crate::{Instant, Status};

/// What a timer made due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerAction {
    /// Nothing to send.
    Nothing,
    /// Control frames wait.
    Control,
    /// Data waits, and perhaps control.
    Data,
}

impl Qp {
    /// The next moment at which this queue pair has to act, if nothing else happens.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.window.is_empty() || self.timeout_ns == u64::MAX || self.state != QpState::Rts {
            return None;
        }
        let life = self.window.message(self.window.una).life;
        Some(life.after(self.timeout_ns).min(self.probe_deadline(life)))
    }

    /// T-14: silence is counted from whatever came or left last.
    fn probe_deadline(&self, life: Instant) -> Instant {
        life.max(self.heard).max(self.probed).after(self.timeout_ns / 4)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared) -> TimerAction {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return TimerAction::Nothing;
        }
        let life = self.window.message(self.window.una).life;
        if life.after(self.timeout_ns) <= now {
            self.expire(now, shared)
        } else {
            self.ask(now);
            TimerAction::Control
        }
    }

    fn ask(&mut self, now: Instant) {
        self.probed = now;
        self.pending.probe = true;
    }

    /// T-8: the coarse timer of the oldest message ran out.
    fn expire(&mut self, now: Instant, shared: &mut Shared) -> TimerAction {
        let una = self.window.una;
        let silent = self.heard <= self.expired;
        self.expired = now;
        let unsent = self.window.message(una).has_unsent();
        if unsent && self.may_send() {
            // It waits for its turn: time stands still.
            self.window.message_mut(una).life = now;
            return TimerAction::Data;
        }
        if self.gives_up(unsent, silent) {
            self.fail_oldest(Status::RetryExceeded, shared);
            return TimerAction::Nothing;
        }
        self.in_flight.forget();
        if unsent {
            // Only the window holds packets back: what fills it is taken for lost, and the peer is asked.
            shared.counters.window_timeouts += 1;
            self.window.message_mut(una).life = now;
            self.ask(now);
        } else {
            shared.counters.timeouts += 1;
            self.window.restart(una, now);
            self.change_path(u64::from(self.expiries) << 24 | u64::from(una.get()));
        }
        TimerAction::Data
    }

    /// Expiries of a message that was sent whole count until `una` moves (T-8). Of one that the window still holds
    /// back only those count that follow each other in silence: else a dead peer would be asked once per window of
    /// a long message, for minutes.
    fn gives_up(&mut self, unsent: bool, silent: bool) -> bool {
        let count = if unsent { &mut self.silences } else { &mut self.expiries };
        *count = if unsent && !silent { 0 } else { *count + 1 };
        *count > self.config.retry_cnt
    }

    /// T-8: the worker was away for `gap_ns`; a preempted host is not a lost packet.
    pub(crate) fn handle_gap(&mut self, now: Instant, gap_ns: u64) -> bool {
        if self.window.is_empty() || gap_ns <= self.timeout_ns / 4 {
            return false;
        }
        self.window.message_mut(self.window.una).life = now;
        true
    }
}
