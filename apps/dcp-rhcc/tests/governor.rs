//! The loop's inside, with made-up signals and actuators.
#![forbid(unsafe_code)]

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dcp_core::{HostControl, HostControlConfig, Level, Occupancy, TrafficClass};
use dcp_rhcc::Governor;
use dcp_rhcc::actuator::Actuator;
use dcp_rhcc::clock::within;
use dcp_rhcc::root::Root;
use dcp_rhcc::signal::FromClosure;
use dcp_rhcc::target::Target;
use dcp_rhcc::undo::Undo;

/// What was done to programs: (class, level), and lifting as `None`.
type Log = Arc<Mutex<Vec<Option<(TrafficClass, u8)>>>>;

struct Recorder(Log);

impl Actuator for Recorder {
    fn name(&self) -> String {
        "recorder".into()
    }

    fn period_ns(&self) -> u64 {
        1_000_000
    }

    fn entrances(&self, _: TrafficClass) -> Vec<PathBuf> {
        Vec::new()
    }

    fn adopt(&mut self, _: TrafficClass, _: &Target) -> io::Result<()> {
        Ok(())
    }

    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()> {
        self.0.lock().expect("no panic").push(Some((class, level.number())));
        Ok(())
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn lift(&mut self, _: &Root) -> Vec<String> {
        self.0.lock().expect("no panic").push(None);
        Vec::new()
    }
}

fn governor(
    cross_numa: bool,
    read: impl FnMut(u64) -> io::Result<Option<Occupancy>> + Send + 'static,
) -> (Governor, Log) {
    let log = Log::default();
    let signal = FromClosure { name: "made up", threshold: Occupancy::new(45), read };
    let config = HostControlConfig { cross_numa, ..HostControlConfig::new() };
    let control = HostControl::new(config).expect("the defaults");
    let actuator = Box::new(Recorder(Arc::clone(&log)));
    (Governor::new(Root::machine(), Box::new(signal), control, actuator, None), log)
}

fn taken(log: &Log) -> Vec<Option<(TrafficClass, u8)>> {
    std::mem::take(&mut *log.lock().expect("no panic"))
}

// C-4
#[test]
fn cascade_reaches_the_actuator_in_order_and_only_when_levels_change() {
    let (mut governor, log) = governor(true, |now| Ok(Some(Occupancy::new(if now < 10 { 200 } else { 0 }))));
    for now in 0..10 {
        governor.step(now).expect("nothing refuses");
    }
    let (cross, local) = (TrafficClass::CrossNuma, TrafficClass::Local);
    let expected = [(cross, 4), (local, 2), (local, 3), (local, 4), (local, 5)].map(Some);
    assert_eq!(taken(&log), expected);
    for now in 10..30 {
        governor.step(now).expect("nothing refuses");
    }
    let expected =
        [(local, 4), (local, 3), (local, 2), (local, 1), (cross, 3), (cross, 2), (cross, 1)].map(Some);
    assert_eq!(taken(&log), expected);
    drop(governor);
    assert_eq!(taken(&log), [None]);
}

#[test]
fn level_that_holds_is_put_into_force_again_four_times_a_second() {
    let (mut governor, log) = governor(false, |_| Ok(Some(Occupancy::new(200))));
    for now in 0..1000 {
        governor.step(now * 1_000_000).expect("nothing refuses");
    }
    let again = taken(&log).iter().filter(|it| **it == Some((TrafficClass::Local, 5))).count();
    assert_eq!(again, 1 + 3);
}

#[test]
fn signal_that_falls_silent_holds_nothing_back_for_long() {
    let (mut governor, _log) = governor(false, |now| match now {
        0..10 => Ok(Some(Occupancy::new(200))),
        _ => Err(io::Error::other("gone")),
    });
    let mut level = Level::FREE;
    for now in 0..60 {
        level = governor.step(now).expect("nothing refuses").local;
        // Twenty periods in silence, the first of which is number 10.
        assert!(level == Level::DEEPEST || !(3..29).contains(&now), "{now}: {level:?}");
    }
    assert_eq!(level, Level::FREE);
    assert_eq!(governor.tally().silent, 50);
    assert_eq!(governor.take_trouble().as_deref(), Some("gone"));
}

#[test]
fn panic_lifts_every_limit() {
    let (mut governor, log) = governor(false, |now| {
        assert!(now < 3, "the signal breaks");
        Ok(Some(Occupancy::new(200)))
    });
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        for now in 0..10 {
            governor.step(now).expect("nothing refuses");
        }
    }));
    assert!(panicked.is_err());
    assert_eq!(taken(&log).last(), Some(&None));
}

#[test]
fn governor_in_a_thread_lifts_when_it_is_stopped_and_when_it_is_dropped() {
    for by_drop in [false, true] {
        let (governor, log) = governor(false, |_| Ok(Some(Occupancy::new(200))));
        let running = governor.spawn(Duration::from_millis(1)).expect("a thread");
        let deepest = Some((TrafficClass::Local, 5));
        assert!(within(Duration::from_secs(60), || log.lock().expect("no panic").contains(&deepest)));
        if by_drop {
            drop(running);
        } else {
            assert!(running.stop().expect("nothing refuses").periods >= 4);
        }
        assert_eq!(taken(&log).last(), Some(&None));
    }
}
