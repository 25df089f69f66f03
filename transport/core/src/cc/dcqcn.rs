//! DCQCN's reaction point (C-2): CNPs cut the rate, time and bytes without them bring it back.

use std::hash::{Hash, Hasher};

use super::{Fraction, ParameterError, Rate, check};
use crate::Instant;

/// Parameters of DCQCN's reaction point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DcqcnConfig {
    /// Weight g of an update of α: above 0, at most 1.
    pub alpha_weight: Fraction,
    /// Time between two updates of α, in nanoseconds: at least 100.
    pub alpha_period_ns: u64,
    /// Least time between two cuts, in nanoseconds.
    pub cut_period_ns: u64,
    /// Time between two rises, in nanoseconds: at least 1000.
    pub rise_period_ns: u64,
    /// Bytes between two rises, beside those by time; 0 = by time only.
    pub rise_bytes: u64,
    /// Rises of fast recovery F: 1 … 2^16.
    pub threshold: u32,
    /// Additive rise of the target.
    pub additive: Rate,
    /// Hyper rise of the target.
    pub hyper: Rate,
    /// Slowest rate.
    pub rate_min: Rate,
    /// Whether a header that came back counts as a CNP. Default false (DCP paper).
    pub header_cuts: bool,
}

impl DcqcnConfig {
    /// As ConnectX NICs come (mlxconfig's defaults, `dce_tcp_g` 1019/1024 and so on; facts: docs of DOCA).
    pub const fn connectx() -> Self {
        Self {
            alpha_weight: Fraction::new(5, 1024),
            alpha_period_ns: 1000,
            cut_period_ns: 4000,
            rise_period_ns: 300_000,
            rise_bytes: 32767,
            threshold: 1,
            additive: Rate::from_mbps(5),
            hyper: Rate::from_mbps(50),
            rate_min: Rate::from_mbps(1),
            header_cuts: false,
        }
    }

    /// As the simulations of HPCC configure it ("dcqcn"), for a line rate.
    pub const fn hpcc(line: Rate) -> Self {
        let unit = line.bps() / 25_000;
        Self {
            alpha_weight: Fraction::new(1, 256),
            alpha_period_ns: 1000,
            cut_period_ns: 4000,
            rise_period_ns: 300_000,
            rise_bytes: 0,
            threshold: 1,
            additive: Rate::from_bps(5 * unit),
            hyper: Rate::from_bps(50 * unit),
            rate_min: Rate::from_mbps(100),
            header_cuts: false,
        }
    }

    /// As the DCQCN paper has it, by HPCC's "dcqcn_paper": slower to cut, with five steps of fast recovery.
    pub const fn paper(line: Rate) -> Self {
        Self {
            alpha_period_ns: 50_000,
            cut_period_ns: 50_000,
            rise_period_ns: 55_000,
            threshold: 5,
            ..Self::hpcc(line)
        }
    }

    pub(crate) fn check(&self, line: Rate) -> Result<(), ParameterError> {
        check("DCQCN line rate in bits/s", line.bps(), (Rate::MIN.bps(), u64::MAX - 1))?;
        check("DCQCN minimum rate in bits/s", self.rate_min.bps(), (Rate::MIN.bps(), line.bps()))?;
        check("DCQCN α weight in 2^-24", self.alpha_weight.bits().into(), (1, Fraction::ONE.bits().into()))?;
        check("DCQCN α period in ns", self.alpha_period_ns, (100, u64::MAX))?;
        check("DCQCN rise period in ns", self.rise_period_ns, (1000, u64::MAX))?;
        check("DCQCN threshold", self.threshold.into(), (1, 1 << 16))
    }
}

/// α = 1.
const ONE: u64 = 1 << 32;
/// Rises that one look catches up with; line rate is reached long before.
const CATCH_UP_MAX: u64 = 100_000;

/// The reaction point of one queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Dcqcn {
    config: DcqcnConfig,
    line: Rate,
    current: Rate,
    target: Rate,
    /// In 2^-32.
    alpha: u64,
    /// A CNP came since the last update of α.
    marked: bool,
    alpha_at: Instant,
    cut_at: Instant,
    rise_at: Instant,
    /// Bytes sent since the last rise by bytes.
    bytes: u64,
    /// Rises since the last cut, by time and by bytes.
    rises: (u32, u32),
    /// Not at line rate for good: there is something to do with time.
    active: bool,
}

impl Dcqcn {
    pub(crate) const fn new(config: DcqcnConfig, line: Rate) -> Self {
        Self {
            config,
            line,
            current: line,
            target: line,
            alpha: 0,
            marked: false,
            alpha_at: Instant::ZERO,
            cut_at: Instant::ZERO,
            rise_at: Instant::ZERO,
            bytes: 0,
            rises: (0, 0),
            active: false,
        }
    }

    /// The rate as of the last look.
    pub(crate) const fn rate(&self) -> Rate {
        self.current
    }

    pub(crate) const fn takes_headers(&self) -> bool {
        self.config.header_cuts
    }

    /// When the rate rises next by time.
    pub(crate) fn next_rise(&self) -> Option<Instant> {
        self.active.then(|| self.rise_at.after(self.config.rise_period_ns))
    }

    /// A CNP, or what counts as one.
    pub(crate) fn handle_cnp(&mut self, now: Instant) {
        self.handle_time(now);
        if self.alpha == 0 {
            // The first: no CNP ever, or so long ago that it is forgotten.
            self.alpha = ONE;
            self.alpha_at = now;
        } else {
            self.update_alpha(now);
            self.marked = true;
            if now.since(self.cut_at) < self.config.cut_period_ns {
                return;
            }
        }
        self.cut(now);
    }

    fn cut(&mut self, now: Instant) {
        self.target = self.current;
        let kept = u32::try_from((ONE - self.alpha / 2) >> (32 - Fraction::BITS)).unwrap_or(u32::MAX);
        self.current = self.current.scaled(Fraction::from_bits(kept)).max(self.config.rate_min);
        (self.cut_at, self.rise_at) = (now, now);
        self.rises = (0, 0);
        self.bytes = 0;
        self.active = true;
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn handle_sent(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Whether [`Self::handle_time`] has anything to do.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.active
            && (now.since(self.rise_at) >= self.config.rise_period_ns
                || self.config.rise_bytes > 0 && self.bytes >= self.config.rise_bytes)
    }

    /// Rises that are due.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        if !self.active {
            self.bytes = 0;
            return;
        }
        let due = (now.since(self.rise_at) / self.config.rise_period_ns).min(CATCH_UP_MAX);
        for _ in 0..due {
            self.rises.0 = self.rises.0.saturating_add(1);
            self.rise_at = self.rise_at.after(self.config.rise_period_ns);
            if self.rise() {
                break;
            }
        }
        while self.config.rise_bytes > 0 && self.bytes >= self.config.rise_bytes {
            self.bytes -= self.config.rise_bytes;
            self.rises.1 = self.rises.1.saturating_add(1);
            if self.rise() {
                self.bytes = 0;
            }
        }
        if self.current == self.line {
            self.active = false;
        } else if due == CATCH_UP_MAX {
            self.rise_at = now;
        }
    }

    /// One rise; true at line rate.
    fn rise(&mut self) -> bool {
        // The rise just counted: the first `threshold` of them are fast recovery.
        let done = (self.rises.0.saturating_sub(1), self.rises.1.saturating_sub(1));
        let threshold = self.config.threshold;
        let by_time_only = self.config.rise_bytes == 0;
        let least = if by_time_only { done.0 } else { self.rises.0.min(self.rises.1).saturating_sub(1) };
        if done.0.max(done.1) >= threshold {
            let step = if least > threshold { self.config.hyper } else { self.config.additive };
            self.target = self.target.plus(step).min(self.line);
        }
        self.current = self.current.midway(self.target);
        // Halves would come near for ever.
        if self.line.bps() - self.current.bps() <= self.line.bps() >> 12 {
            self.current = self.line;
        }
        self.current == self.line
    }

    /// α now, in 2^-32.
    pub(crate) fn update_alpha(&mut self, now: Instant) -> u64 {
        let periods = now.since(self.alpha_at) / self.config.alpha_period_ns;
        if periods > 0 {
            self.alpha_at = self.alpha_at.after(periods * self.config.alpha_period_ns);
            let weight = u64::from(self.config.alpha_weight.bits()) << (32 - Fraction::BITS);
            let mut idle = periods;
            if std::mem::take(&mut self.marked) {
                self.alpha = self.alpha - mul(self.alpha, weight) + weight;
                idle -= 1;
            }
            self.alpha = mul(self.alpha, power(ONE - weight, idle));
        }
        self.alpha
    }

    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        (self.current, self.target, self.alpha, self.marked, self.bytes, self.rises, self.active)
            .hash(hasher);
        if self.alpha > 0 {
            (now.since(self.alpha_at), now.since(self.cut_at), now.since(self.rise_at)).hash(hasher);
        }
    }
}

/// Product of two numbers in 2^-32.
fn mul(left: u64, right: u64) -> u64 {
    let product = (u128::from(left) * u128::from(right)) >> 32;
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// `base`^`exponent`, in 2^-32.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = mul(result, base);
        }
        base = mul(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    fn golden() -> DcqcnConfig {
        DcqcnConfig { alpha_weight: Fraction::new(1, 256), threshold: 5, ..DcqcnConfig::hpcc(LINE) }
    }

    #[test]
    fn e1_first_cnp_halves_and_fast_recovery_halves_the_rest() {
        let mut dcqcn = Dcqcn::new(golden(), LINE);
        let mut now = Instant::from_ns(5000);
        dcqcn.handle_cnp(now);
        let mut rates = vec![dcqcn.rate()];
        for _ in 0..5 {
            now = now.after(300_000);
            dcqcn.handle_time(now);
            rates.push(dcqcn.rate());
        }
        let right = [50_000_000, 75_000_000, 87_500_000, 93_750_000, 96_875_000, 98_437_500];
        assert_eq!(rates, right.map(|kbps| Rate::from_bps(kbps * 1000)));
    }

    #[test]
    fn e1_alpha_decays_with_no_traffic() {
        let mut dcqcn = Dcqcn::new(golden(), LINE);
        dcqcn.handle_cnp(Instant::ZERO);
        let alpha = dcqcn.update_alpha(Instant::from_ns(178 * 1000)) as f64 / ONE as f64;
        assert!((alpha - 0.498_240).abs() < 1e-6, "{alpha}");
    }

    #[test]
    fn e2_thousand_cnps_bring_the_minimum_and_a_second_of_silence_the_line_rate() {
        for config in [DcqcnConfig::hpcc(LINE), DcqcnConfig::paper(LINE), DcqcnConfig::connectx()] {
            let mut dcqcn = Dcqcn::new(config, LINE);
            let mut now = Instant::ZERO;
            for _ in 0..1000 {
                now = now.after(config.cut_period_ns);
                dcqcn.handle_cnp(now);
            }
            assert_eq!(dcqcn.rate(), config.rate_min);
            // A second without CNPs, with the traffic that the rate allows.
            for _ in 0..10_000 {
                now = now.after(100_000);
                for _ in 0..dcqcn.rate().bps() / 80_000 / 4000 + 1 {
                    dcqcn.handle_sent(4000);
                }
                dcqcn.handle_time(now);
            }
            assert!(dcqcn.rate().bps() * 100 >= LINE.bps() * 99, "{config:?}: {}", dcqcn.rate());
        }
    }

    #[test]
    fn cuts_keep_their_distance() {
        let mut dcqcn = Dcqcn::new(golden(), LINE);
        for at in 0..100 {
            dcqcn.handle_cnp(Instant::from_ns(1_000_000 + at * 39));
        }
        assert_eq!(dcqcn.rate(), Rate::from_gbps(50), "100 CNPs within a cut period cut once");
    }

    #[test]
    fn powers_agree_with_steps() {
        let base = ONE - (ONE >> 8);
        let mut steps = ONE;
        for exponent in 0..2000 {
            assert!(power(base, exponent).abs_diff(steps) < 1 << 12, "{exponent}");
            steps = mul(steps, base);
        }
        assert_eq!(power(base, u64::MAX), 0);
    }

    #[test]
    fn an_hour_away_is_caught_up_in_bounded_work() {
        let mut dcqcn = Dcqcn::new(DcqcnConfig { rise_period_ns: 1000, ..DcqcnConfig::connectx() }, LINE);
        dcqcn.handle_cnp(Instant::ZERO);
        dcqcn.handle_time(Instant::from_ns(3_600_000_000_000));
        assert_eq!(dcqcn.rate(), LINE);
    }
}
