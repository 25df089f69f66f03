//! Where frames for an address may go (S-5): one port, or a group of ports that lead to the same place.

use crate::config_error::{ConfigError, Parameter, in_range};
use crate::port::PortId;

/// Most ports of a group.
pub const GROUP_MEMBERS_MAX: u32 = 64;
/// Largest weight of a group's port.
pub const GROUP_WEIGHT_MAX: u32 = 1000;
/// Most groups of a switch.
pub const GROUPS_MAX: u32 = 1024;

/// A group of the switch: its index in [`crate::PipelineConfig::groups`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct GroupId(pub u16);

/// How a group's port is chosen for a frame (S-5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum LoadBalance {
    /// By the hash of the 5-tuple: one path per flow, and UDP source ports spread flows over paths (E5).
    #[default]
    Ecmp,
    /// The next port for every frame, in a fixed order that mixes the ports by weight.
    SprayRoundRobin,
    /// A port for every frame by dice.
    SprayRandom,
    /// The port whose data queue is shortest, in bytes relative to its weight; ties by dice. The paper's "AR".
    Adaptive,
}

/// A port of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GroupMember {
    /// Which.
    pub port: PortId,
    /// Its share, relative to the others': its link's capacity. Range 1 ..= [`GROUP_WEIGHT_MAX`].
    pub weight: u32,
}

/// Parallel links to one place, such as the uplinks of a leaf.
///
/// Seen from outside a group is one link: an address that is learned at one of its ports is behind all of them, a
/// flooded frame takes one of them, and a frame that came by one never leaves by another. So a port is in one group
/// at most, and parallel links make no loop.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupConfig {
    /// Its ports, 1 ..= [`GROUP_MEMBERS_MAX`].
    pub members: Vec<GroupMember>,
    /// How one is chosen.
    pub balance: LoadBalance,
    /// Whether a port whose egress link was set down is left out while others are up, as a switch does that sees its
    /// own link fail. Default false: the path swallows frames, as when a link fails further on (T-18).
    pub avoid_down: bool,
}

impl GroupConfig {
    /// A group of equal links.
    pub fn equal(ports: impl IntoIterator<Item = PortId>, balance: LoadBalance) -> Self {
        Self::weighted(ports.into_iter().map(|port| (port, 1)), balance)
    }

    /// A group of links with their weights.
    pub fn weighted(members: impl IntoIterator<Item = (PortId, u32)>, balance: LoadBalance) -> Self {
        let members = members.into_iter().map(|(port, weight)| GroupMember { port, weight }).collect();
        Self { members, balance, avoid_down: false }
    }
}

/// Refuses groups that cannot work on a switch of `ports` ports.
pub(crate) fn check_groups(groups: &[GroupConfig], ports: u16) -> Result<(), ConfigError> {
    in_range(Parameter::Groups, count(groups.len()), 0..=GROUPS_MAX)?;
    let mut taken = vec![false; usize::from(ports)];
    for (number, group) in (0..).zip(groups) {
        in_range(Parameter::GroupMembers, count(group.members.len()), 1..=GROUP_MEMBERS_MAX)?;
        for member in &group.members {
            in_range(Parameter::GroupWeight, member.weight, 1..=GROUP_WEIGHT_MAX)?;
            let (group, port) = (GroupId(number), member.port);
            let taken = taken.get_mut(port.index()).ok_or(ConfigError::GroupPort { group, port })?;
            if core::mem::replace(taken, true) {
                return Err(ConfigError::GroupPortTwice { group, port });
            }
        }
    }
    Ok(())
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// A port or a group in two bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route(u16);

const GROUP: u16 = 1 << 15;
const _: () = assert!(crate::PORTS_MAX < GROUP && GROUPS_MAX < GROUP as u32);

impl Route {
    #[inline]
    pub(crate) const fn port(port: PortId) -> Self {
        Self(port.0)
    }

    #[inline]
    pub(crate) const fn group(group: GroupId) -> Self {
        Self(GROUP | group.0)
    }

    /// Index of the port, or of the group.
    #[inline]
    pub(crate) const fn split(self) -> Result<usize, usize> {
        if self.0 & GROUP == 0 { Ok(self.0 as usize) } else { Err((self.0 & !GROUP) as usize) }
    }
}
