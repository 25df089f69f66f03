//! Time on the sender half: the coarse timer with its generations (T-8), probes (T-14), answers that do not come
//! (T-15), the end of an RNR wait (T-10).

use dcp_wire::{Msn, Stream};

use super::send_stream::SendStream;
use super::{Qp, Shared};
use crate::{Instant, Status};

/// What a timer made due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerAction {
    /// Nothing to send.
    Nothing,
    /// Something to send.
    Send,
}

impl Qp {
    /// The next moment at which this queue pair has to act, if nothing else happens.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        if !self.state.is_live() {
            return None;
        }
        let pace = self.controller.as_ref().and_then(|controller| controller.deadline(now, self.paced));
        let wait = self.rnr.until().into_iter().chain(pace).min();
        if self.timeout_ns == u64::MAX {
            return wait;
        }
        let requests = self.stream_deadline(&self.requests);
        let answers = if self.owes_answers() { self.stream_deadline(&self.rare.answers) } else { None };
        let unanswered = (self.unanswered > 0).then(|| self.probe_deadline(&self.requests, Instant::ZERO));
        [requests, answers, unanswered, wait].into_iter().flatten().min()
    }

    fn stream_deadline(&self, stream: &SendStream) -> Option<Instant> {
        if stream.window.is_empty() {
            return None;
        }
        let life = stream.window.message(stream.window.una).life;
        Some(life.after(self.timeout_ns).min(self.probe_deadline(stream, life)))
    }

    /// T-14: silence is counted from whatever came or left last.
    fn probe_deadline(&self, stream: &SendStream, life: Instant) -> Instant {
        life.max(self.heard).max(stream.probed).after(self.timeout_ns / 4)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared) -> TimerAction {
        let mut acted = self.end_wait(now, shared);
        if self.controller.is_some() {
            acted |= self.handle_pace(now);
        }
        if self.timeout_ns == u64::MAX {
            return if acted { TimerAction::Send } else { TimerAction::Nothing };
        }
        for stream in [Stream::Requests, Stream::Answers] {
            if self.state.is_live() && self.stream_deadline(self.stream(stream)).is_some_and(|due| due <= now)
            {
                acted |= self.handle_stream_timeout(now, stream, shared);
            }
        }
        if self.state.is_live() && self.unanswered > 0 {
            acted |= self.handle_silence(now, shared);
        }
        if acted { TimerAction::Send } else { TimerAction::Nothing }
    }

    fn handle_stream_timeout(&mut self, now: Instant, stream: Stream, shared: &mut Shared) -> bool {
        let window = &self.stream(stream).window;
        if window.message(window.una).life.after(self.timeout_ns) <= now {
            return self.expire(now, stream, shared);
        }
        if self.waits_for_its_turn(stream) {
            // Nothing can have been answered that was not heard. With thousands of queue pairs a turn is longer than a
            // quarter of the timeout, and their probes would leave no time for data.
            self.stream_mut(stream).probed = now;
            return false;
        }
        self.ask(now, stream);
        true
    }

    /// Whether the oldest message has packets that only the other queue pairs or the pace hold back.
    fn waits_for_its_turn(&self, stream: Stream) -> bool {
        let window = &self.stream(stream).window;
        let held = stream == Stream::Requests && self.is_held(0);
        window.message(window.una).has_unsent() && self.may_send() && !held
    }

    /// T-15: READs and ATOMICs wait for answers, and nothing comes at all.
    fn handle_silence(&mut self, now: Instant, shared: &mut Shared) -> bool {
        let patience = self.timeout_ns.saturating_mul(u64::from(self.rare.config.retry_cnt) + 1);
        if self.heard.after(patience) <= now && self.requests.window.is_empty() {
            self.fail_oldest(Status::RetryExceeded, shared);
            return false;
        }
        let due = self.probe_deadline(&self.requests, Instant::ZERO) <= now;
        if due {
            self.ask(now, Stream::Requests);
        }
        due
    }

    fn ask(&mut self, now: Instant, stream: Stream) {
        self.stream_mut(stream).probed = now;
        self.pending.probe[stream as usize] = true;
    }

    /// T-8: the coarse timer of a stream's oldest message ran out. True: there is something to send.
    fn expire(&mut self, now: Instant, stream: Stream, shared: &mut Shared) -> bool {
        let (may_send, held) = (self.may_send(), stream == Stream::Requests && self.is_held(0));
        let heard = self.heard;
        let sender = self.stream_mut(stream);
        let una = sender.window.una;
        let silent = heard <= sender.expired;
        let unsent = sender.window.message(una).has_unsent();
        if held {
            // It waits for a receive: time stands still.
            sender.window.message_mut(una).life = now;
            return true;
        }
        sender.expired = now;
        if self.gives_up(stream, unsent, silent) {
            self.give_up(stream, una, shared);
            return false;
        }
        if unsent && may_send {
            // It waits for its turn: its time stands still too, but for the count of silence above. A device that takes
            // nothing lets no probe out either.
            self.stream_mut(stream).window.message_mut(una).life = now;
            self.ask(now, stream);
            return true;
        }
        self.in_flight.forget();
        shared.by_qp[self.id.index()].timeouts += 1;
        self.note_loss(now);
        if unsent {
            // Only the window holds packets back: what fills it is taken for lost, and the peer is asked.
            shared.counters.window_timeouts += 1;
            self.stream_mut(stream).window.message_mut(una).life = now;
            self.ask(now, stream);
        } else {
            shared.counters.timeouts += 1;
            let expiries = self.stream(stream).expiries;
            self.stream_mut(stream).window.restart(una, now);
            self.change_path(u64::from(expiries) << 24 | u64::from(una.get()));
        }
        true
    }

    /// Expiries of a message that was sent whole count until `una` moves (T-8). Of one that the window or its turn still
    /// holds back only those count that follow each other in silence: else a dead peer would be asked once per window
    /// of a long message, for minutes, and a device that takes nothing waited for without end.
    fn gives_up(&mut self, stream: Stream, unsent: bool, silent: bool) -> bool {
        let limit = self.rare.config.retry_cnt;
        let stream = self.stream_mut(stream);
        let count = if unsent { &mut stream.silences } else { &mut stream.expiries };
        *count = if unsent && !silent { 0 } else { *count + 1 };
        *count > limit
    }

    #[cold]
    pub(super) fn give_up(&mut self, stream: Stream, msn: Msn, shared: &mut Shared) {
        match stream {
            Stream::Requests => self.fail_at(msn, Status::RetryExceeded, shared),
            // the peer's READ cannot be answered.
            Stream::Answers => self.enter_error(self.own_fault(), shared),
        }
    }

    /// T-8: the worker was away for `gap_ns`; a preempted host is not a lost packet.
    pub(crate) fn handle_gap(&mut self, now: Instant, gap_ns: u64) -> bool {
        if gap_ns <= self.timeout_ns / 4 {
            return false;
        }
        // T-15: nobody listened, so that was no silence.
        let mut put_off = self.unanswered > 0;
        if put_off {
            self.heard = self.heard.after(gap_ns).min(now);
        }
        for stream in [Stream::Requests, Stream::Answers] {
            // All of them: each runs out by its own last sign of life once it is the oldest.
            let window = &mut self.stream_mut(stream).window;
            for steps in 0..window.len() {
                let message = window.message_mut(window.una.plus(steps));
                message.life = message.life.after(gap_ns).min(now);
                put_off = true;
            }
        }
        put_off
    }
}
