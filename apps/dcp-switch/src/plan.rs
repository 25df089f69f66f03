//! Settings made whole: every value in range, every default filled in.

use std::path::PathBuf;
use std::time::Duration;

use dcp::device::{DeviceUri, MemifRole};
use dcp_switch::pipeline::{
    Every, FaultConfig, GroupConfig, GroupMember, Incast, LinkConfig, LinkRate, LoadBalance, PipelineConfig,
    PortId, Probability, WeightConfig,
};

use crate::capture::CaptureTo;
use crate::failure::Failure;
use crate::settings::{FaultSettings, GroupSettings, PortSettings, Settings};

/// DPDK has so many Ethernet devices in a process.
pub const PORTS_MAX: usize = 32;
/// Frames of a data queue: with the buffers of a port, several full queues.
const DATA_FRAMES_MAX: u32 = 2048;
/// Fewest and most buffers of a port.
const MBUFS: std::ops::RangeInclusive<u32> = 511..=1_048_575;

/// What a run of the program is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The device of each port.
    pub ports: Vec<DeviceUri>,
    /// The switch.
    pub pipeline: PipelineConfig,
    /// Largest payload that memif ports carry.
    pub mtu: Option<u32>,
    /// Buffers of each port.
    pub mbufs: Option<u32>,
    /// The core to run on.
    pub core: Option<usize>,
    /// Never rest.
    pub polls_always: bool,
    /// Opens DPDK's telemetry socket.
    pub telemetry: bool,
    /// How often counters are told.
    pub stats: Option<Duration>,
    /// Where they go as JSON.
    pub json: Option<PathBuf>,
    /// Captures.
    pub captures: Vec<CaptureTo>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Plan {
    /// The plan that the settings describe.
    ///
    /// # Errors
    /// A usage failure.
    pub fn new(settings: Settings) -> Result<Self, Failure> {
        let uris = uris(&settings.port)?;
        let mut notes = Vec::new();
        let core = core(&settings, &mut notes);
        if settings.lb.is_some() && settings.group.is_empty() {
            notes.push("there is no group of parallel links, so balancing changes nothing".to_owned());
        }
        if settings.mbufs.is_some_and(|mbufs| !MBUFS.contains(&mbufs)) {
            return Err(Failure::usage(format!("mbufs must be {} to {}", MBUFS.start(), MBUFS.end())));
        }
        let ports = u16::try_from(uris.len()).unwrap_or(u16::MAX);
        if let Some(port) = settings.pcap.iter().filter_map(|capture| capture.port).find(|&it| it >= ports) {
            let sentence = format!("there is no port {port} to capture: ports are 0 to {}", ports - 1);
            return Err(Failure::usage(sentence));
        }
        let pipeline = pipeline(&settings, ports)?;
        Ok(Self {
            ports: uris,
            pipeline,
            mtu: settings.mtu,
            mbufs: settings.mbufs,
            core,
            polls_always: settings.poll.unwrap_or(false),
            telemetry: settings.telemetry.unwrap_or(false),
            stats: settings.stats.map(|seconds| seconds.0),
            json: settings.json,
            captures: settings.pcap,
            notes,
        })
    }
}

/// The devices, no two of them the same.
fn uris(ports: &[PortSettings]) -> Result<Vec<DeviceUri>, Failure> {
    if ports.len() < 2 {
        return Err(Failure::usage(format!(
            "a switch needs two ports or more, not {}: give each with --port URI, or as [[port]] in a file",
            ports.len()
        )));
    }
    if ports.len() > PORTS_MAX {
        return Err(Failure::usage(format!(
            "a switch has at most {PORTS_MAX} ports, not {}: DPDK opens no more devices in a program",
            ports.len()
        )));
    }
    let uris: Vec<DeviceUri> = ports.iter().map(|port| served(&port.uri.0)).collect();
    for (later, uri) in uris.iter().enumerate() {
        if let Some(first) = uris[..later].iter().position(|other| is_same(other, uri)) {
            let advice = match uri {
                DeviceUri::Memif { .. } => "give each an id of its own, as in memif:SOCKET,id=1",
                _ => "a device can be one port",
            };
            return Err(Failure::usage(format!("ports {first} and {later} are both {uri}: {advice}")));
        }
    }
    Ok(uris)
}

/// A switch serves its memif sockets unless it is told not to.
fn served(uri: &DeviceUri) -> DeviceUri {
    match uri {
        DeviceUri::Memif { socket, id, role: None } => {
            DeviceUri::Memif { socket: socket.clone(), id: *id, role: Some(MemifRole::Server) }
        }
        other => other.clone(),
    }
}

fn is_same(one: &DeviceUri, other: &DeviceUri) -> bool {
    use DeviceUri::{AfPacket, AfXdp, Memif, Tap};
    match (one, other) {
        (Memif { socket, id, .. }, Memif { socket: other, id: other_id, .. }) => {
            socket == other && id == other_id
        }
        (
            AfPacket { interface } | AfXdp { interface } | Tap { interface },
            AfPacket { interface: other } | AfXdp { interface: other } | Tap { interface: other },
        ) => interface == other,
        _ => one == other,
    }
}

/// One pipeline is one state machine: it runs on one core, whatever number of ports it has.
fn core(settings: &Settings, notes: &mut Vec<String>) -> Option<usize> {
    let cores = &settings.cores.as_ref()?.0;
    let core = *cores.first()?;
    if cores.len() > 1 {
        notes
            .push(format!("a switch runs on one core with all its ports: core {core}; the others stay free"));
    }
    Some(core)
}

fn pipeline(settings: &Settings, ports: u16) -> Result<PipelineConfig, Failure> {
    let mut config = PipelineConfig::new(ports);
    config.data_frames_max = DATA_FRAMES_MAX;
    config.trim_threshold_bytes = settings.threshold.map_or(config.trim_threshold_bytes, |size| size.0);
    config.control_bytes_max = settings.control_bytes.map_or(config.control_bytes_max, |size| size.0);
    config.acks_use_control_queue = !settings.acks_with_data.unwrap_or(false);
    config.weight = weight(settings)?;
    config.ecn = settings.ecn.map(|ecn| ecn.0);
    config.trim_to = settings.trim_to.map(|trim| trim.0);
    if !settings.service_port.is_empty() {
        config.service_ports.clone_from(&settings.service_port);
    }
    config.seed = settings.seed.unwrap_or(config.seed);
    let age_s = settings.mac_age_s.map(u64::from);
    config.mac_age_ns = age_s.map_or(config.mac_age_ns, |seconds| seconds * 1_000_000_000);
    let each = settings.port.iter();
    config.static_macs = each
        .clone()
        .zip((0..).map(PortId))
        .flat_map(|(port, id)| port.macs.iter().map(move |mac| (mac.0, id)))
        .collect();
    config.links = each.clone().map(|port| link(port, settings)).collect();
    config.faults = each.clone().map(|port| faults(&port.faults.unwrap_or(settings.faults))).collect();
    config.egress_faults = each.map(|port| faults(&port.egress_faults.unwrap_or_default())).collect();
    config.groups = settings.group.iter().map(|it| group(it, settings)).collect::<Result<_, _>>()?;
    Ok(config)
}

fn weight(settings: &Settings) -> Result<Option<WeightConfig>, Failure> {
    match (settings.weight, settings.radix) {
        (Some(_), Some(_)) => {
            Err(Failure::usage("radix and weight cannot be given both: the weight follows from the radix"))
        }
        (Some(weight), None) => Ok(Some(WeightConfig::ExplicitMilli(weight.0))),
        (None, Some(radix)) => {
            let ack_share_ppm =
                if settings.acks_with_data.unwrap_or(false) { 0 } else { Incast::ACK_SHARE_PPM };
            let trimmable_frame_len = Incast::TRIMMABLE_FRAME_LEN;
            let incast = Incast { ports: radix.0, trimmable_frame_len, ack_share_ppm };
            Ok(Some(WeightConfig::Derived(incast)))
        }
        (None, None) => Ok(None),
    }
}

fn link(port: &PortSettings, settings: &Settings) -> LinkConfig {
    let rate = port.link_gbps.or(settings.link_gbps).map_or(LinkRate::UNLIMITED, |rate| rate.0);
    let delay_us = port.link_delay_us.or(settings.link_delay_us).unwrap_or(0);
    LinkConfig { rate, delay_ns: u64::from(delay_us) * 1000, in_flight_frames_max: 0 }
}

fn faults(settings: &FaultSettings) -> FaultConfig {
    let chance = |chance: Option<crate::values::Chance>| chance.map_or(Probability::NEVER, |it| it.0);
    let ns = |us: Option<u32>, default: u64| us.map_or(default, |us| u64::from(us) * 1000);
    let none = FaultConfig::NONE;
    let every = settings.every.unwrap_or_default();
    FaultConfig {
        drop: chance(settings.drop),
        trim: chance(settings.trim),
        duplicate: chance(settings.dup),
        corrupt: chance(settings.corrupt),
        delay: chance(settings.delay),
        reorder: chance(settings.reorder),
        every: Every {
            drop: every.drop,
            trim: every.trim,
            duplicate: every.dup,
            corrupt: every.corrupt,
            delay: every.delay,
            reorder: every.reorder,
        },
        delay_ns: ns(settings.delay_us, none.delay_ns),
        reorder_frames: settings.reorder_frames.unwrap_or(none.reorder_frames),
        reorder_ns: ns(settings.reorder_us, none.reorder_ns),
        ..none
    }
}

fn group(group: &GroupSettings, settings: &Settings) -> Result<GroupConfig, Failure> {
    if !group.weights.is_empty() && group.weights.len() != group.ports.len() {
        return Err(Failure::usage(format!(
            "a group of {} ports has {} weights: give one for each port, or none",
            group.ports.len(),
            group.weights.len()
        )));
    }
    let weights = group.weights.iter().copied().chain(std::iter::repeat(1));
    let members = group.ports.iter().zip(weights);
    let members = members.map(|(&port, weight)| GroupMember { port: PortId(port), weight }).collect();
    let balance = group.lb.or(settings.lb).map_or(LoadBalance::default(), |lb| lb.0);
    // A port whose own link is gone is known to be no way.
    Ok(GroupConfig { members, balance, avoid_down: true })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::settings::Cli;

    fn plan(line: &str) -> Result<Plan, Failure> {
        let words = std::iter::once("dcp-switch").chain(line.split_whitespace());
        Plan::new(Cli::try_parse_from(words).unwrap().settings)
    }

    fn refused(line: &str) -> String {
        let failure = plan(line).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        failure.to_string()
    }

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_reaches_the_plan() {
        let line = "--port memif:/s,id=0 --port tap:t0 --port tap:t1 --threshold 8K --control-bytes 0 --radix 9 \
                    --acks-with-data --lb adaptive --group 1:1,2:4 --ecn 1K,2K,1 --link-gbps 10 --link-delay-us 5 \
                    --trim-to nvidia --service-port 1 --service-port 2 --trim 5% --drop 0.5 --dup 1 --reorder 1% \
                    --corrupt 2% --seed 42 --mac-age-s 0 --mtu 8192 --mbufs 2047 --cores 1 --poll --stats 2 --json \
                    --pcap f,port=1";
        let plan = plan(line).unwrap();
        let config = &plan.pipeline;
        assert_eq!((config.trim_threshold_bytes, config.control_bytes_max, config.seed), (8192, 0, 42));
        let incast = Incast { ports: 9, trimmable_frame_len: 1097, ack_share_ppm: 0 };
        assert_eq!(config.weight, Some(WeightConfig::Derived(incast)));
        assert!(!config.acks_use_control_queue && config.mac_age_ns == 0);
        let group = GroupConfig::weighted([(PortId(1), 1), (PortId(2), 4)], LoadBalance::Adaptive);
        assert_eq!(config.groups, [GroupConfig { avoid_down: true, ..group }]);
        assert_eq!(config.ecn.unwrap().max_bytes, 2048);
        assert_eq!(config.trim_to.unwrap().trim_bytes, 256);
        assert_eq!(config.service_ports, [1, 2]);
        let link = LinkConfig { delay_ns: 5000, ..LinkConfig::of_rate(LinkRate::from_mbps(10_000)) };
        assert_eq!(config.links, [link; 3]);
        let chance = |it| Probability::new(it).unwrap();
        let faults = FaultConfig {
            trim: chance(0.05),
            drop: chance(0.5),
            duplicate: Probability::ALWAYS,
            reorder: chance(0.01),
            corrupt: chance(0.02),
            ..FaultConfig::NONE
        };
        assert_eq!(config.faults, [faults; 3]);
        assert_eq!(
            (plan.mtu, plan.mbufs, plan.core, plan.polls_always),
            (Some(8192), Some(2047), Some(1), true)
        );
        assert_eq!((plan.stats, plan.json), (Some(Duration::from_secs(2)), Some("-".into())));
        assert_eq!(plan.captures.len(), 1);
    }

    #[test]
    fn bare_ports_get_the_pipelines_defaults() {
        let plan = plan("--port memif:/s,id=0 --port memif:/s,id=1").unwrap();
        let default = PipelineConfig::new(2);
        assert_eq!(plan.pipeline.trim_threshold_bytes, default.trim_threshold_bytes);
        assert_eq!((plan.pipeline.weight, plan.pipeline.ecn), (None, None));
        assert_eq!(plan.ports[1].to_string(), "memif:/s,id=1,role=server");
        assert_eq!(plan.notes, Vec::<String>::new());
    }

    // D6
    #[test]
    fn ports_that_cannot_be_are_refused() {
        assert!(refused("--port tap:t0").contains("two ports or more, not 1"));
        assert!(refused("--threshold 1").contains("two ports or more, not 0"));
        let many: String = (0..33).map(|id| format!("--port memif:/s,id={id} ")).collect();
        assert!(refused(&many).contains("at most 32 ports, not 33"));
        let twice = refused("--port memif:/s,id=1 --port tap:t --port memif:/s,id=1,role=client");
        assert!(twice.contains("ports 0 and 2") && twice.contains("id of its own"), "{twice}");
        assert!(refused("--port af_packet:v0 --port af_xdp:v0").contains("ports 0 and 1"));
        let ports = "--port tap:t0 --port tap:t1";
        assert!(refused(&format!("{ports} --pcap f,port=2")).contains("ports are 0 to 1"));
        assert!(refused(&format!("{ports} --mbufs 510")).contains("511 to 1048575"));
    }

    #[test]
    fn second_core_and_balancing_without_groups_are_told_to_do_nothing() {
        let plan = plan("--port tap:t0 --port tap:t1 --cores 3,4 --lb spray").unwrap();
        assert_eq!(plan.core, Some(3));
        assert!(
            plan.notes[0].contains("core 3") && plan.notes[1].contains("changes nothing"),
            "{:?}",
            plan.notes
        );
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = Settings {
            threshold: "1K".parse().ok(),
            seed: Some(5),
            weight: "3".parse().ok(),
            ..Settings::default()
        };
        let words =
            ["dcp-switch", "--threshold", "2K", "--radix", "4", "--port", "tap:t0", "--port", "tap:t1"];
        let flags = Cli::try_parse_from(words).unwrap().settings;
        let plan = Plan::new(flags.over(file)).unwrap();
        assert_eq!((plan.pipeline.trim_threshold_bytes, plan.pipeline.seed), (2048, 5));
        assert!(matches!(plan.pipeline.weight, Some(WeightConfig::Derived(Incast { ports: 4, .. }))));
    }
}
