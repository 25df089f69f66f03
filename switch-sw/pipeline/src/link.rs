//! The link behind an egress port: its rate, its length, and the frames on it.

use std::collections::VecDeque;

use crate::config_error::{ConfigError, Parameter, in_range};
use crate::frame::wire_len;
use crate::queue::Entry;

/// Most frames on one link.
pub const IN_FLIGHT_FRAMES_MAX: u32 = 1 << 20;

/// The rate of a link, in bits per nanosecond (Gb/s) as fixed point; 0 for no limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct LinkRate(u64);

impl LinkRate {
    /// Frames take no time.
    pub const UNLIMITED: Self = Self(0);
    /// Bits of the fraction.
    const FRACTION_BITS: u32 = 32;
    /// Slowest link, in Mb/s.
    pub const MBPS_MIN: u32 = 1;
    /// Fastest link, in Mb/s: 10 Tb/s.
    pub const MBPS_MAX: u32 = 10_000_000;

    /// From Mb/s; 0 for no limit.
    pub const fn from_mbps(mbps: u32) -> Self {
        // Rounded up, so that the slowest rate is not below its range.
        Self(((mbps as u64) << Self::FRACTION_BITS).div_ceil(1000))
    }

    /// From Gb/s, 0 for no limit; `None` for what is no rate.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked first")]
    pub fn from_gbps(gbps: f64) -> Option<Self> {
        // 2^32 is exact in an f64.
        (0.0..=1e6).contains(&gbps).then(|| Self((gbps * 4_294_967_296.0).round() as u64))
    }

    /// Whether there is no limit.
    pub const fn is_unlimited(self) -> bool {
        self.0 == 0
    }

    /// The rate in Mb/s, rounded down.
    fn mbps(self) -> u32 {
        u32::try_from((u128::from(self.0) * 1000) >> Self::FRACTION_BITS).unwrap_or(u32::MAX)
    }

    /// Time of a byte, in units of 2^-32 ns.
    fn units_per_byte(self) -> u64 {
        let units = (8u128 << (Self::FRACTION_BITS + UNIT_BITS)).checked_div(self.0.into());
        units.map_or(0, |units| u64::try_from(units).unwrap_or(u64::MAX))
    }
}

/// Fraction of a nanosecond in which link time is kept.
const UNIT_BITS: u32 = 32;

/// A link. The default takes no time and has no length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct LinkConfig {
    /// Its rate, for wire bytes ([`wire_len`]). Default unlimited; else 1 Mb/s ..= 10 Tb/s.
    pub rate: LinkRate,
    /// Propagation delay in nanoseconds. Default 0, range 0 ..= 10 s.
    pub delay_ns: u64,
    /// Frames that are on the link at once; no further one starts then. 0, the default, for as many as rate and delay
    /// make possible, or 8192 where there is no rate. Range up to [`IN_FLIGHT_FRAMES_MAX`].
    pub in_flight_frames_max: u32,
}

impl LinkConfig {
    /// A link of that rate and no length.
    pub fn of_rate(rate: LinkRate) -> Self {
        Self { rate, ..Self::default() }
    }

    pub(crate) fn is_ideal(&self) -> bool {
        self.rate.is_unlimited() && self.delay_ns == 0
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !self.rate.is_unlimited() {
            in_range(Parameter::LinkMbps, self.rate.mbps(), LinkRate::MBPS_MIN..=LinkRate::MBPS_MAX)?;
        }
        let micros = u32::try_from(self.delay_ns.div_ceil(1000)).unwrap_or(u32::MAX);
        in_range(Parameter::LinkDelayMicros, micros, 0..=10_000_000)?;
        in_range(Parameter::InFlightFramesMax, self.in_flight_frames_max, 0..=IN_FLIGHT_FRAMES_MAX)
    }

    /// Smallest frames that fit on the link, and a burst more.
    fn frames_max(&self) -> u32 {
        if self.in_flight_frames_max > 0 {
            return self.in_flight_frames_max;
        }
        if self.rate.is_unlimited() {
            return 8192;
        }
        let bits = (u128::from(self.delay_ns) * u128::from(self.rate.0)) >> LinkRate::FRACTION_BITS;
        let frames = bits.div_ceil(u128::from(wire_len(0)) * 8) + 16;
        u32::try_from(frames).unwrap_or(u32::MAX).min(IN_FLIGHT_FRAMES_MAX)
    }
}

/// When a link of a rate is free: the time of each frame after the one before it, exact over any number of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTime {
    units_per_byte: u64,
    /// When the link is free: nanoseconds, and units of 2^-32 ns.
    free_ns: u64,
    free_units: u64,
}

impl LinkTime {
    /// A link of that rate, free at once.
    pub fn new(rate: LinkRate) -> Self {
        Self { units_per_byte: rate.units_per_byte(), free_ns: 0, free_units: 0 }
    }

    /// When it can take the next frame.
    #[inline]
    pub const fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// A frame comes, and none waits: time before `now_ns` is of no use any more.
    #[inline]
    pub const fn wake(&mut self, now_ns: u64) {
        if self.free_ns < now_ns {
            self.free_ns = now_ns;
            self.free_units = 0;
        }
    }

    /// Puts a frame of `frame_len` bytes behind the ones before it; when its last bit has been sent.
    #[inline]
    pub fn start(&mut self, frame_len: u32) -> u64 {
        let units = u64::from(wire_len(frame_len)) * self.units_per_byte + self.free_units;
        self.free_ns += units >> UNIT_BITS;
        self.free_units = units & ((1 << UNIT_BITS) - 1);
        // It is over when its last bit is: a fraction counts as a whole.
        self.free_ns + u64::from(self.free_units > 0)
    }
}

/// A link at work: when it can take the next frame, and which frames are on their way.
///
/// A frame starts when the one before it has ended, and arrives whole, after its own time and the delay. Time in which
/// a frame waited is used in full however rarely the link is looked at; time in which none waited is lost.
#[derive(Debug)]
pub(crate) struct Link<F> {
    time: LinkTime,
    delay_ns: u64,
    on_it: VecDeque<(u64, Entry<F>)>,
    frames_max: usize,
    frames_peak: usize,
}

impl<F> Link<F> {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        let frames_max = config.frames_max() as usize;
        Self {
            time: LinkTime::new(config.rate),
            delay_ns: config.delay_ns,
            on_it: VecDeque::with_capacity(frames_max),
            frames_max,
            frames_peak: 0,
        }
    }

    /// As [`LinkTime::wake`].
    #[inline]
    pub(crate) fn wake(&mut self, now_ns: u64) {
        self.time.wake(now_ns);
    }

    /// Whether a frame can start.
    #[inline]
    pub(crate) fn is_free(&self, now_ns: u64) -> bool {
        self.time.free_ns() <= now_ns && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.on_it.len() >= self.frames_max
    }

    /// Starts a frame; the caller has asked [`Self::is_free`].
    #[inline]
    pub(crate) fn start(&mut self, entry: Entry<F>) {
        let arrival = self.time.start(entry.len) + self.delay_ns;
        self.on_it.push_back((arrival, entry));
        self.frames_peak = self.frames_peak.max(self.on_it.len());
    }

    /// The next frame that has arrived by now.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64) -> Option<Entry<F>> {
        if self.on_it.front()?.0 > now_ns {
            return None;
        }
        self.on_it.pop_front().map(|(_, entry)| entry)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.on_it.is_empty()
    }

    pub(crate) fn frames(&self) -> usize {
        self.on_it.len()
    }

    pub(crate) fn frames_peak(&self) -> usize {
        self.frames_peak
    }

    /// When something happens next, if a frame `waits` or one is on the link.
    pub(crate) fn next_ns(&self, waits: bool) -> Option<u64> {
        let start = (waits && !self.is_full()).then_some(self.time.free_ns());
        let arrival = self.on_it.front().map(|(arrival, _)| *arrival);
        start.into_iter().chain(arrival).min()
    }

    /// Drops every frame on the link; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let frames = self.on_it.len();
        self.on_it.clear();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mbps: u32) -> LinkConfig {
        LinkConfig::of_rate(LinkRate::from_mbps(mbps))
    }

    #[test]
    fn link_time_is_exact_over_many_frames() {
        // 1097 B: 1121 wire bytes, 89.68 ns at 100 Gb/s. Rates and lengths that do not divide well.
        for (mbps, len) in [(1, 60), (3, 1514), (10_000, 60), (100_000, 1097), (10_000_000, 61)] {
            let mut link = Link::new(&LinkConfig { in_flight_frames_max: 1, ..rate(mbps) });
            for _ in 0..100_000 {
                link.start(Entry { frame: (), len, trimmed: false, control: false });
                link.clear();
            }
            let exact = f64::from(wire_len(len)) * 8.0 * 1000.0 / f64::from(mbps) * 100_000.0;
            let off = (link.time.free_ns() as f64 - exact).abs();
            assert!(off < 1.0 + exact * 1e-6, "{mbps} Mb/s: off by {off} ns");
        }
    }

    #[test]
    fn a_link_holds_what_its_rate_and_length_make_possible() {
        // 100 Gb/s, 50 µs: 5 Mb, 7440.5 frames of 84 wire bytes.
        assert_eq!(LinkConfig { delay_ns: 50_000, ..rate(100_000) }.frames_max(), 7441 + 16);
        assert_eq!(rate(100_000).frames_max(), 16);
        assert_eq!(LinkConfig { delay_ns: 1, ..LinkConfig::default() }.frames_max(), 8192);
        assert_eq!(LinkConfig { delay_ns: 10_000_000_000, ..rate(10_000_000) }.frames_max(), 1 << 20);
    }

    #[test]
    fn rates_are_read_and_refused() {
        assert_eq!(LinkRate::from_gbps(10.0), Some(LinkRate(10 << 32)));
        assert_eq!(LinkRate::from_mbps(10_000), LinkRate(10 << 32));
        assert_eq!(LinkRate::from_gbps(0.0), Some(LinkRate::UNLIMITED));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 2e6] {
            assert_eq!(LinkRate::from_gbps(wrong), None);
        }
        for (mbps, ok) in [(0, true), (1, true), (10_000_000, true), (10_000_001, false)] {
            assert_eq!(rate(mbps).check().is_ok(), ok, "{mbps}");
        }
        let slow = LinkRate::from_gbps(0.000_5).map(LinkConfig::of_rate);
        assert_eq!(slow.map(|slow| slow.check().is_ok()), Some(false));
        assert!(LinkConfig { delay_ns: 10_000_000_001, ..LinkConfig::default() }.check().is_err());
    }
}
