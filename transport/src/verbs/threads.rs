//! Workers on threads of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::bounded;
use dpdk_ffi::lcore::{PinError, RegisterError};
use dpdk_ffi::{LcoreGuard, pin, register_thread};

use super::device::{Device, DeviceInner};

/// What an idle worker does: it polls on for a while, then lets others run between polls, then sleeps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Idle polls before it yields.
    pub spins: u32,
    /// Yields before it sleeps.
    pub yields: u32,
    /// First sleep; it doubles up to [`Backoff::sleep_max`]. The first message after a rest waits up to that long.
    pub sleep: Duration,
    /// Longest sleep.
    pub sleep_max: Duration,
}

impl Backoff {
    /// Polls for ever: for cores that are kept free for it.
    pub const NEVER: Self =
        Self { spins: u32::MAX, yields: 0, sleep: Duration::ZERO, sleep_max: Duration::ZERO };

    /// Rests after the `idle`-th poll in vain, at most until there is something to do in any case. Returns how long it
    /// asked to sleep.
    pub fn rest(self, idle: u32, time_to_timer: Option<Duration>) -> Duration {
        match self.rest_after(idle, time_to_timer) {
            Rest::Spin => std::hint::spin_loop(),
            Rest::Yield => std::thread::yield_now(),
            Rest::Sleep(sleep) => {
                #[expect(clippy::disallowed_methods, reason = "a worker that has nothing to do")]
                std::thread::sleep(sleep);
                return sleep;
            }
        }
        Duration::ZERO
    }

    fn rest_after(self, idle: u32, time_to_timer: Option<Duration>) -> Rest {
        let Some(past_spins) = idle.checked_sub(self.spins).filter(|&past| past > 0) else {
            return Rest::Spin;
        };
        let Some(past_yields) = past_spins.checked_sub(self.yields).filter(|&past| past > 0) else {
            return Rest::Yield;
        };
        let sleep = self.sleep.saturating_mul(1 << (past_yields - 1).min(DOUBLINGS_MAX)).min(self.sleep_max);
        Rest::Sleep(time_to_timer.map_or(sleep, |timer| sleep.min(timer)))
    }
}

const DOUBLINGS_MAX: u32 = 20;

impl Default for Backoff {
    /// About 0.2 ms of polling, then sleeps from 50 µs to 1 ms: an idle worker takes a few per cent of a core.
    fn default() -> Self {
        Self {
            spins: 2000,
            yields: 20,
            sleep: Duration::from_micros(50),
            sleep_max: Duration::from_millis(1),
        }
    }
}

/// Why workers did not get threads.
#[derive(Debug)]
pub enum SpawnError {
    /// There are fewer cores in the list than workers.
    TooFewCores {
        /// Cores given.
        cores: usize,
        /// Workers of the device.
        workers: usize,
    },
    /// They have threads already.
    Running,
    /// The system gave no thread.
    Thread(std::io::Error),
    /// A core that cannot be pinned to.
    Pin(PinError),
    /// DPDK takes no more threads.
    Register(RegisterError),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewCores { cores, workers } => {
                write!(
                    f,
                    "{cores} cores for {workers} workers: name one for each, or none to leave it to the system"
                )
            }
            Self::Running => write!(f, "the workers have threads already"),
            Self::Thread(error) => write!(f, "no thread: {error}"),
            Self::Pin(error) => error.fmt(f),
            Self::Register(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpawnError {}

/// Threads that drive a device's workers, one each. Dropping it stops them; the application's polls drive the workers
/// then.
#[derive(Debug)]
pub struct Workers {
    device: Arc<DeviceInner>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts a thread for each worker of a device, pinned to the cores in order; with no cores the system places them.
    ///
    /// # Errors
    /// No thread was started, or those that were have been stopped again.
    pub fn spawn(device: &Device, cores: &[usize], backoff: Backoff) -> Result<Self, SpawnError> {
        let inner = Arc::clone(&device.inner);
        let workers = inner.workers.len();
        if !cores.is_empty() && cores.len() < workers {
            return Err(SpawnError::TooFewCores { cores: cores.len(), workers });
        }
        let mut spawned = Self { device: inner, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for worker in 0..workers {
            spawned.start(worker, cores.get(worker).copied(), backoff)?;
        }
        Ok(spawned)
    }

    fn start(&mut self, worker: usize, core: Option<usize>, backoff: Backoff) -> Result<(), SpawnError> {
        if self.device.workers[worker].threaded.swap(true, Ordering::AcqRel) {
            return Err(SpawnError::Running);
        }
        let (device, stop) = (Arc::clone(&self.device), Arc::clone(&self.stop));
        let (report, started) = bounded(1);
        let run = move || {
            match prepare(&device, core) {
                Ok(_registered) => {
                    let _ = report.send(Ok(()));
                    run_worker(&device, worker, &stop, backoff);
                }
                Err(error) => drop(report.send(Err(error))),
            }
            device.workers[worker].threaded.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name(format!("dcp-worker-{worker}")).spawn(run);
        self.threads.push(thread.map_err(SpawnError::Thread)?);
        started.recv().unwrap_or(Err(SpawnError::Running))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A worker that panicked has poisoned its cell, which every later call reports.
            let _ = thread.join();
        }
    }
}

fn prepare(device: &DeviceInner, core: Option<usize>) -> Result<LcoreGuard, SpawnError> {
    if let Some(core) = core {
        pin(core).map_err(SpawnError::Pin)?;
    }
    register_thread(&device.eal).map_err(SpawnError::Register)
}

fn run_worker(device: &DeviceInner, worker: usize, stop: &AtomicBool, backoff: Backoff) {
    let Ok(mut engine) = device.workers[worker].cell.lock() else { return };
    let mut idle = 0u32;
    while !stop.load(Ordering::Acquire) {
        if engine.poll() > 0 {
            idle = 0;
        } else {
            idle = idle.saturating_add(1);
            let slept = backoff.rest(idle, engine.time_to_timer());
            engine.note_sleep(slept);
        }
    }
}

/// What an idle worker does between two polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    Spin,
    Yield,
    Sleep(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls and sleep of a worker that stays idle, without timers, until it has slept for `ns`.
    fn polls_until_slept(backoff: Backoff, ns: u128) -> u32 {
        let mut slept = Duration::ZERO;
        for idle in 1.. {
            if let Rest::Sleep(sleep) = backoff.rest_after(idle, None) {
                slept += sleep;
            }
            if slept.as_nanos() >= ns {
                return idle;
            }
        }
        unreachable!("it sleeps some time")
    }

    #[test]
    fn idle_worker_polls_about_a_thousand_times_per_second_of_sleep() {
        let polls = polls_until_slept(Backoff::default(), 10_000_000_000);
        assert!((10_000..2000 + 20 + 10_000 + 20).contains(&polls), "{polls}");
    }

    #[test]
    fn first_sleep_is_short_and_none_is_longer_than_the_longest() {
        let backoff = Backoff::default();
        assert_eq!(backoff.rest_after(2000, None), Rest::Spin);
        assert_eq!(backoff.rest_after(2001, None), Rest::Yield);
        assert_eq!(backoff.rest_after(2021, None), Rest::Sleep(Duration::from_micros(50)));
        assert_eq!(backoff.rest_after(u32::MAX, None), Rest::Sleep(Duration::from_millis(1)));
    }

    #[test]
    fn worker_is_awake_for_its_timers() {
        let timer = Some(Duration::from_micros(7));
        assert_eq!(Backoff::default().rest_after(u32::MAX, timer), Rest::Sleep(Duration::from_micros(7)));
    }

    #[test]
    fn worker_on_a_core_of_its_own_never_rests() {
        assert_eq!(Backoff::NEVER.rest_after(u32::MAX, None), Rest::Spin);
    }
}
