//! A topology at work on DPDK ports.

use std::io;

use dcp_pipeline::{LinkConfig, PortCounters, PortId, TapPoint};
use dcp_wire::MacAddr;
use dpdk_ffi::{Clock, QueuePair};

use super::error::TopologyError;
use super::plan::{NetworkConfig, Topology};
use super::time::NetworkTime;
use crate::capture::{CaptureFile, CapturePoint, SharedCapture};
use crate::switch::Switch;

/// The switches' ends of all links, and both ends of those between switches.
#[derive(Debug)]
pub struct Cables {
    /// For every host of the topology, the end that its switch gets.
    pub hosts: Vec<QueuePair>,
    /// For every link between switches, both ends.
    pub trunks: Vec<(QueuePair, QueuePair)>,
}

/// The switches of a topology, joined. One thread drives them in turn.
#[derive(Debug)]
pub struct Network {
    switches: Vec<Switch>,
    topology: Topology,
    clock: Clock,
    time: NetworkTime,
    /// Whether a link takes time.
    is_timed: bool,
}

impl Network {
    /// Builds every switch of `topology` on the given links, for hosts with these addresses. Links to hosts keep their
    /// rate both ways.
    ///
    /// # Errors
    /// A switch refuses its configuration.
    ///
    /// # Panics
    /// When there are more or fewer addresses or cables than hosts and links.
    pub fn new(
        topology: Topology,
        config: &NetworkConfig,
        macs: &[MacAddr],
        cables: Cables,
        clock: Clock,
    ) -> Result<Self, TopologyError> {
        assert_eq!(macs.len(), topology.hosts.len(), "an address per host");
        let ports = ports_of_switches(&topology, cables);
        let configs = topology.configs(config, macs);
        let mut switches = Vec::with_capacity(configs.len());
        for (index, (config, ports)) in configs.into_iter().zip(ports).enumerate() {
            let switch = Switch::new(config, ports, clock).map_err(|error| topology.refused(index, error))?;
            switches.push(switch);
        }
        for host in &topology.hosts {
            let link = topology.switches[host.switch].links[host.port.index()];
            switches[host.switch].set_arrival_rate(host.port, link.rate);
        }
        let is_ideal = |link: &LinkConfig| *link == LinkConfig::default();
        let is_timed = !topology.switches.iter().flat_map(|node| &node.links).all(is_ideal);
        Ok(Self { switches, topology, clock, time: NetworkTime::START, is_timed })
    }

    /// One round over all switches. Returns the frames received and sent.
    ///
    /// Links keep their rate also on a thread that the system puts aside for some milliseconds: their time catches up
    /// afterwards, in steps of at most 50 µs a round. A longer gap, or a machine that is too slow for the rates, is seen in
    /// the results as slower links.
    pub fn poll(&mut self) -> usize {
        let clock_ns = self.clock.now_ns();
        let now_ns = if self.is_timed { self.time.advance(clock_ns) } else { clock_ns };
        self.switches.iter_mut().map(|switch| switch.poll_at(now_ns)).sum()
    }

    /// The switches, in the order of the topology.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The switches, to change faults and links while they run.
    pub fn switches_mut(&mut self) -> &mut [Switch] {
        &mut self.switches
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Counters of all ports of all switches together. A frame counts at every switch on its way.
    pub fn totals(&self) -> PortCounters {
        let mut totals = PortCounters::default();
        for switch in &self.switches {
            totals.add(&switch.pipeline().totals());
        }
        totals
    }

    /// What the operator should read at start, with the name of the switch where there are several.
    pub fn notes(&self) -> Vec<String> {
        let several = self.switches.len() > 1;
        let mut notes = Vec::new();
        for (index, switch) in self.switches.iter().enumerate() {
            let name = self.topology.name(index);
            let text = |note: &dcp_pipeline::Note| {
                if several { format!("switch `{name}`: {note}") } else { note.to_string() }
            };
            notes.extend(switch.pipeline().notes().iter().map(text));
        }
        notes
    }

    /// Captures into one file every frame that a switch gives to a host, until [`Self::finish_capture`]. `unix_ns` is the
    /// time since 1970 now, in nanoseconds.
    ///
    /// # Errors
    /// What the file says.
    pub fn capture_hosts(&mut self, file: CaptureFile, unix_ns: u64) -> io::Result<()> {
        let shared = SharedCapture::new(file)?;
        for (index, switch) in self.switches.iter_mut().enumerate() {
            let hosts = self.topology.hosts.iter().filter(|host| host.switch == index);
            let point = |port: PortId| CapturePoint { port, point: TapPoint::Departure };
            let points: Vec<_> = hosts.map(|host| point(host.port)).collect();
            switch.capture_shared(&points, &shared, unix_ns);
        }
        Ok(())
    }

    /// Ends the capture; how many frames it holds.
    ///
    /// # Errors
    /// The first thing that went wrong with the file; it is whole up to there.
    pub fn finish_capture(&mut self) -> io::Result<u64> {
        let mut frames = 0;
        for switch in &mut self.switches {
            frames = switch.finish_captures()?.max(frames);
        }
        Ok(frames)
    }
}

/// Gives each switch its ends, in the order of its ports.
fn ports_of_switches(topology: &Topology, cables: Cables) -> Vec<Vec<QueuePair>> {
    assert_eq!(cables.hosts.len(), topology.hosts.len(), "a cable per host");
    assert_eq!(cables.trunks.len(), topology.trunks.len(), "a cable per link");
    let mut ends: Vec<_> = topology.hosts.iter().copied().zip(cables.hosts).collect();
    for ([near, far], (first, second)) in topology.trunks.iter().zip(cables.trunks) {
        ends.extend([(*near, first), (*far, second)]);
    }
    ends.sort_by_key(|(end, _)| *end);
    let mut ports: Vec<_> = (0..topology.switches.len()).map(|_| Vec::new()).collect();
    for (end, queues) in ends {
        ports[end.switch].push(queues);
    }
    ports
}
