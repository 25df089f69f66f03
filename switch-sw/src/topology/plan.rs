//! A checked description, and the configuration of each switch that follows from it.

use dcp_pipeline::{
    ConfigError, FaultConfig, GroupConfig, GroupId, LinkConfig, LinkRate, LoadBalance, PORTS_MAX,
    PipelineConfig, PortId,
};
use dcp_wire::MacAddr;

use super::description::{Description, LinkDescription};
use super::error::{self, TopologyError};
use super::routes::{self, Way};

/// Most switches of a topology.
pub(super) const SWITCHES_MAX: usize = 64;
/// Fastest link, in Gb/s.
pub(super) const GBPS_MAX: f64 = 10_000.0;
/// Longest link, in microseconds: 10 s.
pub(super) const DELAY_US_MAX: f64 = 1e7;

/// A port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// Index of the switch.
    pub switch: usize,
    /// Its port.
    pub port: PortId,
}

/// A network that can be built: every host has a way to every other one, and no frame goes round in it.
///
/// The ports of a switch are those to its hosts and then those to other switches, each in the order of the
/// description.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    pub(super) switches: Vec<Node>,
    /// Where each host is.
    pub(super) hosts: Vec<End>,
    /// Both ends of each link between switches.
    pub(super) trunks: Vec<[End; 2]>,
}

/// A switch of a topology.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// The link behind each port.
    pub(super) links: Vec<LinkConfig>,
    /// The switch behind each port, and its port; `None` for a host.
    pub(super) neighbours: Vec<Option<End>>,
    /// Share of each port among parallel ones.
    pub(super) weights: Vec<u32>,
    /// Ports used in turn or by length.
    pub(super) groups: Vec<Vec<PortId>>,
    /// Per switch of the topology, how to get there; `None` for itself, and where no host is.
    pub(super) ways: Vec<Option<Way>>,
}

/// What all switches of a network have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct NetworkConfig {
    /// Queues, weight, marking and seed. What says which ports there are, which links and addresses, is replaced.
    pub base: PipelineConfig,
    /// How parallel links are used (S-5).
    pub balance: LoadBalance,
    /// Faults that every frame meets once, where it comes from its host (S-7).
    pub host_faults: FaultConfig,
}

impl Topology {
    /// No switch, no host and no link between switches: for hosts that are joined by a wire of their own.
    pub const fn none() -> Self {
        Self { switches: Vec::new(), hosts: Vec::new(), trunks: Vec::new() }
    }

    /// Checks a description. Links that give no rate of their own have `default_gbps`; 0 = no limit.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(description: &Description, default_gbps: f64) -> Result<Self, TopologyError> {
        check_names(description)?;
        let mut topology = Self::none();
        for (index, switch) in description.switches.iter().enumerate() {
            let name = format!("the links to the hosts of `{}`", switch.name);
            let gbps = switch.host_gbps.or(description.host_gbps).unwrap_or(default_gbps);
            let link = link_config(&name, gbps, 0.0)?;
            topology.switches.push(Node { name: switch.name.clone(), ..Node::default() });
            topology.check_ports(index, switch.hosts)?;
            for _ in 0..switch.hosts {
                let end = topology.add_port(index, link, 1);
                topology.hosts.push(end);
            }
        }
        for link in &description.links {
            topology.add_links(link, default_gbps)?;
        }
        if topology.hosts.len() < 2 {
            return Err(TopologyError::Hosts { given: description.hosts() });
        }
        routes::find(&mut topology)?;
        Ok(topology)
    }

    fn check_ports(&self, switch: usize, more: u32) -> Result<(), TopologyError> {
        let Node { name, links, .. } = &self.switches[switch];
        let ports = links.len().saturating_add(more as usize);
        if ports <= usize::from(PORTS_MAX) {
            return Ok(());
        }
        Err(TopologyError::Ports { name: name.clone(), ports })
    }

    fn add_links(&mut self, link: &LinkDescription, default_gbps: f64) -> Result<(), TopologyError> {
        let [from, to] = &link.between;
        let name = format!("the link between `{from}` and `{to}`");
        error::count_in_range(&name, link.count)?;
        error::weight_in_range(&name, link.weight)?;
        let config = link_config(&name, link.gbps.unwrap_or(default_gbps), link.delay_us)?;
        let ends = [self.switch_named(from)?, self.switch_named(to)?];
        if ends[0] == ends[1] {
            return Err(TopologyError::SelfLink { name: from.clone() });
        }
        ends.iter().try_for_each(|&end| self.check_ports(end, link.count))?;
        for _ in 0..link.count {
            let [near, far] = ends.map(|end| self.add_port(end, config, link.weight));
            self.switches[near.switch].neighbours[near.port.index()] = Some(far);
            self.switches[far.switch].neighbours[far.port.index()] = Some(near);
            self.trunks.push([near, far]);
        }
        Ok(())
    }

    fn add_port(&mut self, switch: usize, link: LinkConfig, weight: u32) -> End {
        let node = &mut self.switches[switch];
        let port = PortId(u16::try_from(node.links.len()).unwrap_or(u16::MAX));
        node.links.push(link);
        node.neighbours.push(None);
        node.weights.push(weight);
        End { switch, port }
    }

    fn switch_named(&self, name: &str) -> Result<usize, TopologyError> {
        let found = self.switches.iter().position(|switch| switch.name == name);
        found.ok_or_else(|| TopologyError::NoSuchSwitch { name: name.to_owned() })
    }

    /// Where the hosts are, by their numbers.
    pub fn hosts(&self) -> &[End] {
        &self.hosts
    }

    /// Links between switches, by their ends.
    pub fn trunks(&self) -> &[[End; 2]] {
        &self.trunks
    }

    /// Number of switches.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// Name of a switch.
    pub fn name(&self, switch: usize) -> &str {
        &self.switches[switch].name
    }

    /// The links behind the ports of a switch.
    pub fn links(&self, switch: usize) -> &[LinkConfig] {
        &self.switches[switch].links
    }

    /// Where frames go that leave by a port; `None` for a host.
    pub fn neighbour(&self, at: End) -> Option<End> {
        self.switches[at.switch].neighbours[at.port.index()]
    }

    /// Configurations of the switches, for hosts with these addresses in the order of their numbers.
    pub fn configs(&self, config: &NetworkConfig, macs: &[MacAddr]) -> Vec<PipelineConfig> {
        (0..self.switches.len()).map(|switch| self.config(switch, config, macs)).collect()
    }

    fn config(&self, switch: usize, network: &NetworkConfig, macs: &[MacAddr]) -> PipelineConfig {
        let node = &self.switches[switch];
        let members =
            |group: &Vec<PortId>| group.iter().map(|&port| (port, node.weights[port.index()])).collect();
        let group = |group| {
            let members: Vec<_> = members(group);
            GroupConfig::weighted(members, network.balance)
        };
        let mut config = PipelineConfig {
            ports: u16::try_from(node.links.len()).unwrap_or(u16::MAX),
            links: node.links.clone(),
            groups: node.groups.iter().map(group).collect(),
            static_macs: Vec::new(),
            group_macs: Vec::new(),
            default_group: None,
            faults: node.neighbours.iter().map(|peer| faults(*peer, network)).collect(),
            egress_faults: Vec::new(),
            // Switches in a row must not draw alike.
            seed: network.base.seed.wrapping_add((switch as u64) << 48),
            ..network.base.clone()
        };
        for (&host, &mac) in self.hosts.iter().zip(macs) {
            match node.ways[host.switch] {
                None => config.static_macs.push((mac, host.port)),
                Some(Way::Port(port)) => config.static_macs.push((mac, port)),
                Some(Way::Group(group)) => config.group_macs.push((mac, group)),
            }
        }
        config
    }

    pub(super) fn refused(&self, switch: usize, error: ConfigError) -> TopologyError {
        TopologyError::Config { name: self.switches[switch].name.clone(), error }
    }
}

/// Faults of a port: frames from other switches have met theirs.
const fn faults(neighbour: Option<End>, network: &NetworkConfig) -> FaultConfig {
    if neighbour.is_none() { network.host_faults } else { FaultConfig::NONE }
}

fn check_names(description: &Description) -> Result<(), TopologyError> {
    let given = description.switches.len();
    if given == 0 || given > SWITCHES_MAX {
        return Err(TopologyError::Switches { given });
    }
    for (index, switch) in description.switches.iter().enumerate() {
        if description.switches[..index].iter().any(|other| other.name == switch.name) {
            return Err(TopologyError::NameTwice { name: switch.name.clone() });
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked first")]
fn link_config(name: &str, gbps: f64, delay_us: f64) -> Result<LinkConfig, TopologyError> {
    error::rate_in_range(name, gbps)?;
    error::delay_in_range(name, delay_us)?;
    let rate = LinkRate::from_gbps(gbps).unwrap_or(LinkRate::UNLIMITED);
    Ok(LinkConfig { rate, delay_ns: (delay_us * 1000.0).round() as u64, in_flight_frames_max: 0 })
}

/// A group of a switch, by its index.
pub(super) fn group_id(index: usize) -> GroupId {
    GroupId(u16::try_from(index).unwrap_or(u16::MAX))
}
