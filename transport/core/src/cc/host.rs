//! RHCC's receiver (C-4): how hard the memory traffic of other programs on this host is held back, so that what the
//! network delivers finds room in the memory system.
//!
//! A period ends with one reading of the occupancy; the answer is one level for each class. What an occupancy is made of
//! and how a level is put into force is the business of whoever drives this.

use core::fmt;

use super::{Fraction, ParameterError, check};

/// A reading: how full the way from the network to memory is, in the signal's own unit (entries, per cent), in steps of
/// 2^-16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Occupancy(u32);

impl Occupancy {
    const BITS: u32 = 16;
    /// The largest: nearly 65536.
    pub const MAX: Self = Self(u32::MAX);

    /// A whole number of units.
    pub const fn new(units: u16) -> Self {
        Self((units as u32) << Self::BITS)
    }

    /// `part` / `whole` units, rounded down; stays at the largest, also where `whole` is 0 and `part` is not.
    #[expect(clippy::cast_possible_truncation, reason = "compared in the line before")]
    pub const fn quotient(part: u64, whole: u64) -> Self {
        if part == 0 {
            return Self(0);
        }
        let whole = if whole == 0 { 1 } else { whole };
        let units = ((part as u128) << Self::BITS) / whole as u128;
        if units > u32::MAX as u128 { Self::MAX } else { Self(units as u32) }
    }

    /// Thousandths of a unit, rounded down.
    pub const fn milli(self) -> u64 {
        (self.0 as u64 * 1000) >> Self::BITS
    }
}

impl fmt::Display for Occupancy {
    /// Tenths.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.milli() / 100;
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

/// How far a class is held back: 1, not at all, to 5.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Level(u8);

impl Level {
    /// Not held back.
    pub const FREE: Self = Self(1);
    /// As far as it goes.
    pub const DEEPEST: Self = Self(5);
    /// Where the cross-NUMA class goes at once (C-4).
    pub const CROSS_NUMA: Self = Self(4);
    /// All of them.
    pub const ALL: [Self; 5] = [Self(1), Self(2), Self(3), Self(4), Self(5)];

    /// 1 … 5.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// What is left to the class: 100, 80, 60, 40 or 20 per cent (C-4).
    pub const fn percent(self) -> u8 {
        120 - 20 * self.0
    }

    const fn deeper(self) -> Self {
        if self.0 < Self::DEEPEST.0 { Self(self.0 + 1) } else { self }
    }

    const fn back(self) -> Self {
        if self.0 > Self::FREE.0 { Self(self.0 - 1) } else { self }
    }
}

/// Where the memory that a program uses lies, seen from its cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TrafficClass {
    /// At another NUMA node: every byte crosses the link between sockets.
    CrossNuma,
    /// At the same node.
    Local,
}

/// The level of each class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Levels {
    /// Of the cross-NUMA class; stays free where there is none.
    pub cross_numa: Level,
    /// Of the local class.
    pub local: Level,
}

impl Levels {
    /// Nothing is held back.
    pub const FREE: Self = Self { cross_numa: Level::FREE, local: Level::FREE };

    /// Of one class.
    pub const fn of(self, class: TrafficClass) -> Level {
        match class {
            TrafficClass::CrossNuma => self.cross_numa,
            TrafficClass::Local => self.local,
        }
    }
}

/// Parameters of RHCC's receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostControlConfig {
    /// I_thr: above it classes are held back. Unit of the signal. Default 45, entries of the I/O buffer (RHCC).
    pub threshold: Occupancy,
    /// Weight γ of a new reading, above 0, at most 1. Default 0.25 (RHCC equation 1).
    pub gamma: Fraction,
    /// Whether there is a cross-NUMA class.
    pub cross_numa: bool,
}

impl HostControlConfig {
    /// The defaults, for a host whose programs all use local memory.
    pub const fn new() -> Self {
        Self { threshold: Occupancy::new(45), gamma: Fraction::new(1, 4), cross_numa: false }
    }
}

impl Default for HostControlConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Why there is no [`HostControl`]: a parameter is out of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostControlError(ParameterError);

impl fmt::Display for HostControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParameterError { what, value, range: (least, most) } = self.0;
        write!(f, "{what} is {value}, not in {least} to {most}")
    }
}

impl core::error::Error for HostControlError {}

/// C-4: one reading a period in, levels out.
///
/// Above the threshold the cross-NUMA class goes to level 4 at once: its traffic costs most, on the way to memory and on
/// the link between sockets. From the next period on the local class goes one level deeper per period. At or below the
/// threshold, one level back per period in the opposite order: local class first, so that what does most harm comes back
/// last.
#[derive(Clone, Hash, Debug)]
pub struct HostControl {
    config: HostControlConfig,
    /// I_cur.
    current: Occupancy,
    levels: Levels,
}

impl HostControl {
    /// Nothing held back, and a host at rest.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn new(config: HostControlConfig) -> Result<Self, HostControlError> {
        let gamma = u64::from(config.gamma.bits());
        check("RHCC receiver γ in 2^-24", gamma, (1, u64::from(Fraction::ONE.bits())))
            .map_err(HostControlError)?;
        Ok(Self { config, current: Occupancy::default(), levels: Levels::FREE })
    }

    /// A period has ended with this reading; what holds from now on.
    pub fn handle_occupancy(&mut self, reading: Occupancy) -> Levels {
        // C-4, equation 1.
        let gamma = u64::from(self.config.gamma.bits());
        let rest = u64::from(Fraction::ONE.bits()) - gamma;
        let smoothed = gamma * u64::from(reading.0) + rest * u64::from(self.current.0);
        self.current = Occupancy(u32::try_from(smoothed >> Fraction::BITS).unwrap_or(u32::MAX));
        if self.current > self.config.threshold {
            self.hold_back()
        } else {
            self.give_back()
        }
        self.levels
    }

    fn hold_back(&mut self) {
        if self.config.cross_numa && self.levels.cross_numa < Level::CROSS_NUMA {
            self.levels.cross_numa = Level::CROSS_NUMA;
        } else {
            self.levels.local = self.levels.local.deeper();
        }
    }

    fn give_back(&mut self) {
        if self.levels.local > Level::FREE {
            self.levels.local = self.levels.local.back();
        } else {
            self.levels.cross_numa = self.levels.cross_numa.back();
        }
    }

    /// I_cur, the smoothed occupancy.
    pub const fn occupancy(&self) -> Occupancy {
        self.current
    }

    /// What holds now.
    pub const fn levels(&self) -> Levels {
        self.levels
    }

    /// What it was made with.
    pub const fn config(&self) -> &HostControlConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mixer;

    fn control(cross_numa: bool) -> HostControl {
        HostControl::new(HostControlConfig { cross_numa, ..HostControlConfig::new() }).expect("the defaults")
    }

    /// Feeds whole units; returns (occupancy in thousandths, cross-NUMA level, local level) after each.
    fn steps(control: &mut HostControl, readings: &[u16]) -> Vec<(u64, u8, u8)> {
        let step = |&units: &u16| {
            let levels = control.handle_occupancy(Occupancy::new(units));
            (control.occupancy().milli(), levels.cross_numa.number(), levels.local.number())
        };
        readings.iter().map(step).collect()
    }

    // C-4
    #[test]
    fn occupancy_is_an_average_with_a_quarter_of_the_new() {
        let mut control = control(false);
        let occupancies: Vec<u64> = steps(&mut control, &[100, 100, 100, 0]).iter().map(|it| it.0).collect();
        assert_eq!(occupancies, [25_000, 43_750, 57_812, 43_359]);
    }

    // C-4
    #[test]
    fn cross_numa_goes_to_level_4_at_once_then_local_step_by_step_and_back_the_other_way() {
        let mut control = control(true);
        let up = steps(&mut control, &[100; 8]);
        let levels: Vec<(u8, u8)> = up.iter().map(|it| (it.1, it.2)).collect();
        assert_eq!(levels, [(1, 1), (1, 1), (4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (4, 5)]);
        let down = steps(&mut control, &[0; 11]);
        let levels: Vec<(u8, u8)> = down.iter().map(|it| (it.1, it.2)).collect();
        // 89.99 → 67.5 → 50.6 → 38.0: two periods more above the threshold.
        let expected =
            [(4, 5), (4, 5), (4, 4), (4, 3), (4, 2), (4, 1), (3, 1), (2, 1), (1, 1), (1, 1), (1, 1)];
        assert_eq!(levels, expected);
    }

    // C-4
    #[test]
    fn local_class_alone_goes_deeper_at_once_and_cross_numa_stays_free() {
        let mut control = control(false);
        let up = steps(&mut control, &[200; 6]);
        let levels: Vec<(u8, u8)> = up.iter().map(|it| (it.1, it.2)).collect();
        assert_eq!(levels, [(1, 2), (1, 3), (1, 4), (1, 5), (1, 5), (1, 5)]);
    }

    // C-4
    #[test]
    fn cross_numa_that_was_on_its_way_back_goes_to_level_4_before_local_moves() {
        let mut control = control(true);
        steps(&mut control, &[200, 0, 0]);
        let was = control.levels();
        assert_eq!((was.cross_numa.number(), was.local.number()), (2, 1));
        assert_eq!(
            steps(&mut control, &[200, 200]).iter().map(|it| (it.1, it.2)).collect::<Vec<_>>(),
            [(4, 1), (4, 2)]
        );
    }

    // C-4: the smoothing is what keeps it from jumping at every peak.
    #[test]
    fn single_peak_holds_nothing_back_and_a_single_dip_gives_nothing_back() {
        let mut control = control(true);
        steps(&mut control, &[20; 20]);
        assert_eq!(steps(&mut control, &[100, 20, 20]).iter().map(|it| (it.1, it.2)).max(), Some((1, 1)));
        steps(&mut control, &[80; 20]);
        let held = steps(&mut control, &[0, 80, 80]);
        assert!(held.iter().all(|it| (it.1, it.2) == (4, 5)), "{held:?}");
    }

    // C-4
    #[test]
    fn occupancy_at_the_threshold_gives_back() {
        let mut control = control(false);
        steps(&mut control, &[200; 10]);
        let held: Vec<u8> = steps(&mut control, &[45; 80]).iter().map(|it| it.2).collect();
        assert!(held.windows(2).all(|pair| pair[1] <= pair[0]), "{held:?}");
        assert_eq!((control.occupancy(), control.levels()), (Occupancy::new(45), Levels::FREE));
    }

    // C-4
    #[test]
    fn any_readings_keep_levels_in_range_and_one_step_a_period() {
        for (seed, cross_numa) in [(1, false), (2, true), (3, true)] {
            let mut control = control(cross_numa);
            let mut before = control.levels();
            for step in 0..20_000u64 {
                let random = Mixer::mix((seed << 32) + step);
                // Among them both ends, and often near the threshold.
                let reading = match random % 4 {
                    0 => Occupancy::default(),
                    1 => Occupancy::MAX,
                    _ => Occupancy::quotient((random >> 8) % 90_000, 1000),
                };
                let now = control.handle_occupancy(reading);
                let (local, cross) = (now.local.number(), now.cross_numa.number());
                assert!((1..=5).contains(&local) && (1..=4).contains(&cross), "seed {seed}: {now:?}");
                assert!(cross_numa || now.cross_numa == Level::FREE, "seed {seed}: {now:?}");
                let local_step = local.abs_diff(before.local.number());
                let is_cascade = now.cross_numa == Level::CROSS_NUMA;
                let cross_back = before.cross_numa.number().saturating_sub(cross);
                assert!(
                    local_step <= 1 && (is_cascade || cross_back <= 1),
                    "seed {seed}: {before:?} {now:?}"
                );
                before = now;
            }
        }
    }

    #[test]
    fn levels_leave_a_fifth_less_each() {
        assert_eq!(Level::ALL.map(Level::percent), [100, 80, 60, 40, 20]);
        assert_eq!((Level::DEEPEST.deeper(), Level::FREE.back()), (Level::DEEPEST, Level::FREE));
    }

    #[test]
    fn quotients_are_bounded() {
        assert_eq!(Occupancy::quotient(1, 3).milli(), 333);
        assert_eq!(Occupancy::quotient(0, 0), Occupancy::default());
        assert_eq!(Occupancy::quotient(1, 0), Occupancy::new(1));
        assert_eq!(Occupancy::quotient(u64::MAX, 0), Occupancy::MAX);
        assert_eq!(Occupancy::quotient(u64::MAX, 1), Occupancy::MAX);
        assert_eq!(Occupancy::new(45).to_string(), "45.0");
    }

    #[test]
    fn weight_of_nothing_is_refused() {
        let config = HostControlConfig { gamma: Fraction::new(0, 1), ..HostControlConfig::new() };
        let error = HostControl::new(config).expect_err("no weight");
        assert!(error.to_string().contains("γ"), "{error}");
    }
}
