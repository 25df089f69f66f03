//! Random programs of all verbs over a link with random faults: each seed decides everything.
//! `DCP_SEED=n` runs one seed, `DCP_SEEDS=n` so many from 0 on, both together so many from that seed on.
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
    let seed = number("DCP_SEED");
    let count = number("DCP_SEEDS").unwrap_or(if seed.is_some() { 1 } else { SEEDS });
    let first = seed.unwrap_or(0);
    match run_seeds(first, count, run_seed) {
        Ok(sum) => {
            println!("{count} seeds, {} work requests, {} seeds gave up", sum.done, sum.failed);
            let few = count < 1000 || sum.failed * 10 <= count;
            assert!(few, "{} of {count} seeds used up their tries", sum.failed);
        }
        Err((seed, error)) => {
            panic!("seed {seed}: {error}\nrepeat: DCP_SEED={seed} cargo test -p dcp-core --test swarm")
        }
    }
}
