//! The side that waits for a client, and serves it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dcp::Worker;
use dcp::connect::{Agreement, ConnectError, Control, Listener, Patience};
use dcp::dpdk::{Region, clock};

use super::client::CLIENT;
use super::host::Host;
use super::options::Extras;
use super::run::{Begun, Brought, Middle, Pace, Round};
use super::session::Session;
use super::words::{Compare, Told, Verdict, Word};
use super::{Joined, SETUP_S, failure};
use crate::device::Stage;
use crate::failure::Failure;
use crate::outcome::{Outcome, Verification};
use crate::plan::{Link, Plan};
use crate::progress::Progress;
use crate::traffic::{Content, Count, Done, Rally, Receiver, Role, Server, Tally};

/// Time for whoever connects to make an offer; others wait for their turn meanwhile.
const OFFER: Duration = Duration::from_secs(2);
/// Between looks at the port and the device while nobody is there.
const IDLE: Duration = Duration::from_millis(1);
/// Time that a client has to end a run that the user of the server stops, in nanoseconds.
const STOPPED_NS: u64 = 1_200_000_000;
/// Time for a comparison that somebody waits for, in nanoseconds.
const COMPARED_STOPPED_NS: u64 = 300_000_000;
/// Time for the client's part of the comparison, in nanoseconds.
const COMPARED_NS: u64 = 60_000_000_000;

const WAITING: &str = "\n************************************\n* Waiting for client to connect... *\n\
                       ************************************\n";

/// Waits for a client that fits, and agrees with it.
pub(super) fn join(plans: &[Plan], link: &Link, stage: &mut Stage<'_>) -> Result<Joined, Failure> {
    let listener = listen(link.port)?;
    let (own, mut worker) = Host::open(plans, link, stage.interrupted)?;
    (stage.line)(WAITING)?;
    let ours = Extras::new(&own.plan, plans.len() > 1, own.qpns(&worker));
    let (control, agreement, theirs) = wait_for_client(&listener, &own, &ours, &mut worker, stage)?;
    let session = Session::new(control, own.clock, "client");
    Ok(Joined { session, agreement, theirs, worker, own })
}

impl<'a> Middle<'a> for Server<'a> {
    fn prepare(round: &Round<'_>, worker: Worker, interrupted: &'a AtomicBool) -> Result<Self, Failure> {
        let own = round.own;
        let content = Content::new(&own.plan, own.layout, CLIENT);
        if !content.prepare_server(&own.memory.region, &|| interrupted.load(Ordering::Relaxed)) {
            return Err(Failure::interrupted());
        }
        make_server(round, worker, content, interrupted)
    }

    fn go(&mut self, begun: Begun<'_>) -> Result<Brought, Failure> {
        let Begun { own, session, interrupted, progress, pace } = begun;
        let active = Active { packets: packets(self.worker()), ..Active::default() };
        let mut serving = Serving {
            server: self,
            session,
            content: Content::new(&own.plan, own.layout, CLIENT),
            region: &own.memory.region,
            plan: &own.plan,
            interrupted,
            told: Told::default(),
            checked: vec![0; own.qps.len()],
            completed: Done::default(),
            active,
            stop_said_ns: None,
        };
        serving.drive(progress, pace)
    }

    /// As it is: the likely cause is told at the client.
    fn explained(failure: Failure, _plan: &Plan) -> Failure {
        failure
    }

    fn held(&self) -> &Worker {
        self.worker()
    }

    fn held_mut(&mut self) -> &mut Worker {
        self.worker_mut()
    }

    fn release(self) -> Worker {
        self.into_worker()
    }
}

/// The side that serves, with its receives posted.
fn make_server<'a>(
    round: &Round<'_>,
    worker: Worker,
    content: Content,
    interrupted: &'a AtomicBool,
) -> Result<Server<'a>, Failure> {
    let own = round.own;
    if own.plan.is_rally() {
        let parts = own.rally_parts(worker, Role::Server, round.rkey()?);
        return Rally::new(parts, &own.plan, own.layout, interrupted).map(Server::Rally);
    }
    let mut receiver = Receiver::new(worker, own.cqs.recv, &own.plan);
    for (flow, &qp) in own.qps.iter().enumerate() {
        receiver.add(qp, (CLIENT, flow), content, own.memory.keys.lkey)?;
    }
    Ok(Server::Receiver(receiver))
}

/// For IPv6 and IPv4, or for IPv4 where there is nothing else.
fn listen(port: u16) -> Result<Listener, Failure> {
    let both = Listener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    both.or_else(|error| Listener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).map_err(|_| error))
        .map_err(|error| failure(&error, "client").with_hint(listen_hint(&error)))
}

fn listen_hint(error: &ConnectError) -> &'static str {
    if matches!(error, ConnectError::Listen { kind: io::ErrorKind::PermissionDenied, .. }) {
        "ports below 1024 need rights here: choose a --port from 1024 on"
    } else {
        "end what listens there, or choose another --port"
    }
}

/// Whoever is no client of this program is turned away; a client with other options ends the wait.
fn wait_for_client(
    listener: &Listener,
    own: &Host,
    ours: &Extras,
    worker: &mut Worker,
    stage: &Stage<'_>,
) -> Result<(Control, Agreement, Extras), Failure> {
    let offer = own.offer(worker, ours.json());
    let mut idle = || {
        worker.poll();
        clock::pause(IDLE);
        !stage.interrupted.load(Ordering::Relaxed)
    };
    loop {
        let mut patience = Patience { clock: &own.clock, timeout: OFFER, idle: &mut idle };
        let incoming = match listener.accept(&mut patience) {
            Ok(incoming) => incoming,
            Err(ConnectError::Stopped) => return Err(Failure::interrupted()),
            Err(ConnectError::Timeout { expected: "connection" }) => continue,
            Err(error) => {
                (stage.note)(&format!("a connection was turned away: {error}"));
                continue;
            }
        };
        let theirs = match Extras::read(&incoming.offer().app) {
            Ok(theirs) => theirs,
            Err(sentence) => {
                (stage.note)(&format!("a client was turned away: {sentence}"));
                incoming.refuse(&sentence);
                continue;
            }
        };
        let mtu = incoming.offer().mtu.min(own.plan.mtu);
        if let Err(sentence) = ours.check(&theirs, mtu) {
            incoming.refuse(&sentence);
            return Err(Failure::usage(sentence));
        }
        patience.timeout = Duration::from_secs(SETUP_S);
        let accepted = incoming.accept(&offer, &mut patience);
        let (control, agreement) = accepted.map_err(|error| failure(&error, "client"))?;
        return Ok((control, agreement, theirs));
    }
}

/// When the client's traffic was seen.
#[derive(Clone, Copy, Default)]
struct Active {
    first_ns: Option<u64>,
    last_ns: u64,
    /// Data packets at that time, either way.
    packets: u64,
}

#[inline]
fn packets(worker: &Worker) -> u64 {
    let counters = worker.endpoint().counters();
    counters.data_received + counters.data_packets
}

/// A run under way.
struct Serving<'r, 'a> {
    server: &'r mut Server<'a>,
    session: &'r mut Session,
    content: Content,
    region: &'r Region,
    plan: &'r Plan,
    interrupted: &'r AtomicBool,
    told: Told,
    /// Messages compared so far, by queue pair.
    checked: Vec<u64>,
    /// What has completed, as the client said last.
    completed: Done,
    active: Active,
    /// When the client was told to stop.
    stop_said_ns: Option<u64>,
}

impl Serving<'_, '_> {
    fn drive(&mut self, progress: &mut Progress, pace: &mut Pace) -> Result<Brought, Failure> {
        let mut tally: Option<Tally<'_>> = None;
        let mut progress = Some(progress);
        let (why, found) = loop {
            self.server.poll()?;
            self.note_activity();
            if !pace.is_look_due(self.server.worker()) {
                continue;
            }
            if let (Some(first_ns), Some(_)) = (self.active.first_ns, &progress) {
                tally = progress.take().map(|it| Tally::new(self.plan, self.interrupted, it, first_ns));
            }
            if let Some(tally) = &mut tally {
                tally.tick(self.server.worker().now().ns(), self.server.received());
            }
            if let Some(end) = self.tick()? {
                break end;
            }
        };
        let burden = pace.end();
        let verification = self.conclude(why, found)?;
        let sees = self.plan.takes_receives();
        let done = if sees { self.server.received() } else { self.completed };
        let outcome = tally.map(|tally| tally.outcome(self.plan, self.active.last_ns, done, 1));
        let mut outcome = outcome.unwrap_or_else(|| self.nothing());
        if self.active.first_ns == Some(self.active.last_ns) {
            // All of it came at one look, which is no time.
            outcome.elapsed_ns = 0;
            outcome.peak_bytes_per_second = None;
        }
        if !sees {
            // Nothing tells the server when such messages complete.
            outcome.peak_bytes_per_second = None;
        }
        outcome.verification = verification;
        Ok(Brought { outcome, messages: done.messages, burden })
    }

    #[inline]
    fn note_activity(&mut self) {
        let packets = packets(self.server.worker());
        if packets != self.active.packets {
            let now_ns = self.server.worker().now().ns();
            self.active =
                Active { first_ns: self.active.first_ns.or(Some(now_ns)), last_ns: now_ns, packets };
        }
    }

    /// A look at everything but the traffic; how the run ended, if it did.
    fn tick(&mut self) -> Result<Option<(Compare, Verification)>, Failure> {
        let now_ns = self.server.worker().now().ns();
        match self.stop_said_ns {
            None if self.interrupted.load(Ordering::Relaxed) => {
                self.stop_said_ns = Some(now_ns);
                self.say(&Word::Stop)?;
            }
            Some(said) if now_ns > said + STOPPED_NS => {
                return Ok(Some((Compare::Stopped, Verification::NotChecked)));
            }
            _ => {}
        }
        match self.session.hear()? {
            None => {}
            Some(Word::Counts(counts)) => self.told.add(&counts, self.checked.len()),
            Some(Word::Compare(why)) => {
                let found = self.compare(why)?;
                self.say(&Word::Verdict(Verdict::from(&found)))?;
                if why != Compare::More {
                    return Ok(Some((why, found)));
                }
            }
            Some(_) => return Err(self.session.nonsense()),
        }
        Ok(None)
    }

    fn say(&mut self, word: &Word) -> Result<(), Failure> {
        let worker = self.server.worker_mut();
        self.session.say(word, &mut || {
            worker.poll();
        })
    }

    /// Compares what the client says has completed.
    fn compare(&mut self, why: Compare) -> Result<Verification, Failure> {
        let depth = self.content.layout.depth;
        let counts = self.told.take(&self.checked, depth).ok_or_else(|| self.session.nonsense())?;
        self.server.collect()?;
        let clock = *self.server.worker().clock();
        let start_ns = clock.now_ns();
        let hurry = || why == Compare::Stopped || self.interrupted.load(Ordering::Relaxed);
        let enough = || hurry() && clock.now_ns() > start_ns + COMPARED_STOPPED_NS;
        let received = self.server.check_counts(CLIENT, &counts, why != Compare::More);
        let found = received.and(|| match self.plan.is_rally() {
            true => self.server.verify_inbox(&counts, &enough),
            false => self.content.check_server(self.region, &counts, &enough),
        });
        self.completed = self.content.done(&counts);
        if self.content.each {
            self.checked = counts.iter().map(|count: &Count| count.completed).collect();
        }
        Ok(found)
    }

    /// Waits for what the client found, which is for both. `found`: what this side did.
    fn conclude(&mut self, why: Compare, found: Verification) -> Result<Verification, Failure> {
        let interrupted = self.interrupted;
        if why == Compare::Stopped && !interrupted.load(Ordering::Relaxed) {
            return Err(Failure::transfer("the client was stopped before the run was done"));
        }
        let worker = self.server.worker_mut();
        let mut go_on = |waited_ns| {
            worker.poll();
            let limit = if interrupted.load(Ordering::Relaxed) { COMPARED_STOPPED_NS } else { COMPARED_NS };
            waited_ns < limit
        };
        match self.session.wait(&mut go_on)? {
            Some(Word::Verdict(verdict)) => Ok(verdict.into()),
            Some(_) => Err(self.session.nonsense()),
            None => Ok(found.and(|| Verification::NotChecked)),
        }
    }

    /// The outcome when no message came at all.
    fn nothing(&self) -> Outcome {
        let now_ns = self.server.worker().now().ns();
        Tally::new(self.plan, self.interrupted, &mut Progress::hidden(), now_ns).outcome(
            self.plan,
            now_ns,
            Done::default(),
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_for_a_port_without_rights_names_those_that_need_none() {
        let hint = |kind| {
            listen_hint(&ConnectError::Listen { address: "[::]:80".to_owned(), reason: String::new(), kind })
        };
        assert!(hint(io::ErrorKind::PermissionDenied).contains("--port from 1024 on"));
        assert!(hint(io::ErrorKind::AddrInUse).contains("end what listens there"));
    }
}
