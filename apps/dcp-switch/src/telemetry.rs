//! Counters on DPDK's telemetry socket: `/dcp/switch` and `/dcp/switch,PORT`.
//!
//! Questions come on a thread of DPDK's. The switch's own answers them between two polls, when it looks.

use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, bounded};
use dcp::dpdk::telemetry::{self, Answer, Field};

use crate::report::{PortReport, Report};

/// How long the switch may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Questions that wait for it.
const QUESTIONS_MAX: usize = 16;

/// A question: who waits for the report.
type Question = Sender<Report>;

/// The switch's end: questions to answer.
#[derive(Debug)]
pub struct Questions(Receiver<Question>);

impl Questions {
    /// Registers the commands. What cannot be registered is missing there; the switch works without.
    pub fn open() -> Self {
        let (ask, questions) = bounded::<Question>(QUESTIONS_MAX);
        let help = "Ports of the switch. Parameters: PORT for its counters";
        let _ = telemetry::register("/dcp/switch", help, move |parameter| {
            let (reply, report) = bounded(1);
            let asked = ask.try_send(reply).ok();
            let report = asked.and_then(|()| report.recv_timeout(PATIENCE).ok());
            report.map_or(Answer::Nothing, |report| answer(&report, parameter))
        });
        Self(questions)
    }

    /// Answers what was asked; `report` is made only then.
    #[inline]
    pub fn answer(&self, report: impl Fn() -> Report) {
        while let Ok(question) = self.0.try_recv() {
            // Who asked may have lost patience.
            let _ = question.send(report());
        }
    }
}

fn answer(report: &Report, parameter: &str) -> Answer {
    if parameter.is_empty() {
        return Answer::Texts(report.ports.iter().map(|port| port.uri.clone()).collect());
    }
    let port = parameter.parse::<usize>().ok().and_then(|port| report.ports.get(port));
    port.map_or(Answer::Nothing, |port| Answer::Fields(fields(port)))
}

fn fields(port: &PortReport) -> Vec<(&'static str, Field)> {
    let (ingress, egress, device) = (&port.counters.ingress, &port.counters.egress, &port.device);
    let numbers = [
        ("link_up", u64::from(port.is_up)),
        ("received", ingress.received),
        ("received_bytes", ingress.received_bytes),
        ("ingress_dropped", ingress.drops.total()),
        ("offered", egress.offered),
        ("forwarded", egress.forwarded),
        ("forwarded_bytes", egress.forwarded_bytes),
        ("trimmed", egress.trimmed),
        ("trimmed_forwarded", egress.trimmed_forwarded),
        ("marked", egress.marked),
        ("ho_lost", egress.ho_lost()),
        ("egress_dropped", egress.drops.total()),
        ("data_bytes", port.queued.data_bytes),
        ("data_bytes_peak", egress.data_bytes_peak),
        ("control_bytes", port.queued.control_bytes),
        ("control_bytes_peak", egress.control_bytes_peak),
        ("device_received", device.received),
        ("device_sent", device.sent),
        ("device_discarded", device.discarded),
    ];
    let uri = ("uri", Field::Text(port.uri.clone()));
    let numbers = numbers.into_iter().map(|(name, number)| (name, Field::Number(number)));
    std::iter::once(uri).chain(numbers).collect()
}
