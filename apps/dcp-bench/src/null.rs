//! A sender without a peer, on a device that takes frames and delivers none: what sending costs, and nothing else.
//!
//! Nobody acknowledges. So as soon as frames are handed to the driver, the endpoint is told that they arrived, as an
//! ACK would tell it.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use dcp::Worker;
use dcp::core::{AtomicOp, Peer, QpId, RxPacket, RxSink, RxVerdict, Segment};
use dcp::device::DeviceUri;
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::wire::{Ack, Ecn, Headers, Kind, MacAddr, Msn, PKey, Packet, Path, Qpn, RegionKey, Ssn, Stream};

use crate::device::Stage;
use crate::failure::Failure;
use crate::fairness::Fairness;
use crate::net::NetCounters;
use crate::outcome::{Details, Outcome, overdue_note};
use crate::pair::Host;
use crate::plan::{Link, Plan, Side};
use crate::stats::Latencies;
use crate::traffic::{Content, Next, Sender, SenderParts, Tally};

/// Addresses for documentation (RFC 5737): nobody has them.
const OWN_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const PKEY: PKey = PKey(1);
/// Rounds between two looks at clock and signals.
const ROUNDS_PER_TICK: u32 = 64;
const DELIVERED: &str =
    "null: nothing was delivered or compared; a message counts as complete when it was sent";

/// Carries out plans, one after the other, as far as their sender goes. `row`: takes what each brought.
pub(crate) fn run(
    plans: &[Plan],
    stage: &mut Stage<'_>,
    row: &mut dyn FnMut(&Plan, Outcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut host, mut worker) = Host::open(plans, &link()?, stage.interrupted)?;
    (stage.banner)(&host.plan)?;
    for (number, plan) in plans.iter().enumerate() {
        if number > 0 {
            host.renew(&mut worker, plan, stage.interrupted)?;
        }
        stage.progress.begin(&host.plan);
        let (outcome, left) = one(&host, worker, stage)?;
        worker = left;
        let interrupted = outcome.interrupted;
        row(&host.plan, outcome)?;
        if interrupted {
            break;
        }
    }
    Ok(())
}

/// Carries out one of them.
fn one(host: &Host, mut worker: Worker, stage: &mut Stage<'_>) -> Result<(Outcome, Worker), Failure> {
    let interrupted = stage.interrupted;
    let (before, ignored) = (NetCounters::of(&worker), worker.counters().received);
    let mut peers = Vec::with_capacity(host.qps.len());
    for &qp in &host.qps {
        connect(&mut worker, qp)?;
        peers.push(Silent { qp, una: Msn::ZERO, received: 0 });
    }
    let parts = SenderParts {
        worker,
        cq: host.cqs.send,
        number: 1,
        qps: host.qps.clone(),
        content: Content::new(&host.plan, host.layout, 1),
        memory: host.memory.share(),
        rkey: RegionKey(1),
        server: None,
        copies: host.copies(),
    };
    let mut sender = Sender::new(parts, &host.plan, interrupted)?;
    let mut tally = Tally::new(&host.plan, interrupted, stage.progress, host.clock.now_ns());
    let mut rounds = 0u32;
    while !sender.is_done() {
        sender.poll()?;
        peers.iter_mut().for_each(|peer| peer.acknowledge(&mut sender.worker));
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(ROUNDS_PER_TICK) {
            match tally.tick(host.clock.now_ns(), sender.completed()) {
                Next::GoOn => {}
                Next::Finish => sender.stop(),
                Next::Leave => break,
            }
        }
    }
    let mut outcome = tally.outcome(&host.plan, host.clock.now_ns(), sender.completed(), 1);
    let latency = sender.latencies().and_then(Latencies::summary);
    let (fairness, overdue) = (Fairness::of(&sender.rates()), sender.overdue());
    outcome.details = Details { latency, fairness, overdue, ..outcome.details };
    outcome.notes.extend(overdue_note(&outcome.details));
    outcome.net = NetCounters::of(&sender.worker).since(&before);
    outcome.interrupted |= interrupted.load(Ordering::Relaxed);
    let ignored = sender.worker.counters().received - ignored;
    outcome.notes.push(format!("{DELIVERED}; {ignored} frames of zeros were received and ignored"));
    Ok((outcome, sender.worker))
}

fn link() -> Result<Link, Failure> {
    let ip = InterfaceAddress::new(OWN_IP, 24).and_then(|own| IpConfig::new(own, None));
    let ip = ip.map_err(|error| Failure::usage(error.to_string()))?;
    let side = Side::Client { host: PEER_IP.to_string() };
    Ok(Link { uri: DeviceUri::Null, ip, mac: None, side, port: 0 })
}

fn connect(worker: &mut Worker, qp: QpId) -> Result<(), Failure> {
    let endpoint = worker.endpoint_mut();
    let peer = Peer {
        qpn: Qpn::from_low_bits(1),
        pkey: PKEY,
        mac: PEER_MAC,
        ip: PEER_IP,
        service_port: endpoint.config().service_port,
        start_msn: Msn::ZERO,
        start_ssn: Ssn::ZERO,
    };
    let connected = endpoint.modify_to_rtr(qp, peer).and_then(|()| endpoint.modify_to_rts(qp));
    connected.map_err(|error| Failure::transfer(error.to_string()))
}

/// What a peer would know that got everything.
struct Silent {
    qp: QpId,
    /// First message that it has not acknowledged.
    una: Msn,
    /// IP bytes that it would have received.
    received: u32,
}

impl Silent {
    /// Says what it would say now.
    fn acknowledge(&mut self, worker: &mut Worker) {
        let sent = worker.endpoint().in_flight(self.qp);
        if sent == 0 {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the count is modulo 2^32")]
        let received = self.received.wrapping_add(sent as u32);
        let begun = worker.endpoint().unacknowledged(self.qp);
        // The last message may be on its way still, as the only one: what is ahead of it has left.
        for steps in [begun, begun.saturating_sub(1)] {
            if self.say(worker, self.una.plus(steps), received) {
                self.una = self.una.plus(steps);
                self.received = received;
                return;
            }
        }
    }

    /// Whether the endpoint took it.
    fn say(&self, worker: &mut Worker, emsn: Msn, received: u32) -> bool {
        let config = *worker.endpoint().config();
        let path = Path {
            src_mac: PEER_MAC,
            dst_mac: config.mac,
            vlan: None,
            src_ip: PEER_IP,
            dst_ip: config.ip,
            src_port: config.service_port,
            dst_port: config.service_port,
            class: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
        };
        let kind = Kind::Ack(Ack { stream: Stream::Requests, emsn, received, nak: None });
        let headers = Headers { path, dest_qpn: worker.endpoint().qpn(self.qp), pkey: PKEY, kind };
        let packet = Packet { headers, ip_len: 0, payload_offset: 0, payload_len: 0 };
        let now = worker.now();
        let rx = RxPacket { packet: &packet, arrived: now };
        worker.endpoint_mut().handle_packet(now, &rx, &mut Nowhere) == RxVerdict::Done
    }
}

/// An ACK brings no bytes.
struct Nowhere;

impl RxSink for Nowhere {
    fn place(&mut self, _: u32, _: Segment) {
        unreachable!("an ACK has no payload");
    }

    fn atomic(&mut self, _: Segment, _: AtomicOp) -> u64 {
        unreachable!("an ACK is no atomic");
    }

    fn store(&mut self, _: Segment, _: u64) {
        unreachable!("an ACK answers no atomic");
    }
}
