//! The endpoint: all queue pairs of one worker, and the doors to them.

mod follow;
mod near;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use dcp_wire::{Data, DataOp, Kind, Qpn, Stream};

use crate::cc::{ParameterError, check};
use crate::completion::Cq;
use crate::maps::MapPool;
use crate::memory::Memory;
use crate::qp::{Progress, Qp, Shared, Srq, TimerAction, TurnEnd, make_receive};
use crate::wheel::Wheel;
use crate::{
    Completion, Counters, CqId, DropReason, EndpointConfig, Instant, ModifyError, MrAttr, MrKeys, PdId, Peer,
    PostError, QpConfig, QpCounters, QpId, QpState, Rate, RecvRequest, RegionId, RegisterError, RxPacket,
    RxSink, RxVerdict, SendRequest, SrqId, Terms, TxSink, WindowError,
};

/// A DCP endpoint without IO: commands and packets go in, frames, completions and a next timeout come out.
///
/// The driver finishes every [`RxSink::place`] before it calls a `poll_*` method, so that no ACK leaves before
/// the bytes it speaks of are in place.
#[derive(Clone, Debug)]
pub struct Endpoint {
    qps: Vec<Qp>,
    shared: Shared,
    pds: u32,
    /// Queue pairs with data to send, in turn.
    ready: VecDeque<u32>,
    /// Queue pairs that owe control frames.
    control: VecDeque<u32>,
    wheel: Wheel,
    due: Vec<u32>,
    /// A quarter of the shortest timeout of any queue pair: a longer gap between polls puts timers off (T-8).
    gap_max_ns: u64,
    uses_icrc: bool,
    /// Destroyed queue pairs, oldest first.
    free_qps: VecDeque<u32>,
}

/// Why an object was not created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreateError {
    /// The endpoint's limit is reached.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: u32,
    },
    /// A parameter is outside its range.
    OutOfRange {
        /// Its name.
        what: &'static str,
        /// As given.
        value: u64,
        /// Smallest and largest value.
        range: (u64, u64),
    },
    /// A parameter that must be a power of two is none.
    NotPowerOfTwo {
        /// Its name.
        what: &'static str,
        /// As given.
        value: u32,
    },
    /// A static window that would stall (C-1).
    Window(WindowError),
    /// A PD or CQ that this endpoint does not have.
    Unknown {
        /// What it is.
        what: &'static str,
    },
}

impl core::fmt::Display for CreateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooMany { what, limit } => write!(f, "{limit} {what} exist, which is the limit"),
            Self::OutOfRange { what, value, range: (low, high) } => {
                write!(f, "{what} {value} is outside {low} … {high}")
            }
            Self::NotPowerOfTwo { what, value } => write!(f, "{what} {value} is not a power of two"),
            Self::Window(error) => error.fmt(f),
            Self::Unknown { what } => write!(f, "no such {what}"),
        }
    }
}

impl core::error::Error for CreateError {}

impl From<ParameterError> for CreateError {
    fn from(ParameterError { what, value, range }: ParameterError) -> Self {
        Self::OutOfRange { what, value, range }
    }
}

/// Queue pairs that the QPN leaves room for.
const QPS_MAX: u32 = 1 << 20;
const CQ_DEPTH_MAX: u64 = 1 << 22;
/// Entries of a send, receive or shared receive queue.
const QUEUE_DEPTH_MAX: u64 = 1 << 15;

impl Endpoint {
    /// An endpoint without queue pairs.
    pub fn new(config: EndpointConfig) -> Self {
        let shared = Shared {
            memory: Memory::new(),
            maps: MapPool::new(config.map_words_max),
            cqs: Vec::new(),
            srqs: Vec::new(),
            draining: false,
            counters: Counters::default(),
            by_qp: Vec::new(),
            config,
        };
        Self {
            qps: Vec::new(),
            shared,
            pds: 0,
            ready: VecDeque::new(),
            control: VecDeque::new(),
            wheel: Wheel::new(),
            due: Vec::new(),
            gap_max_ns: u64::MAX,
            uses_icrc: false,
            free_qps: VecDeque::new(),
        }
    }

    // Commands.

    /// A new protection domain.
    pub fn create_pd(&mut self) -> PdId {
        self.pds += 1;
        PdId(self.pds - 1)
    }

    /// A completion queue for `depth` completions.
    ///
    /// # Errors
    /// `depth` is 0 or beyond 2^22.
    pub fn create_cq(&mut self, depth: usize) -> Result<CqId, CreateError> {
        check("completion queue depth", depth as u64, (1, CQ_DEPTH_MAX))?;
        let limit = u32::MAX;
        let index = u32::try_from(self.shared.cqs.len())
            .map_err(|_| CreateError::TooMany { what: "completion queues", limit })?;
        self.shared.cqs.push(Cq::new(depth));
        Ok(CqId(index))
    }

    /// Makes a range of memory known to peers and work requests.
    ///
    /// # Errors
    /// The range wraps, or there are too many.
    pub fn register(&mut self, attr: MrAttr) -> Result<MrKeys, RegisterError> {
        self.shared.memory.register(attr)
    }

    /// Forgets a range; false if the keys name none.
    pub fn deregister(&mut self, keys: MrKeys) -> bool {
        self.shared.memory.deregister(keys)
    }

    /// A shared receive queue for `depth` receives.
    ///
    /// # Errors
    /// `depth` is 0 or beyond 2^15, or there is no such domain.
    pub fn create_srq(&mut self, pd: PdId, depth: usize) -> Result<SrqId, CreateError> {
        self.check_pd(pd)?;
        check("shared receive queue depth", depth as u64, (1, QUEUE_DEPTH_MAX))?;
        let limit = u32::MAX;
        let index = u32::try_from(self.shared.srqs.len())
            .map_err(|_| CreateError::TooMany { what: "shared receive queues", limit })?;
        self.shared.srqs.push(Srq::new(pd, depth));
        Ok(SrqId(index))
    }

    /// A queue pair in state [`QpState::Reset`].
    ///
    /// # Errors
    /// A parameter is out of range, or there are too many queue pairs.
    pub fn create_qp(&mut self, mut config: QpConfig) -> Result<QpId, CreateError> {
        self.check_qp(&config)?;
        config.max_rd_atomic = config.max_rd_atomic.min((config.window / 2).max(1));
        if let Some(index) = self.free_qps.pop_front() {
            self.replace_qp(index, config);
            return Ok(QpId(index));
        }
        let limit = self.shared.config.qps_max.min(QPS_MAX);
        let index = u32::try_from(self.qps.len())
            .ok()
            .filter(|&index| index < limit)
            .ok_or(CreateError::TooMany { what: "queue pairs", limit })?;
        let qpn = Qpn::from_low_bits(self.shared.config.qpn_base + index);
        self.qps.push(Qp::new(QpId(index), qpn, config, &self.shared.config));
        self.shared.by_qp.push(QpCounters::default());
        let count = self.qps.len();
        self.note_config(&config);
        self.wheel.grow(count);
        self.ready.reserve(count - self.ready.len());
        self.control.reserve(count - self.control.len());
        Ok(QpId(index))
    }

    fn note_config(&mut self, config: &QpConfig) {
        self.gap_max_ns = self.gap_max_ns.min(config.timeout_ns().map_or(u64::MAX, |timeout| timeout / 4));
        self.uses_icrc |= config.icrc;
    }

    /// A queue pair in the place of a destroyed one; it may still stand on lists and in the wheel, which does no harm.
    fn replace_qp(&mut self, index: u32, config: QpConfig) {
        let old = &mut self.qps[index as usize];
        let (ready, control_listed, qpn) = (old.ready, old.control_listed, old.qpn());
        let mut qp = Qp::new(QpId(index), qpn, config, &self.shared.config);
        (qp.ready, qp.control_listed) = (ready, control_listed);
        self.qps[index as usize] = qp;
        self.shared.by_qp[index as usize] = QpCounters::default();
        self.note_config(&config);
    }

    /// Takes a queue pair out of use; its number is used again, after those of others destroyed before. What was
    /// outstanding does not complete: go through [`Endpoint::modify_to_error`] first if it should.
    pub fn destroy_qp(&mut self, qp: QpId) {
        if !self.free_qps.contains(&qp.0) {
            self.modify_to_reset(qp);
            self.free_qps.push_back(qp.0);
        }
    }

    fn check_qp(&self, config: &QpConfig) -> Result<(), CreateError> {
        self.check_pd(config.pd)?;
        if config.send_cq.index().max(config.recv_cq.index()) >= self.shared.cqs.len() {
            return Err(CreateError::Unknown { what: "completion queue" });
        }
        match config.srq.map(|srq| self.shared.srqs.get(srq.index())) {
            None => check("receive queue depth", config.recv_depth.into(), (1, QUEUE_DEPTH_MAX))?,
            Some(Some(srq)) if srq.pd == config.pd => {}
            Some(_) => {
                return Err(CreateError::Unknown { what: "shared receive queue of that protection domain" });
            }
        }
        check("send queue depth", config.send_depth.into(), (1, QUEUE_DEPTH_MAX))?;
        check("RNR retry count", config.rnr_retry.into(), (0, 7))?;
        check("MTU", config.mtu.into(), (256, 8192))?;
        check("window", config.window.into(), (1, 1 << 15))?;
        check("timeout exponent", config.timeout_exponent.into(), (0, 31))?;
        check("retry count", config.retry_cnt.into(), (0, 7))?;
        check("RetransQ length", config.retrans_max.into(), (1, u32::MAX.into()))?;
        check("traffic class", config.class.into(), (0, 15))?;
        if !config.window.is_power_of_two() {
            return Err(CreateError::NotPowerOfTwo { what: "window", value: config.window });
        }
        config.check_window(0).map_err(CreateError::Window)?;
        Ok(config.check_congestion_control()?)
    }

    fn check_pd(&self, pd: PdId) -> Result<(), CreateError> {
        if pd.0 < self.pds { Ok(()) } else { Err(CreateError::Unknown { what: "protection domain" }) }
    }

    /// Lets a queue pair take receives.
    ///
    /// # Errors
    /// It is not in state `Reset`.
    pub fn modify_to_init(&mut self, qp: QpId) -> Result<(), ModifyError> {
        self.qps[qp.index()].enter_init()
    }

    /// Takes a smaller MTU than the queue pair was made with: what both sides agreed on. A larger one changes nothing.
    ///
    /// # Errors
    /// It is connected already.
    pub fn limit_mtu(&mut self, qp: QpId, mtu: u32) -> Result<(), ModifyError> {
        self.qps[qp.index()].limit_mtu(mtu)
    }

    /// Takes what both sides agreed on, before the queue pair is connected: a smaller MTU, window and `max_rd_atomic`
    /// than it was made with, and an ICRC if the other side wants one. What is larger changes nothing.
    ///
    /// # Errors
    /// It is connected already.
    pub fn settle(&mut self, qp: QpId, terms: Terms) -> Result<(), ModifyError> {
        debug_assert!(terms.window.is_power_of_two(), "both windows are");
        let pair = &mut self.qps[qp.index()];
        pair.settle(terms, &self.shared.config)?;
        self.uses_icrc |= pair.config().icrc;
        Ok(())
    }

    /// Connects a queue pair: it receives and answers from now on.
    ///
    /// # Errors
    /// It is not in state `Init`.
    pub fn modify_to_rtr(&mut self, qp: QpId, peer: Peer) -> Result<(), ModifyError> {
        self.qps[qp.index()].enter_rtr(peer)
    }

    /// Lets a connected queue pair send.
    ///
    /// # Errors
    /// It is not in state `Rtr`.
    pub fn modify_to_rts(&mut self, qp: QpId) -> Result<(), ModifyError> {
        self.qps[qp.index()].enter_rts()
    }

    /// Ends a queue pair's work: everything outstanding is flushed.
    ///
    /// # Errors
    /// It is in state `Reset`.
    pub fn modify_to_error(&mut self, qp: QpId) -> Result<(), ModifyError> {
        self.qps[qp.index()].enter_error_by_command(&mut self.shared)
    }

    /// Takes a queue pair back to the state after creation, from any state. What was outstanding does not complete.
    pub fn modify_to_reset(&mut self, qp: QpId) {
        self.qps[qp.index()].reset(&mut self.shared);
    }

    /// Posts a work request. One posted to a queue pair in Error is flushed.
    ///
    /// # Errors
    /// It was not taken: the queue is full, or the request is malformed.
    pub fn post_send(&mut self, qp: QpId, request: &SendRequest<'_>) -> Result<(), PostError> {
        let pair = self.qps.get_mut(qp.index()).ok_or(PostError::UnknownQueue)?;
        pair.post_send(request, &mut self.shared)?;
        self.wake(qp.0);
        Ok(())
    }

    /// Posts work requests in order, until one is not taken.
    ///
    /// # Errors
    /// The index of the first one that was not taken, and why; those before it are posted.
    pub fn post_send_list(
        &mut self,
        qp: QpId,
        requests: &[SendRequest<'_>],
    ) -> Result<(), (usize, PostError)> {
        for (index, request) in requests.iter().enumerate() {
            self.post_send(qp, request).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// Posts a receive. One posted to a queue pair in Error is flushed.
    ///
    /// # Errors
    /// It was not taken: the queue is full or shared, or the request is malformed.
    pub fn post_recv(&mut self, qp: QpId, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let pair = self.qps.get_mut(qp.index()).ok_or(PostError::UnknownQueue)?;
        pair.post_recv(request, &mut self.shared)
    }

    /// Posts a receive to a shared queue.
    ///
    /// # Errors
    /// It was not taken: the queue is full, or the request is malformed.
    pub fn post_srq_recv(&mut self, srq: SrqId, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let queue = self.shared.srqs.get_mut(srq.index()).ok_or(PostError::UnknownQueue)?;
        if queue.is_full() {
            return Err(PostError::QueueFull { depth: u32::try_from(queue.depth()).unwrap_or(u32::MAX) });
        }
        let receive = make_receive(request, queue.pd, &self.shared.memory)?;
        queue.post(receive);
        Ok(())
    }

    // Inputs.

    /// Takes a received frame.
    #[inline]
    pub fn handle_packet<S: RxSink>(&mut self, now: Instant, rx: &RxPacket<'_>, sink: &mut S) -> RxVerdict {
        let number = rx.packet.headers.dest_qpn.get().wrapping_sub(self.shared.config.qpn_base);
        let Some(qp) = self.qps.get_mut(number as usize) else {
            return RxVerdict::Drop(self.shared.count_drop(DropReason::UnknownQp));
        };
        if let Kind::Data(data @ Data { op: DataOp::Write { reth, part }, .. }) = &rx.packet.headers.kind
            && qp.check_origin(rx.packet).is_ok()
            && let Some(usual) = qp.usual_packet(rx, data, *reth, *part, &self.shared)
        {
            let advanced = qp.take_usual(now, rx, data, &usual, &mut self.shared, sink);
            self.list_control(number);
            if advanced {
                self.send_answers(now, number);
            }
            return RxVerdict::Done;
        }
        self.handle_unusual(now, number, rx, sink)
    }

    /// Payload alone gives this side nothing to send but control; READs and ATOMICs that waited for emsn may.
    #[inline]
    fn send_answers(&mut self, now: Instant, number: u32) {
        if self.qps[number as usize].owes_answers() {
            self.wake(number);
            self.arm(now, number);
        }
    }

    /// Takes any frame for a queue pair that exists, a usual one too.
    #[inline(never)]
    pub(crate) fn handle_unusual<S: RxSink>(
        &mut self,
        now: Instant,
        number: u32,
        rx: &RxPacket<'_>,
        sink: &mut S,
    ) -> RxVerdict {
        let qp = &mut self.qps[number as usize];
        let verdict = match qp.check_origin(rx.packet) {
            Ok(()) => dispatch(qp, now, rx, &mut self.shared, sink),
            Err(reason) => Err(reason),
        };
        self.list_control(number);
        match verdict {
            Ok(RxVerdict::Done) if is_payload(&rx.packet.headers.kind) => {
                self.send_answers(now, number);
                RxVerdict::Done
            }
            // What goes back to its sender leaves this side with nothing to send, or to wait for.
            Ok(verdict @ (RxVerdict::Bounce(_) | RxVerdict::Return(_))) => verdict,
            Ok(verdict) => {
                self.wake(number);
                self.arm(now, number);
                verdict
            }
            Err(reason) => {
                self.wake(number);
                RxVerdict::Drop(self.shared.count_drop(reason))
            }
        }
    }

    /// Lets timers run out that are due.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wheel.is_due(now) {
            self.run_timers(now);
        }
    }

    fn run_timers(&mut self, now: Instant) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now, &mut due);
        for number in due.drain(..) {
            let action = self.qps[number as usize].handle_timeout(now, &mut self.shared);
            if action == TimerAction::Send {
                self.list_control(number);
                self.wake(number);
            }
            self.arm(now, number);
        }
        self.due = due;
    }

    /// T-8: the driver was away for `gap_ns` and could neither send nor receive. Coarse timers whose timeout is
    /// below four times that start again instead of running out. Called at every poll, before [`Endpoint::handle_timeout`].
    #[inline]
    pub fn handle_gap(&mut self, now: Instant, gap_ns: u64) {
        if gap_ns > self.gap_max_ns {
            self.put_timers_off(now, gap_ns);
        }
    }

    #[cold]
    fn put_timers_off(&mut self, now: Instant, gap_ns: u64) {
        let put_off = self.qps.iter_mut().filter_map(|qp| qp.handle_gap(now, gap_ns).then_some(())).count();
        self.shared.counters.gaps += put_off as u64;
    }

    /// T-17: no frame that was handed to a sink refers to memory any more.
    pub fn handle_drained(&mut self) {
        self.shared.draining = false;
    }

    // Outputs.

    /// Hands frames to the sink while it has room (T-2). `now` is read after the last input: R-14's t3.
    pub fn poll_transmit<S: TxSink>(&mut self, now: Instant, sink: &mut S) {
        self.poll_control(now, sink);
        self.poll_data(now, sink);
    }

    /// Hands over frames without payload only: ACKs, NAKs, probes and their answers.
    pub fn poll_control<S: TxSink>(&mut self, now: Instant, sink: &mut S) {
        while let Some(&number) = self.control.front() {
            let qp = &mut self.qps[number as usize];
            if !qp.transmit_control(now, &mut self.shared, sink) {
                return;
            }
            qp.control_listed = false;
            self.control.pop_front();
        }
    }

    fn poll_data<S: TxSink>(&mut self, now: Instant, sink: &mut S) {
        while sink.capacity() > 0 {
            let Some(number) = self.ready.pop_front() else { return };
            self.prefetch_turns(sink);
            let qp = &mut self.qps[number as usize];
            let end = qp.turn(now, &mut self.shared, sink);
            qp.ready = end == TurnEnd::More;
            if qp.ready {
                self.ready.push_back(number);
            }
            if end == TurnEnd::Paced || !self.wheel.is_armed(number) {
                self.arm(now, number);
            }
            self.list_control(number);
        }
    }

    /// Takes completions out of a queue, oldest first; returns how many. Those of failed requests, and what is behind
    /// them, come once the driver said that no frame refers to their buffers (T-17).
    pub fn poll_completions(&mut self, cq: CqId, out: &mut [Completion]) -> usize {
        let draining = self.shared.draining;
        self.shared.cqs.get_mut(cq.index()).map_or(0, |queue| queue.poll(out, draining))
    }

    /// When [`Endpoint::handle_timeout`] has to be called next; earlier calls do no harm.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.wheel.next_timeout()
    }

    // Getters.

    /// Whether failed requests wait for [`Endpoint::handle_drained`] to complete (T-17). A driver that copies payload
    /// when it sends may answer at once; one that does not sends nothing but control until its frames are gone.
    #[inline]
    pub const fn needs_drain(&self) -> bool {
        self.shared.draining
    }

    /// Counters since creation.
    pub const fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Counters of a queue pair since its creation.
    pub fn qp_counters(&self, qp: QpId) -> &QpCounters {
        &self.shared.by_qp[qp.index()]
    }

    /// As created.
    pub const fn config(&self) -> &EndpointConfig {
        &self.shared.config
    }

    /// The peer of a connected queue pair.
    pub fn peer(&self, qp: QpId) -> Option<&Peer> {
        self.qps[qp.index()].peer()
    }

    /// Number of a queue pair on the wire.
    pub fn qpn(&self, qp: QpId) -> Qpn {
        self.qps[qp.index()].qpn()
    }

    /// As created.
    pub fn qp_config(&self, qp: QpId) -> &QpConfig {
        self.qps[qp.index()].config()
    }

    /// Whether frames of a queue pair carry an ICRC; false for a number that is none here.
    #[inline]
    pub fn expects_icrc(&self, qpn: Qpn) -> bool {
        let number = qpn.get().wrapping_sub(self.shared.config.qpn_base);
        self.qps.get(number as usize).is_some_and(|qp| qp.config().icrc)
    }

    /// Whether any queue pair uses an ICRC.
    #[inline]
    pub const fn uses_icrc(&self) -> bool {
        self.uses_icrc
    }

    /// Whether posted work, or an answer under way, refers to a region. Looks at every queue: not for the hot path.
    pub fn refers_to(&self, region: RegionId) -> bool {
        self.qps.iter().any(|qp| qp.refers_to(region))
            || self.shared.srqs.iter().any(|srq| srq.refers_to(region))
    }

    /// Send work requests whose slots are the application's again, since creation, modulo 2^32.
    pub fn sends_freed(&self, qp: QpId) -> u32 {
        self.qps[qp.index()].sends_freed()
    }

    /// Receives posted and not completed.
    pub fn receives(&self, qp: QpId) -> usize {
        self.qps[qp.index()].receives()
    }

    /// Receives in a shared queue that no message has bound.
    pub fn srq_receives(&self, srq: SrqId) -> usize {
        self.shared.srqs[srq.index()].len()
    }

    /// Where in its ring, of the send depth rounded up to a power of two, the next work request will lie: a driver
    /// keeps inline bytes in a slot of that index.
    pub fn next_send_slot(&self, qp: QpId) -> u32 {
        self.qps[qp.index()].next_send_slot()
    }

    /// State of a queue pair.
    pub fn qp_state(&self, qp: QpId) -> QpState {
        self.qps[qp.index()].state()
    }

    /// Bytes that a queue pair has in flight, as far as it knows (T-12).
    pub fn in_flight(&self, qp: QpId) -> u64 {
        self.qps[qp.index()].in_flight()
    }

    /// The pace of a queue pair now: R = min(R_rev, R_cc) (C-1).
    pub fn rate(&self, qp: QpId) -> Rate {
        self.qps[qp.index()].rate()
    }

    /// Bytes that a queue pair's congestion control allows in flight; `u64::MAX` = any number.
    pub fn window_bytes(&self, qp: QpId) -> u64 {
        self.qps[qp.index()].window_bytes()
    }

    /// Work requests posted and not completed.
    pub fn outstanding(&self, qp: QpId) -> u32 {
        self.qps[qp.index()].outstanding()
    }

    /// Messages sent, requests and answers, that the peer has not acknowledged.
    pub fn unacknowledged(&self, qp: QpId) -> u32 {
        self.qps[qp.index()].unacknowledged()
    }

    /// Whether completions were lost because the queue was full.
    pub fn cq_overflowed(&self, cq: CqId) -> bool {
        self.shared.cqs[cq.index()].overflowed()
    }

    /// Whether a timer of the queue pair is armed.
    pub fn has_timer(&self, qp: QpId) -> bool {
        self.wheel.is_armed(qp.0)
    }

    /// Whether frames wait to be sent.
    pub fn has_frames(&self) -> bool {
        !self.control.is_empty() || !self.ready.is_empty()
    }

    /// Words of the map pool that are not in use.
    pub fn map_words_left(&self) -> usize {
        self.shared.maps.words_left()
    }

    /// A hash of everything that decides the endpoint's future: times relative to `now`, no statistics.
    pub fn state_hash(&self, now: Instant) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        for qp in &self.qps {
            qp.state_hash(now, &mut hasher);
        }
        (&self.shared.memory, &self.shared.maps, &self.shared.cqs, &self.shared.srqs).hash(&mut hasher);
        (&self.ready, &self.control, self.shared.draining).hash(&mut hasher);
        hasher.finish()
    }

    // Lists and timers.

    /// Puts a queue pair on the list of those with data, if it has any that may leave.
    #[inline]
    fn wake(&mut self, number: u32) {
        let qp = &mut self.qps[number as usize];
        if !qp.ready && qp.wants_turn() {
            qp.ready = true;
            self.ready.push_back(number);
        }
    }

    #[inline]
    fn list_control(&mut self, number: u32) {
        let qp = &mut self.qps[number as usize];
        if !qp.control_listed && qp.owes_control() {
            qp.control_listed = true;
            self.control.push_back(number);
        }
    }

    fn arm(&mut self, now: Instant, number: u32) {
        if let Some(deadline) = self.qps[number as usize].deadline(now) {
            self.wheel.arm_by(number, deadline);
        }
    }
}

#[inline]
const fn is_payload(kind: &Kind) -> bool {
    matches!(kind, Kind::Data(Data { op: DataOp::Write { .. } | DataOp::Send { .. }, .. }))
}

/// Hands a frame of a known connection to the half of the queue pair that it is for.
#[inline]
fn dispatch<S: RxSink>(
    qp: &mut Qp,
    now: Instant,
    rx: &RxPacket,
    shared: &mut Shared,
    sink: &mut S,
) -> Result<RxVerdict, DropReason> {
    match &rx.packet.headers.kind {
        Kind::Data(data) => return qp.handle_data(now, rx, data, shared, sink),
        Kind::HeaderOnly(header) if header.returned => qp.handle_returned(now, header, shared)?,
        Kind::HeaderOnly(header) => {
            return qp.handle_header(rx, header, shared).map(RxVerdict::Bounce).inspect(|_| {
                shared.counters.ho_bounced += 1;
            });
        }
        Kind::Ack(ack) => {
            let progress = Progress { stream: ack.stream, emsn: ack.emsn, received: ack.received };
            match ack.nak {
                None => qp.handle_ack(now, progress, shared)?,
                Some(nak) => qp.handle_nak(now, progress, nak, shared)?,
            }
            if ack.stream == Stream::Answers {
                qp.advance(now, shared, sink);
            }
        }
        Kind::Probe(probe) => qp.handle_probe(rx, probe),
        Kind::ProbeAck(answer) => {
            let progress = Progress { stream: answer.stream, emsn: answer.emsn, received: answer.received };
            qp.handle_ack(now, progress, shared)?;
            qp.handle_delay(now, answer);
            if answer.stream == Stream::Answers {
                qp.advance(now, shared, sink);
            }
        }
        Kind::Cnp => qp.handle_cnp(now, shared),
    }
    Ok(RxVerdict::Done)
}
