//! A window that follows the fabric's delay, after Swift (SIGCOMM '20): additive while the delay is below its target,
//! down in proportion to the excess above it.
//!
//! The delay is that of data: probes go through the switch's protected queue and see nothing of the other one. One
//! packet in each round trip is marked; when all that was in flight behind it, itself included, has been received or
//! has come back as a header, the time since is a sample. The receiver's part, which is RHCC's matter, is taken off as
//! the newest probe knows it. There is no scaling of the target by hops or flows: a host does not know them here.

use std::hash::{Hash, Hasher};

use super::{Delay, Fraction, ParameterError, check};
use crate::Instant;

/// Parameters of the delay-based window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwiftConfig {
    /// Delay to keep, in nanoseconds: at least 1000. Default 50 µs: software hosts add tens of microseconds to the
    /// 20 µs that public simulations take for hardware.
    pub target_ns: u64,
    /// Packets that the window grows by in a round trip. Default 1 (csg-htsim).
    pub additive: Fraction,
    /// Weight β of a cut. Default 0.8 (csg-htsim).
    pub beta: Fraction,
    /// Largest part that one cut takes. Default 0.5 (csg-htsim).
    pub cut_max: Fraction,
    /// Smallest window in bytes; at least two packets are always allowed. Default 8 KiB.
    pub window_min: u32,
    /// Largest window in bytes, and the first. Default 256 KiB.
    pub window_max: u32,
    /// Whether a header that came back takes the largest cut. Default true: no sign of a full queue is sharper.
    pub header_cuts: bool,
}

impl SwiftConfig {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            target_ns: 50_000,
            additive: Fraction::ONE,
            beta: Fraction::new(4, 5),
            cut_max: Fraction::new(1, 2),
            window_min: 8 << 10,
            window_max: 256 << 10,
            header_cuts: true,
        }
    }

    pub(crate) fn check(&self, packet: u32) -> Result<(), ParameterError> {
        check("Swift target in ns", self.target_ns, (1000, 1 << 31))?;
        check("Swift β in 2^-24", self.beta.bits().into(), (1, Fraction::ONE.bits().into()))?;
        check("Swift largest cut in 2^-24", self.cut_max.bits().into(), (1, Fraction::ONE.bits().into()))?;
        let least = u64::from(packet) * 2;
        check("Swift largest window", self.window_max.into(), (least, 1 << 31))?;
        check("Swift smallest window", self.window_min.into(), (1, self.window_max.into()))
    }
}

impl Default for SwiftConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The window of one queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Swift {
    config: SwiftConfig,
    window: u64,
    /// Part of a byte of the window, in 2^-24.
    fraction: u64,
    window_min: u64,
    packet: u32,
    cut_at: Instant,
    rtt_ns: u64,
    /// The receiver's part of a round trip, by the newest probe.
    receiver_ns: u64,
    /// Bytes acknowledged since the last sample.
    acknowledged: u64,
    /// Bytes that were in flight with the marked packet and still are; 0 = none is marked.
    marked: u64,
    marked_at: Instant,
}

impl Swift {
    /// `packet`: bytes of a full packet.
    pub(crate) fn new(config: SwiftConfig, packet: u32) -> Self {
        Self {
            config,
            window: config.window_max.into(),
            fraction: 0,
            window_min: u64::from(config.window_min).max(2 * u64::from(packet)),
            packet,
            cut_at: Instant::ZERO,
            rtt_ns: config.target_ns,
            receiver_ns: 0,
            acknowledged: 0,
            marked: 0,
            marked_at: Instant::ZERO,
        }
    }

    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// A packet left; with it `in_flight` bytes are under way. True: it is the marked one, and is to be acknowledged.
    pub(crate) fn handle_sent(&mut self, now: Instant, in_flight: u64) -> bool {
        let marks = self.marked == 0;
        if marks {
            (self.marked, self.marked_at) = (in_flight, now);
        }
        marks
    }

    /// The peer received `bytes`.
    pub(crate) fn handle_acknowledged(&mut self, now: Instant, bytes: u64) {
        self.acknowledged += bytes;
        self.handle_arrived(now, bytes);
    }

    /// `bytes` are no longer in flight: received, or back as a header.
    fn handle_arrived(&mut self, now: Instant, bytes: u64) {
        if self.marked == 0 {
            return;
        }
        self.marked = self.marked.saturating_sub(bytes);
        if self.marked == 0 {
            self.handle_sample(now, now.since(self.marked_at));
        }
    }

    /// A probe's answer.
    pub(crate) fn handle_delay(&mut self, delay: Delay) {
        self.receiver_ns = delay.receiver_ns;
    }

    /// What was in flight is taken for lost.
    pub(crate) fn handle_loss(&mut self, now: Instant) {
        self.marked = 0;
        self.cut(now, self.config.cut_max.bits().into());
    }

    fn handle_sample(&mut self, now: Instant, round_trip_ns: u64) {
        self.rtt_ns = round_trip_ns;
        let fabric_ns = round_trip_ns.saturating_sub(self.receiver_ns);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        if fabric_ns < self.config.target_ns {
            self.grow(acknowledged);
        } else {
            let excess = (fabric_ns - self.config.target_ns) << Fraction::BITS;
            let part = (u64::from(self.config.beta.bits()) * (excess / fabric_ns)) >> Fraction::BITS;
            self.cut(now, part.min(self.config.cut_max.bits().into()));
        }
    }

    /// The header of a packet of `bytes` came back.
    pub(crate) fn handle_returned(&mut self, now: Instant, bytes: u32) {
        if self.config.header_cuts {
            self.cut(now, self.config.cut_max.bits().into());
        }
        self.handle_arrived(now, bytes.into());
    }

    /// `additive` packets per window acknowledged.
    fn grow(&mut self, acknowledged: u64) {
        let step =
            u128::from(self.config.additive.bits()) * u128::from(self.packet) * u128::from(acknowledged)
                / u128::from(self.window);
        let grown = self.fraction + u64::try_from(step).unwrap_or(u64::MAX >> 1);
        self.window = (self.window + (grown >> Fraction::BITS)).min(self.config.window_max.into());
        self.fraction = grown & ((1 << Fraction::BITS) - 1);
    }

    /// Takes a part of the window, at most once in a round trip.
    fn cut(&mut self, now: Instant, part: u64) {
        if now.since(self.cut_at) < self.rtt_ns {
            return;
        }
        self.cut_at = now;
        self.window = (self.window - ((self.window * part) >> Fraction::BITS)).max(self.window_min);
    }

    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        let since_cut = now.since(self.cut_at).min(self.rtt_ns);
        (self.window, self.fraction, since_cut, self.rtt_ns, self.receiver_ns, self.acknowledged)
            .hash(hasher);
        self.marked.hash(hasher);
        if self.marked > 0 {
            now.since(self.marked_at).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A marked packet of 1100 bytes goes and is acknowledged `round_trip_ns` later, with 1100 others.
    fn round_trip(swift: &mut Swift, now: Instant, round_trip_ns: u64) {
        assert!(swift.handle_sent(now, 1100));
        assert!(!swift.handle_sent(now, 2200), "one in a round trip");
        swift.handle_acknowledged(now.after(round_trip_ns), 2200);
    }

    #[test]
    fn window_grows_by_a_packet_in_a_round_trip() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        swift.window = 22_000;
        for _ in 0..10 {
            round_trip(&mut swift, Instant::from_ns(1_000_000), 20_000);
        }
        assert!(swift.window.abs_diff(23_100) <= 60, "{}", swift.window);
    }

    #[test]
    fn window_is_cut_in_proportion_once_in_a_round_trip() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        let now = Instant::from_ns(1_000_000);
        round_trip(&mut swift, now, 100_000);
        let cut = swift.window as f64 / f64::from(256u32 << 10);
        assert!((cut - 0.6).abs() < 0.001, "0.8 × half of the delay is beyond the target: {cut}");
        round_trip(&mut swift, now.after(50_000), 100_000);
        assert!((swift.window as f64 / f64::from(256u32 << 10) - cut).abs() < 1e-9, "once in a round trip");
        for round in 1..100 {
            round_trip(&mut swift, now.after(round * 10_000_000), 5_000_000);
        }
        assert_eq!(swift.window, 8 << 10, "never below its minimum");
    }

    #[test]
    fn receivers_part_of_the_delay_is_not_the_fabrics() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        swift.handle_delay(Delay { round_trip_ns: 500_000, receiver_ns: 490_000 });
        round_trip(&mut swift, Instant::from_ns(1_000_000), 500_000);
        assert_eq!(swift.window, 256 << 10);
    }
}
