//! Who drives what: everything in turn on one thread, or one pinned thread per core.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use dcp::core::Status;
use dcp::dpdk::{Eal, MbufBatch, available_cores, pin, register_thread};
use dcp_switch::topology::Network;

use super::fabric::Fabric;
use super::network;
use crate::burden::Carried;
use crate::failure::Failure;
use crate::fairness::Fairness;
use crate::hint;
use crate::net::NetCounters;
use crate::outcome::{Details, Outcome, Verification, overdue_note};
use crate::plan::{Plan, Threads};
use crate::progress::Progress;
use crate::stats::Latencies;
use crate::traffic::{Client, Done, Next, Sender, Server, Tally};

/// Rounds between two looks at clock, signals and progress.
const ROUNDS_PER_TICK: u32 = 64;

/// Drives a fabric until the plan is done, and takes it apart.
pub(super) fn run(
    eal: &Eal,
    mut fabric: Fabric<'_>,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let cores = cores_for(plan);
    let carried = Carried::start(plan.burden, cores.last().copied())?;
    let start_ns = fabric.server.worker().now().ns();
    let mut tally = Tally::new(plan, interrupted, progress, start_ns);
    if let ([core], false) = (&cores[..], plan.cores.is_empty()) {
        pin(*core).map_err(|error| Failure::environment(error.to_string()))?;
    }
    let driven = match cores.len() {
        0 | 1 => run_inline(&mut fabric, &mut tally, &carried),
        _ => run_split(eal, &mut fabric, &cores, &mut tally, &carried),
    };
    let (burden, notes) = carried.end();
    let end_ns = fabric.server.worker().now().ns();
    let mut rates: Vec<f64> = fabric.clients.iter().flat_map(Client::rates).collect();
    rates.extend(fabric.server.sender().iter().flat_map(|sender| sender.rates()));
    let net = net_counters(&fabric.clients, &fabric.network, &fabric.server);
    fabric.notes.extend(network::finish_capture(&mut fabric.network, plan));
    driven.map_err(|failure| explained(failure, plan, net))?;
    let done = completed(&fabric.clients);
    tally.hear_other(fabric.server.completed());
    let threads = u32::try_from(cores.len().max(1)).unwrap_or(u32::MAX);
    let mut outcome = Outcome { net, ..tally.outcome(plan, end_ns, done, threads) };
    let clock = *fabric.server.worker().clock();
    // A user who stops waits for the comparison of a small run, and not for that of a large one.
    let enough = || interrupted.load(Ordering::Relaxed) && clock.now_ns() >= end_ns + COMPARED_NS;
    let messages = done.messages + fabric.server.completed().messages;
    outcome.verification = verify(&mut fabric, messages, &enough)?;
    outcome.interrupted |= interrupted.load(Ordering::Relaxed);
    outcome.details = Details { burden, ..details(&fabric, &rates, outcome.details) };
    outcome.notes.extend(overdue_note(&outcome.details));
    outcome.notes.append(&mut fabric.notes);
    outcome.notes.extend(notes);
    if messages > 0 && outcome.verification == Verification::NotChecked {
        outcome.notes.push("the data was not compared to its end".to_owned());
    }
    if plan.threads == Threads::Split && cores.len() < 2 {
        outcome.notes.push("--threads split needs two cores; this ran on one".to_owned());
    }
    Ok(outcome)
}

/// What senders measured besides; rates are those at the end of the traffic.
fn details(fabric: &Fabric<'_>, rates: &[f64], so_far: Details) -> Details {
    let (clients, server) = (&fabric.clients, fabric.server.sender());
    let mut all = Latencies::default();
    clients.iter().filter_map(Client::latencies).for_each(|latencies| all.add(latencies));
    server.and_then(Sender::latencies).into_iter().for_each(|latencies| all.add(latencies));
    Details {
        latency: all.summary(),
        fairness: Fairness::of(rates),
        overdue: clients.iter().map(Client::overdue).sum::<u64>() + server.map_or(0, Sender::overdue),
        ..so_far
    }
}

/// Cores for `--threads split`, three at most; for one thread the one asked for, or wherever the system puts it.
fn cores_for(plan: &Plan) -> Vec<usize> {
    match plan.threads {
        Threads::Split if plan.cores.is_empty() => available_cores().iter().copied().take(3).collect(),
        Threads::Split | Threads::Inline => plan.cores.clone(),
    }
}

fn completed(clients: &[Client<'_>]) -> Done {
    let mut all = Done::default();
    for Done { messages, bytes } in clients.iter().map(Client::completed) {
        all.add(messages, bytes);
    }
    all
}

/// Time for the comparison once the user has stopped the run, in nanoseconds.
const COMPARED_NS: u64 = 500_000_000;

fn verify(fabric: &mut Fabric<'_>, done: u64, enough: &impl Fn() -> bool) -> Result<Verification, Failure> {
    if done == 0 {
        return Ok(Verification::NotChecked);
    }
    fabric.server.collect()?;
    let sent = fabric.server.sender().map_or_else(Vec::new, Sender::counts);
    for (client, number) in fabric.clients.iter_mut().zip(1..) {
        let counts = client.counts();
        client.collect()?;
        let received = fabric.server.check_counts(number, &counts, true);
        let received = received.and(|| client.check_received(&sent));
        let verification =
            received.and(|| client.verify(enough)).and(|| fabric.server.verify_inbox(&counts, enough));
        if verification != Verification::Passed {
            return Ok(verification);
        }
    }
    Ok(Verification::Passed)
}

/// What endpoints and switches counted.
fn net_counters(clients: &[Client<'_>], network: &Network, server: &Server<'_>) -> NetCounters {
    let totals = network.totals();
    let ho_lost = totals.egress.ho_lost();
    let mut net = NetCounters {
        trimmed: totals.egress.trimmed,
        ho_lost,
        dropped: totals.ingress.drops.total() + totals.egress.drops.total() - ho_lost,
        ..NetCounters::default()
    };
    net.add(&NetCounters::of(server.worker()));
    clients.iter().for_each(|client| net.add(&NetCounters::of(client.worker())));
    net
}

/// A failure with what the network had counted, and the cause that this suggests.
fn explained(failure: Failure, plan: &Plan, net: NetCounters) -> Failure {
    let exceeded = failure.status.is_some_and(|status| status.number == Status::RetryExceeded as u32);
    let failure = failure.with_net(net);
    if plan.faults.corrupt.get() > 0.0 && !plan.icrc {
        return failure.with_hint(hint::CORRUPT);
    }
    if exceeded { failure.or_hint(|| hint::of_exceeded_retries(plan, &net)) } else { failure }
}

fn run_inline(fabric: &mut Fabric<'_>, tally: &mut Tally<'_>, carried: &Carried) -> Result<(), Failure> {
    let Fabric { clients, network, server, .. } = fabric;
    let mut rounds = 0u32;
    while !(clients.iter().all(Client::is_done) && server.is_done()) {
        for client in clients.iter_mut() {
            client.poll()?;
        }
        network.poll();
        poll_server(server, clients.len(), carried)?;
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_TICK) {
            let now_ns = server.worker().now().ns();
            tally.see_other(now_ns, server.completed());
            match tally.tick(now_ns, completed(clients)) {
                Next::GoOn => {}
                Next::Finish => {
                    clients.iter_mut().for_each(Client::stop);
                    server.stop();
                }
                Next::Leave => break,
            }
        }
    }
    Ok(())
}

/// The server hears all clients, so it may take as many bursts as they sent.
fn poll_server(server: &mut Server<'_>, bursts: usize, carried: &Carried) -> Result<(), Failure> {
    for _ in 0..bursts {
        if server.poll()? < MbufBatch::CAPACITY {
            break;
        }
    }
    carried.publish(server.worker());
    Ok(())
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
    /// Whether the server still sends.
    server_sends: AtomicBool,
    clients: SharedDone,
    server: SharedDone,
}

/// How much is done, as somebody said last.
#[derive(Default)]
struct SharedDone {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl SharedDone {
    fn set(&self, done: Done) {
        self.messages.store(done.messages, Ordering::Relaxed);
        self.bytes.store(done.bytes, Ordering::Relaxed);
    }

    /// The two may be of different rounds.
    fn get(&self) -> Done {
        Done { messages: self.messages.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// Ends the run when its thread ends in any way, also by a panic or before it began: no other is to wait for it for ever.
struct EndsRun<'a>(&'a Signals);

impl Drop for EndsRun<'_> {
    fn drop(&mut self) {
        self.0.leave.store(true, Ordering::Release);
        self.0.ended.store(true, Ordering::Release);
    }
}

/// Clients on the first core, the server on the last, the switch beside it or on one of its own.
fn run_split(
    eal: &Eal,
    fabric: &mut Fabric<'_>,
    cores: &[usize],
    tally: &mut Tally<'_>,
    carried: &Carried,
) -> Result<(), Failure> {
    let Fabric { clients, network, server, .. } = fabric;
    let clock = *server.worker().clock();
    let signals = &Signals::default();
    signals.server_sends.store(!server.is_done(), Ordering::Relaxed);
    let server = &mut *server;
    std::thread::scope(|scope| {
        let _ends = EndsRun(signals);
        let clients =
            spawn(scope, move || on_core(eal, cores[0], signals, || run_clients(clients, signals)))?;
        let rest = if let [_, second, third] = *cores {
            let poll = move || {
                network.poll();
                Ok(())
            };
            let switch = spawn(scope, move || on_core(eal, second, signals, || until_ended(signals, poll)))?;
            let mut rounds = 0;
            let poll = move || serve(server, &mut rounds, signals, carried);
            let server = spawn(scope, move || on_core(eal, third, signals, || until_ended(signals, poll)))?;
            vec![switch, server]
        } else {
            let mut rounds = 0;
            let poll = move || {
                network.poll();
                serve(server, &mut rounds, signals, carried)
            };
            vec![spawn(scope, move || on_core(eal, cores[1], signals, || until_ended(signals, poll)))?]
        };
        watch(signals, tally, || clock.now_ns());
        let mut result = clients.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for thread in rest {
            result = result.and(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        result
    })
}

/// A round of the server; now and then it says how far it is, and hears whether to stop.
fn serve(
    server: &mut Server<'_>,
    rounds: &mut u32,
    signals: &Signals,
    carried: &Carried,
) -> Result<(), Failure> {
    poll_server(server, 1, carried)?;
    *rounds = rounds.wrapping_add(1);
    if rounds.is_multiple_of(ROUNDS_PER_TICK) && server.sender().is_some() {
        signals.server.set(server.completed());
        if signals.stop.load(Ordering::Relaxed) {
            server.stop();
        }
        signals.server_sends.store(!server.is_done(), Ordering::Release);
    }
    Ok(())
}

/// A thread of the run, or why the system has none left.
fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> Result<(), Failure> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<(), Failure>>, Failure> {
    std::thread::Builder::new().spawn_scoped(scope, body).map_err(|error| {
        Failure::environment(format!("a thread of --threads split could not be started: {error}"))
            .with_hint("raise the limit of processes and threads (ulimit -u), or use --threads inline")
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
        let now_ns = now_ns();
        tally.see_other(now_ns, signals.server.get());
        match tally.tick(now_ns, signals.clients.get()) {
            Next::GoOn => {}
            Next::Finish => signals.stop.store(true, Ordering::Relaxed),
            Next::Leave => signals.leave.store(true, Ordering::Relaxed),
        }
    }
}

/// Runs `body` on a core, as a thread that DPDK knows. The run ends with it.
fn on_core(
    eal: &Eal,
    core: usize,
    signals: &Signals,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _ends = EndsRun(signals);
    pin(core).map_err(|error| Failure::environment(error.to_string()))?;
    let _registered = register_thread(eal).map_err(|error| Failure::environment(error.to_string()))?;
    body()
}

fn run_clients(clients: &mut [Client<'_>], signals: &Signals) -> Result<(), Failure> {
    let mut rounds = 0u32;
    while !clients.iter().all(Client::is_done) || signals.server_sends.load(Ordering::Acquire) {
        for client in clients.iter_mut() {
            client.poll()?;
        }
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_TICK) {
            signals.clients.set(completed(clients));
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

fn until_ended(signals: &Signals, mut poll: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    while !signals.ended.load(Ordering::Acquire) {
        poll()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Two threads that wait for the end, and one that ends by `body` without a word.
    fn others_end_after(body: impl Fn() + Sync) {
        let signals = Signals::default();
        std::thread::scope(|scope| {
            let waiting = [(); 2].map(|()| {
                scope.spawn(|| {
                    until_ended(&signals, || {
                        std::thread::yield_now();
                        Ok(())
                    })
                })
            });
            let failing = scope.spawn(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    let _ends = EndsRun(&signals);
                    body();
                }))
            });
            let _ = failing.join().unwrap();
            waiting.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        });
        assert!(signals.leave.load(Ordering::Relaxed));
    }

    #[test]
    fn thread_that_panics_or_returns_early_ends_the_others() {
        others_end_after(|| {});
        others_end_after(|| panic!("on purpose"));
    }

    #[test]
    fn clients_leave_when_another_thread_has_ended() {
        let signals = Signals::default();
        drop(EndsRun(&signals));
        assert!(run_clients(&mut [], &signals).is_ok());
        assert!(signals.ended.load(Ordering::Relaxed) && signals.leave.load(Ordering::Relaxed));
    }
}
