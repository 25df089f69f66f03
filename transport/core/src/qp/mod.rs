//! One queue pair: its state, its commands, and the parts that do the work.

mod control;
mod fail;
mod in_flight;
mod message;
mod post;
mod progress;
mod receive;
mod recv_window;
mod retrans;
mod send_queue;
mod timer;
mod transmit;

use std::hash::{Hash, Hasher};

use dcp_wire::{Headers, Kind, Nak, PKey, Packet, Path, Qpn};

pub use post::{PostError, SendRequest, Sge};
pub(crate) use progress::Progress;
pub use send_queue::SendOp;
pub(crate) use timer::TimerAction;
pub(crate) use transmit::TurnEnd;

use crate::completion::Cq;
use crate::maps::MapPool;
use crate::memory::Memory;
use crate::{Completion, Counters, CqId, DropReason, EndpointConfig, Instant, Mixer, Peer, QpConfig, QpId};
use control::Pending;
use in_flight::InFlight;
use message::SendWindow;
use recv_window::RecvWindow;
use retrans::RetransQ;
use send_queue::SendQueue;

/// IP length of a WRITE packet beyond its payload: headers 73 − Ethernet 14.
pub(crate) const WRITE_IP_OVERHEAD: u32 = 59;
/// The same for the packet with the most headers that is not a request (WRITE with immediate).
const IP_OVERHEAD_MAX: u32 = 66;

/// State of a queue pair, as in verbs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QpState {
    /// Created; takes no frames.
    Init,
    /// Ready to receive: also answers.
    Rtr,
    /// Ready to send.
    Rts,
    /// Failed: work requests are flushed, the peer is told.
    Error,
}

/// A state change that verbs do not allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModifyError {
    /// State the queue pair is in.
    pub from: QpState,
    /// State asked for.
    pub to: QpState,
}

impl core::fmt::Display for ModifyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a queue pair cannot go from {:?} to {:?}", self.from, self.to)
    }
}

impl core::error::Error for ModifyError {}

/// What queue pairs of an endpoint share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) config: EndpointConfig,
    pub(crate) memory: Memory,
    pub(crate) maps: MapPool,
    pub(crate) cqs: Vec<Cq>,
    pub(crate) counters: Counters,
}

impl Shared {
    #[inline]
    pub(crate) fn count_drop(&mut self, reason: DropReason) -> DropReason {
        self.counters.drops[reason as usize] += 1;
        reason
    }

    #[inline]
    fn complete(&mut self, cq: CqId, completion: Completion) {
        if !self.cqs[cq.index()].push(completion) {
            self.counters.completions_lost += 1;
        }
    }
}

/// One queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Qp {
    id: QpId,
    qpn: Qpn,
    state: QpState,
    /// On the endpoint's list of queue pairs with data to send.
    pub(crate) ready: bool,
    /// On the endpoint's list of queue pairs with control frames to send.
    pub(crate) control_listed: bool,
    config: QpConfig,
    /// Coarse timeout in nanoseconds; `u64::MAX` = never.
    timeout_ns: u64,
    /// Largest IP length of a data packet: `awin` must have room for it.
    full_packet: u32,
    /// Headers of the next frame; only `kind` changes between frames.
    template: Headers,
    peer: Option<Peer>,
    // Sender half.
    window: SendWindow,
    queue: SendQueue,
    retrans: RetransQ,
    in_flight: InFlight,
    /// Coarse expiries since `una` moved.
    expiries: u8,
    /// Expiries in silence while only the window held packets back.
    silences: u8,
    /// Last expiry of the coarse timer.
    expired: Instant,
    /// Last time anything came from the peer.
    heard: Instant,
    /// Last probe.
    probed: Instant,
    // Receiver half.
    recv: RecvWindow,
    /// IP bytes of data packets received, modulo 2^32.
    received: u32,
    /// `received` when the last ACK left.
    acknowledged: u32,
    pending: Pending,
    /// What a queue pair in Error answers.
    last_nak: Option<Nak>,
}

impl Qp {
    pub(crate) fn new(id: QpId, qpn: Qpn, config: QpConfig, shared: &Shared) -> Self {
        let own = &shared.config;
        let mut qp = Self {
            id,
            qpn,
            state: QpState::Init,
            ready: false,
            control_listed: false,
            config,
            timeout_ns: config.timeout_ns().unwrap_or(u64::MAX),
            full_packet: config.mtu + IP_OVERHEAD_MAX,
            template: Headers {
                path: Path {
                    src_mac: own.mac,
                    dst_mac: dcp_wire::MacAddr::default(),
                    vlan: None,
                    src_ip: own.ip,
                    dst_ip: dcp_wire::Ipv4Addr::UNSPECIFIED,
                    src_port: 0,
                    dst_port: 0,
                    class: config.class,
                    ecn: dcp_wire::Ecn::Ect0,
                    ttl: 64,
                },
                dest_qpn: Qpn::default(),
                pkey: PKey::default(),
                kind: Kind::Cnp,
            },
            peer: None,
            window: SendWindow::new(config.window, config.start_msn),
            queue: SendQueue::new(config.send_depth),
            retrans: RetransQ::new(config.retrans_max as usize),
            in_flight: InFlight::default(),
            expiries: 0,
            silences: 0,
            expired: Instant::ZERO,
            heard: Instant::ZERO,
            probed: Instant::ZERO,
            recv: RecvWindow::new(config.window),
            received: 0,
            acknowledged: 0,
            pending: Pending::default(),
            last_nak: None,
        };
        qp.change_path(0);
        qp
    }

    /// T-18: a source port of the ephemeral range, by queue pair and `attempt`.
    fn change_path(&mut self, attempt: u64) {
        let entropy = Mixer::mix(u64::from(self.qpn.get()) << 32 | attempt);
        self.template.path.src_port = 0xC000 | (entropy & 0x3FFF) as u16;
    }

    pub(crate) fn enter_rtr(&mut self, peer: Peer) -> Result<(), ModifyError> {
        self.check_change(QpState::Init, QpState::Rtr)?;
        self.peer = Some(peer);
        self.template.path.dst_mac = peer.mac;
        self.template.path.dst_ip = peer.ip;
        self.template.path.dst_port = peer.service_port;
        self.template.dest_qpn = peer.qpn;
        self.template.pkey = peer.pkey;
        self.recv.start(peer.start_msn);
        self.state = QpState::Rtr;
        Ok(())
    }

    pub(crate) fn enter_rts(&mut self) -> Result<(), ModifyError> {
        self.check_change(QpState::Rtr, QpState::Rts)?;
        self.state = QpState::Rts;
        Ok(())
    }

    fn check_change(&self, from: QpState, to: QpState) -> Result<(), ModifyError> {
        if self.state == from { Ok(()) } else { Err(ModifyError { from: self.state, to }) }
    }

    /// P-2, as far as it needs the queue pair.
    #[inline]
    pub(crate) fn check_origin(&self, packet: &Packet) -> Result<(), DropReason> {
        let headers = &packet.headers;
        if headers.pkey != self.template.pkey {
            return Err(DropReason::WrongKey);
        }
        if headers.path.src_ip != self.template.path.dst_ip {
            return Err(DropReason::WrongSource);
        }
        if self.state == QpState::Init { Err(DropReason::WrongState) } else { Ok(()) }
    }

    pub(crate) const fn state(&self) -> QpState {
        self.state
    }

    pub(crate) const fn qpn(&self) -> Qpn {
        self.qpn
    }

    pub(crate) const fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight.bytes()
    }

    pub(crate) const fn outstanding(&self) -> u32 {
        self.queue.outstanding()
    }

    /// Hashes what decides its future: ages instead of times, no statistics, no lazily armed timers.
    pub(crate) fn state_hash<H: Hasher>(&self, now: Instant, hasher: &mut H) {
        let age = |then: Instant| now.since(then);
        (self.id, self.state, self.ready, self.control_listed).hash(hasher);
        (self.window.una, self.window.next, self.window.cursor).hash(hasher);
        for steps in 0..self.window.len() {
            let message = *self.window.message(self.window.una.plus(steps));
            message::Message { life: Instant::from_ns(age(message.life)), ..message }.hash(hasher);
        }
        (&self.queue, &self.retrans, &self.in_flight).hash(hasher);
        (
            self.expiries,
            self.silences,
            age(self.heard),
            age(self.probed),
            self.heard <= self.expired,
            self.template.path.src_port,
        )
            .hash(hasher);
        (&self.recv, self.received, self.acknowledged, &self.pending, &self.last_nak).hash(hasher);
    }
}
