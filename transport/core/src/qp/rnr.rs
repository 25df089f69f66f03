//! T-10: waiting for a receive that the peer has not posted yet.

use std::hash::{Hash, Hasher};

use dcp_wire::{Nak, RnrTimer, Ssn};

use super::{Qp, Shared};
use crate::{DropReason, Instant, Status};

/// `rnr_retry` that means for ever.
const FOR_EVER: u8 = 7;

/// InfiniBand's RNR timer codes in microseconds.
const TIMER_US: [u64; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
    10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
];

/// The wait of a sender; what it holds back is in the queue pair's `held`.
#[derive(Clone, Default, Debug)]
pub(super) struct Rnr {
    /// NAKs that began a wait since `una` moved.
    count: u8,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Instant,
    /// Nothing of this or a later two-sided message leaves.
    from: Ssn,
}

impl Rnr {
    /// End of the wait, if there is one.
    #[inline]
    pub(super) fn until(&self) -> Option<Instant> {
        self.wait.map(|wait| wait.until)
    }

    /// Whether a two-sided message must wait.
    #[inline]
    pub(super) fn holds(&self, ssn: Ssn) -> bool {
        self.wait.is_some_and(|wait| !ssn.is_before(wait.from))
    }

    pub(super) fn progressed(&mut self) {
        self.count = 0;
    }

    pub(super) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        let wait = self.wait.map(|wait| (wait.until.since(now), wait.from));
        (self.count, wait).hash(hasher);
    }
}

/// How long a code means, in nanoseconds.
pub(super) fn timer_ns(code: RnrTimer) -> u64 {
    TIMER_US[usize::from(code.get())] * 1000
}

impl Qp {
    /// A message of this side found no receive at the peer.
    pub(super) fn handle_rnr(
        &mut self,
        now: Instant,
        nak: Nak,
        code: RnrTimer,
        shared: &mut Shared,
    ) -> Result<(), DropReason> {
        let steps = self.requests.window.position(nak.msn).ok_or(DropReason::StaleNak)?;
        let wqe = self.queue.at(steps);
        if !wqe.op.is_two_sided() {
            return Err(DropReason::StaleNak);
        }
        let ssn = wqe.ssn;
        self.requests.window.message_mut(nak.msn).life = now;
        if let Some(wait) = &mut self.rnr.wait {
            // Inside a wait nothing counts; an earlier message widens it.
            if ssn.is_before(wait.from) {
                wait.from = ssn;
                self.hold_returned();
            }
            return Ok(());
        }
        self.rnr.count = self.rnr.count.saturating_add(1);
        if self.rare.config.rnr_retry != FOR_EVER && self.rnr.count > self.rare.config.rnr_retry {
            self.fail_at(nak.msn, Status::RnrRetryExceeded, shared);
            return Ok(());
        }
        self.rnr.wait = Some(Wait { until: now.after(timer_ns(code)), from: ssn });
        self.hold_returned();
        Ok(())
    }

    /// Whether a message must wait for a receive of the peer's.
    #[inline]
    pub(super) fn is_held(&self, steps: u32) -> bool {
        if self.rnr.wait.is_none() {
            return false;
        }
        let wqe = self.queue.at(steps);
        wqe.op.is_two_sided() && self.rnr.holds(wqe.ssn)
    }

    /// Moves what must wait from the RetransQ aside.
    fn hold_returned(&mut self) {
        let Self { requests, queue, rnr, rare, .. } = self;
        let Some(wait) = rnr.wait else { return };
        let window = &requests.window;
        requests.retrans.move_to(&mut rare.held, |name| {
            window.position(name.msn).is_some_and(|steps| {
                let wqe = queue.at(steps);
                wqe.op.is_two_sided() && !wqe.ssn.is_before(wait.from)
            })
        });
    }

    /// The wait is over: exactly what was refused leaves again.
    pub(super) fn end_wait(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if self.rnr.until().is_none_or(|until| until > now) {
            return false;
        }
        self.rnr.wait = None;
        let Self { requests, rare, .. } = self;
        rare.held.move_to(&mut requests.retrans, |_| true);
        // T-5: what finds no room is dropped, for the coarse timer to recover.
        while let Some(name) = rare.held.pop() {
            shared.count_drop(DropReason::RetransFull);
            let is_current = requests.window.position(name.msn).is_some()
                && requests.window.message(name.msn).generation == name.generation;
            if is_current {
                requests.window.message_mut(name.msn).waiting -= 1;
            }
        }
        true
    }
}

const _: () = assert!(TIMER_US[0] == 655_360 && TIMER_US[12] == 640);
