//! One of the two streams of messages that a queue pair sends: requests, or answers to the peer's.

use std::hash::{Hash, Hasher};

use dcp_wire::{Msn, PacketName};

use super::message::{Message, SendWindow};
use super::retrans::RetransQ;
use crate::Instant;

#[derive(Clone, Debug)]
pub(super) struct SendStream {
    pub(super) window: SendWindow,
    pub(super) retrans: RetransQ,
    /// Coarse expiries since `una` moved.
    pub(super) expiries: u8,
    /// Expiries in silence while only the window held packets back.
    pub(super) silences: u8,
    /// Last expiry of the coarse timer.
    pub(super) expired: Instant,
    /// Last probe.
    pub(super) probed: Instant,
}

impl SendStream {
    pub(super) fn new(window: u32, start: Msn, retrans_max: usize) -> Self {
        Self {
            window: SendWindow::new(window, start),
            retrans: RetransQ::new(retrans_max),
            expiries: 0,
            silences: 0,
            expired: Instant::ZERO,
            probed: Instant::ZERO,
        }
    }

    /// T-6: how many messages an eMSN retires; `None` if it is no word that the peer can honestly give.
    pub(super) fn acknowledged(&self, emsn: Msn) -> Option<u32> {
        let done = emsn.index_in(self.window.una, self.window.len() + 1)?;
        if done > 0 {
            let last = self.window.message(self.window.una.plus(done - 1));
            if last.sent_once < last.packets {
                return None;
            }
        }
        Some(done)
    }

    /// The oldest message leaves the window.
    #[inline]
    pub(super) fn retire(&mut self) -> Message {
        self.expiries = 0;
        self.silences = 0;
        self.window.retire()
    }

    /// T-7: the next packet to resend; what is retired or restarted is dropped when met.
    pub(super) fn pop_returned(&mut self) -> Option<PacketName> {
        while let Some(name) = self.retrans.pop() {
            if self.window.position(name.msn).is_none() {
                continue;
            }
            let message = self.window.message_mut(name.msn);
            if message.generation == name.generation {
                // Saturating: after 4096 restarts an entry of old looks like one of now.
                message.waiting = message.waiting.saturating_sub(1);
                return Some(name);
            }
        }
        None
    }

    pub(super) fn clear(&mut self) {
        self.window.clear();
        self.retrans.clear();
    }

    pub(super) fn state_hash<H: Hasher>(&self, now: Instant, heard: Instant, hasher: &mut H) {
        (self.window.una, self.window.next, self.window.cursor).hash(hasher);
        for steps in 0..self.window.len() {
            let message = *self.window.message(self.window.una.plus(steps));
            Message { life: Instant::from_ns(now.since(message.life)), ..message }.hash(hasher);
        }
        (&self.retrans, self.expiries, self.silences).hash(hasher);
        (now.since(self.probed), heard <= self.expired).hash(hasher);
    }
}
