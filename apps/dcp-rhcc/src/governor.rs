//! The loop's inside: asks the signal, lets the controller decide, puts levels into force.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dcp_core::{HostControl, Level, Levels, Occupancy, TrafficClass};

use crate::actuator::{Actuator, class_name};
use crate::clock::{now_ns, rest};
use crate::guardian::Guardian;
use crate::root::Root;
use crate::signal::Signal;
use crate::target::Target;

/// Periods without a reading after which nothing is held back any more: a limit needs a reason.
const SILENCE_PERIODS: u32 = 20;

/// How often a level that holds is put into force again: it is a part of what programs can use, which may have changed.
const REFRESH_NS: u64 = 250_000_000;

/// What happened so far.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Periods.
    pub periods: u64,
    /// Periods without a reading.
    pub silent: u64,
    /// Periods at each level, 1 to 5, of the local class.
    pub local: [u64; 5],
    /// The same of the cross-NUMA class.
    pub cross_numa: [u64; 5],
    /// Sum of the smoothed occupancy over all periods, in thousandths.
    pub occupancy_milli: u64,
}

/// A signal, a controller and an actuator. Dropping it lifts every limit; if this process is killed, the guardian does.
pub struct Governor {
    signal: Box<dyn Signal>,
    control: HostControl,
    actuator: Box<dyn Actuator>,
    applied: Levels,
    /// When levels were last put into force.
    applied_ns: u64,
    silence: u32,
    tally: Tally,
    root: Root,
    guardian: Option<Guardian>,
    trouble: Option<String>,
    is_lifted: bool,
}

impl Governor {
    /// Puts them together; nothing is held back yet.
    pub fn new(
        root: Root,
        signal: Box<dyn Signal>,
        control: HostControl,
        actuator: Box<dyn Actuator>,
        guardian: Option<Guardian>,
    ) -> Self {
        Self {
            signal,
            control,
            actuator,
            applied: Levels::FREE,
            applied_ns: 0,
            silence: 0,
            tally: Tally::default(),
            root,
            guardian,
            trouble: None,
            is_lifted: false,
        }
    }

    /// Takes programs into a class.
    ///
    /// # Errors
    /// They cannot be taken.
    pub fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()> {
        let adopted = self.actuator.adopt(class, target);
        self.tell_guardian();
        adopted
    }

    /// Lets the guardian know what there is to lift.
    pub fn tell_guardian(&mut self) {
        let steps = self.actuator.undo();
        if self.guardian.as_mut().is_some_and(|guardian| guardian.tell(&steps).is_err()) {
            self.guardian = None;
            self.trouble = Some("the guardian is gone: if this process is killed, limits stay".into());
        }
    }

    /// A period has ended.
    ///
    /// # Errors
    /// The kernel refused a level.
    pub fn step(&mut self, now_ns: u64) -> io::Result<Levels> {
        let reading = self.signal.occupancy(now_ns).unwrap_or_else(|error| {
            self.trouble = Some(error.to_string());
            None
        });
        self.silence = if reading.is_some() { 0 } else { self.silence.saturating_add(1) };
        self.tally.silent += u64::from(reading.is_none());
        let reading = reading.or_else(|| (self.silence >= SILENCE_PERIODS).then(Occupancy::default));
        if let Some(reading) = reading {
            self.control.handle_occupancy(reading);
        }
        let levels = self.control.levels();
        self.count(levels);
        self.put_into_force(levels, now_ns)?;
        Ok(levels)
    }

    fn put_into_force(&mut self, levels: Levels, now_ns: u64) -> io::Result<()> {
        let refresh = now_ns.saturating_sub(self.applied_ns) >= REFRESH_NS;
        for class in [TrafficClass::CrossNuma, TrafficClass::Local] {
            let (wanted, is) = (levels.of(class), self.applied.of(class));
            if wanted != is || (refresh && wanted != Level::FREE) {
                self.actuator.apply(class, wanted)?;
                self.applied_ns = now_ns;
            }
        }
        if levels != self.applied {
            self.applied = levels;
            self.tell_guardian();
        }
        Ok(())
    }

    fn count(&mut self, levels: Levels) {
        self.tally.periods += 1;
        self.tally.occupancy_milli += self.control.occupancy().milli();
        self.tally.local[usize::from(levels.local.number()) - 1] += 1;
        self.tally.cross_numa[usize::from(levels.cross_numa.number()) - 1] += 1;
    }

    /// Lifts every limit, for good; returns what went wrong.
    pub fn lift(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.is_lifted, true) {
            return Vec::new();
        }
        let problems = self.actuator.lift(&self.root);
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        problems
    }

    /// The controller.
    pub fn control(&self) -> &HostControl {
        &self.control
    }

    /// The signal.
    pub fn signal(&self) -> &dyn Signal {
        self.signal.as_ref()
    }

    /// The actuator.
    pub fn actuator(&self) -> &dyn Actuator {
        self.actuator.as_ref()
    }

    /// What happened so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What went wrong last without ending anything, once.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Runs in a thread of its own, a step every `period`, for programs that control inside themselves.
    ///
    /// # Errors
    /// The system gave no thread.
    pub fn spawn(mut self, period: Duration) -> io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("rhcc".into()).spawn(move || {
            let mut result = Ok(());
            while !seen.load(Ordering::Relaxed) && result.is_ok() {
                rest(period);
                result = self.step(now_ns()).map(drop);
            }
            let problems = self.lift();
            let lifted =
                if problems.is_empty() { Ok(()) } else { Err(io::Error::other(problems.join("; "))) };
            result.and(lifted).map(|()| self.tally.clone())
        })?;
        Ok(Running { stop, thread: Some(thread) })
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.lift();
    }
}

/// A governor in a thread. Dropping it ends the thread and lifts every limit.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Tally>>>,
}

impl Running {
    /// Ends it: every limit is lifted when this returns.
    ///
    /// # Errors
    /// A level or its lifting was refused.
    pub fn stop(mut self) -> io::Result<Tally> {
        self.end().unwrap_or_else(|| Err(io::Error::other("it has ended before")))
    }

    fn end(&mut self) -> Option<io::Result<Tally>> {
        self.stop.store(true, Ordering::Relaxed);
        let panicked = |_| Err(io::Error::other("the control's thread panicked; limits are lifted"));
        self.thread.take().map(|thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A line about levels: `occupancy 51.2, local level 3 (60 %)`.
pub fn describe(control: &HostControl) -> String {
    let level = |class| {
        let level: Level = control.levels().of(class);
        format!("{} level {} ({} %)", class_name(class), level.number(), level.percent())
    };
    let cross = if control.config().cross_numa {
        format!(", {}", level(TrafficClass::CrossNuma))
    } else {
        String::new()
    };
    format!("occupancy {}{cross}, {}", control.occupancy(), level(TrafficClass::Local))
}
