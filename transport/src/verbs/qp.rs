//! Queue pairs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use dcp_core::{
    CongestionControl, CqId, MrAttr, MrKeys, Peer, QpConfig, QpId, QpState, Rate, RegionId, RhccConfig, Sge,
    SrqId, Terms,
};
use dcp_wire::{Ipv4Addr, MacAddr, Msn, PKey, Qpn, Ssn};
use dpdk_ffi::{HugePreference, Region};
use smallvec::SmallVec;

use super::cq::Cq;
use super::device::DeviceInner;
use super::engine::{Post, PostKind};
use super::error::{PostError, ResourceError};
use super::pd::{Pd, SharedReceives};
use super::request::{RecvWorkRequest, SendWorkRequest};

/// Bytes of inline data that fit into a request.
const INLINE_MAX: usize = 1024;
const SGES_MAX: usize = 16;

/// Parameters of a queue pair; the defaults are perftest's where it has them.
#[derive(Clone, Debug)]
pub struct QpOptions {
    /// Send work requests: 1 … 2^15.
    pub send_depth: u32,
    /// Receive work requests: 1 … 2^15.
    pub recv_depth: u32,
    /// Payload of a full packet, 256 … 8192. Cut to what the device carries.
    pub mtu: u32,
    /// Messages under way at once: a power of two.
    pub window: u32,
    /// READs and atomics unanswered at once.
    pub max_rd_atomic: u32,
    /// Coarse timeout 4.096 µs × 2^n; 0 = never.
    pub timeout: u8,
    /// Resends before a queue pair gives up, 0 … 7.
    pub retry_cnt: u8,
    /// Waits for a missing receive, 0 … 6; 7 = for ever.
    pub rnr_retry: u8,
    /// Whether frames carry an ICRC.
    pub icrc: bool,
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// Fastest pace, and the line rate of DCQCN and RHCC. Default: unlimited, without pacing.
    pub rate_max: Rate,
    /// RHCC's sender, beside any congestion control. Default: none.
    pub rhcc: Option<RhccConfig>,
    /// Receives shared with other queue pairs of the worker.
    pub shared_receives: Option<SharedReceives>,
}

impl Default for QpOptions {
    fn default() -> Self {
        Self {
            send_depth: 128,
            recv_depth: 512,
            mtu: 4096,
            window: 128,
            max_rd_atomic: 16,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            icrc: false,
            congestion_control: CongestionControl::Window { bytes: 256 << 10 },
            rate_max: Rate::UNLIMITED,
            rhcc: None,
            shared_receives: None,
        }
    }
}

/// What the other side must know to connect to a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAddress {
    /// Queue pair number.
    pub qpn: u32,
    /// Ethernet address, or a gateway's.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// UDP service port of its worker.
    pub service_port: u16,
    /// First message number it sends.
    pub start_msn: u32,
    /// First send sequence number it sends.
    pub start_ssn: u32,
}

/// What a queue pair and its worker share.
#[derive(Debug, Default)]
pub(super) struct QpShared {
    state: AtomicU8,
    /// Send slots that the application has back, since creation, modulo 2^32.
    pub(super) sends_freed: AtomicU32,
    /// Receives completed since creation, modulo 2^32.
    pub(super) receives_freed: AtomicU32,
}

const STATES: [QpState; 5] = [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts, QpState::Error];

impl QpShared {
    pub(super) fn set_state(&self, state: QpState) {
        self.state.store(state as u8, Ordering::Release);
    }

    fn state(&self) -> QpState {
        STATES[usize::from(self.state.load(Ordering::Acquire))]
    }
}

/// A reliable connection's end. Posting takes `&mut`: one thread at a time.
#[derive(Debug)]
pub struct Qp {
    device: Arc<DeviceInner>,
    worker: usize,
    id: QpId,
    qpn: Qpn,
    shared: Arc<QpShared>,
    options: QpOptions,
    sends_posted: u32,
    receives_posted: u32,
    inline: Option<InlineBuffer>,
    pd: Pd,
    // Completion queues live at least as long as what completes to them.
    _cqs: [Cq; 2],
}

/// A slot of inline bytes for each send slot.
#[derive(Debug)]
struct InlineBuffer {
    region: Region,
    keys: MrKeys,
    id: RegionId,
    va: u64,
}

impl Qp {
    pub(super) fn create(
        pd: &Pd,
        send_cq: &Cq,
        recv_cq: &Cq,
        worker: usize,
        options: QpOptions,
    ) -> Result<Self, ResourceError> {
        let device = Arc::clone(&pd.device);
        let same = |cq: &Cq| Arc::ptr_eq(&cq.device, &device);
        if !same(send_cq) || !same(recv_cq) {
            return Err(ResourceError::OtherDevice);
        }
        device.check_worker(worker)?;
        let config = config(&options, pd, send_cq.ids[worker], recv_cq.ids[worker], device.mtu);
        let shared = Arc::new(QpShared::default());
        let of_engine = Arc::clone(&shared);
        let (id, qpn) = device.with_engine(worker, move |engine| engine.create_qp(config, of_engine))??;
        Ok(Self {
            device,
            worker,
            id,
            qpn,
            shared,
            options: QpOptions { mtu: config.mtu, ..options },
            sends_posted: 0,
            receives_posted: 0,
            inline: None,
            pd: pd.clone(),
            _cqs: [send_cq.clone(), recv_cq.clone()],
        })
    }

    /// What to tell the other side.
    pub fn address(&self) -> QpAddress {
        let host = self.device.host(self.worker);
        QpAddress {
            qpn: self.qpn.get(),
            mac: host.mac,
            ip: host.ip,
            service_port: host.service_port,
            start_msn: 0,
            start_ssn: 0,
        }
    }

    /// Takes the MTU that both sides agreed on, if it is smaller than its own; before it is connected.
    ///
    /// # Errors
    /// The worker is gone.
    ///
    /// # Panics
    /// When it is connected already.
    pub fn limit_mtu(&mut self, mtu: u32) -> Result<(), ResourceError> {
        let id = self.id;
        self.device
            .with_engine(self.worker, move |engine| engine.endpoint().limit_mtu(id, mtu))?
            .expect("the MTU is settled before the queue pair is connected");
        self.options.mtu = self.options.mtu.min(mtu);
        Ok(())
    }

    /// Takes what both sides agreed on, before it is connected.
    pub(super) fn settle(&mut self, terms: Terms) -> Result<(), ResourceError> {
        let id = self.id;
        let settled =
            self.device.with_engine(self.worker, move |engine| engine.endpoint().settle(id, terms))?;
        settled.map_err(|_| ResourceError::Connected)?;
        let options = &mut self.options;
        options.mtu = options.mtu.min(terms.mtu);
        options.window = options.window.min(terms.window);
        options.max_rd_atomic = options.max_rd_atomic.min(terms.max_rd_atomic);
        options.icrc |= terms.icrc;
        Ok(())
    }

    pub(super) fn device(&self) -> &Arc<DeviceInner> {
        &self.device
    }

    pub(super) fn options(&self) -> &QpOptions {
        &self.options
    }

    /// Connects to the other side's queue pair: receives and sends from now on. `pkey` is the connection's, chosen by
    /// the side that connects.
    ///
    /// # Errors
    /// The worker is gone.
    ///
    /// # Panics
    /// When it is connected already.
    pub fn connect(&mut self, peer: &QpAddress, pkey: u16) -> Result<(), ResourceError> {
        let (id, peer) = (self.id, peer_of(peer, pkey));
        self.device
            .with_engine(self.worker, move |engine| engine.connect(id, peer))?
            .expect("a queue pair is connected once");
        Ok(())
    }

    /// Ends the work of the queue pair: everything outstanding completes with `WR_FLUSH_ERR`.
    ///
    /// # Errors
    /// The worker is gone.
    pub fn close(&mut self) -> Result<(), ResourceError> {
        let id = self.id;
        self.device.with_engine(self.worker, move |engine| engine.close_qp(id))
    }

    /// State of the queue pair, as its worker last said.
    pub fn state(&self) -> QpState {
        self.shared.state()
    }

    /// Number of the queue pair on the wire.
    pub fn qpn(&self) -> u32 {
        self.qpn.get()
    }

    /// Payload of a full packet in bytes.
    pub fn mtu(&self) -> u32 {
        self.options.mtu
    }

    /// Send work requests that can be posted now.
    pub fn send_room(&self) -> u32 {
        let held = self.sends_posted.wrapping_sub(self.shared.sends_freed.load(Ordering::Acquire));
        self.options.send_depth.saturating_sub(held)
    }

    /// Posts a send work request. It leaves when the worker next runs.
    ///
    /// # Errors
    /// It was not taken.
    pub fn post_send(&mut self, request: &SendWorkRequest<'_>) -> Result<(), PostError> {
        let state = self.state();
        if !matches!(state, QpState::Rts | QpState::Error) {
            return Err(PostError::NotReady { state });
        }
        if request.opcode.is_answered() && self.options.max_rd_atomic == 0 {
            return Err(PostError::NoReads);
        }
        if self.send_room() == 0 {
            return Err(PostError::QueueFull { depth: self.options.send_depth });
        }
        let sges = self.elements(request)?;
        let kind = PostKind::Send {
            op: request.opcode.op(),
            signalled: request.signalled,
            solicited: request.solicited,
            fence: request.fence,
        };
        self.push(Post { qp: self.id, wr_id: request.wr_id, kind, sges })?;
        self.sends_posted = self.sends_posted.wrapping_add(1);
        Ok(())
    }

    /// Posts send work requests in order, until one is not taken.
    ///
    /// # Errors
    /// The index of the first one that was not taken, and why; those before it are posted.
    pub fn post_send_list(&mut self, requests: &[SendWorkRequest<'_>]) -> Result<(), (usize, PostError)> {
        for (index, request) in requests.iter().enumerate() {
            self.post_send(request).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// Posts a receive work request.
    ///
    /// # Errors
    /// It was not taken.
    pub fn post_recv(&mut self, request: &RecvWorkRequest<'_>) -> Result<(), PostError> {
        let held = self.receives_posted.wrapping_sub(self.shared.receives_freed.load(Ordering::Acquire));
        if held >= self.options.recv_depth {
            return Err(PostError::QueueFull { depth: self.options.recv_depth });
        }
        let sges = check_sges(request.sges)?;
        self.push(Post { qp: self.id, wr_id: request.wr_id, kind: PostKind::Receive, sges })?;
        self.receives_posted = self.receives_posted.wrapping_add(1);
        Ok(())
    }

    fn push(&self, post: Post) -> Result<(), PostError> {
        let posts = &self.device.workers[self.worker].posts;
        posts.push(post).map_err(|_| PostError::WorkerBusy)
    }

    fn elements(&mut self, request: &SendWorkRequest<'_>) -> Result<SmallVec<[Sge; 2]>, PostError> {
        let Some(bytes) = request.inline else { return check_sges(request.sges) };
        if bytes.len() > INLINE_MAX || request.opcode.is_answered() {
            return Err(PostError::InlineTooLong { len: bytes.len(), limit: INLINE_MAX });
        }
        let ring = self.options.send_depth.next_power_of_two();
        let at = u64::from(self.sends_posted & (ring - 1)) * INLINE_MAX as u64;
        if self.inline.is_none() {
            self.inline =
                Some(self.make_inline(ring as usize * INLINE_MAX).map_err(|_| PostError::WorkerBusy)?);
        }
        let Some(buffer) = &self.inline else { return Err(PostError::WorkerBusy) };
        buffer.region.write(at, bytes).expect("a slot for each send slot");
        let len = u32::try_from(bytes.len()).expect("at most 1 KiB");
        Ok(SmallVec::from_slice(&[Sge { va: buffer.va + at, len, lkey: buffer.keys.lkey }]))
    }

    #[cold]
    fn make_inline(&self, len: usize) -> Result<InlineBuffer, ResourceError> {
        let region = Region::alloc(len, HugePreference::Auto).map_err(ResourceError::Memory)?;
        let va = self.device.next_va(len as u64);
        let attr = MrAttr {
            pd: self.pd.id,
            region: RegionId(0),
            offset: 0,
            va,
            len: len as u64,
            access: dcp_core::Access::default(),
        };
        let (id, keys) = self.device.register(&region, attr)?;
        Ok(InlineBuffer { region, keys, id, va })
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        let id = self.id;
        let _ = self.device.with_engine(self.worker, move |engine| engine.destroy_qp(id));
        if let Some(buffer) = &self.inline {
            self.device.deregister(buffer.keys, buffer.id);
        }
    }
}

fn config(options: &QpOptions, pd: &Pd, send_cq: CqId, recv_cq: CqId, mtu: u32) -> QpConfig {
    let srq: Option<SrqId> = options.shared_receives.as_ref().map(|shared| shared.id);
    QpConfig {
        recv_cq,
        recv_depth: options.recv_depth,
        srq,
        send_depth: options.send_depth,
        mtu: options.mtu.min(mtu),
        window: options.window,
        timeout_exponent: options.timeout,
        retry_cnt: options.retry_cnt,
        max_rd_atomic: options.max_rd_atomic,
        rnr_retry: options.rnr_retry,
        icrc: options.icrc,
        cc: options.congestion_control,
        rate_max: options.rate_max,
        rhcc: options.rhcc,
        ..QpConfig::new(pd.id, send_cq)
    }
}

fn peer_of(address: &QpAddress, pkey: u16) -> Peer {
    Peer {
        qpn: Qpn::from_low_bits(address.qpn),
        pkey: PKey(pkey),
        mac: address.mac,
        ip: address.ip,
        service_port: address.service_port,
        start_msn: Msn::from_low_bits(address.start_msn),
        start_ssn: Ssn::from_low_bits(address.start_ssn),
    }
}

fn check_sges(sges: &[Sge]) -> Result<SmallVec<[Sge; 2]>, PostError> {
    if sges.len() > SGES_MAX {
        return Err(PostError::TooManySges { count: sges.len(), limit: SGES_MAX });
    }
    let len: u64 = sges.iter().map(|sge| u64::from(sge.len)).sum();
    if len > 1 << 31 {
        return Err(PostError::MessageTooLong { len, limit: 1 << 31 });
    }
    Ok(SmallVec::from_slice(sges))
}

/// The core's word for it, in the library's.
pub(super) fn post_error(error: dcp_core::PostError) -> PostError {
    match error {
        dcp_core::PostError::QueueFull { depth } => PostError::QueueFull { depth },
        dcp_core::PostError::TooManySges { count, limit } => PostError::TooManySges { count, limit },
        dcp_core::PostError::MessageTooLong { len, limit } => PostError::MessageTooLong { len, limit },
        dcp_core::PostError::NotReady { state } => PostError::NotReady { state },
        dcp_core::PostError::NoReads => PostError::NoReads,
        dcp_core::PostError::SharedQueue | dcp_core::PostError::UnknownQueue => {
            PostError::NotReady { state: QpState::Reset }
        }
    }
}
