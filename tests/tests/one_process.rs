//! Many runs of the loop in one process, where a start of DPDK costs nothing.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dcp_bench::failure::Failure;
use dcp_bench::loopback::Loop;
use dcp_bench::outcome::{Outcome, Verification};
use dcp_bench::plan::{Faults, Length, Plan};
use dcp_bench::progress::Progress;
use dcp_bench::units::Probability;

fn the_loop() -> MutexGuard<'static, Loop> {
    static LOOP: OnceLock<Mutex<Loop>> = OnceLock::new();
    let start = || Mutex::new(Loop::start(&Plan::default()).unwrap_or_else(|failure| panic!("{failure}")));
    LOOP.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(the_loop: &Loop, plan: &Plan, stop: bool) -> Result<Outcome, Failure> {
    the_loop.run(plan, &AtomicBool::new(stop), &mut Progress::hidden())
}

/// A run that is stopped as soon as it has begun.
fn stopped(the_loop: &Loop, plan: &Plan) -> Outcome {
    let stop = AtomicBool::new(false);
    let mut yields = 1 << 16;
    loop {
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..yields).for_each(|_| std::thread::yield_now());
                stop.store(true, Ordering::Relaxed);
            });
            the_loop.run(plan, &stop, &mut Progress::hidden())
        });
        match outcome {
            Ok(outcome) => return outcome,
            // It had not begun.
            Err(failure) => assert_eq!(failure.exit_code(), 130, "{failure}"),
        }
        stop.store(false, Ordering::Relaxed);
        yields *= 2;
    }
}

fn iterations(n: u64) -> Length {
    Length::Iterations(NonZeroU64::new(n).expect("not zero"))
}

// G5. `Loop::run` itself panics when a frame is left at its end.
#[test]
fn g5_run_after_a_failed_and_a_stopped_one_is_like_the_first() {
    let clean = Plan { length: iterations(50), ..Plan::default() }.checked().unwrap();
    let faults = Faults { drop: Probability::new(1.0).unwrap(), ..Faults::default() };
    let lossy = Plan { faults, qp_timeout: 4, retry_cnt: 0, ..clean.clone() };
    let endless = Plan { size: 1, length: iterations(u64::MAX), ..Plan::default() }.checked().unwrap();
    let the_loop = the_loop();
    let first = run(&the_loop, &clean, false).unwrap();
    assert_eq!(run(&the_loop, &lossy, false).unwrap_err().exit_code(), 1);
    assert_eq!(run(&the_loop, &endless, true).unwrap_err().exit_code(), 130);
    assert!(stopped(&the_loop, &endless).interrupted);
    for _ in 0..3 {
        let again = run(&the_loop, &clean, false).unwrap();
        assert_eq!(again.verification, Verification::Passed);
        assert_eq!((again.iterations, again.net), (first.iterations, first.net));
    }
}

// I3
#[test]
fn i3_every_queue_pair_completes_exactly_n() {
    let the_loop = the_loop();
    for n in [1, 2, 7, 1001] {
        for tx_depth in [1, 3, 128] {
            for cq_mod in [1, 100, 1000] {
                for qps in [1, 3, 8] {
                    let plan =
                        Plan { size: 64, length: iterations(n), tx_depth, cq_mod, qps, ..Plan::default() };
                    let outcome = run(&the_loop, &plan.checked().unwrap(), false).unwrap();
                    let total = n * u64::from(qps);
                    let case = format!("n {n} depth {tx_depth} cq-mod {cq_mod} q {qps}");
                    assert_eq!((outcome.iterations, outcome.net.data_packets), (total, total), "{case}");
                    assert_eq!(outcome.verification, Verification::Passed, "{case}");
                }
            }
        }
    }
}
