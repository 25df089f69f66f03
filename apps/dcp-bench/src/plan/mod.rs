//! What a run is to do, every value checked.

mod checks;
mod derived;
mod device;
mod faults;
mod length;
mod limits;
mod many_qps;
mod mode;
mod reporting;
mod threads;

use crate::burden::Burden;
use crate::congestion::Congestion;
use crate::load::Load;
use crate::network::Network;
pub use crate::op::Op;
pub use device::{Device, Link, PORT, Side};
pub use faults::Faults;
use length::DEFAULT_ITERATIONS;
pub use length::{LATENCY_ITERATIONS, Length};
pub use limits::{
    ACK_BYTES, CQ_DEPTH_MAX, HOSTS_MAX, INLINE_MAX, LINK_QPS_MAX, MTUS, QPS_MAX, QUEUE_BYTES_MAX,
    RX_DEPTH_MAX, SIZE_MAX, TX_DEPTH_MAX,
};
pub use mode::{Mode, Trigger};
pub use reporting::Reporting;
pub use threads::Threads;

/// What a run is to do.
///
/// The values of a plan that came from [`Plan::checked`] lie in the ranges given here.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Operation under test.
    pub op: Op,
    /// What is measured.
    pub mode: Mode,
    /// What the hosts are joined by.
    pub device: Device,
    /// Message size in bytes: 0 … [`SIZE_MAX`].
    pub size: u64,
    /// How long.
    pub length: Length,
    /// Queue pairs per client: 1 … [`QPS_MAX`].
    pub qps: u32,
    /// Messages that a queue pair may have outstanding: 1 … [`TX_DEPTH_MAX`], and no more than it sends.
    pub tx_depth: u32,
    /// Receives that the server keeps posted per queue pair: 1 … [`RX_DEPTH_MAX`], and no more than it gets. Without
    /// meaning where messages take none.
    pub rx_depth: u32,
    /// Packet payload in bytes: one of [`MTUS`].
    pub mtu: u32,
    /// Whether that was asked for; else it is the largest that the device and the peer carry.
    pub mtu_asked: bool,
    /// Whether the server sends as much as the client.
    pub bidirectional: bool,
    /// Messages up to this many bytes are copied when they are posted: 0 … [`INLINE_MAX`].
    pub inline_bytes: u64,
    /// One message in so many asks for a completion: 1 … `tx_depth`.
    pub cq_mod: u32,
    /// Which threads drive it.
    pub threads: Threads,
    /// Cores to run on, the first for the client; none: wherever the system puts it.
    pub cores: Vec<usize>,
    /// Switches and links of the loop, which suit `hosts`.
    pub network: Network,
    /// Hosts at the switch, the server included: 2 … [`HOSTS_MAX`].
    pub hosts: u32,
    /// Static window of bytes in flight per queue pair: at least two MTUs and twice [`ACK_BYTES`].
    pub window_bytes: u64,
    /// How fast senders may go.
    pub congestion: Congestion,
    /// What burdens the server's host.
    pub burden: Burden,
    /// Queued bytes above which the switch trims: 0 … [`QUEUE_BYTES_MAX`].
    pub threshold_bytes: u64,
    /// Bytes that a control queue of the switch holds: 0 … [`QUEUE_BYTES_MAX`].
    pub control_bytes: u64,
    /// Injected faults; not every packet is trimmed.
    pub faults: Faults,
    /// Seed of the data and of the faults.
    pub seed: u64,
    /// Check every message as it completes, not only what is left at the end.
    pub verify_each: bool,
    /// Coarse timeout of 4.096 µs × 2^n, or 0 for never: 0 … 31.
    pub qp_timeout: u8,
    /// Timeouts without progress that a queue pair survives: 0 … 7.
    pub retry_cnt: u8,
    /// Waits for a receive that the server has not posted: 0 … 6, 7 = for ever.
    pub rnr_retry: u8,
    /// Whether frames carry an ICRC.
    pub icrc: bool,
    /// How much a client sends, and when.
    pub load: Load,
    /// Whether messages must lie in huge pages.
    pub use_hugepages: bool,
    /// What is told of the run.
    pub reporting: Reporting,
}

impl Default for Plan {
    /// `dcp-bench write` without options.
    fn default() -> Self {
        Self {
            op: Op::Write,
            mode: Mode::Bandwidth,
            device: Device::Loop,
            size: 64 << 10,
            length: Length::Iterations(DEFAULT_ITERATIONS),
            qps: 1,
            tx_depth: 128,
            rx_depth: 512,
            mtu: 4096,
            mtu_asked: false,
            bidirectional: false,
            inline_bytes: 0,
            cq_mod: 100,
            threads: Threads::Inline,
            cores: Vec::new(),
            network: Network::default(),
            hosts: 2,
            window_bytes: 256 << 10,
            congestion: Congestion::default(),
            burden: Burden::default(),
            threshold_bytes: THRESHOLD_BYTES,
            control_bytes: CONTROL_BYTES,
            faults: Faults::default(),
            seed: 1,
            verify_each: false,
            qp_timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            icrc: false,
            load: Load::default(),
            use_hugepages: false,
            reporting: Reporting::default(),
        }
    }
}

const THRESHOLD_BYTES: u64 = 512 << 10;
const CONTROL_BYTES: u64 = 64 << 10;
