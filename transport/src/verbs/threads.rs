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

    /// Rests after the `idle`-th poll in vain, at most until there is something to do in any case.
    pub fn rest(self, idle: u32, time_to_timer: Option<Duration>) {
        if idle <= self.spins {
            std::hint::spin_loop();
        } else if idle - self.spins <= self.yields {
            std::thread::yield_now();
        } else {
            let doublings = (idle - self.spins - self.yields).min(20);
            let sleep = self.sleep.saturating_mul(1 << doublings).min(self.sleep_max);
            let sleep = time_to_timer.map_or(sleep, |timer| sleep.min(timer));
            #[expect(clippy::disallowed_methods, reason = "a worker that has nothing to do")]
            std::thread::sleep(sleep);
        }
    }
}

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
            backoff.rest(idle, engine.time_to_timer());
        }
    }
}
