//! One queue pair: its state, its commands, and the parts that do the work.

mod answer;
mod congestion;
mod connection;
mod control;
mod fail;
mod follow;
mod in_flight;
mod message;
mod near;
mod post;
mod progress;
mod receive;
mod recv_queue;
mod recv_window;
mod respond;
mod retrans;
mod rnr;
mod run;
mod send_queue;
mod send_stream;
mod state;
mod timer;
#[cfg(test)]
mod tracking_twin;
mod transmit;
mod usual;

use std::hash::{Hash, Hasher};

use dcp_wire::{Ipv4Addr, Msn, Nak, PKey, Packet, Qpn, Ssn, Stream};

pub use follow::{Followed, Run, Stretch};
pub(crate) use post::make_receive;
pub use post::{PostError, RecvRequest, SendRequest, Sge};
pub(crate) use progress::Progress;
pub(crate) use recv_queue::Srq;
pub use send_queue::{Remote, SendOp};
pub use state::{ModifyError, QpState};
pub(crate) use timer::TimerAction;
pub(crate) use transmit::TurnEnd;

use crate::cc::Controller;
use crate::completion::Cq;
use crate::maps::MapPool;
use crate::memory::Memory;
use crate::{
    Completion, Counters, CqId, DropReason, EndpointConfig, Instant, Mixer, PdId, Peer, QpConfig, QpCounters,
    QpId, Rate, RegionId,
};
use answer::{Answer, AnswerBody, PeerRequest};
use connection::Connection;
use control::{Owed, Pending};
use in_flight::InFlight;
use recv_queue::RecvQueue;
use recv_window::RecvWindow;
use retrans::RetransQ;
use rnr::Rnr;
use send_queue::SendQueue;
use send_stream::SendStream;

/// Most bytes of IP length that a data packet has beyond a full payload: a WRITE with immediate.
const IP_OVERHEAD_MAX: u32 = 66;
/// Bytes of IP length that a packet of a WRITE without immediate has beyond its payload.
const WRITE_OVERHEAD: u32 = 59;
/// Bytes of an ICRC.
const ICRC_LEN: u32 = 4;

/// What queue pairs of an endpoint share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) config: EndpointConfig,
    pub(crate) memory: Memory,
    pub(crate) maps: MapPool,
    pub(crate) cqs: Vec<Cq>,
    pub(crate) srqs: Vec<Srq>,
    /// A queue pair failed, and frames may still refer to its buffers (T-17).
    pub(crate) draining: bool,
    pub(crate) counters: Counters,
    /// By [`QpId`].
    pub(crate) by_qp: Vec<QpCounters>,
}

impl Shared {
    #[inline]
    pub(crate) fn count_drop(&mut self, reason: DropReason) -> DropReason {
        self.counters.drops[reason as usize] += 1;
        reason
    }

    #[inline]
    pub(super) fn count_placed(&mut self, qp: QpId, packets: u32) {
        self.counters.placed += u64::from(packets);
        self.by_qp[qp.index()].placed += u64::from(packets);
    }

    #[inline]
    fn complete(&mut self, cq: CqId, completion: Completion) {
        if !self.cqs[cq.index()].push(completion) {
            self.counters.completions_lost += 1;
        }
    }
}

/// One queue pair: the fields that WRITEs and SENDs touch, and a pointer to the rest.
///
/// This is its hot state: at most [`HOT_MAX`] bytes, beside the rings that configured depths make (a tracking slot of
/// 16 bytes per message, work requests).
///
/// In the order of use, so that a packet touches few cache lines: what comes in needs the first two, what leaves the first
/// four and the headers.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Qp {
    // Who a frame must come from, and the receiver half.
    recv: RecvWindow,
    /// IP bytes of data packets received, modulo 2^32.
    received: u32,
    /// `received` when the last ACK left.
    acknowledged: u32,
    id: QpId,
    peer_ip: Ipv4Addr,
    pkey: PKey,
    pending: Pending,
    state: QpState,
    /// On the endpoint's list of queue pairs with data to send.
    pub(crate) ready: bool,
    /// On the endpoint's list of queue pairs with control frames to send.
    pub(crate) control_listed: bool,
    /// Data waits for its pace: the timer wheel brings its turn (C-5).
    paced: bool,
    /// The peer has not acknowledged all answers: their window is not empty. Kept here so that nobody looks there in vain.
    answering: bool,
    /// Largest IP length of a data packet: `awin` must have room for it.
    full_packet: u32,
    config: Hot,
    // Sender half.
    in_flight: InFlight,
    /// Bytes that may be in flight; `u64::MAX` = any number.
    window_bytes: u64,
    queue: SendQueue,
    /// What moves with congestion; none with a static window.
    controller: Option<Box<Controller>>,
    /// SSN of the next two-sided message to enter the window.
    next_ssn: Ssn,
    /// READs and ATOMICs in the window or acknowledged whose answers are not complete (T-15).
    unanswered: u32,
    requests: SendStream,
    rnr: Rnr,
    /// Last time anything came from the peer.
    heard: Instant,
    rare: Box<Rare>,
    connection: Connection,
    qpn: Qpn,
    /// Coarse timeout in nanoseconds; `u64::MAX` = never.
    timeout_ns: u64,
    recv_queue: RecvQueue,
}

/// What every packet looks at of a configuration.
#[derive(Clone, Copy, Debug)]
struct Hot {
    pd: PdId,
    send_cq: CqId,
    recv_cq: CqId,
    mtu: u32,
    window: u32,
    ack_bytes: u32,
    max_rd_atomic: u32,
    icrc: bool,
    spray: bool,
}

impl Hot {
    const fn of(config: &QpConfig) -> Self {
        Self {
            pd: config.pd,
            send_cq: config.send_cq,
            recv_cq: config.recv_cq,
            mtu: config.mtu,
            window: config.window,
            ack_bytes: config.ack_bytes,
            max_rd_atomic: config.max_rd_atomic,
            icrc: config.icrc,
            spray: config.spray,
        }
    }
}

/// Bytes of hot state per queue pair.
const HOT_MAX: usize = 512;
const _: () = assert!(size_of::<Qp>() <= HOT_MAX);

/// What only READs, ATOMICs, waits, restarts, probes and failures touch.
#[derive(Clone, Debug)]
struct Rare {
    /// As created, but for an MTU that was limited since.
    config: QpConfig,
    /// Answers that this side sends.
    answers: SendStream,
    /// What they carry, by MSN.
    answer_ring: Box<[Answer]>,
    /// Answers that come from the peer.
    recv_answers: RecvWindow,
    /// READs and ATOMICs of the peer that wait for emsn, by MSN.
    peer_requests: Box<[Option<PeerRequest>]>,
    /// Packets that were refused or returned during an RNR wait (T-10).
    held: RetransQ,
    owed: Owed,
    /// What a queue pair in Error answers.
    last_nak: Option<Nak>,
    peer: Option<Peer>,
}

impl Rare {
    fn new(config: &QpConfig) -> Self {
        let answers = config.max_rd_atomic.next_power_of_two();
        let slots = if config.max_rd_atomic > 0 { config.window } else { 0 };
        let retrans_max = config.retrans_max as usize;
        Self {
            config: *config,
            answers: SendStream::new(answers, config.start_msn, retrans_max),
            answer_ring: vec![Answer::NOTHING; answers as usize].into(),
            recv_answers: RecvWindow::new(answers),
            peer_requests: vec![None; slots as usize].into(),
            held: RetransQ::new(retrans_max),
            owed: Owed::default(),
            last_nak: None,
            peer: None,
        }
    }
}

impl Qp {
    pub(crate) fn new(id: QpId, qpn: Qpn, config: QpConfig, own: &EndpointConfig) -> Self {
        let icrc_len = if config.icrc { ICRC_LEN } else { 0 };
        let full_packet = config.mtu + IP_OVERHEAD_MAX + icrc_len;
        let mut qp = Self {
            id,
            qpn,
            state: QpState::Reset,
            ready: false,
            control_listed: false,
            paced: false,
            answering: false,
            timeout_ns: config.timeout_ns().unwrap_or(u64::MAX),
            full_packet,
            peer_ip: Ipv4Addr::UNSPECIFIED,
            pkey: PKey::default(),
            connection: Connection::new(own, &config),
            requests: SendStream::new(config.window, config.start_msn, config.retrans_max as usize),
            queue: SendQueue::new(config.send_depth),
            next_ssn: config.start_ssn,
            unanswered: 0,
            in_flight: InFlight::default(),
            window_bytes: config.cc.window(),
            controller: Controller::new(&config, full_packet),
            heard: Instant::ZERO,
            rnr: Rnr::default(),
            recv: RecvWindow::new(config.window),
            recv_queue: RecvQueue::new(config.recv_depth, config.srq),
            received: 0,
            acknowledged: 0,
            pending: Pending::default(),
            rare: Box::new(Rare::new(&config)),
            config: Hot::of(&config),
        };
        qp.change_path(0);
        qp
    }

    /// T-18: a source port of the ephemeral range, by queue pair and `attempt`.
    fn change_path(&mut self, attempt: u64) {
        let entropy = Mixer::mix(u64::from(self.qpn.get()) << 32 ^ attempt);
        self.connection.set_src_port(0xC000 | (entropy & 0x3FFF) as u16);
    }

    /// P-2, as far as it needs the queue pair.
    #[inline]
    pub(crate) fn check_origin(&self, packet: &Packet) -> Result<(), DropReason> {
        let headers = &packet.headers;
        if headers.pkey != self.pkey {
            return Err(DropReason::WrongKey);
        }
        if headers.path.src_ip != self.peer_ip {
            return Err(DropReason::WrongSource);
        }
        if self.state.takes_frames() { Ok(()) } else { Err(DropReason::WrongState) }
    }

    #[inline]
    fn stream(&self, stream: Stream) -> &SendStream {
        match stream {
            Stream::Requests => &self.requests,
            Stream::Answers => &self.rare.answers,
        }
    }

    #[inline]
    fn stream_mut(&mut self, stream: Stream) -> &mut SendStream {
        match stream {
            Stream::Requests => &mut self.requests,
            Stream::Answers => &mut self.rare.answers,
        }
    }

    #[inline]
    fn recv_window(&self, stream: Stream) -> &RecvWindow {
        match stream {
            Stream::Requests => &self.recv,
            Stream::Answers => &self.rare.recv_answers,
        }
    }

    /// MSN of the oldest work request that is not completed.
    #[inline]
    fn oldest_msn(&self) -> Msn {
        Msn::from_low_bits(self.requests.window.una.get().wrapping_sub(self.queue.awaiting()))
    }

    pub(crate) const fn qpn(&self) -> Qpn {
        self.qpn
    }

    pub(crate) const fn config(&self) -> &QpConfig {
        &self.rare.config
    }

    pub(crate) const fn peer(&self) -> Option<&Peer> {
        self.rare.peer.as_ref()
    }

    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight.bytes()
    }

    /// The pace now.
    pub(crate) fn rate(&self) -> Rate {
        self.controller.as_ref().map_or(Rate::UNLIMITED, |controller| controller.rate())
    }

    /// Bytes that congestion control allows in flight; `u64::MAX` = any number.
    pub(crate) const fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    pub(crate) const fn outstanding(&self) -> u32 {
        self.queue.outstanding()
    }

    pub(crate) fn refers_to(&self, region: RegionId) -> bool {
        let answers = (0..self.rare.answers.window.len()).any(|steps| {
            let msn = self.rare.answers.window.una.plus(steps);
            let answer = &self.rare.answer_ring[msn.get() as usize & (self.rare.answer_ring.len() - 1)];
            matches!(answer.body, AnswerBody::Read(segment) if segment.region == region && segment.len > 0)
        });
        answers || self.queue.refers_to(region) || self.recv_queue.refers_to(region)
    }

    pub(crate) const fn sends_freed(&self) -> u32 {
        self.queue.freed()
    }

    pub(crate) const fn unacknowledged(&self) -> u32 {
        self.requests.window.len() + self.rare.answers.window.len()
    }

    pub(crate) fn receives(&self) -> usize {
        self.recv_queue.len()
    }

    pub(crate) const fn next_send_slot(&self) -> u32 {
        self.queue.next_slot()
    }

    /// Whether it owes the peer answers.
    #[inline]
    pub(crate) fn owes_answers(&self) -> bool {
        debug_assert_eq!(self.answering, !self.rare.answers.window.is_empty());
        self.answering
    }

    /// Hashes what decides its future: ages instead of times, no statistics, no lazily armed timers.
    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        (self.id, self.state, self.ready, self.control_listed, self.paced, self.window_bytes).hash(hasher);
        if let Some(controller) = &self.controller {
            controller.state_hash(now, hasher);
        }
        self.requests.state_hash(now, self.heard, hasher);
        self.rare.answers.state_hash(now, self.heard, hasher);
        self.rnr.state_hash(now, hasher);
        (&self.rare.held, &self.rare.owed).hash(hasher);
        (&self.queue, self.next_ssn, self.unanswered, &self.in_flight).hash(hasher);
        (now.since(self.heard), self.connection.path.src_port).hash(hasher);
        (&self.recv, &self.recv_queue, self.received, self.acknowledged, &self.pending).hash(hasher);
        (&self.rare.last_nak, &self.rare.answer_ring, &self.rare.recv_answers, &self.rare.peer_requests)
            .hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CqId, PdId};

    #[test]
    fn tracking_takes_sixteen_bytes_per_outstanding_message_and_hot_state_is_bounded() {
        let own = EndpointConfig::new(dcp_wire::MacAddr::default(), dcp_wire::Ipv4Addr::UNSPECIFIED);
        for window in [1, 8, 128, 1 << 15] {
            let config = QpConfig { window, ..QpConfig::new(PdId(0), CqId(0)) };
            let qp = Qp::new(QpId(0), Qpn::default(), config, &own);
            assert_eq!(qp.recv.slot_bytes(), 16 * window as usize);
        }
        println!("hot state {} B of at most {HOT_MAX}, rare state {} B", size_of::<Qp>(), size_of::<Rare>());
    }
}
