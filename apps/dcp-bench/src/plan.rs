//! What a run is to do, every value checked.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::ValueEnum;
use dcp::device::DeviceUri;
use dcp::net::IpConfig;
use dcp::wire::MacAddr;

use crate::burden::Burden;
use crate::congestion::Congestion;
use crate::failure::Failure;
use crate::load::Load;
use crate::network::{Network, Shape};
use crate::op::ATOMIC_BYTES;
pub use crate::op::Op;
use crate::units::Probability;

/// Largest message in bytes: 1 GiB.
pub const SIZE_MAX: u64 = 1 << 30;
/// Most queue pairs of one client in this process.
pub const QPS_MAX: u32 = 16384;
/// Most queue pairs between two processes, whose numbers the two tell each other in one line.
pub const LINK_QPS_MAX: u32 = 4096;
/// Completions that a completion queue holds.
pub const CQ_DEPTH_MAX: u64 = 1 << 22;
/// Most bytes of a message that is copied when it is posted.
pub const INLINE_MAX: usize = 1024;
/// Deepest send queue.
pub const TX_DEPTH_MAX: u32 = 16384;
/// Deepest receive queue.
pub const RX_DEPTH_MAX: u32 = 32768;
/// Hosts at one switch: 32 clients and a server.
pub const HOSTS_MAX: u32 = 33;
/// MTUs that a queue pair may have, in bytes.
pub const MTUS: [u32; 6] = [256, 512, 1024, 2048, 4096, 8192];
/// Data after which a receiver acknowledges at the latest, in bytes.
pub const ACK_BYTES: u64 = 32 << 10;
/// Largest window and queue threshold, in bytes: 1 GiB, well below half of the 32-bit count of bytes in flight.
pub const QUEUE_BYTES_MAX: u64 = 1 << 30;

/// TCP port on which two processes find each other, perftest's.
pub const PORT: u16 = 18515;

/// What the hosts are joined by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// Clients, switch and server in this process, on DPDK ring ports.
    Loop,
    /// A device that takes frames and delivers none: a sender alone.
    Null,
    /// A device that leads to another process.
    Link(Link),
}

impl Device {
    /// Name in the output.
    pub fn name(&self) -> String {
        match self {
            Self::Loop => "loop".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Link(link) => link.uri.to_string(),
        }
    }

    /// Whether this process waits for the client.
    pub const fn is_server(&self) -> bool {
        matches!(self, Self::Link(Link { side: Side::Server, .. }))
    }

    /// Which of two processes this is.
    pub const fn role(&self) -> Option<&'static str> {
        match self {
            Self::Loop | Self::Null => None,
            Self::Link(Link { side: Side::Server, .. }) => Some("server"),
            Self::Link(Link { side: Side::Client { .. }, .. }) => Some("client"),
        }
    }
}

/// The way to another process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The device.
    pub uri: DeviceUri,
    /// Its address, and the way to other networks.
    pub ip: IpConfig,
    /// Its Ethernet address, if not its own.
    pub mac: Option<MacAddr>,
    /// Who connects to whom.
    pub side: Side,
    /// TCP port of the server.
    pub port: u16,
}

/// One of two processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// Waits for one client.
    Server,
    /// Connects to a server.
    Client {
        /// Its name or address.
        host: String,
    },
}

/// What a run measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// How much goes through.
    Bandwidth,
    /// How long one message takes, with nothing else under way.
    Latency,
}

impl Mode {
    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Latency => "lat",
        }
    }
}

/// How long a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many messages per queue pair.
    Iterations(NonZeroU64),
    /// So long.
    Duration(Duration),
}

/// Which threads drive the endpoints and the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Threads {
    /// All on one thread, in turn.
    Inline,
    /// One pinned thread per core, three at most.
    Split,
}

impl Threads {
    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Split => "split",
        }
    }
}

/// Faults that the switch injects, each packet on its own.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Faults {
    /// Trim a data packet.
    pub trim: Probability,
    /// Drop a frame.
    pub drop: Probability,
    /// Send a frame twice.
    pub duplicate: Probability,
    /// Let a frame be overtaken.
    pub reorder: Probability,
    /// Change a byte of a frame.
    pub corrupt: Probability,
}

/// How a side of a latency test sees that a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// By its last byte in memory, as perftest does.
    LastByte,
    /// By the completion of a receive that its immediate data takes.
    Immediate,
    /// By the completion of the receive that it fills.
    Receive,
    /// By its own completion, which comes with the answer.
    Completion,
}

impl Trigger {
    /// What is measured of writes of several sizes, for people.
    pub const LAST_BYTE_OR_IMMEDIATE: &str = "half a round trip; answered when the last byte is seen, above one MTU when immediate data is received";

    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LastByte => "last_byte",
            Self::Immediate => "immediate",
            Self::Receive => "receive",
            Self::Completion => "completion",
        }
    }

    /// Whether latencies are halves of round trips.
    pub const fn is_halved(self) -> bool {
        !matches!(self, Self::Completion)
    }

    /// What is measured, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::LastByte => "half a round trip; a message is answered when its last byte is seen",
            Self::Immediate => "half a round trip; a message is answered when its immediate data is received",
            Self::Receive => "half a round trip; a message is answered when it is received",
            Self::Completion => "a full round trip, from the post to the completion",
        }
    }
}

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

/// What is told of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Reporting {
    /// Time between rows while it goes on.
    pub interval: Option<Duration>,
    /// Time left out at both ends of a run that time limits.
    pub margin: Option<Duration>,
    /// Whether nobody wants the peak.
    pub no_peak: bool,
    /// Average bandwidth below which the run has failed, in Gb/s.
    pub limit_gbps: Option<f64>,
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

/// Messages of a ping-pong that may be unacknowledged: answers can be faster than acknowledgements.
const RALLY_DEPTH: u32 = 8;
/// Messages of all queue pairs together that may have completed and not been seen.
const UNSEEN_MESSAGES: u64 = 20_000;
const TIMEOUT_UNIT_NS: u64 = 4096;
/// Timeout for each queue pair's turn of 16 KiB, in nanoseconds: four turns at 5 Gb/s, which any machine does.
const TURN_NS: u64 = 100_000;
const THRESHOLD_BYTES: u64 = 512 << 10;
const CONTROL_BYTES: u64 = 64 << 10;
/// Messages of a latency test when nothing else is asked for.
pub const LATENCY_ITERATIONS: NonZeroU64 = NonZeroU64::new(1000).expect("not zero");
const DEFAULT_ITERATIONS: NonZeroU64 = NonZeroU64::new(5000).expect("not zero");

impl Plan {
    /// The plan with its depth and moderation cut to what the run can use, as perftest does.
    ///
    /// # Errors
    /// A usage failure that names the option, its value and what is allowed.
    pub fn checked(mut self) -> Result<Self, Failure> {
        in_range("--size", self.size, 0, SIZE_MAX)?;
        in_range("--qp", u64::from(self.qps), 1, u64::from(QPS_MAX))?;
        in_range("--tx-depth", u64::from(self.tx_depth), 1, u64::from(TX_DEPTH_MAX))?;
        in_range("--rx-depth", u64::from(self.rx_depth), 1, u64::from(RX_DEPTH_MAX))?;
        in_range("--cq-mod", u64::from(self.cq_mod), 1, u64::from(TX_DEPTH_MAX))?;
        in_range("--hosts", u64::from(self.hosts), 2, u64::from(HOSTS_MAX))?;
        self.network.topology(self.hosts)?;
        in_range("--threshold", self.threshold_bytes, 0, QUEUE_BYTES_MAX)?;
        in_range("--control-bytes", self.control_bytes, 0, QUEUE_BYTES_MAX)?;
        in_range("--qp-timeout", u64::from(self.qp_timeout), 0, 31)?;
        in_range("--retry-cnt", u64::from(self.retry_cnt), 0, 7)?;
        in_range("--rnr-retry", u64::from(self.rnr_retry), 0, 7)?;
        self.check_atomic()?;
        self.check_latency()?;
        self.check_bidirectional()?;
        self.check_inline()?;
        self.check_cores()?;
        self.check_mtu()?;
        self.check_window()?;
        let is_loop = self.device == Device::Loop;
        self.congestion.check(is_loop, self.network.link_gbps, self.threshold_bytes)?;
        self.burden.check(&self.device)?;
        self.check_link()?;
        self.check_direct()?;
        self.check_null()?;
        self.check_faults()?;
        if let Length::Iterations(n) = self.length {
            self.check_total(n)?;
            let at_most = |depth: u32| u32::try_from(n.get()).map_or(depth, |n| n.min(depth));
            (self.tx_depth, self.rx_depth) = (at_most(self.tx_depth), at_most(self.rx_depth));
        }
        if self.load.arrivals.is_some() {
            // Each completion has its time.
            self.cq_mod = 1;
        }
        if self.mode == Mode::Latency {
            self.tx_depth = self.tx_depth.min(if self.is_rally() { RALLY_DEPTH } else { 1 });
            self.cq_mod = 1;
        }
        self.cq_mod = self.cq_mod.min(self.tx_depth);
        self.check_load()?;
        Ok(self)
    }

    /// Clients: every host but the server.
    pub const fn clients(&self) -> u32 {
        self.hosts - 1
    }

    /// Queue pairs of all clients together.
    pub const fn total_qps(&self) -> u64 {
        self.clients() as u64 * self.qps as u64
    }

    /// Messages of all queue pairs together, in both directions; `None` when time limits the run.
    pub const fn total_iterations(&self) -> Option<u64> {
        match self.length {
            Length::Iterations(n) => Some(n.get() * self.total_qps() * self.directions()),
            Length::Duration(_) => None,
        }
    }

    /// How many messages to one that asks for a completion, no more than `moderation`, when nothing else is asked for: with
    /// thousands of queue pairs, a run would be over before any had completed so many.
    pub fn moderation_that_shows(moderation: u32, total_qps: u64) -> u32 {
        u32::try_from(UNSEEN_MESSAGES / total_qps.max(1)).unwrap_or(u32::MAX).clamp(1, moderation)
    }

    /// The least timeout from `exponent` on that is longer than a few turns of all queue pairs take: T-8 wants four round
    /// trips, and with thousands of queue pairs a turn is most of one.
    pub fn timeout_that_fits(exponent: u8, total_qps: u64) -> u8 {
        (exponent..31).find(|n| TIMEOUT_UNIT_NS << n >= total_qps.saturating_mul(TURN_NS)).unwrap_or(31)
    }

    /// The deepest queue, no deeper than `depth`, of which every queue pair's completions fit into one completion queue.
    pub fn depth_that_fits(depth: u32, total_qps: u64) -> u32 {
        u32::try_from(CQ_DEPTH_MAX / total_qps.max(1)).unwrap_or(u32::MAX).clamp(1, depth)
    }

    /// Whether the two sides send to each other in turns.
    pub const fn is_rally(&self) -> bool {
        matches!(self.mode, Mode::Latency) && !self.op.is_answered()
    }

    /// Whether both sides send messages.
    pub const fn is_duplex(&self) -> bool {
        self.is_rally() || self.bidirectional
    }

    /// Directions that messages are counted in.
    pub const fn directions(&self) -> u64 {
        if self.bidirectional { 2 } else { 1 }
    }

    /// Whether messages take receives, or would with another MTU.
    pub const fn takes_receives(&self) -> bool {
        self.op.takes_receives() || self.is_rally()
    }

    /// What answers a message of a latency test; `None` in others.
    pub fn trigger(&self) -> Option<Trigger> {
        if self.mode == Mode::Bandwidth {
            return None;
        }
        Some(match self.op {
            Op::Write if (1..=u64::from(self.mtu)).contains(&self.size) => Trigger::LastByte,
            Op::Write | Op::WriteImm => Trigger::Immediate,
            Op::Send | Op::SendImm => Trigger::Receive,
            Op::Read | Op::Cas | Op::Faa => Trigger::Completion,
        })
    }

    /// Name of what is measured, in the JSON: with times of its own for each message, a load has rates and latencies.
    pub const fn mode_name(&self) -> &'static str {
        if self.load.arrivals.is_some() { "load" } else { self.mode.name() }
    }

    fn check_load(&self) -> Result<(), Failure> {
        self.load.check(self.qps, self.tx_depth)?;
        let bandwidth_only = [
            ("--rate", self.load.rate_gbps.is_some()),
            ("--size-dist", self.load.size_dist.is_some()),
            ("--post_list", self.load.post_list > 1),
            ("--limit_bw", self.reporting.limit_gbps.is_some()),
        ];
        let wrong = bandwidth_only.iter().find(|(_, used)| *used && self.mode == Mode::Latency);
        if let Some((option, _)) = wrong {
            return Err(Failure::usage(format!("{option} is for bandwidth: leave it out with --lat")));
        }
        Ok(())
    }

    /// One message at a time, between two.
    fn check_latency(&self) -> Result<(), Failure> {
        if self.mode == Mode::Bandwidth {
            return Ok(());
        }
        if self.device == Device::Null {
            return Err(Failure::usage("null answers nothing, and --lat waits for answers"));
        }
        let alone = [("--qp", self.qps != 1), ("--hosts", self.hosts != 2)];
        match alone.iter().find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for bandwidth: --lat sends one message at a time from one client; leave it out"
            ))),
        }
    }

    /// As in perftest, two hosts send to each other.
    fn check_bidirectional(&self) -> Result<(), Failure> {
        if !self.bidirectional {
            return Ok(());
        }
        if self.mode == Mode::Latency {
            return Err(Failure::usage("--bidirectional is for bandwidth: leave it out with --lat"));
        }
        if self.device == Device::Null {
            return Err(Failure::usage(
                "null answers nothing, so there is one direction: leave out --bidirectional",
            ));
        }
        if self.hosts != 2 {
            let hosts = self.hosts;
            return Err(Failure::usage(format!(
                "--bidirectional is between two hosts, and --hosts is {hosts}: leave out one of them"
            )));
        }
        Ok(())
    }

    fn check_inline(&self) -> Result<(), Failure> {
        let bytes = self.inline_bytes;
        if bytes > INLINE_MAX as u64 {
            return Err(Failure::usage(format!(
                "--inline_size is {bytes}, but must be 0 to {INLINE_MAX}: larger messages go from their memory"
            )));
        }
        if bytes > 0 && self.op.is_answered() {
            let op = self.op.name();
            return Err(Failure::usage(format!(
                "--inline_size is for data that is posted, and {op} posts none: leave it out"
            )));
        }
        Ok(())
    }

    fn check_atomic(&self) -> Result<(), Failure> {
        if !self.op.is_atomic() || self.size == ATOMIC_BYTES {
            return Ok(());
        }
        if self.load.size_dist.is_some() {
            return Err(Failure::usage("--size-dist draws sizes, and atomics have 8 bytes"));
        }
        let (size, op) = (self.size, self.op.name());
        Err(Failure::usage(format!("--size is {size}, but {op} works on {ATOMIC_BYTES} bytes: leave it out")))
    }

    fn check_cores(&self) -> Result<(), Failure> {
        let most = if self.threads == Threads::Split { 3 } else { 1 };
        if self.cores.len() <= most {
            return Ok(());
        }
        let (count, threads) = (self.cores.len(), self.threads.name());
        Err(Failure::usage(format!(
            "--cores lists {count} cores, but --threads {threads} uses {most} at most"
        )))
    }

    /// Between two processes there is nothing but the device.
    fn check_link(&self) -> Result<(), Failure> {
        if self.device == Device::Loop {
            return Ok(());
        }
        if matches!(self.device, Device::Link(_)) {
            in_range("--qp between two processes", u64::from(self.qps), 1, u64::from(LINK_QPS_MAX))?;
        }
        let loop_only = [
            ("--hosts", self.hosts != 2),
            ("a network of --link-gbps, --topology or --pcap", self.network != Network::default()),
            ("--threads split", self.threads == Threads::Split),
        ];
        match loop_only.iter().chain(&self.switch_options()).find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is for the loop, whose switch is in this process: leave it out with {}",
                self.device.name()
            ))),
        }
    }

    /// What never arrives is not answered, and cannot be compared.
    /// Options of the switch, and whether they were used.
    fn switch_options(&self) -> [(&'static str, bool); 7] {
        [
            ("--threshold", self.threshold_bytes != THRESHOLD_BYTES),
            ("--control-bytes", self.control_bytes != CONTROL_BYTES),
            ("--trim", self.faults.trim != Probability::ZERO),
            ("--drop", self.faults.drop != Probability::ZERO),
            ("--dup", self.faults.duplicate != Probability::ZERO),
            ("--reorder", self.faults.reorder != Probability::ZERO),
            ("--corrupt", self.faults.corrupt != Probability::ZERO),
        ]
    }

    /// Whether a switch in this process joins the hosts.
    pub fn has_switch(&self) -> bool {
        self.device == Device::Loop && self.network.shape != Shape::Direct
    }

    /// Hosts that are joined directly have nothing in between.
    fn check_direct(&self) -> Result<(), Failure> {
        if self.network.shape != Shape::Direct {
            return Ok(());
        }
        let of_links =
            [("--link-gbps", self.network.link_gbps > 0.0), ("--pcap", self.network.pcap.is_some())];
        match self.switch_options().iter().chain(&of_links).find(|(_, used)| *used) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is about a switch, and --topology direct has none: leave one of them out"
            ))),
        }
    }

    fn check_null(&self) -> Result<(), Failure> {
        if self.device != Device::Null {
            return Ok(());
        }
        if self.op.is_answered() {
            let op = self.op.name();
            return Err(Failure::usage(format!("null answers nothing, and {op} waits for an answer"))
                .with_hint("choose write, write-imm, send or send-imm"));
        }
        if self.verify_each {
            return Err(Failure::usage("null delivers nothing that --verify could compare"));
        }
        Ok(())
    }

    fn check_mtu(&self) -> Result<(), Failure> {
        if MTUS.contains(&self.mtu) {
            return Ok(());
        }
        Err(Failure::usage(format!("--mtu is {}, but must be 256, 512, 1024, 2048, 4096 or 8192", self.mtu)))
    }

    fn check_window(&self) -> Result<(), Failure> {
        let least = (2 * u64::from(self.mtu)).max(2 * ACK_BYTES);
        if self.window_bytes < least {
            return Err(Failure::usage(format!(
                "--window is {} bytes, but must be at least {least}: two packets, and twice the {ACK_BYTES} bytes \
                 after which a receiver acknowledges",
                self.window_bytes
            )));
        }
        in_range("--window", self.window_bytes, least, QUEUE_BYTES_MAX)
    }

    /// A run must be able to end.
    fn check_faults(&self) -> Result<(), Failure> {
        // Each header that comes back shows that the peer lives, so no timeout would end it.
        if self.faults.trim.get() >= 1.0 {
            return Err(Failure::usage(
                "--trim is 100%, but must be below: when every packet is cut, no data ever arrives",
            ));
        }
        Ok(())
    }

    /// Counters of a run hold its messages and its bytes.
    fn check_total(&self, iterations: NonZeroU64) -> Result<(), Failure> {
        let bytes = iterations.get().checked_mul(self.total_qps() * self.directions());
        let bytes = bytes.and_then(|n| n.checked_mul(self.size.max(1)));
        if bytes.is_some() {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--iters {iterations} of {} bytes on {} queue pairs is more than 2^64 bytes in all",
            self.size,
            self.total_qps()
        )))
    }
}

fn in_range(option: &str, value: u64, least: u64, most: u64) -> Result<(), Failure> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::usage(format!("{option} is {value}, but must be {least} to {most}")))
}
