//! What can be set, on the command line and in the file.

use std::path::PathBuf;

use clap::{Args, Parser};
use serde::Deserialize;

use crate::capture::CaptureTo;
use crate::values::{
    Balance, Chance, Cores, Ecn, Mac, MilliWeight, PortUri, Radix, Rate, Seconds, Size, Trim,
};

/// The trimming switch.
///
/// Forwards Ethernet frames between its ports, and cuts DCP data packets that find a long queue to their headers. Stops on
/// Ctrl-C and SIGTERM.
#[derive(Parser, Debug)]
#[command(name = "dcp-switch", version, arg_required_else_help = true, allow_negative_numbers = true)]
pub struct Cli {
    /// Read settings from a TOML file; flags given as well win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Settings.
    #[command(flatten)]
    pub settings: Settings,
}

/// Everything that can be set. What is not has its default in [`crate::plan`].
#[derive(Args, Deserialize, Clone, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// A port: memif:SOCKET,id=N tap:NAME af_packet:IFACE af_xdp:IFACE pci:ADDRESS vdev:ARGUMENTS; once for each port
    #[arg(long = "port", value_name = "URI", value_parser = parse_port)]
    pub port: Vec<PortSettings>,
    /// Ports that are parallel links to one place: 2,3 or with weights 2:1,3:4; may be repeated
    #[arg(long = "group", value_name = "PORTS", value_parser = parse_group)]
    pub group: Vec<GroupSettings>,
    /// Queued bytes above which data packets are trimmed [default: 512K]
    #[arg(long, value_name = "BYTES")]
    pub threshold: Option<Size>,
    /// Room for trimmed headers and control packets [default: 64K]
    #[arg(long, value_name = "BYTES")]
    pub control_bytes: Option<Size>,
    /// The paper's N, from which the control queue's weight follows [default: the number of ports]
    #[arg(long, value_name = "N", conflicts_with = "weight")]
    pub radix: Option<Radix>,
    /// The control queue's weight against the data queue's, instead of --radix
    #[arg(long, value_name = "W")]
    pub weight: Option<MilliWeight>,
    /// ACKs wait with the data, as in the paper, and not with the headers
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub acks_with_data: Option<bool>,
    /// How frames find a link of a group: ecmp, spray, spray-random, adaptive [default: ecmp]
    #[arg(long, value_name = "HOW")]
    pub lb: Option<Balance>,
    /// Mark ECN-capable frames between two lengths of the data queue, such as 100K,400K,0.2
    #[arg(long, value_name = "KMIN,KMAX,PMAX")]
    pub ecn: Option<Ecn>,
    /// Rate of every link in Gb/s; 0 for as fast as it goes [default: 0]
    #[arg(long, value_name = "G")]
    pub link_gbps: Option<Rate>,
    /// Length of every link in microseconds [default: 0]
    #[arg(long, value_name = "US")]
    pub link_delay_us: Option<u32>,
    /// Trim as other switches do: sonic, nvidia, BYTES,DSCP or BYTES,DSCP,data
    #[arg(long, value_name = "HOW")]
    pub trim_to: Option<Trim>,
    /// UDP port that means DCP; may be repeated [default: 17791]
    #[arg(long = "service-port", value_name = "PORT")]
    pub service_port: Vec<u16>,
    /// Faults that frames meet when they arrive, at every port that has none of its own.
    #[command(flatten)]
    pub faults: FaultSettings,
    /// Seed of faults, spraying and marking [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Seconds after which a silent host is forgotten; 0 = never [default: 300]
    #[arg(long, value_name = "S")]
    pub mac_age_s: Option<u32>,
    /// Largest payload of a DCP packet that memif ports carry, up to 8192 [default: 4096]
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<u32>,
    /// Buffers of each port for frames that arrive [default: up to 8191, by size and number of ports]
    #[arg(long, value_name = "N")]
    pub mbufs: Option<u32>,
    /// Core to run on; a switch runs on one [default: left to the system]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<Cores>,
    /// Never rest: takes a whole core also when there is nothing to do
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub poll: Option<bool>,
    /// Open DPDK's telemetry socket, for dpdk-telemetry.py
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub telemetry: Option<bool>,
    /// Tell the counters every S seconds
    #[arg(long, value_name = "S")]
    pub stats: Option<Seconds>,
    /// Write counters to FILE, or to stdout, as JSON: one object on a line for each report
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Capture frames to FILE, or FILE,port=N or FILE,side=in or FILE,side=out or both; may be repeated
    #[arg(long, value_name = "FILE")]
    pub pcap: Vec<CaptureTo>,
}

/// A port. In the file a table `[[port]]`.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortSettings {
    /// Its device.
    pub uri: PortUri,
    /// Rate of its link.
    pub link_gbps: Option<Rate>,
    /// Length of its link.
    pub link_delay_us: Option<u32>,
    /// Hosts that are known to be there.
    #[serde(default)]
    pub macs: Vec<Mac>,
    /// Faults that frames meet when they arrive.
    pub faults: Option<FaultSettings>,
    /// Faults that frames meet before they leave.
    pub egress_faults: Option<FaultSettings>,
}

/// Parallel links to one place. In the file a table `[[group]]`.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GroupSettings {
    /// Its ports.
    pub ports: Vec<u16>,
    /// Their weights; 1 each if not given.
    #[serde(default)]
    pub weights: Vec<u32>,
    /// How frames find their link.
    pub lb: Option<Balance>,
}

/// Faults of one direction.
#[derive(Args, Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FaultSettings {
    /// Trim data packets with this probability: 1% or 0.01
    #[arg(long, value_name = "P")]
    pub trim: Option<Chance>,
    /// Lose frames with this probability
    #[arg(long, value_name = "P")]
    pub drop: Option<Chance>,
    /// Send frames twice with this probability
    #[arg(long, value_name = "P")]
    pub dup: Option<Chance>,
    /// Let frames be overtaken with this probability
    #[arg(long, value_name = "P")]
    pub reorder: Option<Chance>,
    /// Change a byte behind the header with this probability
    #[arg(long, value_name = "P")]
    pub corrupt: Option<Chance>,
    /// Delay frames with this probability.
    #[arg(skip)]
    pub delay: Option<Chance>,
    /// By how many microseconds.
    #[arg(skip)]
    pub delay_us: Option<u32>,
    /// How many frames overtake a reordered one.
    #[arg(skip)]
    pub reorder_frames: Option<u32>,
    /// How long it waits for them at most, in microseconds.
    #[arg(skip)]
    pub reorder_us: Option<u32>,
    /// Faults that come exactly every n-th time.
    #[arg(skip)]
    pub every: Option<EverySettings>,
}

/// Faults that come exactly every n-th time; 0 for never.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "named like the probabilities")]
pub struct EverySettings {
    pub trim: u32,
    pub drop: u32,
    pub dup: u32,
    pub reorder: u32,
    pub corrupt: u32,
    pub delay: u32,
}

fn parse_port(text: &str) -> Result<PortSettings, String> {
    let uri = text.parse()?;
    Ok(PortSettings {
        uri,
        link_gbps: None,
        link_delay_us: None,
        macs: Vec::new(),
        faults: None,
        egress_faults: None,
    })
}

fn parse_group(text: &str) -> Result<GroupSettings, String> {
    let wrong = || format!("{text:?} is no group: write ports such as 2,3, or with weights 2:1,3:4");
    let mut group = GroupSettings { ports: Vec::new(), weights: Vec::new(), lb: None };
    for member in text.split(',') {
        let (port, weight) = member.split_once(':').unwrap_or((member, "1"));
        group.ports.push(port.trim().parse().map_err(|_| wrong())?);
        group.weights.push(weight.trim().parse().map_err(|_| wrong())?);
    }
    Ok(group)
}

impl Settings {
    /// These settings, and where there are none those of `file`. Lists are taken whole from the one or the other.
    #[must_use]
    pub fn over(self, file: Self) -> Self {
        let list = |own: Vec<u16>, other| if own.is_empty() { other } else { own };
        Self {
            port: if self.port.is_empty() { file.port } else { self.port },
            group: if self.group.is_empty() { file.group } else { self.group },
            threshold: self.threshold.or(file.threshold),
            control_bytes: self.control_bytes.or(file.control_bytes),
            // One of the two: a flag of either kind ends what the file says.
            radix: self.radix.or(file.radix.filter(|_| self.weight.is_none())),
            weight: self.weight.or(file.weight.filter(|_| self.radix.is_none())),
            acks_with_data: self.acks_with_data.or(file.acks_with_data),
            lb: self.lb.or(file.lb),
            ecn: self.ecn.or(file.ecn),
            link_gbps: self.link_gbps.or(file.link_gbps),
            link_delay_us: self.link_delay_us.or(file.link_delay_us),
            trim_to: self.trim_to.or(file.trim_to),
            service_port: list(self.service_port, file.service_port),
            faults: self.faults.over(file.faults),
            seed: self.seed.or(file.seed),
            mac_age_s: self.mac_age_s.or(file.mac_age_s),
            mtu: self.mtu.or(file.mtu),
            mbufs: self.mbufs.or(file.mbufs),
            cores: self.cores.or(file.cores),
            poll: self.poll.or(file.poll),
            telemetry: self.telemetry.or(file.telemetry),
            stats: self.stats.or(file.stats),
            json: self.json.or(file.json),
            pcap: if self.pcap.is_empty() { file.pcap } else { self.pcap },
        }
    }
}

impl FaultSettings {
    fn over(self, file: Self) -> Self {
        Self {
            trim: self.trim.or(file.trim),
            drop: self.drop.or(file.drop),
            dup: self.dup.or(file.dup),
            reorder: self.reorder.or(file.reorder),
            corrupt: self.corrupt.or(file.corrupt),
            ..file
        }
    }
}
