//! Shortest ways from every switch to every host, and proof that nothing goes round.

use std::collections::VecDeque;

use dcp_pipeline::{GROUP_MEMBERS_MAX, GroupId, PortId};

use super::error::TopologyError;
use super::plan::{End, Topology, group_id};

/// How a switch sends to another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// By one port.
    Port(PortId),
    /// By any port of a group.
    Group(GroupId),
}

/// Fills in groups and ways of all switches.
pub(super) fn find(topology: &mut Topology) -> Result<(), TopologyError> {
    let count = topology.switches.len();
    for switch in &mut topology.switches {
        switch.ways = vec![None; count];
    }
    for to in 0..count {
        if topology.hosts.iter().any(|host| host.switch == to) {
            find_to(topology, to)?;
        }
    }
    check_circles(topology)
}

/// The next ports of every switch on its shortest ways to one.
fn find_to(topology: &mut Topology, to: usize) -> Result<(), TopologyError> {
    let hops = hops_to(topology, to);
    for from in (0..topology.switches.len()).filter(|&from| from != to) {
        let Some(own) = hops[from] else {
            let name = |switch: usize| topology.switches[switch].name.clone();
            return Err(TopologyError::NoWay { from: name(from), to: name(to) });
        };
        let neighbours = topology.switches[from].neighbours.iter().enumerate();
        let is_nearer = |peer: &Option<End>| peer.is_some_and(|peer| hops[peer.switch] == Some(own - 1));
        let ports = neighbours.filter(|(_, peer)| is_nearer(peer)).map(|(port, _)| port_id(port)).collect();
        let way = way_by(topology, from, ports)?;
        topology.switches[from].ways[to] = Some(way);
    }
    Ok(())
}

/// Hops from every switch to one; `None` where there is no way.
fn hops_to(topology: &Topology, to: usize) -> Vec<Option<u32>> {
    let mut hops = vec![None; topology.switches.len()];
    hops[to] = Some(0);
    let mut next = VecDeque::from([(to, 0)]);
    while let Some((switch, distance)) = next.pop_front() {
        for peer in topology.switches[switch].neighbours.iter().flatten() {
            if hops[peer.switch].is_none() {
                hops[peer.switch] = Some(distance + 1);
                next.push_back((peer.switch, distance + 1));
            }
        }
    }
    hops
}

fn way_by(topology: &mut Topology, switch: usize, ports: Vec<PortId>) -> Result<Way, TopologyError> {
    let node = &mut topology.switches[switch];
    if let [port] = ports[..] {
        return Ok(Way::Port(port));
    }
    if let Some(index) = node.groups.iter().position(|group| *group == ports) {
        return Ok(Way::Group(group_id(index)));
    }
    let overlaps = node.groups.iter().flatten().any(|port| ports.contains(port));
    if overlaps || ports.len() > GROUP_MEMBERS_MAX as usize {
        return Err(TopologyError::Overlap { name: node.name.clone() });
    }
    node.groups.push(ports);
    Ok(Way::Group(group_id(node.groups.len() - 1)))
}

/// Follows a frame for an unknown address, from every host, over every link that it may take.
fn check_circles(topology: &Topology) -> Result<(), TopologyError> {
    let mut states: Vec<Vec<State>> =
        topology.switches.iter().map(|switch| vec![State::Unseen; switch.links.len()]).collect();
    topology.hosts.iter().try_for_each(|&host| flood(topology, host, &mut states))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unseen,
    Under,
    Done,
}

/// A frame comes by a port and goes to every place but its own.
fn flood(topology: &Topology, from: End, states: &mut [Vec<State>]) -> Result<(), TopologyError> {
    let node = &topology.switches[from.switch];
    // All ports of a group are one place.
    let home = node.groups.iter().find(|group| group.contains(&from.port));
    let first = home.and_then(|group| group.first()).map_or(from.port, |&port| port);
    match states[from.switch][first.index()] {
        State::Done => return Ok(()),
        State::Under => return Err(TopologyError::Circle { name: node.name.clone() }),
        State::Unseen => {}
    }
    states[from.switch][first.index()] = State::Under;
    for (port, peer) in node.neighbours.iter().enumerate() {
        let port = port_id(port);
        let is_home = port == from.port || home.is_some_and(|group| group.contains(&port));
        if let (Some(peer), false) = (peer, is_home) {
            flood(topology, *peer, states)?;
        }
    }
    states[from.switch][first.index()] = State::Done;
    Ok(())
}

fn port_id(port: usize) -> PortId {
    PortId(u16::try_from(port).unwrap_or(u16::MAX))
}
