//! A message in the sender's window, and the window itself.

use dcp_wire::{Generation, Msn};

use crate::Instant;

/// A message between entering the window and retirement.
#[derive(Clone, Copy, Hash, Debug)]
pub(super) struct Message {
    /// Packets of it: at least 1.
    pub(super) packets: u32,
    /// Next packet to send in this generation.
    pub(super) next_psn: u32,
    /// Packets that have been sent at least once, in any generation.
    pub(super) sent_once: u32,
    /// RetransQ entries of this generation.
    pub(super) waiting: u32,
    /// Bytes of IP length sent, resends included.
    pub(super) bytes_sent: u64,
    /// Last sign of life (T-8): a packet of it sent, an HO of it received.
    pub(super) life: Instant,
    pub(super) generation: Generation,
    /// Restarts that the receiver asked for.
    pub(super) resyncs: u16,
}

impl Message {
    const EMPTY: Self = Self {
        packets: 0,
        next_psn: 0,
        sent_once: 0,
        waiting: 0,
        bytes_sent: 0,
        life: Instant::ZERO,
        generation: Generation::ZERO,
        resyncs: 0,
    };

    /// Packets up to `next_psn` have been sent in this generation, another `bytes` of IP length.
    #[inline]
    pub(super) fn sent_up_to(&mut self, next_psn: u32, bytes: u64) {
        self.next_psn = next_psn;
        self.sent_once = self.sent_once.max(next_psn);
        self.bytes_sent += bytes;
    }

    /// Whether a packet of it waits to be sent.
    #[inline]
    pub(super) const fn has_unsent(&self) -> bool {
        self.next_psn < self.packets || self.waiting > 0
    }
}

/// The messages `una … next − 1` (T-1).
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    pub(super) una: Msn,
    pub(super) next: Msn,
    /// No message before this one has unsent packets of its current generation.
    pub(super) cursor: Msn,
    messages: Box<[Message]>,
}

impl SendWindow {
    pub(super) fn new(size: u32, start: Msn) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { una: start, next: start, cursor: start, messages: vec![Message::EMPTY; size as usize].into() }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "W is at most 2^15")]
    pub(super) fn size(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Messages in the window.
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.next.since(self.una) as u32
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.next.get() == self.una.get()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == self.size()
    }

    /// Position of a message in the window.
    #[inline]
    pub(super) const fn position(&self, msn: Msn) -> Option<u32> {
        msn.index_in(self.una, self.len())
    }

    #[inline]
    pub(super) fn message(&self, msn: Msn) -> &Message {
        &self.messages[msn.get() as usize & (self.messages.len() - 1)]
    }

    #[inline]
    pub(super) fn message_mut(&mut self, msn: Msn) -> &mut Message {
        &mut self.messages[msn.get() as usize & (self.messages.len() - 1)]
    }

    /// T-1: the next message number goes to a message of `packets` packets.
    #[inline]
    pub(super) fn enter(&mut self, packets: u32, now: Instant) -> Msn {
        let msn = self.next;
        *self.message_mut(msn) = Message { packets, life: now, ..Message::EMPTY };
        self.next = msn.next();
        msn
    }

    /// The oldest message leaves the window.
    #[inline]
    pub(super) fn retire(&mut self) -> Message {
        let message = *self.message(self.una);
        self.una = self.una.next();
        if self.cursor.is_before(self.una) {
            self.cursor = self.una;
        }
        message
    }

    /// The first message with unsent packets of its generation, if there is one.
    #[inline]
    pub(super) fn unsent(&mut self) -> Option<Msn> {
        while self.cursor != self.next {
            let message = self.message(self.cursor);
            if message.next_psn < message.packets {
                return Some(self.cursor);
            }
            self.cursor = self.cursor.next();
        }
        None
    }

    /// T-8, T-9: all packets of a message are sent again, in a new generation.
    pub(super) fn restart(&mut self, msn: Msn, now: Instant) {
        let message = self.message_mut(msn);
        message.generation = message.generation.next();
        message.next_psn = 0;
        message.waiting = 0;
        message.life = now;
        if msn.is_before(self.cursor) {
            self.cursor = msn;
        }
    }

    /// Empties the window: the queue pair failed.
    pub(super) fn clear(&mut self) {
        self.una = self.next;
        self.cursor = self.next;
    }
}
