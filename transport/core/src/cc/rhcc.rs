//! RHCC's sender (C-3): a rate that follows the time which a receiving host takes to get at what it received.
//!
//! The paper gives the parameters and the 16 bytes of state, not equation (3); what is here is a reconstruction, and
//! `docs/CONGESTION.md` says why it is this one.

use std::hash::{Hash, Hasher};

use super::{Delay, Fraction, ParameterError, Rate, check};
use crate::Instant;

/// Parameters of RHCC's sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RhccConfig {
    /// Delay at the receiver that the rate steers for.
    pub threshold: RhccThreshold,
    /// Gain a of the distance to the threshold, per threshold. Default 0.1: the paper's 0.0005 per ns at 200 ns.
    pub alpha: Fraction,
    /// Gain b of the change, per threshold. Default 0.1.
    pub beta: Fraction,
    /// Weight of a new sample of the delay. Default 0.75 (RHCC equation 2).
    pub gamma: Fraction,
    /// Bytes of data between two probes. Default 32 KiB (RHCC).
    pub probe_bytes: u32,
    /// Time between two probes while the rate is below line rate, in nanoseconds: at least 10 µs. Default 1 ms.
    pub probe_period_ns: u64,
}

/// D_thr.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RhccThreshold {
    /// Nanoseconds, 1 … 10^9; 200 in the paper, with time stamps of the NIC.
    Fixed(u32),
    /// 4 × the 5th percentile of the first 256 probes, but at least twice their 95th and 1 µs; until then the rate is
    /// the line rate. A worker that polls sees delays of one or of several of its rounds: with the 5th percentile
    /// alone, a host that is well would be above its threshold half of the time.
    Auto,
}

impl RhccConfig {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            threshold: RhccThreshold::Auto,
            alpha: Fraction::new(1, 10),
            beta: Fraction::new(1, 10),
            gamma: Fraction::new(3, 4),
            probe_bytes: 32 << 10,
            probe_period_ns: 1_000_000,
        }
    }

    pub(crate) fn check(&self, line: Rate) -> Result<(), ParameterError> {
        check("RHCC line rate in bits/s", line.bps(), (Rate::MIN.bps(), u64::MAX - 1))?;
        if let RhccThreshold::Fixed(ns) = self.threshold {
            check("RHCC threshold in ns", ns.into(), (1, 1_000_000_000))?;
        }
        let one = u64::from(Fraction::ONE.bits());
        check("RHCC γ in 2^-24", self.gamma.bits().into(), (1, one))?;
        check("RHCC probe distance", self.probe_bytes.into(), (1024, 1 << 30))?;
        check("RHCC probe period in ns", self.probe_period_ns, (10_000, 1_000_000_000))
    }
}

impl Default for RhccConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// What RHCC keeps per queue pair: 16 bytes, as in the paper.
#[derive(Clone, Copy, Hash, Debug)]
struct State {
    /// R_rev, in 2^-24 of the line rate.
    rate: u32,
    /// When the probe left whose answer counts, low 32 bits of nanoseconds.
    probed: u32,
    /// D_cur of the last answer, in nanoseconds: the next one's D_prev.
    delay: u32,
    /// D_thr, in nanoseconds; 0 = not known yet.
    threshold: u32,
}

const _: () = assert!(size_of::<State>() == 16);

/// Line rate.
const LINE: u32 = Fraction::ONE.bits();
/// Slowest rate: a thousandth of the line rate.
const SLOWEST: u32 = LINE / 1000;
/// One update takes at most half, and gives at most a quarter.
const FACTOR: (i64, i64) = ((LINE / 2) as i64, (LINE + LINE / 4) as i64);
/// Smallest threshold that `auto` finds, in nanoseconds: less is no delay of software, and a packet alone takes longer.
const AUTO_MIN_NS: u32 = 1000;
/// Probes that `auto` looks at.
const CALIBRATION: usize = 256;
/// Place of the 5th percentile among them, and from the end that of the 95th.
const CALIBRATION_RANK: usize = CALIBRATION * 5 / 100;
/// Distance of two probes in thresholds at the paper's set-up: 32 KiB at 100 Gb/s, 2.6 µs, to 200 ns.
const PROBE_DISTANCE: u64 = 13;
/// Probes without an answer after which time alone sends no more.
const UNANSWERED_MAX: u8 = 8;

/// The rate of one queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Rhcc {
    state: State,
    config: RhccConfig,
    /// Bytes sent since the newest probe.
    bytes: u32,
    /// The probe that counts is on its way.
    awaiting: bool,
    unanswered: u8,
    /// Samples for `auto`; gone once it is set.
    samples: Vec<u32>,
}

impl Rhcc {
    pub(crate) fn new(config: RhccConfig) -> Self {
        let (threshold, samples) = match config.threshold {
            RhccThreshold::Fixed(ns) => (ns, Vec::new()),
            RhccThreshold::Auto => (0, Vec::with_capacity(CALIBRATION)),
        };
        let state = State { rate: LINE, probed: 0, delay: 0, threshold };
        // The first packet takes a probe along.
        Self { state, config, bytes: config.probe_bytes, awaiting: false, unanswered: 0, samples }
    }

    /// R_rev.
    pub(crate) fn rate(&self, line: Rate) -> Rate {
        if self.state.rate == LINE { line } else { line.scaled(Fraction::from_bits(self.state.rate)) }
    }

    /// D_thr in nanoseconds, once it is known.
    #[cfg(test)]
    pub(crate) const fn threshold_ns(&self) -> Option<u32> {
        if self.state.threshold == 0 { None } else { Some(self.state.threshold) }
    }

    /// Data left. True: a probe is due behind it.
    #[inline]
    pub(crate) fn handle_sent(&mut self, bytes: u32) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < self.config.probe_bytes {
            return false;
        }
        self.unanswered = 0;
        self.bytes = 0;
        true
    }

    /// A probe leaves. Its answer counts unless an earlier one's is still to come: what is changed now shows only in
    /// what a later probe meets.
    pub(crate) fn handle_probe_sent(&mut self, now: Instant) {
        self.unanswered = self.unanswered.saturating_add(1);
        if !self.awaiting || self.since_probe(now) >= self.config.probe_period_ns {
            self.state.probed = now.timestamp().0;
            self.awaiting = true;
        }
    }

    fn since_probe(&self, now: Instant) -> u64 {
        u64::from(now.timestamp().0.wrapping_sub(self.state.probed))
    }

    /// When a probe is due for its time alone.
    pub(crate) fn next_probe(&self, now: Instant) -> Option<Instant> {
        if self.state.rate == LINE || self.unanswered > UNANSWERED_MAX {
            return None;
        }
        Some(now.after(self.config.probe_period_ns.saturating_sub(self.since_probe(now))))
    }

    /// Whether a probe is due for its time alone.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next_probe(now).is_some_and(|due| due <= now)
    }

    /// A probe's answer says what the receiver took.
    pub(crate) fn handle_delay(&mut self, now: Instant, delay: Delay, line: Rate) {
        let sample = u32::try_from(delay.receiver_ns).unwrap_or(u32::MAX).max(1);
        self.unanswered = 0;
        if self.state.threshold == 0 {
            self.calibrate(sample);
            return;
        }
        if !std::mem::take(&mut self.awaiting) {
            return;
        }
        if self.since_probe(now) != delay.round_trip_ns {
            // Not the one that counts.
            self.awaiting = true;
            return;
        }
        let gamma = u64::from(self.config.gamma.bits());
        let smoothed = gamma * u64::from(sample) + (u64::from(LINE) - gamma) * u64::from(self.state.delay);
        let current = u32::try_from(smoothed >> Fraction::BITS).unwrap_or(u32::MAX);
        let distance_ns = self.rate(line).byte_time().saturating_mul(self.config.probe_bytes.into()) >> 32;
        self.update(current, distance_ns.max(delay.round_trip_ns));
        self.state.delay = current;
    }

    /// Equation (3), reconstructed: R ← R · clamp(1 − a (D − D_thr) / D_thr − b (D − D_prev) / D_thr, ½, 1¼).
    ///
    /// a is the gain of probes 13 thresholds apart; of closer ones, `apart_ns`, it is as much smaller. So the loop is
    /// damped at any threshold as it is at the paper's.
    fn update(&mut self, current: u32, apart_ns: u64) {
        let threshold = i64::from(self.state.threshold);
        let (current, previous) = (i64::from(current), i64::from(self.state.delay));
        let usual_ns = PROBE_DISTANCE * u64::from(self.state.threshold);
        let alpha = u64::from(self.config.alpha.bits());
        let alpha = if apart_ns < usual_ns { alpha * apart_ns / usual_ns } else { alpha };
        let distance = i64::try_from(alpha).unwrap_or(i64::MAX) * (current - threshold);
        let change = i64::from(self.config.beta.bits()) * (current - previous);
        let factor = (i64::from(LINE) - (distance + change) / threshold).clamp(FACTOR.0, FACTOR.1);
        let rate = (i64::from(self.state.rate) * factor) >> Fraction::BITS;
        self.state.rate = u32::try_from(rate).unwrap_or(LINE).clamp(SLOWEST, LINE);
    }

    #[cold]
    fn calibrate(&mut self, sample: u32) {
        self.samples.push(sample);
        if self.samples.len() < CALIBRATION {
            return;
        }
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_unstable();
        let (low, high) = (samples[CALIBRATION_RANK], samples[CALIBRATION - 1 - CALIBRATION_RANK]);
        self.state.threshold = low.saturating_mul(4).max(high.saturating_mul(2)).max(AUTO_MIN_NS);
        self.state.delay = low;
    }

    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        let since = self.since_probe(now);
        (self.state.rate, since, self.state.delay, self.state.threshold).hash(hasher);
        (self.bytes, self.awaiting, self.unanswered, &self.samples).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_RATE: Rate = Rate::from_gbps(100);

    fn fixed(ns: u32) -> Rhcc {
        let mut rhcc = Rhcc::new(RhccConfig { threshold: RhccThreshold::Fixed(ns), ..RhccConfig::new() });
        rhcc.state.delay = ns;
        rhcc
    }

    /// A probe is sent, and answered 3 µs later.
    fn answer(rhcc: &mut Rhcc, receiver_ns: u64) {
        let sent = Instant::from_ns(5_000_000_000);
        rhcc.awaiting = false;
        rhcc.handle_probe_sent(sent);
        rhcc.handle_delay(sent.after(3000), Delay { round_trip_ns: 3000, receiver_ns }, LINE_RATE);
    }

    #[test]
    fn gain_is_the_papers_at_its_threshold() {
        // e = 700 ns at 0.0005 per ns: −35 % by the distance.
        let mut rhcc = fixed(200);
        rhcc.state.delay = 900;
        answer(&mut rhcc, 900);
        let part = f64::from(rhcc.state.rate) / f64::from(LINE);
        assert!((part - 0.65).abs() < 0.001, "{part}");
    }

    #[test]
    fn rate_keeps_within_its_bounds_and_comes_back() {
        let mut rhcc = fixed(200);
        for _ in 0..1000 {
            answer(&mut rhcc, 1 << 40);
        }
        assert_eq!(rhcc.state.rate, SLOWEST);
        let mut steps = 0;
        while rhcc.rate(LINE_RATE) != LINE_RATE {
            answer(&mut rhcc, 120);
            steps += 1;
            assert!(steps < 1000, "{}", rhcc.rate(LINE_RATE));
        }
        answer(&mut rhcc, 0);
        assert_eq!(rhcc.rate(LINE_RATE), LINE_RATE);
    }

    #[test]
    fn auto_threshold_is_four_times_a_quiet_delay() {
        let mut rhcc = Rhcc::new(RhccConfig::new());
        for sample in 0..256u64 {
            assert_eq!(rhcc.threshold_ns(), None);
            answer(&mut rhcc, 1000 + sample * 4);
        }
        assert_eq!(rhcc.threshold_ns(), Some(4 * (1000 + 12 * 4)));
        assert_eq!(rhcc.rate(LINE_RATE), LINE_RATE);
    }

    #[test]
    fn auto_threshold_is_above_what_a_polling_worker_shows_when_all_is_well() {
        let mut rhcc = Rhcc::new(RhccConfig::new());
        // One round or four, now and then eight, and two peaks.
        for number in 0..CALIBRATION {
            let rounds = if number < 2 { 1000 } else { [1, 4, 4, 1, 4, 4, 1, 8][number % 8] };
            answer(&mut rhcc, 2000 * rounds);
        }
        assert_eq!(rhcc.threshold_ns(), Some(32_000));
    }

    #[test]
    fn probes_go_by_bytes_and_by_time_below_line_rate() {
        let mut rhcc = fixed(200);
        let start = Instant::from_ns(5_000_000_000);
        assert!(rhcc.handle_sent(1000), "with the first packet");
        let probes = (0..1000).filter(|_| rhcc.handle_sent(4162)).count();
        assert_eq!(probes, 1000 / 8, "4162 B do not divide 32 KiB: one in eight packets");
        assert_eq!(rhcc.next_probe(start), None, "at line rate");
        answer(&mut rhcc, 100_000);
        let start = start.after(3000);
        assert_eq!(rhcc.next_probe(start), Some(start.after(997_000)));
        let mut now = start;
        let mut sent = 0;
        while let Some(due) = rhcc.next_probe(now) {
            now = due;
            assert!(rhcc.is_due(now));
            rhcc.handle_probe_sent(now);
            sent += 1;
        }
        assert_eq!(sent, usize::from(UNANSWERED_MAX) + 1, "a peer that is gone is not asked for ever");
    }
}
