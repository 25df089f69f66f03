//! The checkers can fail: with a safeguard of the protocol switched off, the same faults break deliveries. (model.py
//! shows the same on paper.) Needs the feature `test-faults`.
#![forbid(unsafe_code)]

mod engine;

use dcp_core::EndpointConfig;
use dcp_pair::Rates;
use engine::{Setting, Sum, WriteMix, run, run_seeds, run_writes};

type Endpoint = fn(&mut EndpointConfig);

const WHOLE: Endpoint = |_| {};
const COUNTER_ONLY: Endpoint = |config| config.counter_only = true;
const NO_MAP: Endpoint = |config| config.map_words_max = 0;

/// Duplicates, trims, silent loss and reordering, as model.py draws them.
const MIXED: WriteMix = WriteMix {
    messages: 10,
    packets: 8,
    rates: Rates {
        drop: 10_000,
        trim: 50_000,
        duplicate: 50_000,
        lose_header: 100_000,
        duplicate_header: 200_000,
        lose_control: 200_000,
        corrupt: 0,
        mark: 0,
        hold: 0,
        held_ns: 0,
        jitter_ns: 50_000,
    },
};
const QUIET: Rates = Rates { jitter_ns: 500, ..NOTHING };
const NOTHING: Rates = Rates {
    drop: 0,
    trim: 0,
    duplicate: 0,
    lose_header: 0,
    duplicate_header: 0,
    lose_control: 0,
    corrupt: 0,
    mark: 0,
    hold: 0,
    held_ns: 0,
    jitter_ns: 0,
};
/// 1 % of the packets of 512-packet messages is lost in silence.
const SILENT: WriteMix = WriteMix { messages: 4, packets: 512, rates: Rates { drop: 10_000, ..QUIET } };

/// Seeds that were found wrong, and what the others did.
fn count_wrong(mix: WriteMix, endpoint: Endpoint, seeds: u64) -> (u64, Sum) {
    let wrong = std::sync::atomic::AtomicU64::new(0);
    let sum = run_seeds(0, seeds, |seed| {
        run_writes(&mix, endpoint, seed).or_else(|error| {
            assert!(error.starts_with("torn"), "{error}");
            wrong.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(engine::Ended::default())
        })
    });
    (wrong.into_inner(), sum.expect("errors are counted"))
}

//
#[test]
fn bare_counter_tears_messages_and_the_checkers_see_it() {
    let (wrong, _) = count_wrong(MIXED, COUNTER_ONLY, 200);
    assert!(wrong > 20, "{wrong} of 200 seeds torn");
    assert_eq!(count_wrong(MIXED, WHOLE, 200).0, 0);
}

//
#[test]
fn every_packet_twice_tears_messages_under_the_bare_counter() {
    let twice = WriteMix { rates: Rates { duplicate: 1_000_000, jitter_ns: 50_000, ..NOTHING }, ..MIXED };
    let (wrong, _) = count_wrong(twice, COUNTER_ONLY, 100);
    assert!(wrong > 50, "{wrong} of 100 seeds torn");
    let (wrong, sum) = count_wrong(twice, WHOLE, 100);
    assert_eq!((wrong, sum.failed), (0, 0));
}

//
#[test]
fn swarm_and_its_model_notice_the_bare_counter() {
    let found = run_seeds(0, 1000, |seed| {
        let mut setting = Setting::draw(seed);
        setting.pair.endpoint = COUNTER_ONLY;
        run(&setting)
    });
    let (seed, error) = found.expect_err("1000 seeds pass with a bare counter");
    assert!(error.contains("torn"), "seed {seed}: {error}");
}

//
#[test]
fn long_messages_never_get_through_silent_loss_without_maps() {
    let (wrong, sum) = count_wrong(SILENT, NO_MAP, 20);
    assert_eq!((wrong, sum.failed), (0, 20), "every seed ends in RETRY_EXC");
    let (wrong, sum) = count_wrong(SILENT, WHOLE, 20);
    assert_eq!((wrong, sum.failed), (0, 0));
}
