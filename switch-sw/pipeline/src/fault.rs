//! Faults that a test injects at a port, in one direction (S-7).

use crate::config_error::{ConfigError, Parameter, in_range};

use crate::random::{Probability, Random};

/// Most frames that the faults of one port and direction hold back at a time.
pub const HELD_FRAMES_MAX: u32 = 1 << 16;

/// Faults of one port in one direction: by probability, and exactly [every n-th](Every) time. The default injects none.
///
/// A frame meets them in this order: drop, corrupt, duplicate; then each copy on its own delay or reorder, and trim.
/// On ingress that is before the frame is routed, on egress before it is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultConfig {
    /// Silent loss, of any frame.
    pub drop: Probability,
    /// A data packet is trimmed although its queue is short (the paper's Figure 10).
    pub trim: Probability,
    /// A second copy of the frame follows it.
    pub duplicate: Probability,
    /// A byte of the frame behind its header changes.
    pub corrupt: Probability,
    /// The frame waits for [`Self::delay_ns`].
    pub delay: Probability,
    /// The frame is overtaken by the next [`Self::reorder_frames`], or waits for [`Self::reorder_ns`] if fewer come.
    pub reorder: Probability,
    /// Exact patterns beside the probabilities.
    pub every: Every,
    /// In nanoseconds, any. Default 10 µs.
    pub delay_ns: u64,
    /// Default 3, range 1 ..= 65536.
    pub reorder_frames: u32,
    /// In nanoseconds, any. Default 100 µs.
    pub reorder_ns: u64,
    /// Frames that may be held back at a time; with more, a frame goes on at once and is counted. Default 256, range
    /// 1 ..= [`HELD_FRAMES_MAX`].
    pub held_frames_max: u32,
}

/// Faults that come exactly every n-th time: 1 for always, 0 for never.
///
/// Every fault counts the frames that reach it: those that were not dropped before, and for `trim` only data packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "named like the probabilities")]
pub struct Every {
    pub drop: u32,
    pub trim: u32,
    pub duplicate: u32,
    pub corrupt: u32,
    pub delay: u32,
    pub reorder: u32,
}

impl Every {
    /// None.
    pub const NEVER: Self = Self { drop: 0, trim: 0, duplicate: 0, corrupt: 0, delay: 0, reorder: 0 };
}

impl FaultConfig {
    /// No faults.
    pub const NONE: Self = Self {
        drop: Probability::NEVER,
        trim: Probability::NEVER,
        duplicate: Probability::NEVER,
        corrupt: Probability::NEVER,
        delay: Probability::NEVER,
        reorder: Probability::NEVER,
        every: Every::NEVER,
        delay_ns: 10_000,
        reorder_frames: 3,
        reorder_ns: 100_000,
        held_frames_max: 256,
    };

    /// Whether a fault can happen.
    pub(crate) fn is_active(&self) -> bool {
        let dice = [self.drop, self.trim, self.duplicate, self.corrupt, self.delay, self.reorder];
        self.every != Every::NEVER || dice.iter().any(|&probability| probability != Probability::NEVER)
    }

    /// Whether a frame can be held back.
    pub(crate) fn can_hold(&self) -> bool {
        let dice = [self.delay, self.reorder];
        dice.iter().any(|&probability| probability != Probability::NEVER)
            || self.every.delay > 0
            || self.every.reorder > 0
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        in_range(Parameter::ReorderFrames, self.reorder_frames, 1..=1 << 16)?;
        in_range(Parameter::HeldFramesMax, self.held_frames_max, 1..=HELD_FRAMES_MAX)
    }
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self::NONE
    }
}

/// What faults did at a port, in one direction, beside dropping and duplicating.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultCounters {
    /// Frames with a changed byte.
    pub corrupted: u64,
    /// Frames that were to be changed and could not be: nothing behind the header, or no buffer.
    pub corrupt_refused: u64,
    /// Frames held back for a time.
    pub delayed: u64,
    /// Frames held back for other frames.
    pub reordered: u64,
    /// Frames that were to be held back, and went on because too many were.
    pub hold_refused: u64,
}

impl FaultCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.corrupted += other.corrupted;
        self.corrupt_refused += other.corrupt_refused;
        self.delayed += other.delayed;
        self.reordered += other.reordered;
        self.hold_refused += other.hold_refused;
    }
}

/// One fault's dice and count.
#[derive(Clone, Debug)]
struct Die {
    random: Random,
    /// Rolls that are done already, and were misses.
    misses: u32,
    count: u32,
    every: u32,
    probability: Probability,
}

impl Die {
    fn new(random: Random) -> Self {
        Self { random, misses: 0, count: 0, every: 0, probability: Probability::NEVER }
    }

    fn configure(&mut self, probability: Probability, every: u32) {
        // They were rolled for another probability.
        self.random.step_back(std::mem::take(&mut self.misses));
        (self.probability, self.every) = (probability, every);
        if every == 0 {
            self.count = 0;
        }
    }

    fn can_fall(&self) -> bool {
        self.probability != Probability::NEVER || self.every > 0
    }

    /// Whether the next roll was done already, and was a miss; then it is used up.
    #[inline]
    fn is_missed(&mut self) -> bool {
        let missed = self.misses > 0;
        self.misses -= u32::from(missed);
        missed
    }

    /// Rolls ahead up to the next hit, which stays to be rolled.
    fn look_ahead(&mut self) {
        if self.every > 0 {
            return;
        }
        while self.misses < AHEAD_MAX {
            if self.random.hits(self.probability) {
                return self.random.step_back(1);
            }
            self.misses += 1;
        }
    }

    #[inline]
    fn falls(&mut self) -> bool {
        let hit = !self.is_missed() && self.random.hits(self.probability);
        if self.every == 0 {
            return hit;
        }
        self.count += 1;
        let exact = self.count >= self.every;
        if exact {
            self.count = 0;
        }
        hit | exact
    }
}

/// Rolls that a die is ahead at most.
const AHEAD_MAX: u32 = 64;

/// The dice of one port and direction, one stream per fault: turning one fault on moves no other.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    config: FaultConfig,
    /// The faults that can happen.
    possible: Fate,
    drop: Die,
    trim: Die,
    duplicate: Die,
    corrupt: Die,
    delay: Die,
    reorder: Die,
    bytes: Random,
}

/// What the dice say about a frame: a set of faults.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fate(u8);

impl Fate {
    pub(crate) const DROP: Self = Self(1);
    pub(crate) const CORRUPT: Self = Self(2);
    pub(crate) const DUPLICATE: Self = Self(4);
    pub(crate) const TRIM: Self = Self(8);
    const DELAY: Self = Self(16);
    const REORDER: Self = Self(32);

    #[inline]
    pub(crate) fn has(self, fault: Self) -> bool {
        self.0 & fault.0 != 0
    }

    fn add(&mut self, fault: Self, falls: bool) {
        self.0 |= if falls { fault.0 } else { 0 };
    }

    /// Whether the frame goes on at once and alone, with its bytes as they are or trimmed.
    #[inline]
    pub(crate) fn is_mild(self) -> bool {
        self.0 & !Self::TRIM.0 == 0
    }
}

/// How a frame is held back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// For a time.
    Delay { ns: u64 },
    /// For other frames, or a time if they do not come.
    Reorder { frames: u32, ns: u64 },
}

impl Injector {
    /// `stream` is a number whose low byte is free.
    pub(crate) fn new(config: FaultConfig, seed: u64, stream: u64) -> Self {
        let random = |purpose: u64| Random::new(seed, stream | purpose);
        let die = |purpose: u64| Die::new(random(purpose));
        let mut injector = Self {
            possible: Fate::default(),
            config,
            drop: die(1),
            trim: die(2),
            duplicate: die(3),
            corrupt: die(4),
            delay: die(5),
            reorder: die(6),
            bytes: random(7),
        };
        injector.configure(config);
        injector
    }

    /// Changes the faults; the dice roll on.
    pub(crate) fn configure(&mut self, config: FaultConfig) {
        self.config = config;
        let FaultConfig { every, .. } = config;
        self.drop.configure(config.drop, every.drop);
        self.trim.configure(config.trim, every.trim);
        self.duplicate.configure(config.duplicate, every.duplicate);
        self.corrupt.configure(config.corrupt, every.corrupt);
        self.delay.configure(config.delay, every.delay);
        self.reorder.configure(config.reorder, every.reorder);
        self.possible = Fate::default();
        self.possible.add(Fate::DROP, self.drop.can_fall());
        self.possible.add(Fate::TRIM, self.trim.can_fall());
        self.possible.add(Fate::DUPLICATE, self.duplicate.can_fall());
        self.possible.add(Fate::CORRUPT, self.corrupt.can_fall());
        self.possible.add(Fate::DELAY, self.delay.can_fall());
        self.possible.add(Fate::REORDER, self.reorder.can_fall());
    }

    /// Whether a fault can happen.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.possible != Fate::default()
    }

    /// Whether frames can meet nothing but trimming.
    pub(crate) fn only_trims(&self) -> bool {
        self.possible == Fate::TRIM
    }

    /// Whether a frame is known to meet nothing, where nothing but trimming can happen. If so, its dice are rolled.
    #[inline]
    pub(crate) fn spares(&mut self, is_data: bool) -> bool {
        !is_data || self.trim.is_missed()
    }

    /// Makes more of that known.
    pub(crate) fn look_ahead(&mut self) {
        self.trim.look_ahead();
    }

    /// Rolls the dice for a frame; of what is dropped the others do not hear. A fault that cannot happen rolls nothing.
    #[inline]
    pub(crate) fn fate(&mut self, is_data: bool) -> Fate {
        match self.possible {
            Fate(0) => Fate::default(),
            // The most usual fault, alone.
            Fate::TRIM if is_data && self.trim.falls() => Fate::TRIM,
            Fate::TRIM => Fate::default(),
            _ => self.fate_of_all(is_data),
        }
    }

    #[inline(never)]
    fn fate_of_all(&mut self, is_data: bool) -> Fate {
        if self.possible.has(Fate::DROP) && self.drop.falls() {
            return Fate::DROP;
        }
        let mut fate = self.fate_of_copy(is_data);
        if self.possible.has(Fate::CORRUPT) {
            fate.add(Fate::CORRUPT, self.corrupt.falls());
        }
        if self.possible.has(Fate::DUPLICATE) {
            fate.add(Fate::DUPLICATE, self.duplicate.falls());
        }
        fate
    }

    /// Rolls those dice that each copy of a frame has for itself.
    #[inline]
    pub(crate) fn fate_of_copy(&mut self, is_data: bool) -> Fate {
        let mut fate = Fate::default();
        if is_data && self.possible.has(Fate::TRIM) {
            fate.add(Fate::TRIM, self.trim.falls());
        }
        if self.possible.has(Fate::DELAY) {
            fate.add(Fate::DELAY, self.delay.falls());
        }
        if self.possible.has(Fate::REORDER) {
            fate.add(Fate::REORDER, self.reorder.falls());
        }
        fate
    }

    /// The seed of the change of a frame that is to be corrupted.
    pub(crate) fn corruption(&mut self) -> u64 {
        self.bytes.next_u64()
    }

    /// How a frame is held back, if it is. A delayed frame is not reordered too.
    pub(crate) fn wait(&self, fate: Fate) -> Option<Wait> {
        let FaultConfig { delay_ns, reorder_frames, reorder_ns, .. } = self.config;
        let reorder = Wait::Reorder { frames: reorder_frames, ns: reorder_ns };
        if fate.has(Fate::DELAY) {
            Some(Wait::Delay { ns: delay_ns })
        } else {
            fate.has(Fate::REORDER).then_some(reorder)
        }
    }
}
