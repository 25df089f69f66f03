//! Counters on DPDK's telemetry socket: `/dcp/port`, `/dcp/worker`, `/dcp/qp`.
//!
//! Questions come on DPDK's own thread. It asks the worker as any other thread does, by a closure that the worker runs
//! between two polls, so the data path takes no lock and publishes nothing when nobody asks. A worker that is not
//! polled does not answer: after [`PATIENCE`] the answer says so. Only ways to workers are kept here, never a device,
//! so that no device lives longer, or closes on that thread.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crossbeam::channel::{Sender, bounded};
use dcp_core::EndpointConfig;
use dpdk_ffi::PortStats;
use dpdk_ffi::telemetry::{self, Answer, Field};

use super::device::WorkerSlot;
use super::engine::{Control, Engine};
use super::stats::{QpStats, WorkerStats};

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// Questions that may wait for a worker that nobody polls.
const QUESTIONS_MAX: usize = 16;

/// A device, as far as telemetry knows it.
#[derive(Clone)]
struct Entry {
    number: u64,
    mac: String,
    ip: String,
    mtu: u32,
    workers: Vec<Sender<Control>>,
}

static DEVICES: Mutex<Devices> = Mutex::new(Devices { open: Vec::new(), made: 0 });

struct Devices {
    open: Vec<Entry>,
    /// Devices ever made: the number of the next one.
    made: u64,
}

fn devices() -> MutexGuard<'static, Devices> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a device known while it lives.
#[derive(Debug)]
pub(super) struct Listing {
    number: u64,
}

impl Listing {
    pub(super) fn of(workers: &[WorkerSlot], host: Option<&EndpointConfig>, mtu: u32) -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(register);
        let mut devices = devices();
        let number = devices.made;
        devices.made += 1;
        devices.open.push(Entry {
            number,
            mac: host.map(|host| host.mac.0.map(|byte| format!("{byte:02x}")).join(":")).unwrap_or_default(),
            ip: host.map(|host| host.ip.to_string()).unwrap_or_default(),
            mtu,
            workers: workers.iter().map(|worker| worker.controls().clone()).collect(),
        });
        Self { number }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        devices().open.retain(|entry| entry.number != self.number);
    }
}

/// What cannot be registered is missing there; the device works without.
fn register() {
    let _ =
        telemetry::register("/dcp/port", "DCP devices. Parameters: DEVICE for its counters", |parameter| {
            one_or_list(parameter, port, list_ports)
        });
    let _ = telemetry::register(
        "/dcp/worker",
        "DCP workers as DEVICE/WORKER. Parameters: WORKER or DEVICE/WORKER for its counters",
        |parameter| one_or_list(parameter, worker, list_workers),
    );
    let _ = telemetry::register(
        "/dcp/qp",
        "DCP queue pairs as DEVICE/QPN, 512 at most. Parameters: QPN or DEVICE/QPN for its counters",
        |parameter| one_or_list(parameter, qp, list_qps),
    );
}

fn one_or_list(parameter: &str, one: fn(&Choice) -> Answer, list: fn() -> Answer) -> Answer {
    if parameter.is_empty() {
        return list();
    }
    Choice::parse(parameter).map_or(Answer::Nothing, |choice| one(&choice))
}

/// `NUMBER` or `DEVICE/NUMBER`.
struct Choice {
    device: Option<u64>,
    number: u64,
}

impl Choice {
    fn parse(parameter: &str) -> Option<Self> {
        match parameter.split_once('/') {
            Some((device, number)) => {
                Some(Self { device: Some(device.parse().ok()?), number: number.parse().ok()? })
            }
            None => Some(Self { device: None, number: parameter.parse().ok()? }),
        }
    }

    /// The devices that are meant.
    fn entries(&self) -> Vec<Entry> {
        let is_meant = |entry: &&Entry| self.device.is_none_or(|device| device == entry.number);
        devices().open.iter().filter(is_meant).cloned().collect()
    }
}

fn list_ports() -> Answer {
    Answer::Texts(devices().open.iter().map(|entry| entry.number.to_string()).collect())
}

fn list_workers() -> Answer {
    let of = |entry: &Entry| {
        let number = entry.number;
        (0..entry.workers.len()).map(move |worker| format!("{number}/{worker}"))
    };
    Answer::Texts(devices().open.iter().flat_map(of).collect())
}

fn list_qps() -> Answer {
    let entries = devices().open.clone();
    let mut names = Vec::new();
    for entry in &entries {
        for worker in &entry.workers {
            let numbers = ask(worker, |engine| engine.qp_stats().iter().map(|qp| qp.qpn).collect::<Vec<_>>());
            names.extend(numbers.into_iter().flatten().map(|qpn| format!("{}/{qpn}", entry.number)));
        }
    }
    Answer::Texts(names)
}

/// Has a worker answer; `None` when it is gone, or is not polled.
fn ask<T: Send + 'static>(
    worker: &Sender<Control>,
    act: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Option<T> {
    if worker.len() >= QUESTIONS_MAX {
        return None;
    }
    let (reply, answer) = bounded(1);
    let question: Control = Box::new(move |engine| {
        // Who asked may have lost patience.
        let _ = reply.send(act(engine));
    });
    worker.send(question).ok()?;
    answer.recv_timeout(PATIENCE).ok()
}

fn number(name: &'static str, value: u64) -> (&'static str, Field) {
    (name, Field::Number(value))
}

fn text(name: &'static str, value: impl ToString) -> (&'static str, Field) {
    (name, Field::Text(value.to_string()))
}

/// The answer of a worker that does not speak.
fn silent(mut fields: Vec<(&'static str, Field)>) -> Answer {
    fields.push(text("answers", "no: the application does not poll it"));
    Answer::Fields(fields)
}

fn port(choice: &Choice) -> Answer {
    let wanted = Choice { device: Some(choice.number), number: 0 };
    let Some(entry) = wanted.entries().pop() else { return Answer::Nothing };
    let mut fields = vec![
        number("device", entry.number),
        text("mac", entry.mac),
        text("ip", entry.ip),
        number("mtu", entry.mtu.into()),
        number("workers", entry.workers.len() as u64),
    ];
    let Some(first) = entry.workers.first() else { return Answer::Fields(fields) };
    let look = |engine: &mut Engine| {
        let worker = engine.worker();
        (worker.driver(), worker.link_is_up(), worker.port_stats())
    };
    let Some((driver, is_up, stats)) = ask(first, look) else { return silent(fields) };
    fields.extend([text("driver", driver), text("link", if is_up { "up" } else { "down" })]);
    fields.extend(stats.into_iter().flat_map(|stats| port_fields(&stats)));
    Answer::Fields(fields)
}

fn port_fields(stats: &PortStats) -> [(&'static str, Field); 8] {
    [
        number("rx_frames", stats.rx_frames),
        number("rx_bytes", stats.rx_bytes),
        number("rx_missed", stats.rx_missed),
        number("rx_errors", stats.rx_errors),
        number("rx_no_mbuf", stats.rx_no_mbuf),
        number("tx_frames", stats.tx_frames),
        number("tx_bytes", stats.tx_bytes),
        number("tx_errors", stats.tx_errors),
    ]
}

fn worker(choice: &Choice) -> Answer {
    let index = usize::try_from(choice.number).unwrap_or(usize::MAX);
    for entry in choice.entries() {
        let Some(worker) = entry.workers.get(index) else { continue };
        let fields = vec![number("device", entry.number), number("worker", choice.number)];
        return match ask(worker, |engine| engine.stats()) {
            Some(stats) => Answer::Fields([fields, worker_fields(&stats)].concat()),
            None => silent(fields),
        };
    }
    Answer::Nothing
}

fn worker_fields(stats: &WorkerStats) -> Vec<(&'static str, Field)> {
    let (endpoint, worker) = (&stats.endpoint, &stats.worker);
    vec![
        number("qps", stats.qps.into()),
        number("polls", stats.polls),
        number("sleeps", stats.sleeps),
        number("sleep_ns", stats.sleep_ns),
        number("frames_received", worker.received),
        number("burst_frames", worker.receive_load.burst_frames),
        number("burst_ages", worker.receive_load.ages),
        number("burst_age_squares", worker.receive_load.age_squares),
        number("frames_sent", worker.sent),
        number("frames_unparsed", worker.unparsed.iter().sum()),
        number("icrc_errors", worker.icrc_errors),
        number("bounces_lost", worker.bounces_lost),
        number("starved", worker.starved),
        number("link_down_drops", worker.link_down_drops),
        number("handed_over", worker.handed_over),
        number("hand_over_drops", worker.hand_over_drops),
        number("relayed", worker.relayed),
        number("data_packets", endpoint.data_packets),
        number("data_bytes", endpoint.data_bytes),
        number("retransmitted", endpoint.retransmitted),
        number("data_received", endpoint.data_received),
        number("placed", endpoint.placed),
        number("duplicates", endpoint.duplicates()),
        number("dropped", endpoint.dropped_total()),
        number("ho_bounced", endpoint.ho_bounced),
        number("ho_returned", endpoint.ho_returned),
        number("timeouts", endpoint.timeouts),
        number("window_timeouts", endpoint.window_timeouts),
        number("resyncs", endpoint.resyncs),
        number("acks", endpoint.acks),
        number("naks", endpoint.naks),
        number("rnr_naks", endpoint.rnr_naks),
        number("probes", endpoint.probes),
        number("completions_lost", endpoint.completions_lost),
    ]
}

fn qp(choice: &Choice) -> Answer {
    let wanted = choice.number;
    for entry in choice.entries() {
        for worker in &entry.workers {
            let find = move |engine: &mut Engine| {
                engine.qp_stats().into_iter().find(|qp| u64::from(qp.qpn) == wanted)
            };
            if let Some(Some(found)) = ask(worker, find) {
                return Answer::Fields([vec![number("device", entry.number)], qp_fields(&found)].concat());
            }
        }
    }
    Answer::Nothing
}

fn qp_fields(qp: &QpStats) -> Vec<(&'static str, Field)> {
    let counters = &qp.counters;
    let mut fields = vec![
        number("worker", qp.worker as u64),
        number("qpn", qp.qpn.into()),
        text("state", format!("{:?}", qp.state).to_uppercase()),
        number("outstanding", qp.outstanding.into()),
        number("in_flight_bytes", qp.in_flight),
        number("receives_posted", qp.receives as u64),
        number("data_packets", counters.data_packets),
        number("data_bytes", counters.data_bytes),
        number("retransmitted", counters.retransmitted),
        number("data_received", counters.data_received),
        number("placed", counters.placed),
        number("ho_returned", counters.ho_returned),
        number("timeouts", counters.timeouts),
        number("rnr_naks", counters.rnr_naks),
    ];
    if let Some((ip, qpn)) = qp.peer {
        fields.extend([text("peer_ip", ip), number("peer_qpn", qpn.into())]);
    }
    fields
}
