//! What becomes of each frame on the link.

use dcp_core::Mixer;
use dcp_wire::{Kind, Packet};
use smallvec::{SmallVec, smallvec};

use crate::Side;

/// One copy of a frame that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameCopy {
    /// Time on the link in nanoseconds.
    pub delay_ns: u64,
    /// Whether its payload is cut off on the way.
    pub trim: bool,
    /// Picks the bit that is flipped on the way, if one is. Not together with `trim`: a header carries no ICRC.
    pub flip: Option<u64>,
    /// Whether a switch marks it with CE, before trimming it.
    pub mark: bool,
}

impl FrameCopy {
    /// Arrives whole after `delay_ns`.
    pub const fn after(delay_ns: u64) -> Self {
        Self { delay_ns, trim: false, flip: None, mark: false }
    }
}

/// The copies of a frame that arrive: none, one or several.
pub type Copies = SmallVec<[FrameCopy; 2]>;

/// Decides the fate of frames.
pub trait Script {
    /// The copies of a frame that arrive.
    fn copies(&mut self, from: Side, packet: &Packet) -> Copies;
}

impl<F: FnMut(Side, &Packet) -> Copies> Script for F {
    fn copies(&mut self, from: Side, packet: &Packet) -> Copies {
        self(from, packet)
    }
}

/// Fates in words, for scripts written as closures. The link takes 1 µs.
pub mod fate {
    use super::{Copies, FrameCopy, smallvec};

    /// Time on the link in nanoseconds.
    pub const DELAY_NS: u64 = 1000;

    /// Arrives as sent.
    pub fn deliver() -> Copies {
        smallvec![FrameCopy::after(DELAY_NS)]
    }

    /// Arrives as a header.
    pub fn trim() -> Copies {
        smallvec![FrameCopy { trim: true, ..FrameCopy::after(DELAY_NS) }]
    }

    /// Arrives with CE.
    pub fn mark() -> Copies {
        smallvec![FrameCopy { mark: true, ..FrameCopy::after(DELAY_NS) }]
    }

    /// Is lost.
    pub fn lose() -> Copies {
        Copies::new()
    }

    /// Arrives `delay_ns` after it was sent.
    pub fn late(delay_ns: u64) -> Copies {
        smallvec![FrameCopy::after(delay_ns)]
    }

    /// Arrives twice.
    pub fn twice() -> Copies {
        smallvec![FrameCopy::after(DELAY_NS), FrameCopy::after(2 * DELAY_NS)]
    }
}

/// Everything arrives, in order.
#[derive(Clone, Copy, Debug)]
pub struct Lossless;

impl Script for Lossless {
    fn copies(&mut self, _: Side, _: &Packet) -> Copies {
        fate::deliver()
    }
}

/// Small seeded generator: SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A stream that `seed` alone decides.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Mixer::mix(self.0)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// True in `parts` of a million cases.
    pub fn chance(&mut self, parts: u32) -> bool {
        self.below(1_000_000) < u64::from(parts)
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// Fault rates in parts per million.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rates {
    /// Data is lost silently.
    pub drop: u32,
    /// Data is trimmed.
    pub trim: u32,
    /// Data arrives twice.
    pub duplicate: u32,
    /// A header is lost, on either leg.
    pub lose_header: u32,
    /// A header arrives twice.
    pub duplicate_header: u32,
    /// An ACK, NAK or probe is lost.
    pub lose_control: u32,
    /// A bit of a frame is flipped, but for headers. Only for queue pairs with ICRC.
    pub corrupt: u32,
    /// A frame is marked with CE.
    pub mark: u32,
    /// A frame is held for up to `held_ns`.
    pub hold: u32,
    /// Longest time a held frame is held.
    pub held_ns: u64,
    /// Every frame takes up to this much longer than the link's delay: reordering.
    pub jitter_ns: u64,
}

/// Random faults from a seed.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
    rates: Rates,
}

impl Random {
    /// Faults at `rates`, drawn from `seed`.
    pub const fn new(seed: u64, rates: Rates) -> Self {
        Self { rng: Rng::new(seed), rates }
    }

    fn delay(&mut self) -> u64 {
        let mut delay = fate::DELAY_NS;
        if self.rates.jitter_ns > 0 {
            delay += self.rng.below(self.rates.jitter_ns);
        }
        if self.rng.chance(self.rates.hold) {
            delay += self.rng.below(self.rates.held_ns.max(1));
        }
        delay
    }
}

impl Script for Random {
    fn copies(&mut self, _: Side, packet: &Packet) -> Copies {
        let rates = self.rates;
        let (lose, duplicate, trim) = match packet.headers.kind {
            Kind::Data(_) => (rates.drop, rates.duplicate, rates.trim),
            Kind::HeaderOnly(_) => (rates.lose_header, rates.duplicate_header, 0),
            _ => (rates.lose_control, 0, 0),
        };
        if self.rng.chance(lose) {
            return Copies::new();
        }
        let corrupt = if matches!(packet.headers.kind, Kind::HeaderOnly(_)) { 0 } else { rates.corrupt };
        let count = if self.rng.chance(duplicate) { 2 } else { 1 };
        let copy = |_| {
            let trim = self.rng.chance(trim);
            let flip = (!trim && self.rng.chance(corrupt)).then(|| self.rng.bits());
            let mark = rates.mark > 0 && self.rng.chance(rates.mark);
            FrameCopy { trim, flip, mark, delay_ns: self.delay() }
        };
        (0..count).map(copy).collect()
    }
}
