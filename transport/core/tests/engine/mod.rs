//! The swarm's engine: random programs of all verbs over a link with random faults, judged by a naive model.
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]
#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

mod draw;
mod drive;
mod model;
mod outcome;
mod program;
mod watch;
mod writes;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use drive::{Ended, Setting, run};
pub(crate) use writes::{WriteMix, run_writes};

/// What all seeds together did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) done: u64,
    /// Seeds in which a queue pair gave up.
    pub(crate) failed: u64,
}

/// Runs `count` seeds from `first` on, on all cores. `Err`: the smallest seed found that went wrong, and how.
pub(crate) fn run_seeds(
    first: u64,
    count: u64,
    one: impl Fn(u64) -> Result<Ended, String> + Sync,
) -> Result<Sum, (u64, String)> {
    let next = AtomicU64::new(first);
    let end = AtomicU64::new(first + count);
    let work = || {
        let (mut sum, mut wrong) = (Sum::default(), None);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end.load(Ordering::Relaxed) {
                return (sum, wrong);
            }
            match one(seed) {
                Ok(ended) => {
                    sum.done += ended.done as u64;
                    sum.failed += u64::from(ended.failed > 0);
                }
                Err(error) => {
                    end.fetch_min(seed, Ordering::Relaxed);
                    wrong = Some((seed, error));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    if let Some(wrong) = results.iter().filter_map(|(_, wrong)| wrong.clone()).min() {
        return Err(wrong);
    }
    let add = |a: Sum, (b, _): &(Sum, _)| Sum { done: a.done + b.done, failed: a.failed + b.failed };
    Ok(results.iter().fold(Sum::default(), add))
}
