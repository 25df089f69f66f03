//! Pacing: when the next packet may leave (C-5).

use std::hash::{Hash, Hasher};

use super::Rate;
use crate::Instant;

/// Time with data waiting that is credited at most: a worker that was away longer does not flood the network.
const CATCH_UP_MAX_NS: u64 = 4_000_000;

/// Token credit, kept as the moment at which everything sent so far has been paid for. Time that the queue pair spent
/// with data waiting is credited in full, to the fraction; idle time buys one quota at most.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    /// Time of a byte in 2^-32 ns; 0 = unlimited.
    byte_time: u64,
    paid: Instant,
    /// Beyond `paid`, in 2^-32 ns.
    fraction: u32,
    /// The last turn ended with data waiting for its time.
    waiting: bool,
}

impl Pacer {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, byte_time: rate.byte_time(), paid: Instant::ZERO, fraction: 0, waiting: false }
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// When the next packet may leave.
    pub(crate) const fn opens(&self) -> Instant {
        self.paid
    }

    #[inline]
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.paid <= now
    }

    /// A turn begins at `now`; `quota` bytes are what idle time buys.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now: Instant, quota: u32) {
        let credit_ns = if self.waiting { CATCH_UP_MAX_NS } else { self.time_of(quota) };
        let earliest = Instant::from_ns(now.ns().saturating_sub(credit_ns));
        if self.paid < earliest {
            self.paid = earliest;
            self.fraction = 0;
        }
    }

    /// A turn ended; `waiting`: with data left.
    #[inline]
    pub(crate) fn end_turn(&mut self, waiting: bool) {
        self.waiting = waiting;
    }

    /// A packet left.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    pub(crate) fn charge(&mut self, bytes: u32) {
        let time = u64::from(bytes).saturating_mul(self.byte_time).saturating_add(u64::from(self.fraction));
        self.paid = self.paid.after(time >> 32);
        self.fraction = time as u32;
    }

    /// Paces at another rate from `now` on; what is still to be paid for takes that rate's time.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        if rate == self.rate {
            return;
        }
        let byte_time = rate.byte_time();
        let debt_ns = self.paid.since(now);
        if debt_ns > 0 && self.byte_time > 0 {
            let scaled = u128::from(debt_ns) * u128::from(byte_time) / u128::from(self.byte_time);
            self.paid = now.after(u64::try_from(scaled).unwrap_or(u64::MAX));
        }
        (self.rate, self.byte_time) = (rate, byte_time);
    }

    fn time_of(&self, bytes: u32) -> u64 {
        u64::from(bytes).saturating_mul(self.byte_time) >> 32
    }

    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        let credit = now.since(self.paid).min(CATCH_UP_MAX_NS);
        (self.rate, self.paid.since(now), credit, self.fraction, self.waiting).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: u32 = 16 << 10;

    /// Bytes sent in `total_ns` with data always waiting, polled every `poll_ns`.
    fn sent(rate: Rate, packet: u32, poll_ns: u64, total_ns: u64) -> u64 {
        let mut pacer = Pacer::new(rate);
        let mut bytes = 0;
        pacer.begin_turn(Instant::ZERO, QUOTA);
        pacer.end_turn(true);
        for poll in 0..total_ns.div_ceil(poll_ns) {
            let now = Instant::from_ns(poll * poll_ns);
            pacer.begin_turn(now, QUOTA);
            while pacer.is_open(now) {
                pacer.charge(packet);
                bytes += u64::from(packet);
            }
            pacer.end_turn(true);
        }
        bytes
    }

    #[test]
    fn c5_average_is_right_at_any_poll_interval() {
        for (rate, total_ns) in [(Rate::from_gbps(10), 100_000_000), (Rate::from_gbps(100), 100_000_000)] {
            for poll_ns in [1000, 1024, 7777, 100_000, 1_000_000] {
                for packet in [57, 1090, 4162] {
                    let right = rate.bps() as f64 / 8.0 * total_ns as f64 / 1e9;
                    let ratio = sent(rate, packet, poll_ns, total_ns) as f64 / right;
                    // The first poll is at the start, the last one before the end: one interval of either.
                    let edge = poll_ns as f64 / total_ns as f64;
                    assert!(
                        (ratio - 1.0).abs() < 0.005 + edge,
                        "{rate} by {packet} every {poll_ns}: {ratio}"
                    );
                }
            }
        }
    }

    #[test]
    fn e4_idle_time_buys_one_quota() {
        let mut pacer = Pacer::new(Rate::from_gbps(10));
        let now = Instant::from_ns(10_000_000_000);
        pacer.begin_turn(now, QUOTA);
        let mut burst = 0;
        while pacer.is_open(now) {
            pacer.charge(1024);
            burst += 1024;
        }
        assert!(burst > QUOTA - 1024 && burst <= QUOTA + 1024, "{burst}");
    }

    #[test]
    fn e4_slow_rates_keep_their_time() {
        // 1 Mb/s and messages of 64 KiB: 1.907 a second.
        let bytes = sent(Rate::from_mbps(1), 1024, 1_000_000, 60_000_000_000);
        let per_second = bytes as f64 / 65536.0 / 60.0;
        assert!((per_second / 1.907_35 - 1.0).abs() < 0.01, "{per_second}");
    }

    #[test]
    fn worker_that_was_away_does_not_flood() {
        let mut pacer = Pacer::new(Rate::from_gbps(10));
        pacer.end_turn(true);
        let now = Instant::from_ns(3_600_000_000_000);
        pacer.begin_turn(now, QUOTA);
        let mut burst = 0u64;
        while pacer.is_open(now) {
            pacer.charge(1024);
            burst += 1024;
        }
        assert!(burst <= 10 * CATCH_UP_MAX_NS / 8 + 1024, "{burst}");
    }

    #[test]
    fn debt_is_paid_at_the_new_rate() {
        let mut pacer = Pacer::new(Rate::from_mbps(1));
        pacer.charge(1000);
        assert_eq!(pacer.opens().ns(), 8_000_000);
        pacer.set_rate(Instant::from_ns(4_000_000), Rate::from_mbps(10));
        assert_eq!(pacer.opens().ns(), 4_400_000);
        pacer.set_rate(Instant::from_ns(4_000_000), Rate::UNLIMITED);
        assert!(pacer.is_open(Instant::from_ns(4_000_000)));
    }
}
