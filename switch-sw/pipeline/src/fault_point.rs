//! The place where faults strike: one port, one direction. Also where its link is cut.

use dcp_wire::{Classified, Tag};

use crate::counters::{DropReason, Drops};
use crate::egress::Handling;
use crate::fault::{Fate, FaultConfig, FaultCounters, Injector, Wait};
use crate::frame::Frame;
use crate::hold::Hold;

/// A frame on its way through the switch, with what was read of it.
#[derive(Debug)]
pub(crate) struct Passing<F> {
    pub(crate) frame: F,
    pub(crate) seen: Classified,
    pub(crate) handling: Handling,
}

/// Exists only where faults were configured once.
#[derive(Debug)]
pub(crate) struct FaultPoint<F> {
    injector: Injector,
    hold: Hold<Passing<F>>,
    is_down: bool,
    /// Frames come through one by one, and meet nothing but trimming.
    only_trims: bool,
    pub(crate) counters: FaultCounters,
}

/// What comes of a frame: itself, and perhaps a copy.
pub(crate) type Passed<F> = [Option<Passing<F>>; 2];

impl<F: Frame> FaultPoint<F> {
    pub(crate) fn new(config: FaultConfig, seed: u64, stream: u64) -> Self {
        let mut point = Self {
            hold: Hold::new(&config),
            injector: Injector::new(config, seed, stream),
            is_down: false,
            only_trims: false,
            counters: FaultCounters::default(),
        };
        point.see_what_can_happen();
        point
    }

    /// Changes the faults. What is held back comes when it was to.
    pub(crate) fn configure(&mut self, config: FaultConfig) {
        self.hold.configure(&config);
        self.injector.configure(config);
        self.see_what_can_happen();
    }

    pub(crate) fn set_down(&mut self, is_down: bool) {
        self.is_down = is_down;
        self.see_what_can_happen();
    }

    fn see_what_can_happen(&mut self) {
        self.only_trims = !self.is_down && self.hold.is_empty() && self.injector.only_trims();
    }

    /// Whether a frame goes on as it is. False: that is to be [looked at](Self::look).
    #[inline]
    pub(crate) fn spares(&mut self, tag: Tag) -> bool {
        self.only_trims && self.injector.spares(tag == Tag::Data)
    }

    /// Whether frames must come through here.
    pub(crate) fn is_active(&self) -> bool {
        self.is_down || self.injector.is_active() || !self.hold.is_empty()
    }

    /// Whether it has something to tell.
    pub(crate) fn has_counted(&self) -> bool {
        self.counters != FaultCounters::default()
    }

    pub(crate) fn held(&self) -> usize {
        self.hold.len()
    }

    /// When the next frame that is held back is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.hold.next_ns()
    }

    /// A frame that was held back and is due.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Passing<F>> {
        self.hold.take_due(now_ns)
    }

    /// Drops what is held back; how many frames.
    pub(crate) fn clear(&mut self) -> usize {
        self.hold.clear()
    }

    /// A frame comes. Most go on at once: then how they are handled is returned. The others are to [pass](Self::pass).
    #[inline]
    pub(crate) fn look(&mut self, tag: Tag, handling: Handling) -> Result<Handling, Fate> {
        if self.is_down {
            return Err(Fate::default());
        }
        let fate = self.injector.fate(tag == Tag::Data);
        if self.only_trims {
            self.injector.look_ahead();
        }
        // What is held back waits for the frames that come by.
        if fate.is_mild() && self.hold.is_empty() { Ok(handled(handling, fate)) } else { Err(fate) }
    }

    /// What goes on at once of a frame that met its fate is returned; a copy is counted in `duplicated`.
    pub(crate) fn pass(
        &mut self,
        now_ns: u64,
        fate: Fate,
        mut frame: Passing<F>,
        duplicated: &mut u64,
        drops: &mut Drops,
    ) -> Passed<F> {
        if self.is_down {
            drops.count(DropReason::LinkDown, 1);
            return [None, None];
        }
        if fate.has(Fate::DROP) {
            drops.count(DropReason::Injected, 1);
            return [None, None];
        }
        // Copies come behind each other, and nothing that is held back comes between.
        self.hold.count_frame();
        if fate.has(Fate::CORRUPT) {
            match frame.frame.corrupt(self.injector.corruption()) {
                Ok(()) => self.counters.corrupted += 1,
                Err(_) => self.counters.corrupt_refused += 1,
            }
        }
        let copy = if fate.has(Fate::DUPLICATE) { frame.frame.try_clone() } else { None };
        *duplicated += u64::from(copy.is_some());
        let copy = copy.map(|copy| Passing { frame: copy, ..frame });
        let first = self.mark_or_hold(now_ns, fate, frame);
        let second = copy.and_then(|copy| {
            let fate = self.injector.fate_of_copy(copy.seen.tag == Tag::Data);
            self.mark_or_hold(now_ns, fate, copy)
        });
        [first, second]
    }

    fn mark_or_hold(&mut self, now_ns: u64, fate: Fate, mut frame: Passing<F>) -> Option<Passing<F>> {
        frame.handling = handled(frame.handling, fate);
        let Some(wait) = self.injector.wait(fate) else { return Some(frame) };
        if let Err(frame) = self.hold.put(now_ns, wait, frame) {
            self.counters.hold_refused += 1;
            return Some(frame);
        }
        match wait {
            Wait::Delay { .. } => self.counters.delayed += 1,
            Wait::Reorder { .. } => self.counters.reordered += 1,
        }
        None
    }
}

#[inline]
fn handled(handling: Handling, fate: Fate) -> Handling {
    if fate.has(Fate::TRIM) && handling == Handling::Routed { Handling::ForceTrim } else { handling }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_frame::ByteFrame;
    use crate::fault::Every;
    use crate::random::{Probability, Random};

    /// Twin: dice that are never rolled ahead.
    #[test]
    fn frames_that_are_spared_are_those_that_would_meet_nothing() {
        let often = FaultConfig { trim: Probability::from_ppm(100_000), ..FaultConfig::NONE };
        let rarely = FaultConfig { trim: Probability::from_ppm(1_000), ..FaultConfig::NONE };
        let exactly = FaultConfig { every: Every { trim: 7, ..Every::NEVER }, ..often };
        let both = FaultConfig { drop: Probability::from_ppm(10_000), ..often };
        let kinds = [often, rarely, exactly, both, FaultConfig::NONE];
        let (mut trimmed, mut spared) = (0, 0);
        for seed in 0..50 {
            let mut draws = Random::new(seed, 99);
            let mut draw = |bound: u32| draws.next_u32() % bound;
            let mut here = FaultPoint::<ByteFrame>::new(often, seed, 256);
            let mut there = FaultPoint::<ByteFrame>::new(often, seed, 256);
            for step in 0..2000 {
                if draw(100) == 0 {
                    let config = kinds[draw(5) as usize];
                    here.configure(config);
                    there.configure(config);
                }
                if draw(100) == 0 {
                    let is_down = draw(2) == 0;
                    here.set_down(is_down);
                    there.set_down(is_down);
                }
                let tag = if draw(4) == 0 { Tag::Ack } else { Tag::Data };
                // Never spared, and so never ahead.
                there.only_trims = false;
                let expected = there.look(tag, Handling::Routed);
                let is_spared = here.spares(tag);
                let looked = if is_spared { Ok(Handling::Routed) } else { here.look(tag, Handling::Routed) };
                assert_eq!(looked, expected, "seed {seed} step {step}");
                trimmed += u32::from(looked == Ok(Handling::ForceTrim));
                spared += u32::from(is_spared);
            }
        }
        assert!(trimmed > 500 && spared > 10_000, "{trimmed} trimmed, {spared} spared");
    }
}
