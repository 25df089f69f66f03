//! A window that follows the fabric's delay, after Swift (SIGCOMM '20): additive while the delay is below its target,
//! down in proportion to the excess above it.
//!
//! The delay is a probe's round trip without the receiver's part of it, which is RHCC's matter. There is no scaling of
//! the target by hops or flows: a host does not know them here.

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
    /// Bytes acknowledged since the last probe's answer.
    acknowledged: u64,
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
            acknowledged: 0,
        }
    }

    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn handle_acknowledged(&mut self, bytes: u64) {
        self.acknowledged += bytes;
    }

    /// A probe's answer.
    pub(crate) fn handle_delay(&mut self, now: Instant, delay: Delay) {
        self.rtt_ns = delay.round_trip_ns;
        let fabric_ns = delay.round_trip_ns.saturating_sub(delay.receiver_ns);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        if fabric_ns < self.config.target_ns {
            self.grow(acknowledged);
        } else {
            let excess = (fabric_ns - self.config.target_ns) << Fraction::BITS;
            let part = (u64::from(self.config.beta.bits()) * (excess / fabric_ns)) >> Fraction::BITS;
            self.cut(now, part.min(self.config.cut_max.bits().into()));
        }
    }

    /// Something was lost, or a header counts as a sign of congestion.
    pub(crate) fn handle_congestion(&mut self, now: Instant) {
        self.cut(now, self.config.cut_max.bits().into());
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
        (self.window, self.fraction, since_cut, self.rtt_ns, self.acknowledged).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(round_trip_ns: u64) -> Delay {
        Delay { round_trip_ns, receiver_ns: 0 }
    }

    #[test]
    fn window_grows_by_a_packet_in_a_round_trip() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        swift.window = 22_000;
        for _ in 0..10 {
            swift.handle_acknowledged(2200);
            swift.handle_delay(Instant::from_ns(1_000_000), delay(20_000));
        }
        assert!(swift.window.abs_diff(23_100) <= 60, "{}", swift.window);
    }

    #[test]
    fn window_is_cut_in_proportion_once_in_a_round_trip() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        let now = Instant::from_ns(1_000_000);
        swift.handle_delay(now, delay(100_000));
        let cut = swift.window as f64 / f64::from(256u32 << 10);
        assert!((cut - 0.6).abs() < 0.001, "0.8 × half of the delay is beyond the target: {cut}");
        swift.handle_delay(now.after(99_000), delay(100_000));
        assert!((swift.window as f64 / f64::from(256u32 << 10) - cut).abs() < 1e-9);
        for round in 1..100 {
            swift.handle_delay(now.after(round * 10_000_000), delay(5_000_000));
        }
        assert_eq!(swift.window, 8 << 10, "never below its minimum");
    }

    #[test]
    fn receivers_part_of_the_delay_is_not_the_fabrics() {
        let mut swift = Swift::new(SwiftConfig::new(), 1100);
        swift.handle_delay(
            Instant::from_ns(1_000_000),
            Delay { round_trip_ns: 500_000, receiver_ns: 490_000 },
        );
        assert_eq!(swift.window, 256 << 10);
    }
}
