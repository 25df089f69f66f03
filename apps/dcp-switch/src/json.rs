//! Counters for programs: one JSON object on a line.

use dcp_switch::pipeline::{DropReason, Drops, EgressCounters, FaultCounters, IngressCounters, Queued};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::report::{PortReport, Report};

/// A report; the last one of a run is `final`.
pub fn report(report: &Report, is_final: bool) -> Value {
    let ports: Vec<Value> = report.ports.iter().zip(0..).map(|(it, number)| port(it, number)).collect();
    json!({
        "tool": "dcp-switch",
        "version": env!("CARGO_PKG_VERSION"),
        "seconds": report.at_ns as f64 / 1e9,
        "final": is_final,
        "weight": f64::from(report.weight.milli()) / 1000.0,
        "ports": ports,
        "totals": {
            "ingress": ingress(&report.totals.ingress),
            "egress": egress(&report.totals.egress),
            "queued_frames": report.queued_frames,
        },
        "balances": report.balances(),
    })
}

/// Why the program ends early.
pub fn error(failure: &Failure) -> Value {
    json!({ "tool": "dcp-switch", "error": { "kind": failure.kind(), "message": failure.to_string() } })
}

fn port(port: &PortReport, number: usize) -> Value {
    let device = &port.device;
    json!({
        "port": number,
        "uri": port.uri,
        "link": if port.is_up { "up" } else { "down" },
        "ingress": ingress(&port.counters.ingress),
        "egress": egress(&port.counters.egress),
        "queued": queued(&port.queued),
        "device": {
            "received": device.received,
            "sent": device.sent,
            "discarded": device.discarded,
            "waiting": device.waiting,
            "finished_checksums": device.finished_checksums,
            "cut": device.cut,
        },
        "balances": port.balances(),
    })
}

fn ingress(counters: &IngressCounters) -> Value {
    json!({
        "received": counters.received,
        "received_bytes": counters.received_bytes,
        "duplicated": counters.duplicated,
        "flood_copies": counters.flood_copies,
        "routed": counters.routed,
        "held": counters.held,
        "unlearned": counters.unlearned,
        "faults": faults(&counters.faults),
        "drops": drops(&counters.drops),
    })
}

fn egress(counters: &EgressCounters) -> Value {
    let frames = counters.forwarded + counters.trimmed_forwarded - counters.control_forwarded;
    json!({
        "offered": counters.offered,
        "duplicated": counters.duplicated,
        "forwarded": counters.forwarded,
        "trimmed_forwarded": counters.trimmed_forwarded,
        "forwarded_bytes": counters.forwarded_bytes,
        "trimmed": counters.trimmed,
        "ho_lost": counters.ho_lost(),
        "marked": counters.marked,
        "mark_refused": counters.mark_refused,
        "data_queue": {
            "forwarded": frames,
            "forwarded_bytes": counters.forwarded_bytes - counters.control_forwarded_bytes,
            "bytes_peak": counters.data_bytes_peak,
        },
        "control_queue": {
            "forwarded": counters.control_forwarded,
            "forwarded_bytes": counters.control_forwarded_bytes,
            "bytes_peak": counters.control_bytes_peak,
        },
        "link_frames_peak": counters.link_frames_peak,
        "faults": faults(&counters.faults),
        "drops": drops(&counters.drops),
    })
}

fn queued(queued: &Queued) -> Value {
    json!({
        "data_frames": queued.data_frames,
        "data_bytes": queued.data_bytes,
        "control_frames": queued.control_frames,
        "control_bytes": queued.control_bytes,
        "link_frames": queued.link_frames,
        "held_frames": queued.held_frames,
    })
}

fn faults(counters: &FaultCounters) -> Value {
    json!({
        "corrupted": counters.corrupted,
        "corrupt_refused": counters.corrupt_refused,
        "delayed": counters.delayed,
        "reordered": counters.reordered,
        "hold_refused": counters.hold_refused,
    })
}

/// Every reason, and their sum.
fn drops(drops: &Drops) -> Value {
    let each = DropReason::ALL.into_iter().map(|reason| (reason.name().to_owned(), drops.get(reason).into()));
    let total = ("total".to_owned(), drops.total().into());
    Value::Object(each.chain([total]).collect::<Map<_, _>>())
}
