//! Looks at every frame that leaves and at both hosts after every step.

use std::collections::BTreeMap;

use dcp_core::CongestionControl;
use dcp_pair::{Copies, Pair, Random, Script, Side};
use dcp_wire::{Kind, Msn, Packet, Stream};

/// One stream of one queue pair, as seen on the link.
#[derive(Clone, Copy)]
struct Seen {
    /// Newest eMSN that its receiver told.
    emsn: Msn,
    /// One past the newest message that its sender sent.
    next: Msn,
}

/// A script that lets another one decide, and notes what breaks a rule.
pub(crate) struct Watch {
    random: Random,
    start: Msn,
    /// Of requests, of answers.
    windows: [u32; 2],
    streams: BTreeMap<(Side, u32, u8), Seen>,
    complaint: Option<String>,
}

impl Watch {
    pub(crate) fn new(random: Random, pair: &Pair) -> Self {
        let host = pair.host(Side::Client);
        let config = host.endpoint.qp_config(host.qps[0]);
        let windows = [config.window, config.max_rd_atomic.next_power_of_two()];
        Self { random, start: config.start_msn, windows, streams: BTreeMap::new(), complaint: None }
    }

    /// A host was replaced: all streams begin anew.
    pub(crate) fn restarted(&mut self) {
        self.streams.clear();
    }

    fn stream(&mut self, sender: Side, qp: u32, stream: Stream) -> &mut Seen {
        let start = Seen { emsn: self.start, next: self.start };
        self.streams.entry((sender, qp, stream as u8)).or_insert(start)
    }

    fn complain(&mut self, complaint: String) {
        self.complaint.get_or_insert(complaint);
    }

    /// T-1: nothing leaves beyond the window that the receiver could have told the sender.
    fn see_data(&mut self, from: Side, qp: u32, stream: Stream, msn: Msn) {
        let window = self.windows[stream as usize];
        let seen = self.stream(from, qp, stream);
        let ahead = msn.since(seen.emsn);
        if seen.next.is_before(msn.next()) {
            seen.next = msn.next();
        }
        if ahead >= window as i32 {
            self.complain(format!("{from:?} sent message {msn:?}, {ahead} ahead, in {stream:?}"));
        }
    }

    /// eMSN never goes back, nor beyond what was sent.
    fn see_progress(&mut self, from: Side, qp: u32, stream: Stream, emsn: Msn) {
        let seen = self.stream(from.peer(), qp, stream);
        if emsn.is_before(seen.emsn) || seen.next.is_before(emsn) {
            let (old, next) = (seen.emsn, seen.next);
            self.complain(format!("{from:?} says {emsn:?} after {old:?}, sent {next:?}, in {stream:?}"));
        } else {
            seen.emsn = emsn;
        }
    }

    /// What must hold whenever nothing moves.
    pub(crate) fn check(&mut self, pair: &Pair) -> Result<(), String> {
        if let Some(complaint) = self.complaint.take() {
            return Err(complaint);
        }
        if pair.starved > 0 {
            return Err("control left behind data (T-2)".to_owned());
        }
        for side in [Side::Client, Side::Server] {
            let host = pair.host(side);
            for &qp in &host.qps {
                let in_flight = host.endpoint.in_flight(qp);
                if in_flight > 0 && !host.endpoint.has_timer(qp) {
                    return Err(format!("{side:?} {qp:?}: {in_flight} bytes in flight, but no timer"));
                }
                let limit = match host.endpoint.qp_config(qp).cc {
                    CongestionControl::None => u64::MAX,
                    CongestionControl::Window { bytes } => bytes.into(),
                    CongestionControl::Swift(config) => config.window_max.into(),
                    CongestionControl::Dcqcn(_) => u64::MAX,
                };
                let messages = host.endpoint.unacknowledged(qp);
                if in_flight > limit || messages > self.windows[0] + self.windows[1] {
                    return Err(format!("{side:?} {qp:?}: {in_flight} bytes, {messages} messages under way"));
                }
            }
        }
        Ok(())
    }
}

impl Script for Watch {
    fn copies(&mut self, from: Side, packet: &Packet) -> Copies {
        let qp = packet.headers.dest_qpn.get() & 0xFFFF;
        match packet.headers.kind {
            Kind::Data(data) => self.see_data(from, qp, data.op.opcode().stream(), data.name.msn),
            Kind::Ack(ack) => self.see_progress(from, qp, ack.stream, ack.emsn),
            Kind::ProbeAck(answer) => self.see_progress(from, qp, answer.stream, answer.emsn),
            Kind::HeaderOnly(_) | Kind::Probe(_) | Kind::Cnp => {}
        }
        self.random.copies(from, packet)
    }
}
