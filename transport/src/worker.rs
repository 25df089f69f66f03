//! The loop of one worker: an endpoint, its queue pair, its memory.

mod ahead;
mod chain;
mod lane;
mod load;
mod network;

use dcp_core::{Endpoint, Followed, Instant, RegionId, RxPacket, RxVerdict};
use dcp_wire::{BounceRewrite, HEADER_LEN_MAX, Kind, Packet, ParseError, ParseOptions};
use dpdk_ffi::{Clock, HugePreference, Mbuf, MbufBatch, MbufStash, Pool, QueuePair, Region, Streaming};

use crate::device::Upkeep;
use crate::net::NetStack;
use crate::place::{Placer, RunPlacer};
use crate::recency::Recency;
use crate::transmit::FrameBuilder;
use ahead::look_ahead;
use chain::Chain;
use lane::Others;
pub(crate) use lane::{Lane, Queues};

pub use load::ReceiveLoad;

/// What a worker runs on.
#[derive(Debug)]
pub struct WorkerConfig {
    /// The protocol.
    pub endpoint: Endpoint,
    /// The device's receive and transmit queue.
    pub queues: QueuePair,
    /// Mbufs for headers.
    pub header_pool: Pool,
    /// Mbufs that point to payload.
    pub payload_pool: Pool,
    /// The clock; workers of one process share its origin.
    pub clock: Clock,
    /// UDP destination port of frames for this endpoint.
    pub service_port: u16,
    /// Payload segments that one frame may have: gather entries that meet inside one MTU. 1 … 16.
    pub segments_max: usize,
}

/// What a worker counts beside its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WorkerCounters {
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that are no legal DCP frames for this endpoint, by [`ParseError::index`].
    pub unparsed: [u64; ParseError::COUNT],
    /// Frames with a wrong ICRC, counted among the unparsed too.
    pub icrc_errors: u64,
    /// Bounces that found no transmit room; the sender's coarse timer recovers.
    pub bounces_lost: u64,
    /// Polls that found more to send than mbufs to send it in.
    pub starved: u64,
    /// Frames freed because the device had no link.
    pub link_down_drops: u64,
    /// For how long nobody came to serve the receive queue, and how much waited then.
    pub receive_load: ReceiveLoad,
    /// Frames received for workers that share this one's queues, and handed over.
    pub handed_over: u64,
    /// Frames for such workers that had no room for them.
    pub hand_over_drops: u64,
    /// Frames sent for such workers.
    pub relayed: u64,
}

/// Polls without a frame taken after which frames are dropped, where failed requests wait for their end (T-17).
const STUCK_POLLS: u32 = 256;
/// Polls that wait for transmit room before bounces are dropped.
const BOUNCE_PATIENCE: u32 = 256;

/// Room in each burst that bounces leave to the worker's own frames: CNPs and ACKs are what ends an overload.
const OWN_FRAMES: usize = 8;

/// Drives an endpoint over a queue pair. Not tied to a thread: whoever holds it calls [`Worker::poll`].
#[derive(Debug)]
pub struct Worker {
    endpoint: Endpoint,
    queues: Queues,
    /// Workers that take their frames from this one.
    others: Others,
    regions: Vec<Region>,
    recency: Recency,
    /// In the place of regions that are gone.
    nothing: Region,
    stash: MbufStash,
    clock: Clock,
    options: ParseOptions,
    segments_max: usize,
    header_pool: Pool,
    /// What is received, but while it is looked at.
    rx: Option<Box<MbufBatch>>,
    bounces: MbufBatch,
    tx: MbufBatch,
    done: MbufBatch,
    /// Whole frames, where an ICRC is to be computed.
    scratch: Vec<u8>,
    /// Polls in a row in which the device took nothing of what there was.
    stuck: u32,
    /// Polls in a row that received nothing, because bounces wait for transmit room.
    waited: u32,
    /// When the receive queue was last seen empty (R-14's t2).
    seen_empty: Instant,
    last_poll: Instant,
    /// Payload is copied behind the header.
    linear: bool,
    upkeep: Option<Upkeep>,
    net: Option<NetStack>,
    /// When the network stack has something to send.
    net_due: Option<Instant>,
    counters: WorkerCounters,
}

impl Worker {
    /// A worker without memory: give it regions before work requests name them.
    pub fn new(config: WorkerConfig) -> Self {
        let WorkerConfig { endpoint, queues, header_pool, payload_pool, clock, service_port, segments_max } =
            config;
        let options = ParseOptions { service_port, icrc: false };
        let pools = (header_pool, payload_pool);
        Self::over(Queues::own(queues), endpoint, pools, clock, options, segments_max)
    }

    /// Over a queue pair, or another worker's.
    pub(crate) fn over(
        queues: Queues,
        endpoint: Endpoint,
        (header_pool, payload_pool): (Pool, Pool),
        clock: Clock,
        options: ParseOptions,
        segments_max: usize,
    ) -> Self {
        let now = Instant::from_ns(clock.now_ns());
        Self {
            endpoint,
            queues,
            others: Others::default(),
            regions: Vec::new(),
            recency: Recency::new(),
            nothing: Region::alloc(1, HugePreference::Never).expect("a byte of memory"),
            stash: MbufStash::new(&header_pool, &payload_pool),
            clock,
            options,
            segments_max,
            header_pool,
            rx: Some(Box::default()),
            bounces: MbufBatch::new(),
            tx: MbufBatch::new(),
            done: MbufBatch::new(),
            scratch: Vec::new(),
            stuck: 0,
            waited: 0,
            seen_empty: now,
            last_poll: now,
            linear: false,
            upkeep: None,
            net: None,
            net_due: None,
            counters: WorkerCounters::default(),
        }
    }

    /// Makes a region known; register ranges of it with [`Endpoint::register`] under the id returned.
    pub fn add_region(&mut self, region: Region) -> RegionId {
        self.regions.push(region);
        RegionId(u32::try_from(self.regions.len() - 1).expect("fewer than 2^32 regions"))
    }

    /// Makes a region known under an id of the caller's choice, the same at several workers.
    pub(crate) fn set_region(&mut self, id: RegionId, region: Region) {
        while self.regions.len() <= id.index() {
            // Never looked at: no registration names it.
            self.regions.push(region.clone());
        }
        self.regions[id.index()] = region;
    }

    /// Whether a frame under way refers to a region.
    pub(crate) fn region_in_flight(&self, id: RegionId) -> bool {
        self.regions[id.index()].in_flight() > 0
    }

    /// Lets go of a region that nothing refers to.
    pub(crate) fn clear_region(&mut self, id: RegionId) {
        self.regions[id.index()] = self.nothing.clone();
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The endpoint, for commands. Work posted leaves at the next [`Worker::poll`].
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Counters of the worker itself.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// What the receive queue says about the host: two readings and their difference.
    pub fn receive_load(&self) -> ReceiveLoad {
        self.counters.receive_load
    }

    /// One round: receive, place, answer, let timers run, send. Returns the frames received and sent.
    pub fn poll(&mut self) -> usize {
        let now = self.now();
        self.endpoint.handle_gap(now, now.since(self.last_poll));
        self.last_poll = now;
        if self.upkeep.is_some() {
            self.keep_up(now);
        }
        let received = self.receive(now);
        self.endpoint.handle_timeout(now);
        if self.net_due.is_some_and(|due| due <= now) {
            self.send_net_frames(now);
        }
        // t3 is read after everything ahead of a probe has been placed.
        let later = self.now();
        let relayed = self.queues.relay(true);
        let sent = self.transmit(later);
        let relayed = relayed + self.queues.relay(false);
        self.queues.take_turns();
        self.counters.relayed += relayed as u64;
        received + sent + relayed
    }

    /// The worker's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Time on the worker's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.clock.now_ns())
    }

    /// While bounces wait for transmit room, frames wait in the receive queue, so that each finds room for its own
    /// bounce; not for ever, or two hosts on one cable could wait for each other.
    fn receive(&mut self, now: Instant) -> usize {
        if !self.bounces.is_empty() && self.waited < BOUNCE_PATIENCE {
            self.waited += 1;
            return 0;
        }
        self.waited = 0;
        let Some(mut batch) = self.rx.take() else { return 0 };
        let room = batch.room();
        let count = self.queues.receive(&mut batch);
        let arrived = self.seen_empty;
        if count < room {
            self.seen_empty = now;
        }
        self.counters.receive_load.handle_burst(count, now.since(arrived));
        self.handle_burst(now, arrived, &mut batch);
        self.rx = Some(batch);
        self.counters.received += count as u64;
        count
    }

    /// Takes the frames of a burst and frees them, but for those that go back or to others.
    #[inline(never)]
    fn handle_burst(&mut self, now: Instant, arrived: Instant, batch: &mut MbufBatch) {
        // What is copied past the caches is visible before this returns: before completions, and before any frame.
        let streaming = Streaming::begin();
        look_ahead(&self.endpoint, batch);
        let mut chain = Chain::default();
        let mut sift = batch.sift();
        loop {
            let followed = self.follow(now, sift.rest(), &mut chain, &streaming);
            sift.keep(followed);
            let Some(frame) = sift.take() else { break };
            let left = match self.others.of(&frame) {
                Some(ring) => count_handed(&mut self.counters, ring.push(frame)),
                None => self.handle_frame(now, arrived, frame, &mut chain, &streaming),
            };
            if let Some(frame) = left {
                sift.put_back(frame);
            }
        }
        drop(sift);
        batch.free_all();
        self.done.free_all();
    }

    /// Returns the frame if it is used up.
    #[inline]
    fn handle_frame(
        &mut self,
        now: Instant,
        arrived: Instant,
        frame: Mbuf,
        chain: &mut Chain,
        streaming: &Streaming,
    ) -> Option<Mbuf> {
        let icrc = self.endpoint.uses_icrc() && self.carries_icrc(&frame);
        let options = ParseOptions { icrc, ..self.options };
        let mut parsed = parse(options, &frame);
        if icrc && let Ok(packet) = parsed {
            parsed = self.check_icrc(packet, &frame);
        }
        // By reference: a copy of what was just written field by field would stall.
        let packet = match &parsed {
            Ok(packet) => packet,
            Err(error) => {
                self.counters.unparsed[error.index()] += 1;
                self.handle_other(now, *error, frame);
                return None;
            }
        };
        let payload_offset = usize::from(packet.payload_offset);
        let recency = &mut self.recency;
        let mut placer = Placer { frame: &frame, payload_offset, regions: &self.regions, recency, streaming };
        let rx = RxPacket { packet, arrived };
        match self.endpoint.handle_packet(now, &rx, &mut placer) {
            RxVerdict::Bounce(rewrite) => self.bounce(frame, &rewrite, false),
            RxVerdict::Return(rewrite) => self.bounce(frame, &rewrite, true),
            RxVerdict::Drop(_) => return Some(frame),
            RxVerdict::Done => {
                if !icrc {
                    chain.begin_after(&self.endpoint, &rx, &frame);
                }
                return Some(frame);
            }
        }
        None
    }

    /// Takes the frames at the front of a burst that follow the one before; how many.
    #[inline]
    fn follow(&mut self, now: Instant, frames: &[Mbuf], chain: &mut Chain, streaming: &Streaming) -> usize {
        let Some((run, stretch)) = chain.stretch(frames) else { return 0 };
        let (regions, recency) = (&self.regions[..], &mut self.recency);
        let mut placer = RunPlacer { frames: frames.iter(), regions, recency, streaming };
        let (taken, last) = self.endpoint.handle_followers(now, run, stretch, &mut placer);
        if last != Followed::On {
            chain.end();
        }
        taken as usize
    }

    /// Whether a frame's connection uses an ICRC.
    #[cold]
    fn carries_icrc(&self, frame: &Mbuf) -> bool {
        let mut head = [0; dcp_wire::PARSE_LEN];
        let len = frame.header_into(&mut head);
        dcp_wire::peek_dest_qpn(&head[..len]).is_some_and(|qpn| self.endpoint.expects_icrc(qpn))
    }

    /// A frame with an ICRC has a right one, or is dropped. An HO's tail is gone.
    #[cold]
    fn check_icrc(&mut self, packet: Packet, frame: &Mbuf) -> Result<Packet, ParseError> {
        if matches!(packet.headers.kind, Kind::HeaderOnly(_)) {
            return Ok(packet);
        }
        self.scratch.resize(frame.frame_len(), 0);
        let whole = frame.copy_to_slice(0, &mut self.scratch).is_ok();
        if whole && dcp_wire::icrc_ok(&self.scratch) {
            return Ok(packet);
        }
        self.counters.icrc_errors += 1;
        Err(ParseError::UdpChecksum)
    }

    /// R-10, and with `cut` R-12: in place, unless someone else holds the frame too.
    fn bounce(&mut self, mut frame: Mbuf, rewrite: &BounceRewrite, cut: bool) {
        let touched = (dcp_wire::HO_LEN + dcp_wire::VLAN_LEN).min(frame.frame_len());
        if frame.is_shared() || frame.head_len() < touched {
            match frame.copy(&self.header_pool) {
                Some(copy) => self.done.discard(std::mem::replace(&mut frame, copy)),
                None => {
                    self.counters.bounces_lost += 1;
                    self.done.discard(frame);
                    return;
                }
            }
        }
        let trimmed = if cut { frame.head_mut().map(dcp_wire::trim) } else { None };
        if let Some(Ok(len)) = trimmed {
            let _ = frame.truncate(len);
        }
        let rewritten = frame.head_mut().is_some_and(|head| dcp_wire::bounce(head, rewrite).is_ok());
        debug_assert!(rewritten, "a parsed frame can be bounced");
        if let Err(frame) = self.bounces.push(frame) {
            self.counters.bounces_lost += 1;
            self.done.discard(frame);
        }
    }

    fn transmit(&mut self, now: Instant) -> usize {
        if self.endpoint.needs_drain() {
            self.drain();
        }
        // T-2: bounces first, but not for ever.
        self.tx.append_sparing(&mut self.bounces, OWN_FRAMES);
        self.stash.refill();
        let mut builder = FrameBuilder {
            stash: &mut self.stash,
            batch: &mut self.tx,
            regions: &self.regions,
            segments_max: self.segments_max,
            linear: self.linear,
            icrc: self.endpoint.uses_icrc(),
            scratch: &mut self.scratch,
        };
        if self.endpoint.needs_drain() {
            self.endpoint.poll_control(now, &mut builder);
        } else {
            self.endpoint.poll_transmit(now, &mut builder);
        }
        if self.tx.is_empty() {
            self.counters.starved += u64::from(self.endpoint.has_frames());
            return 0;
        }
        let sent = self.queues.send(&mut self.tx);
        self.counters.sent += sent as u64;
        self.stuck = if sent == 0 { self.stuck.saturating_add(1) } else { 0 };
        if sent == 0 && !self.queues.is_running() {
            self.drop_unsent();
        }
        sent
    }

    /// T-17: no payload leaves until every frame with payload is gone; then failed requests complete.
    #[cold]
    fn drain(&mut self) {
        if self.stuck > STUCK_POLLS {
            // A device that takes nothing would keep what failed from completing.
            self.drop_unsent();
            self.stuck = 0;
        }
        if self.tx.is_empty() && self.regions.iter().all(|region| region.in_flight() == 0) {
            self.endpoint.handle_drained();
        }
    }

    /// Bursts that a pool could not serve in full.
    pub fn pool_exhaustions(&self) -> u64 {
        self.stash.exhausted()
    }
}

/// Returns a frame that found no room.
fn count_handed(counters: &mut WorkerCounters, handed: Result<(), Mbuf>) -> Option<Mbuf> {
    match handed {
        Ok(()) => counters.handed_over += 1,
        Err(_) => counters.hand_over_drops += 1,
    }
    handed.err()
}

/// A frame of ours has all headers in its first segment; others may be split anywhere (A10).
#[inline]
fn parse(options: ParseOptions, frame: &Mbuf) -> Result<Packet, ParseError> {
    let checksum_ok = || whole_frame_parses(options, frame);
    if let Ok(packet) = dcp_wire::parse(options, frame.head(), frame.frame_len(), checksum_ok) {
        return Ok(packet);
    }
    parse_gathered(options, frame)
}

#[cold]
fn parse_gathered(options: ParseOptions, frame: &Mbuf) -> Result<Packet, ParseError> {
    let mut head = [0; dcp_wire::PARSE_LEN];
    const { assert!(dcp_wire::PARSE_LEN >= HEADER_LEN_MAX) };
    let len = frame.header_into(&mut head);
    dcp_wire::parse(options, &head[..len], frame.frame_len(), || whole_frame_parses(options, frame))
}

/// A non-zero UDP checksum is rare: the frame is copied out to be summed.
#[cold]
fn whole_frame_parses(options: ParseOptions, frame: &Mbuf) -> bool {
    let mut bytes = vec![0; frame.frame_len()];
    frame.copy_to_slice(0, &mut bytes).is_ok() && dcp_wire::parse_frame(options, &bytes).is_ok()
}
