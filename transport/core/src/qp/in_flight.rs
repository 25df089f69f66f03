//! Bytes on their way to the receiver, as far as the sender can know (T-12).

/// In flight = sent − received − returned, in bytes of IP length, kept within what the window's messages sent.
#[derive(Clone, Copy, Hash, Default, Debug)]
pub(super) struct InFlight {
    bytes: u64,
    /// Bytes sent of the messages `una … next − 1`: what can be on its way at most.
    sent_in_window: u64,
    /// The peer's `received` of the newest ACK, modulo 2^32.
    received: u32,
}

impl InFlight {
    #[inline]
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(super) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.sent_in_window += bytes;
    }

    /// A trimmed packet of `bytes` came back.
    #[inline]
    pub(super) fn returned(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
    }

    /// The peer says that it received `total` bytes; taken only if that is ahead of the last word. Answers by how much.
    #[inline]
    pub(super) fn received(&mut self, total: u32) -> u32 {
        let ahead = total.wrapping_sub(self.received);
        if ahead != 0 && ahead < 1 << 31 {
            self.received = total;
            self.bytes = self.bytes.saturating_sub(u64::from(ahead));
            ahead
        } else {
            0
        }
    }

    /// A message that sent `bytes` leaves the window.
    #[inline]
    pub(super) fn retire(&mut self, bytes: u64) {
        self.sent_in_window -= bytes;
        self.bytes = self.bytes.min(self.sent_in_window);
    }

    /// What was on its way is taken for lost.
    pub(super) fn forget(&mut self) {
        self.bytes = 0;
    }

    /// Nothing is in the window any more.
    pub(super) fn clear(&mut self) {
        self.bytes = 0;
        self.sent_in_window = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t12_stays_between_zero_and_what_the_window_sent() {
        let mut flight = InFlight::default();
        flight.sent(1000);
        flight.sent(500);
        flight.received(1000);
        assert_eq!(flight.bytes(), 500);
        flight.received(900);
        assert_eq!(flight.bytes(), 500, "an older word changes nothing");
        flight.received(5000);
        assert_eq!(flight.bytes(), 0, "never below zero");
        flight.sent(700);
        flight.retire(1500);
        assert_eq!(flight.bytes(), 700);
        flight.retire(700);
        assert_eq!(flight.bytes(), 0, "never above what the window sent");
    }

    #[test]
    fn t12_received_is_serial() {
        let mut flight = InFlight { received: u32::MAX - 10, ..InFlight::default() };
        flight.sent(100);
        flight.received(9);
        assert_eq!(flight.bytes(), 80);
    }
}
