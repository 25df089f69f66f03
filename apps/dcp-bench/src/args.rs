//! The command line.

mod link;
mod perftest;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::burden::{self, BurdenArgs};
use crate::congestion::CongestionArgs;
use crate::failure::Failure;
use crate::load::LoadArgs;
use crate::network::NetworkArgs;
pub use link::LinkArgs;
pub use perftest::PerftestArgs;

use crate::plan::{Device, Faults, LATENCY_ITERATIONS, Length, Mode, Op, Plan, Threads};
use crate::report::Unit;
use crate::sink;
use crate::tools::Tool;
use crate::units::{self, Cores, Probability};

/// Where perftest puts its JSON.
const PERFTEST_JSON: &str = "perftest_out.json";

/// perftest for DCP.
///
/// Moves seeded data between hosts over DPDK and a trimming switch, checks it, and says how fast that was.
#[derive(Parser, Debug)]
#[command(name = "dcp-bench", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Bandwidth of RDMA WRITE.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Write(BandwidthArgs),
    /// Bandwidth of RDMA WRITE with immediate data.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    WriteImm(BandwidthArgs),
    /// Bandwidth of SEND.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Send(BandwidthArgs),
    /// Bandwidth of SEND with immediate data.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    SendImm(BandwidthArgs),
    /// Bandwidth of RDMA READ.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Read(BandwidthArgs),
    /// Rate of atomic compare and swap.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Cas(BandwidthArgs),
    /// Rate of atomic fetch and add.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Faa(BandwidthArgs),
    /// What is no operation.
    #[command(flatten)]
    Tool(Tool),
    /// What host congestion does to RDMA WRITE in the loop, without RHCC and with either half of it: one table.
    #[command(allow_negative_numbers = true, display_name = "dcp-bench")]
    Rhcc(BandwidthArgs),
    /// Any other word, with what follows it.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl Command {
    /// The operation and its options, or the words that name none.
    ///
    /// # Errors
    /// The words; none for what is no operation.
    pub fn operation(self) -> Result<(Op, BandwidthArgs), Vec<OsString>> {
        Ok(match self {
            Self::Write(args) => (Op::Write, args),
            Self::WriteImm(args) => (Op::WriteImm, args),
            Self::Send(args) => (Op::Send, args),
            Self::SendImm(args) => (Op::SendImm, args),
            Self::Read(args) => (Op::Read, args),
            Self::Cas(args) => (Op::Cas, args),
            Self::Faa(args) => (Op::Faa, args),
            Self::Tool(_) => return Err(Vec::new()),
            Self::Rhcc(_) => return Err(Vec::new()),
            Self::Other(words) => return Err(words),
        })
    }
}

/// Options of a bandwidth test.
#[derive(Args, Debug)]
pub struct BandwidthArgs {
    /// Who the other side is, and the way to it.
    #[command(flatten)]
    pub link: LinkArgs,
    /// What to move.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// How fast senders may go.
    #[command(flatten)]
    pub congestion: CongestionArgs,
    /// What else the server's host has to do.
    #[command(flatten)]
    pub burden: BurdenArgs,
    /// How much of it.
    #[command(flatten)]
    pub load: LoadArgs,
    /// What people know from perftest.
    #[command(flatten)]
    pub perftest: PerftestArgs,
    /// The network in between.
    #[command(flatten)]
    pub fabric: FabricArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What to move.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
pub struct TrafficArgs {
    /// Latency instead of bandwidth: one message at a time; write and send take half of a round trip, like perftest
    #[arg(long)]
    pub lat: bool,
    /// Message size in bytes, up to 1G (K, M, G = 1024, 1024^2, 1024^3) [default: 64K; with --lat: 2; atomics: 8]
    #[arg(short, long, value_name = "BYTES", value_parser = units::parse_size)]
    pub size: Option<u64>,
    /// Messages per queue pair [default: 5000; with --lat: 1000]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_iterations)]
    pub iters: Option<NonZeroU64>,
    /// Run for so many seconds instead of a number of messages
    #[arg(short = 'D', long, value_name = "S", value_parser = units::parse_seconds)]
    pub duration: Option<Duration>,
    /// Queue pairs per client
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub qp: u32,
    /// Both sides send: the result is the sum of both directions
    #[arg(short, long)]
    pub bidirectional: bool,
    /// Messages that a queue pair may have outstanding [default: 128, or what all queue pairs have room for]
    #[arg(short, long, value_name = "N")]
    pub tx_depth: Option<u32>,
    /// Receives that the server keeps posted on a queue pair, where messages take them [default: 512, or what all
    /// queue pairs have room for]
    #[arg(short, long, value_name = "N")]
    pub rx_depth: Option<u32>,
    /// Payload of a packet in bytes: 256, 512, 1024, 2048, 4096 or 8192 [default: 4096, or what the devices carry]
    #[arg(short, long, value_name = "BYTES")]
    pub mtu: Option<u32>,
    /// Ask for a completion once in so many messages [default: 100, less with more than 200 queue pairs]
    #[arg(short = 'Q', long, value_name = "N")]
    pub cq_mod: Option<u32>,
    /// Timeout of 4.096 us * 2^N; 0 = never [default: 14, more with hundreds of queue pairs, which wait for their turns]
    #[arg(short = 'u', long, value_name = "N")]
    pub qp_timeout: Option<u8>,
    /// Timeouts without progress that a queue pair survives, up to 7
    #[arg(long, alias = "retry_count", value_name = "N", default_value_t = 7)]
    pub retry_cnt: u8,
    /// Waits for a receive that the server has not posted, up to 6; 7 = for ever
    #[arg(long, alias = "rnr_retry", value_name = "N", default_value_t = 7)]
    pub rnr_retry: u8,
    /// Protect every frame with an ICRC
    #[arg(long)]
    pub icrc: bool,
    /// Bytes that a queue pair may have in flight
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = units::parse_size)]
    pub window: u64,
    /// Drive client, switch and server on one thread, or on one pinned thread each
    #[arg(long, value_enum, default_value_t = Threads::Inline)]
    pub threads: Threads,
    /// Cores to run on, as 0,2 or 1-3: one, or up to three with --threads split
    #[arg(long, value_name = "LIST", value_parser = units::parse_cores)]
    pub cores: Option<Cores>,
    /// Check every message as it completes, not only what is there at the end
    #[arg(long)]
    pub verify: bool,
}

/// The network in between.
#[derive(Args, Debug)]
#[command(next_help_heading = "Network (loop only)")]
pub struct FabricArgs {
    /// Hosts, 2 to 33: one server, the others clients [default: 2, or what the file of --topology has]
    #[arg(long, value_name = "N")]
    pub hosts: Option<u32>,
    /// Queued bytes above which the switch trims
    #[arg(long, value_name = "BYTES", default_value = "512K", value_parser = units::parse_size)]
    pub threshold: u64,
    /// Room for trimmed headers and control packets in the switch
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = units::parse_size)]
    pub control_bytes: u64,
    /// Trim data packets with this probability, below 100%: 1% or 0.01
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub trim: Probability,
    /// Drop packets with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub drop: Probability,
    /// Send packets twice with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub dup: Probability,
    /// Seed of the data and of the injected faults
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::parse_seed)]
    pub seed: u64,
    /// Switches, links and what happens on them.
    #[command(flatten)]
    pub network: Box<NetworkArgs>,
}

/// Where results go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the results to FILE as JSON, also when the run fails; - = stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// perftest's way to ask for JSON: to the file of --out_json_file
    #[arg(long = "out_json")]
    pub out_json: bool,
    /// Like --json; with --out_json alone it is perftest_out.json
    #[arg(long = "out_json_file", value_name = "FILE", conflicts_with = "json")]
    pub out_json_file: Option<PathBuf>,
    /// Write the rows to FILE as comma-separated values; - = stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// No progress bar and no notes
    #[arg(long)]
    pub quiet: bool,
    /// Bandwidth in Gb/s instead of MiB/s
    #[arg(long = "report_gbits")]
    pub report_gbits: bool,
}

impl OutputArgs {
    /// Where the JSON goes.
    pub fn json(&self) -> Option<PathBuf> {
        let default = self.out_json.then(|| PathBuf::from(PERFTEST_JSON));
        self.json.clone().or_else(|| self.out_json_file.clone()).or(default)
    }

    /// The option that says so.
    pub const fn json_option(&self) -> &'static str {
        if self.json.is_some() { "--json" } else { "--out_json_file" }
    }

    /// Whether stdout holds what other programs read.
    pub fn takes_stdout(&self) -> bool {
        let stdout = Some(PathBuf::from("-"));
        self.csv == stdout || self.json() == stdout
    }

    /// Unit of the table.
    pub const fn unit(&self) -> Unit {
        if self.report_gbits { Unit::Gigabits } else { Unit::Mebibytes }
    }
}

impl BandwidthArgs {
    /// The runs that the options describe, at least one, and what the user should know about it.
    ///
    /// # Errors
    /// A usage failure.
    pub fn plans(&self, op: Op) -> Result<(Vec<Plan>, Vec<String>), Failure> {
        if self.traffic.iters.is_some() && self.traffic.duration.is_some() {
            return Err(Failure::usage(
                "--iters and --duration cannot be used together: a run ends by its messages or by its time",
            ));
        }
        if self.output.csv.as_deref() == Some(Path::new("-"))
            && self.output.json().as_deref() == Some(Path::new("-"))
        {
            return Err(Failure::usage("--json and --csv cannot both go to stdout"));
        }
        sink::refuse_one_file_twice(&[
            (self.output.json_option(), self.output.json().as_deref()),
            ("--csv", self.output.csv.as_deref()),
            ("--pcap", self.fabric.network.pcap.as_deref()),
        ])?;
        let mut plans = self.perftest.plans(&self.unchecked_plan(op, self.link.device()?)?)?;
        let mut notes: Vec<_> = self.perftest.notes().collect();
        // All runs have the same burden, so one is told of it.
        let placed: Vec<_> = plans.iter_mut().filter_map(burden::place).collect();
        notes.extend(placed.into_iter().take(1));
        let plan = &plans[0];
        if plan.device == Device::Loop {
            let who = if plan.has_switch() { "clients, switch and server" } else { "client and server" };
            notes.push(format!("loop: {who} all run in this process; use --server to wait for a peer"));
        }
        let limit = match plan.mode {
            Mode::Bandwidth => "the messages of a queue pair",
            Mode::Latency => "what a latency test uses",
        };
        let cuts = [
            ("--tx-depth", self.traffic.tx_depth, plan.tx_depth, limit),
            ("--rx-depth", self.traffic.rx_depth, plan.rx_depth, "the messages of a queue pair"),
            ("--cq-mod", self.traffic.cq_mod, plan.cq_mod, "the depth of the send queue"),
        ];
        if plan.inline_bytes > 0
            && plan.load.size_dist.is_none()
            && plan.size > plan.inline_bytes
            && plans.len() == 1
        {
            let (size, limit) = (plan.size, plan.inline_bytes);
            notes.push(format!(
                "messages of {size} bytes are larger than --inline_size {limit}: none is copied"
            ));
        }
        if self.traffic.qp_timeout.is_none() && plan.qp_timeout != Plan::default().qp_timeout {
            let (timeout, qps) = (plan.qp_timeout, plan.total_qps());
            notes.push(format!("--qp-timeout is {timeout}: {qps} queue pairs wait long for their turns"));
        }
        for (option, asked, used, limit) in cuts {
            if asked.is_some_and(|asked| asked != used) {
                notes.push(format!("{option} is cut to {used}, {limit}"));
            }
        }
        Ok((plans, notes))
    }

    fn unchecked_plan(&self, op: Op, device: Device) -> Result<Plan, Failure> {
        let default = Plan::default();
        let (traffic, fabric) = (&self.traffic, &self.fabric);
        let length = match (traffic.duration, traffic.iters) {
            (Some(time), _) => Length::Duration(time),
            (None, Some(n)) => Length::Iterations(n),
            (None, None) if traffic.lat => Length::Iterations(LATENCY_ITERATIONS),
            (None, None) => default.length,
        };
        let mode = if traffic.lat { Mode::Latency } else { Mode::Bandwidth };
        let network = fabric.network.network()?;
        let hosts = fabric.hosts.or(network.own_hosts()).unwrap_or(default.hosts);
        let total_qps = u64::from(hosts.saturating_sub(1)) * u64::from(traffic.qp);
        let depth = |asked: Option<u32>, default| asked.unwrap_or(Plan::depth_that_fits(default, total_qps));
        Ok(Plan {
            op,
            mode,
            device,
            size: match self.load.size_dist {
                Some(dist) => dist.largest(),
                None => traffic.size.unwrap_or(op.default_size(mode)),
            },
            length,
            qps: traffic.qp,
            tx_depth: depth(traffic.tx_depth, default.tx_depth),
            rx_depth: depth(traffic.rx_depth, default.rx_depth),
            mtu: traffic.mtu.unwrap_or(default.mtu),
            mtu_asked: traffic.mtu.is_some(),
            bidirectional: traffic.bidirectional,
            inline_bytes: self.perftest.inline_size,
            cq_mod: traffic.cq_mod.unwrap_or(Plan::moderation_that_shows(default.cq_mod, total_qps)),
            threads: traffic.threads,
            cores: traffic.cores.clone().map_or(Vec::new(), |cores| cores.0),
            hosts,
            network,
            window_bytes: traffic.window,
            congestion: self.congestion.congestion(),
            burden: self.burden.burden(),
            threshold_bytes: fabric.threshold,
            control_bytes: fabric.control_bytes,
            faults: Faults {
                trim: fabric.trim,
                drop: fabric.drop,
                duplicate: fabric.dup,
                reorder: fabric.network.reorder,
                corrupt: fabric.network.corrupt,
            },
            seed: fabric.seed,
            verify_each: traffic.verify,
            qp_timeout: traffic.qp_timeout.unwrap_or(Plan::timeout_that_fits(default.qp_timeout, total_qps)),
            retry_cnt: traffic.retry_cnt,
            rnr_retry: traffic.rnr_retry,
            icrc: traffic.icrc,
            load: self.load.load(),
            use_hugepages: self.perftest.use_hugepages,
            reporting: self.perftest.reporting(),
        })
    }
}

/// Why a word is not an operation.
pub fn not_an_operation(words: &[OsString]) -> Failure {
    let word = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    Failure::usage(format!("there is no operation `{word}`")).with_hint(
        "there are write, write-imm, send, send-imm, read, cas and faa; `dcp-bench --help` lists what else there is",
    )
}

/// Where `--json` points to on a command line that could not be parsed as a whole.
pub fn json_target(words: &[OsString]) -> Option<PathBuf> {
    let mut default = None;
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--out_json" {
            default = Some(PathBuf::from(PERFTEST_JSON));
        }
        for option in ["--json", "--out_json_file"] {
            if word == option {
                return words.next().filter(|path| !path.is_empty()).map(PathBuf::from);
            }
            let value = word.to_str().and_then(|word| word.strip_prefix(option)?.strip_prefix('='));
            if let Some(path) = value {
                return Some(path).filter(|path| !path.is_empty()).map(PathBuf::from);
            }
        }
    }
    default
}

fn parse_iterations(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "the number of messages is a whole number from 1 up".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::burden::Burden;
    use crate::congestion::Congestion;
    use crate::load::Load;
    use crate::network::{Balance, Network, Shape};
    use crate::plan::Reporting;

    fn plan(options: &[&str]) -> Result<(Plan, Vec<String>), Failure> {
        let words = ["dcp-bench", "write"].iter().chain(options);
        match Cli::try_parse_from(words).unwrap().command.operation() {
            Ok((op, args)) => args.plans(op).map(|(mut plans, notes)| (plans.remove(0), notes)),
            Err(words) => Err(not_an_operation(&words)),
        }
    }

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bare_run_is_the_default_plan() {
        let (plan, notes) = plan(&[]).unwrap();
        assert_eq!(plan, Plan::default().checked().unwrap());
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("loop: ") && notes[0].contains("--server"));
    }

    #[test]
    fn every_option_reaches_the_plan() {
        let line = "-s 1M -n 7 -q 3 -t 5 -r 6 -m 256 -Q 2 -u 10 --retry-cnt 3 --window 128K --threads split --verify \
                    --rnr-retry 2 --icrc -I 100 --cores 0-1 --rate 2.5 -l 2 --use_hugepages -N -w 0.5 \
                    --antagonist 2 --rhcc-receiver \
                    --hosts 9 --topology two-switch --path-weights 1:4 --lb spray --link-gbps 2.5 --pcap out.pcap \
                    --reorder 0.25 --corrupt 1e-3 --threshold 8K --control-bytes 0 --trim 5% --drop 0.001 --dup 1 --seed 42";
        let (plan, notes) = plan(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        let probability = |value| Probability::new(value).unwrap();
        let expected = Plan {
            op: Op::Write,
            mode: Mode::Bandwidth,
            device: Device::Loop,
            size: 1 << 20,
            length: Length::Iterations(NonZeroU64::new(7).unwrap()),
            qps: 3,
            tx_depth: 5,
            rx_depth: 6,
            mtu: 256,
            mtu_asked: true,
            bidirectional: false,
            inline_bytes: 100,
            cq_mod: 2,
            threads: Threads::Split,
            cores: vec![0, 1],
            hosts: 9,
            network: Network {
                shape: Shape::TwoSwitch(vec![1, 4]),
                link_gbps: 2.5,
                balance: Balance::Spray,
                pcap: Some("out.pcap".into()),
            },
            window_bytes: 128 << 10,
            congestion: Congestion::default(),
            burden: Burden { hogs: 2, is_governed: true },
            threshold_bytes: 8 << 10,
            control_bytes: 0,
            faults: Faults {
                trim: probability(0.05),
                drop: probability(0.001),
                duplicate: probability(1.0),
                reorder: probability(0.25),
                corrupt: probability(0.001),
            },
            seed: 42,
            verify_each: true,
            qp_timeout: 10,
            retry_cnt: 3,
            rnr_retry: 2,
            icrc: true,
            load: Load { rate_gbps: Some(2.5), post_list: 2, ..Load::default() },
            use_hugepages: true,
            reporting: Reporting { no_peak: true, limit_gbps: Some(0.5), ..Reporting::default() },
        };
        assert_eq!(plan, expected);
        assert!(notes.iter().any(|note| note.contains("larger than --inline_size 100")), "{notes:?}");
        assert_eq!((plan.clients(), plan.total_qps(), plan.total_iterations()), (8, 24, Some(168)));
    }

    #[test]
    fn defaults_suit_thousands_of_queue_pairs() {
        let of = |options: &[&str]| {
            let plan = plan(options).unwrap().0;
            (plan.tx_depth, plan.rx_depth, plan.cq_mod, plan.qp_timeout)
        };
        assert_eq!(of(&["-q", "200"]), (128, 512, 100, 14));
        assert_eq!(of(&["-q", "671"]), (128, 512, 29, 14));
        assert_eq!(of(&["-q", "10000"]), (128, 419, 2, 18));
        assert_eq!(of(&["-q", "16384", "--hosts", "33"]), (8, 8, 1, 24));
        assert_eq!(of(&["-q", "10000", "-r", "400", "-Q", "50", "-u", "3"]), (128, 400, 50, 3));
    }

    #[test]
    fn duration_replaces_iterations() {
        let (plan, _) = plan(&["-D", "0.5"]).unwrap();
        assert_eq!(plan.length, Length::Duration(Duration::from_millis(500)));
        assert_eq!(plan.total_iterations(), None);
    }

    #[test]
    fn depth_and_moderation_never_exceed_what_a_queue_pair_sends() {
        for n in [1, 2, 7, 1001] {
            for depth in [1, 3, 128] {
                for cq_mod in [1, 100, 1000] {
                    let words = [n, depth, cq_mod].map(|value: u32| value.to_string());
                    let (plan, _) = plan(&["-n", &words[0], "-t", &words[1], "-Q", &words[2]]).unwrap();
                    assert_eq!(plan.tx_depth, depth.min(n));
                    assert_eq!(plan.cq_mod, cq_mod.min(plan.tx_depth));
                }
            }
        }
    }

    #[test]
    fn only_a_value_that_was_asked_for_is_noted_as_cut() {
        assert_eq!(plan(&["-n", "1"]).unwrap().1.len(), 1);
        let notes = plan(&["-n", "10", "-t", "20", "-Q", "1000"]).unwrap().1;
        assert_eq!(notes[1], "--tx-depth is cut to 10, the messages of a queue pair");
        assert_eq!(notes.len(), 3);
        assert_eq!(notes[2], "--cq-mod is cut to 10, the depth of the send queue");
    }

    #[test]
    fn json_target_is_found_in_a_broken_command_line() {
        let target = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            json_target(&words)
        };
        assert_eq!(target("dcp-bench write --json out --nonsense"), Some("out".into()));
        assert_eq!(target("dcp-bench write --nonsense --json=-"), Some("-".into()));
        assert_eq!(target("dcp-bench write --json"), None);
        assert_eq!(target("dcp-bench write --json="), None);
        assert_eq!(target("dcp-bench write"), None);
        assert_eq!(target("dcp-bench write --out_json --nonsense"), Some("perftest_out.json".into()));
        assert_eq!(target("dcp-bench write --out_json --out_json_file=a"), Some("a".into()));
    }
}
