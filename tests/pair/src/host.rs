//! One host: an endpoint, its memory and its driver.

use dcp_core::{
    Access, AtomicOp, Completion, CqId, Endpoint, EndpointConfig, Instant, MrAttr, MrKeys, PdId, Prefetch,
    QpConfig, QpId, RegionId, RxPacket, RxSink, RxVerdict, Segment, Sge, SrqId, TxFrame, TxSink,
};
use dcp_wire::{Ipv4Addr, Kind, MacAddr, Packet, ParseOptions};

/// Address of the first byte of a host's memory.
pub const MR_VA: u64 = 0x7000_0000_0000;
const CQ_DEPTH: usize = 1 << 16;

/// An endpoint with one region of memory that peers may write.
#[derive(Clone, Debug)]
pub struct Host {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Region 0.
    pub memory: Vec<u8>,
    /// Keys of region 0.
    pub keys: MrKeys,
    /// Its protection domain.
    pub pd: PdId,
    /// Its completion queue.
    pub cq: CqId,
    /// Queue pairs, in the order of creation.
    pub qps: Vec<QpId>,
    /// Every completion so far.
    pub completions: Vec<Completion>,
    /// Whether frames carry an ICRC; all queue pairs alike.
    pub icrc: bool,
    /// Frames that did not parse.
    pub unparsed: u64,
    /// Its shared receive queue, if its queue pairs use one.
    pub srq: Option<SrqId>,
    /// Bits that it takes in per nanosecond; 0 = as they come. What is faster waits in its receive queue.
    pub intake_gbps: u64,
    /// When it has taken in what has arrived.
    pub(crate) taken_in: Instant,
    /// When the transmitter is free again.
    pub(crate) busy_until: Instant,
    /// Its worker does not run: since when, until when.
    pub(crate) away: Option<(Instant, Instant)>,
}

/// Frames on their way out, as bytes.
struct Frames<'a> {
    memory: &'a [u8],
    room: usize,
    out: Vec<Vec<u8>>,
}

impl Prefetch for Frames<'_> {}

impl TxSink for Frames<'_> {
    fn capacity(&self) -> usize {
        self.room - self.out.len()
    }

    fn push(&mut self, frame: TxFrame<'_>) {
        let header = frame.headers.len();
        let mut bytes = vec![0; header];
        frame.emit_headers(&mut bytes);
        for segment in frame.segments {
            bytes.extend_from_slice(&self.memory[range(segment)]);
        }
        assert_eq!(bytes.len(), header + frame.payload_len as usize, "segments make up the payload");
        if frame.icrc {
            let icrc = dcp_wire::icrc(&bytes, []).expect("whole headers");
            bytes.extend_from_slice(&icrc);
        }
        self.out.push(bytes);
    }
}

struct Placer<'a> {
    memory: &'a mut [u8],
    payload: &'a [u8],
}

impl RxSink for Placer<'_> {
    fn place(&mut self, payload_offset: u32, to: Segment) {
        let from = payload_offset as usize;
        self.memory[range(&to)].copy_from_slice(&self.payload[from..from + to.len as usize]);
    }

    fn atomic(&mut self, at: Segment, op: AtomicOp) -> u64 {
        let bytes = &mut self.memory[range(&at)];
        let before = u64::from_ne_bytes(bytes.try_into().expect("atomics are of 8 bytes"));
        bytes.copy_from_slice(&op.apply(before).to_ne_bytes());
        before
    }

    fn store(&mut self, at: Segment, value: u64) {
        self.memory[range(&at)].copy_from_slice(&value.to_ne_bytes());
    }
}

fn range(segment: &Segment) -> std::ops::Range<usize> {
    assert_eq!(segment.region, RegionId(0));
    segment.offset as usize..segment.offset as usize + segment.len as usize
}

impl Host {
    /// A host with `memory_len` zero bytes; `number` makes its addresses.
    pub fn new(number: u8, memory_len: usize, config: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mac = MacAddr([2, 0, 0, 0, 0, number]);
        let mut endpoint_config = EndpointConfig::new(mac, Ipv4Addr::new(10, 0, 0, number));
        endpoint_config.qpn_base = u32::from(number) << 16;
        config(&mut endpoint_config);
        let mut endpoint = Endpoint::new(endpoint_config);
        let pd = endpoint.create_pd();
        let cq = endpoint.create_cq(CQ_DEPTH).expect("depth in range");
        let attr = MrAttr {
            pd,
            region: RegionId(0),
            offset: 0,
            va: MR_VA,
            len: memory_len as u64,
            access: Access::ALL,
        };
        let keys = endpoint.register(attr).expect("range does not wrap");
        Self {
            endpoint,
            memory: vec![0; memory_len],
            keys,
            pd,
            cq,
            qps: Vec::new(),
            completions: Vec::new(),
            icrc: false,
            unparsed: 0,
            srq: None,
            intake_gbps: 0,
            taken_in: Instant::ZERO,
            busy_until: Instant::ZERO,
            away: None,
        }
    }

    /// Creates a queue pair from `template`, which names objects of no endpoint yet.
    pub(crate) fn create_qp(&mut self, template: QpConfig) -> QpId {
        self.icrc = template.icrc;
        let (pd, send_cq, recv_cq, srq) = (self.pd, self.cq, self.cq, self.srq);
        let config = QpConfig { pd, send_cq, recv_cq, srq, ..template };
        self.endpoint.create_qp(config).expect("legal queue pair")
    }

    /// Lets timers run out that are due; first those that a worker coming back puts off (T-8).
    pub(crate) fn handle_time(&mut self, now: Instant) {
        if self.is_away(now) {
            return;
        }
        if let Some((since, _)) = self.away.take() {
            self.endpoint.handle_gap(now, now.since(since));
        }
        self.endpoint.handle_timeout(now);
    }

    /// Whether its worker does not run.
    pub(crate) fn is_away(&self, now: Instant) -> bool {
        self.away.is_some_and(|(_, until)| until > now)
    }

    /// Frames that leave now, at most `room`.
    pub fn transmit(&mut self, now: Instant, room: usize) -> Vec<Vec<u8>> {
        let mut frames = Frames { memory: &self.memory, room, out: Vec::new() };
        self.endpoint.poll_transmit(now, &mut frames);
        frames.out
    }

    /// Takes a frame. A bounced one comes back for the wire.
    pub fn receive(&mut self, now: Instant, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.receive_arrived(now, now, frame)
    }

    /// Takes a frame that reached the host at `arrived` and was looked at not before `now`.
    pub fn receive_arrived(&mut self, now: Instant, arrived: Instant, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(packet) = self.parse(&frame) else {
            self.unparsed += 1;
            return None;
        };
        let start = usize::from(packet.payload_offset);
        let payload = &frame[start..start + usize::from(packet.payload_len)];
        let mut placer = Placer { memory: &mut self.memory, payload };
        match self.endpoint.handle_packet(now, &RxPacket { packet: &packet, arrived }, &mut placer) {
            RxVerdict::Bounce(rewrite) => {
                dcp_wire::bounce(&mut frame, &rewrite).expect("the core bounces DCP frames only");
                Some(frame)
            }
            RxVerdict::Return(rewrite) => {
                let len = dcp_wire::trim(&mut frame).expect("the core returns DCP frames only");
                frame.truncate(len);
                dcp_wire::bounce(&mut frame, &rewrite).expect("the core returns DCP frames only");
                Some(frame)
            }
            RxVerdict::Done | RxVerdict::Drop(_) => None,
        }
    }

    /// As a driver does: a frame for a queue pair with ICRC has a right one, or is dropped.
    fn parse(&self, frame: &[u8]) -> Option<Packet> {
        let icrc = dcp_wire::peek_dest_qpn(frame).is_some_and(|qpn| self.endpoint.expects_icrc(qpn));
        let packet = dcp_wire::parse_frame(ParseOptions { icrc, ..ParseOptions::default() }, frame).ok()?;
        let header_only = matches!(packet.headers.kind, Kind::HeaderOnly(_));
        (!icrc || header_only || dcp_wire::icrc_ok(frame)).then_some(packet)
    }

    /// When a frame of `len` bytes that arrives now has been taken in.
    pub(crate) fn take_in(&mut self, now: Instant, len: usize) -> Instant {
        self.taken_in = self.taken_in.max(now).after((len as u64 * 8).div_ceil(self.intake_gbps));
        self.taken_in
    }

    /// Moves new completions to [`Host::completions`]. Frames are copies here, so none refers to memory (T-17).
    pub fn collect(&mut self) {
        self.endpoint.handle_drained();
        let mut batch = [Completion::BLANK; 64];
        loop {
            let count = self.endpoint.poll_completions(self.cq, &mut batch);
            if count == 0 {
                return;
            }
            self.completions.extend_from_slice(&batch[..count]);
        }
    }

    /// `len` bytes at offset `at` of its memory.
    pub fn sge(&self, at: u64, len: u32) -> Sge {
        Sge { va: MR_VA + at, len, lkey: self.keys.lkey }
    }

    /// Work requests that have not completed, and messages that the peer has not acknowledged.
    pub fn outstanding(&self) -> u32 {
        let of = |&qp: &QpId| self.endpoint.outstanding(qp) + self.endpoint.unacknowledged(qp);
        self.qps.iter().map(of).sum()
    }

    /// How a frame parses, for scripts.
    pub fn view(&self, frame: &[u8]) -> Packet {
        let options = ParseOptions { icrc: self.icrc, ..ParseOptions::default() };
        dcp_wire::parse_frame(options, frame).expect("endpoints emit legal frames")
    }
}
