//! Many runs of the loop in one process, where a start of DPDK costs nothing.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dcp_bench::failure::Failure;
use dcp_bench::loopback::Loop;
use dcp_bench::op::Op;
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
    for op in Op::ALL {
        for n in [1, 2, 7, 1001] {
            for tx_depth in [1, 3, 128] {
                for cq_mod in [1, 100, 1000] {
                    for qps in [1, 3, 8] {
                        let length = iterations(n);
                        let size = if op.is_atomic() { 8 } else { 64 };
                        let plan = Plan { op, size, length, tx_depth, cq_mod, qps, ..Plan::default() };
                        completes_exactly(&the_loop, plan, n * u64::from(qps));
                    }
                }
            }
        }
    }
}

/// A READ or an atomic is a packet each way.
fn completes_exactly(the_loop: &Loop, plan: Plan, total: u64) {
    let case = format!("{plan:?}");
    let packets = if plan.op.is_answered() { 2 * total } else { total };
    let plan = plan.checked().expect("a legal plan");
    let outcome = run(the_loop, &plan, false).unwrap_or_else(|failure| panic!("{case}: {failure}"));
    assert_eq!((outcome.iterations, outcome.net.data_packets), (total, packets), "{case}");
    assert_eq!(outcome.verification, Verification::Passed, "{case}");
}

#[test]
fn every_operation_survives_what_a_network_does() {
    let faults = Faults {
        trim: Probability::new(0.02).unwrap(),
        drop: Probability::new(0.001).unwrap(),
        duplicate: Probability::new(0.01).unwrap(),
        ..Faults::default()
    };
    let the_loop = the_loop();
    for op in Op::ALL {
        for (verify_each, icrc) in [(false, true), (true, false)] {
            let size = op.default_size(dcp_bench::plan::Mode::Bandwidth);
            let lossy = Plan { faults, hosts: 3, qps: 2, verify_each, icrc, ..Plan::default() };
            let plan = Plan { op, size, length: iterations(100), ..lossy }.checked().unwrap();
            let outcome =
                run(&the_loop, &plan, false).unwrap_or_else(|failure| panic!("{}: {failure}", op.name()));
            assert_eq!(outcome.verification, Verification::Passed, "{}", op.name());
            assert_eq!(outcome.iterations, 400, "{}", op.name());
            assert!(outcome.net.retransmitted > 0, "{}", op.name());
        }
    }
}

#[test]
fn sender_waits_for_a_server_with_too_few_receives() {
    let the_loop = the_loop();
    for op in Op::ALL.into_iter().filter(|op| op.takes_receives()) {
        let plan = Plan { op, size: 64, length: iterations(50), rx_depth: 1, ..Plan::default() };
        let outcome = run(&the_loop, &plan.clone().checked().unwrap(), false).unwrap();
        assert_eq!(outcome.verification, Verification::Passed, "{}", op.name());
        assert!(outcome.net.rnr_naks > 0, "{}", op.name());
        let failure = run(&the_loop, &Plan { rnr_retry: 0, ..plan }.checked().unwrap(), false).unwrap_err();
        assert_eq!(failure.status.map(|status| status.name), Some("RNR_RETRY_EXC_ERR"), "{}", op.name());
        assert!(failure.hint.is_some_and(|hint| hint.contains("--rx-depth")));
    }
}
