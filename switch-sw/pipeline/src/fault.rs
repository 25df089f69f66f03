//! Faults that a test injects at an ingress port (S-7), seeded.

use crate::random::{Probability, Random};

/// Faults of one ingress port. The default injects none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultConfig {
    /// Silent loss of an arriving frame, of any kind.
    pub drop: Probability,
    /// A data packet is trimmed although its queue is short (the paper's Figure 10).
    pub trim: Probability,
    /// A second copy of the frame follows it.
    pub duplicate: Probability,
}

impl FaultConfig {
    /// No faults.
    pub const NONE: Self =
        Self { drop: Probability::NEVER, trim: Probability::NEVER, duplicate: Probability::NEVER };
}

/// The dice of one ingress port, one stream per fault: turning one fault on moves no other.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    config: FaultConfig,
    active: bool,
    drop: Random,
    trim: Random,
    duplicate: Random,
}

impl Injector {
    pub(crate) fn new(config: FaultConfig, seed: u64, port: u16) -> Self {
        let stream = |purpose: u64| Random::new(seed, u64::from(port) << 8 | purpose);
        Self {
            config,
            active: config != FaultConfig::NONE,
            drop: stream(1),
            trim: stream(2),
            duplicate: stream(3),
        }
    }

    /// Changes the faults; the dice roll on.
    pub(crate) fn configure(&mut self, config: FaultConfig) {
        self.config = config;
        self.active = config != FaultConfig::NONE;
    }

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    pub(crate) fn drops(&mut self) -> bool {
        self.drop.hits(self.config.drop)
    }

    pub(crate) fn trims(&mut self) -> bool {
        self.trim.hits(self.config.trim)
    }

    pub(crate) fn duplicates(&mut self) -> bool {
        self.duplicate.hits(self.config.duplicate)
    }
}
