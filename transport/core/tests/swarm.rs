//! Random programs of all verbs over a link with random faults: each seed decides everything.
//! `DCP_SEED=n` runs one seed, `DCP_SEEDS=n` so many from 0 on.
#![forbid(unsafe_code)]

mod engine;

use engine::{Ended, Setting, run, run_seeds};

/// Seeds of a plain test run.
const SEEDS: u64 = 20_000;

/// Runs a seed; a panic inside an endpoint counts as an error of that seed.
fn run_seed(seed: u64) -> Result<Ended, String> {
    let setting = Setting::draw(seed);
    let caught = std::panic::catch_unwind(|| run(&setting));
    let result = caught.unwrap_or_else(|_| Err("panicked".to_owned()));
    result.map_err(|error| format!("{error}\n{setting:#?}"))
}

#[test]
fn every_seed_delivers_everything_once_and_in_order() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (first, count) = match number("DCP_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("DCP_SEEDS").unwrap_or(SEEDS)),
    };
    match run_seeds(first, count, run_seed) {
        Ok(sum) => {
            println!("{count} seeds, {} work requests, {} seeds gave up", sum.done, sum.failed);
            assert!(sum.failed * 10 <= count, "{} of {count} seeds used up their tries", sum.failed);
        }
        Err((seed, error)) => {
            panic!("seed {seed}: {error}\nrepeat: DCP_SEED={seed} cargo test -p dcp-core --test swarm")
        }
    }
}
