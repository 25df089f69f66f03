//! Pieces of the hot path, each alone and over and over: what criterion times and the gate counts.
//!
//! Nothing here reads a clock, draws from a seed of the machine's, or moves payload: every round executes the same
//! instructions on every machine.

mod endpoints;
pub mod frames;
mod pair;
mod requester;
mod responder;
pub mod switch;
// The private parts of the core are included here as source, but are tested where they live.
#[cfg(not(test))]
mod timers;
#[cfg(not(test))]
mod track;
mod wire;

/// One piece, with everything that it needs.
pub trait Case {
    /// Readies a round. Not measured.
    fn prepare(&mut self);
    /// The round that is measured.
    fn run(&mut self);
}

/// A case that can be made.
pub struct Entry {
    /// `group/case/size`.
    pub name: &'static str,
    /// What a round handles: packets, timers.
    pub elements: u64,
    /// Makes it.
    pub make: fn() -> Box<dyn Case>,
}

/// Everything that is measured.
pub fn all() -> Vec<Entry> {
    let groups = [
        wire::entries(),
        #[cfg(not(test))]
        track::entries(),
        #[cfg(not(test))]
        timers::entries(),
        requester::entries(),
        responder::entries(),
        switch::entries(),
        pair::entries(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_repeated() {
        for entry in all() {
            let mut case = (entry.make)();
            for _ in 0..40 {
                case.prepare();
                case.run();
            }
        }
    }
}
