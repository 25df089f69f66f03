//! What an endpoint and a queue pair are created with.

use dcp_wire::{Ipv4Addr, MacAddr, Msn, PKey, Qpn, RnrTimer, Ssn};

use crate::cc::{ParameterError, check};
use crate::{CongestionControl, CqId, PdId, Rate, RhccConfig, SrqId};

/// Limits and identity of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndpointConfig {
    /// Own Ethernet address.
    pub mac: MacAddr,
    /// Own IPv4 address.
    pub ip: Ipv4Addr,
    /// UDP destination port of frames for this endpoint.
    pub service_port: u16,
    /// Number of the first queue pair; the worker's id stands in the high bits.
    pub qpn_base: u32,
    /// Queue pairs that can be created. Default 1024, at most 2^20.
    pub qps_max: u32,
    /// Memory for exact tracking of restarted messages, in words of 64 packets. Default 2^17 (1 MiB):
    /// 8 Mi packets. When it is used up, messages go on with the counter alone.
    pub map_words_max: usize,
    /// Bytes of new and resent data in one turn of a queue pair with a static window (T-2). Default 64 KiB: messages
    /// that are in no cache are copied faster the longer one goes on.
    pub round_quota: u32,
    /// The same for a queue pair with congestion control: its burst, too. Default 16 KiB (paper: 16 KB).
    pub paced_quota: u32,
    /// Work requests in one turn of a queue pair (T-2). Default 8 (paper).
    pub round_wqes: u32,
    /// RetransQ entries in one turn of a queue pair (T-2). Default 16 (paper).
    pub round_retrans: u32,
    /// Least time between two CNPs of a queue pair, in nanoseconds. Default 50 µs.
    pub cnp_interval_ns: u64,
    /// Breaks the protocol, for tests only: R-7 without its fingerprint, the paper's bare counter. Default false.
    #[cfg(feature = "test-faults")]
    pub counter_only: bool,
}

impl EndpointConfig {
    /// An endpoint with default limits.
    pub const fn new(mac: MacAddr, ip: Ipv4Addr) -> Self {
        Self {
            mac,
            ip,
            service_port: 17791,
            qpn_base: 1,
            qps_max: 1024,
            map_words_max: 1 << 17,
            round_quota: 64 << 10,
            paced_quota: 16 << 10,
            round_wqes: 8,
            round_retrans: 16,
            cnp_interval_ns: 50_000,
            #[cfg(feature = "test-faults")]
            counter_only: false,
        }
    }
}

/// What both sides of a connection agreed on, and where completions go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QpConfig {
    /// Protection domain of the memory it may touch.
    pub pd: PdId,
    /// Where completions of its send queue go.
    pub send_cq: CqId,
    /// Where completions of its receives go. Default: the same.
    pub recv_cq: CqId,
    /// Receives in its receive queue: 1 … 2^15. Default 512. Without meaning with a shared queue.
    pub recv_depth: u32,
    /// The shared receive queue that it takes receives from. Default: none.
    pub srq: Option<SrqId>,
    /// Work requests in the send queue: 1 … 2^15. Default 128.
    pub send_depth: u32,
    /// Payload of a full packet in bytes: 256 … 8192.
    pub mtu: u32,
    /// Messages under way at once (T-1): a power of two, 1 … 2^15. Default 128, 8 in the paper's set-up.
    pub window: u32,
    /// Coarse timeout 4.096 µs × 2^n (T-8): 0 (never) … 31. Default 14 (67.1 ms), perftest's.
    pub timeout_exponent: u8,
    /// Resends of a message before the queue pair gives up (T-8): 0 … 7. Default 7.
    pub retry_cnt: u8,
    /// Bytes received since the last ACK that make one due. Default 32 KiB; 0 = never: the paper's rule.
    pub ack_bytes: u32,
    /// RetransQ entries kept (T-5): at least 1. Default 16384; beyond it the coarse timer recovers.
    pub retrans_max: u32,
    /// First message number that this side sends, in both streams.
    pub start_msn: Msn,
    /// First send sequence number that this side sends.
    pub start_ssn: Ssn,
    /// READs and ATOMICs unanswered at once, either way (T-15): 0 (none allowed) … W/2, to which more is
    /// cut. Default 16.
    pub max_rd_atomic: u32,
    /// Waits for a receive that the peer has not posted (T-10): 0 … 6, 7 = for ever. Default 7, perftest's.
    pub rnr_retry: u8,
    /// InfiniBand code of the time a peer waits when no receive is posted here. Default 12 (640 µs).
    pub rnr_timer: RnrTimer,
    /// Whether frames carry an ICRC, both ways. Default false.
    pub icrc: bool,
    /// Whether each packet takes a UDP source port of its own, and so perhaps its own path (T-18). Default false.
    pub spray: bool,
    /// Congestion control.
    pub cc: CongestionControl,
    /// Fastest pace, and the line rate of DCQCN and RHCC. Default: unlimited, without pacing.
    pub rate_max: Rate,
    /// RHCC's sender, beside any congestion control: the slower rate counts (C-1). Default: none.
    pub rhcc: Option<RhccConfig>,
    /// ToS bits 7-4 of its frames: 0 … 15. Default 0.
    pub class: u8,
}

impl QpConfig {
    /// A queue pair with default parameters.
    pub const fn new(pd: PdId, send_cq: CqId) -> Self {
        Self {
            pd,
            send_cq,
            recv_cq: send_cq,
            recv_depth: 512,
            srq: None,
            send_depth: 128,
            mtu: 4096,
            window: 128,
            timeout_exponent: 14,
            retry_cnt: 7,
            ack_bytes: 32 << 10,
            retrans_max: 16384,
            start_msn: Msn::ZERO,
            start_ssn: Ssn::ZERO,
            max_rd_atomic: 16,
            rnr_retry: 7,
            rnr_timer: RnrTimer::new(12).expect("a code below 32"),
            icrc: false,
            spray: false,
            cc: CongestionControl::None,
            rate_max: Rate::UNLIMITED,
            rhcc: None,
            class: 0,
        }
    }

    /// The coarse timeout in nanoseconds; `None` with exponent 0: never.
    pub const fn timeout_ns(&self) -> Option<u64> {
        if self.timeout_exponent == 0 { None } else { Some(4096u64 << self.timeout_exponent) }
    }

    /// Checks congestion control's parameters against their ranges.
    pub(crate) fn check_congestion_control(&self) -> Result<(), ParameterError> {
        match self.cc {
            CongestionControl::None | CongestionControl::Window { .. } => {}
            CongestionControl::Dcqcn(dcqcn) => dcqcn.check(self.rate_max)?,
            CongestionControl::Swift(swift) => swift.check(self.mtu)?,
        }
        if let Some(rhcc) = &self.rhcc {
            rhcc.check(self.rate_max)?;
        }
        check("pace in bits/s", self.rate_max.bps(), (Rate::MIN.bps(), u64::MAX))
    }

    /// Checks a static window against C-1. With `ack_bytes` 0 the peer acknowledges only whole messages, so the
    /// window must hold the largest one, which only the application knows: `message_max`.
    ///
    /// # Errors
    /// The window is too small to keep the connection moving.
    pub fn check_window(&self, message_max: u32) -> Result<(), WindowError> {
        let CongestionControl::Window { bytes } = self.cc else { return Ok(()) };
        let for_acks = if self.ack_bytes == 0 { message_max } else { self.ack_bytes.saturating_mul(2) };
        let least = for_acks.max(self.mtu * 2);
        if bytes < least { Err(WindowError { bytes, least }) } else { Ok(()) }
    }
}

/// What two sides agreed on: of each number the smaller one, and an ICRC when either wants it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// Payload of a full packet in bytes.
    pub mtu: u32,
    /// Messages under way at once: a power of two.
    pub window: u32,
    /// READs and ATOMICs unanswered at once, either way.
    pub max_rd_atomic: u32,
    /// Whether frames carry an ICRC.
    pub icrc: bool,
}

/// A static window that would stall its connection (C-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowError {
    /// As configured.
    pub bytes: u32,
    /// The smallest one that works.
    pub least: u32,
}

impl core::fmt::Display for WindowError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a window of {} bytes stalls; the smallest that works here is {}", self.bytes, self.least)
    }
}

impl core::error::Error for WindowError {}

/// The other side of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Peer {
    /// Its queue pair.
    pub qpn: Qpn,
    /// Key of the connection.
    pub pkey: PKey,
    /// Its Ethernet address, or the gateway's.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Its UDP service port.
    pub service_port: u16,
    /// First message number that it sends, in both streams.
    pub start_msn: Msn,
    /// First send sequence number that it sends.
    pub start_ssn: Ssn,
}
