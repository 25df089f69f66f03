//! Who drives what: everything in turn on one thread, or one pinned thread per core.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dcp::Worker;
use dcp::dpdk::{Eal, MbufBatch, available_cores, pin, register_thread};

use super::client::Client;
use super::fabric::Fabric;
use super::tally::{Next, Tally, net_counters};
use crate::failure::Failure;
use crate::outcome::{Outcome, Verification};
use crate::plan::{Plan, Threads};
use crate::progress::Progress;

/// Rounds between two looks at clock, signals and progress.
const ROUNDS_PER_TICK: u32 = 64;

/// Drives a fabric until the plan is done, and takes it apart.
pub(super) fn run(
    eal: &Eal,
    mut fabric: Fabric,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let start_ns = fabric.server.now().ns();
    let mut tally = Tally::new(plan, interrupted, progress, start_ns);
    let cores = cores_for(plan);
    let driven = match cores.len() {
        0 | 1 => run_inline(&mut fabric, &mut tally),
        _ => run_split(eal, &mut fabric, &cores, &mut tally),
    };
    let end_ns = fabric.server.now().ns();
    let net = net_counters(&fabric.clients, &fabric.switch, &fabric.server);
    driven.map_err(|failure| failure.with_net(net))?;
    let done = completed(&fabric.clients);
    let threads = u32::try_from(cores.len().max(1)).unwrap_or(u32::MAX);
    let mut outcome = Outcome { net, ..tally.outcome(plan, end_ns, done, threads) };
    outcome.verification = verify(&mut fabric.clients, done);
    outcome.notes = std::mem::take(&mut fabric.notes);
    if plan.threads == Threads::Split && cores.len() < 2 {
        outcome.notes.push("--threads split needs two cores; this ran on one".to_owned());
    }
    Ok(outcome)
}

/// Cores for `--threads split`, three at most; none for one thread wherever the system puts it.
fn cores_for(plan: &Plan) -> Vec<usize> {
    match plan.threads {
        Threads::Inline => Vec::new(),
        Threads::Split => available_cores().iter().copied().take(3).collect(),
    }
}

fn completed(clients: &[Client]) -> u64 {
    clients.iter().map(Client::completed).sum()
}

fn verify(clients: &mut [Client], done: u64) -> Verification {
    if done == 0 {
        return Verification::NotChecked;
    }
    let wrong = clients.iter_mut().find_map(|client| client.mismatch().or_else(|| client.verify()));
    wrong.map_or(Verification::Passed, Verification::Failed)
}

fn run_inline(fabric: &mut Fabric, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let Fabric { clients, switch, server, .. } = fabric;
    let mut rounds = 0u32;
    while !clients.iter().all(Client::is_done) {
        for client in clients.iter_mut() {
            client.poll()?;
        }
        switch.poll();
        poll_server(server, clients.len());
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_TICK) {
            match tally.tick(server.now().ns(), completed(clients)) {
                Next::GoOn => {}
                Next::Finish => clients.iter_mut().for_each(Client::stop),
                Next::Leave => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The server hears all clients, so it may take as many bursts as they sent.
fn poll_server(server: &mut Worker, bursts: usize) {
    for _ in 0..bursts {
        if server.poll() < MbufBatch::CAPACITY {
            return;
        }
    }
}

/// What the threads tell each other.
#[derive(Default)]
struct Signals {
    /// Clients are to end their runs.
    stop: AtomicBool,
    /// Clients are to leave what is under way.
    leave: AtomicBool,
    /// Clients have ended: switch and server may go.
    ended: AtomicBool,
    completed: AtomicU64,
}

/// Clients on the first core, the server on the last, the switch beside it or on one of its own.
fn run_split(eal: &Eal, fabric: &mut Fabric, cores: &[usize], tally: &mut Tally<'_>) -> Result<(), Failure> {
    let Fabric { clients, switch, server, .. } = fabric;
    let clock = *server.clock();
    let signals = &Signals::default();
    std::thread::scope(|scope| {
        let clients = scope.spawn(move || {
            let result = on_core(eal, cores[0], || run_clients(clients, signals));
            signals.ended.store(true, Ordering::Release);
            result
        });
        let rest = if let [_, second, third] = *cores {
            let switch = scope.spawn(move || {
                on_core(eal, second, || {
                    until_ended(signals, || {
                        switch.poll();
                    })
                })
            });
            let server =
                scope.spawn(move || on_core(eal, third, || until_ended(signals, || poll_server(server, 1))));
            vec![switch, server]
        } else {
            let both = move || {
                switch.poll();
                poll_server(server, 1);
            };
            vec![scope.spawn(move || on_core(eal, cores[1], || until_ended(signals, both)))]
        };
        watch(signals, tally, || clock.now_ns());
        let mut result = clients.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for thread in rest {
            result = result.and(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        result
    })
}

/// The calling thread shows progress and passes on the wish to stop.
fn watch(signals: &Signals, tally: &mut Tally<'_>, now_ns: impl Fn() -> u64) {
    while !signals.ended.load(Ordering::Acquire) {
        #[expect(
            clippy::disallowed_methods,
            reason = "a program's main thread, which has nothing else to do"
        )]
        std::thread::sleep(Duration::from_millis(2));
        match tally.tick(now_ns(), signals.completed.load(Ordering::Relaxed)) {
            Next::GoOn => {}
            Next::Finish => signals.stop.store(true, Ordering::Relaxed),
            Next::Leave => signals.leave.store(true, Ordering::Relaxed),
        }
    }
}

/// Runs `body` on a core, as a thread that DPDK knows.
fn on_core(eal: &Eal, core: usize, body: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    pin(core).map_err(|error| Failure::environment(error.to_string()))?;
    let _registered = register_thread(eal).map_err(|error| Failure::environment(error.to_string()))?;
    body()
}

fn run_clients(clients: &mut [Client], signals: &Signals) -> Result<(), Failure> {
    let mut rounds = 0u32;
    while !clients.iter().all(Client::is_done) {
        for client in clients.iter_mut() {
            client.poll()?;
        }
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_TICK) {
            signals.completed.store(completed(clients), Ordering::Relaxed);
            if signals.stop.load(Ordering::Relaxed) {
                clients.iter_mut().for_each(Client::stop);
            }
            if signals.leave.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn until_ended(signals: &Signals, mut poll: impl FnMut()) -> Result<(), Failure> {
    while !signals.ended.load(Ordering::Acquire) {
        poll();
    }
    Ok(())
}
