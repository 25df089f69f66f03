//! Why a network cannot be built.

use std::fmt;

use dcp_pipeline::{ConfigError, GROUP_MEMBERS_MAX, GROUP_WEIGHT_MAX, PORTS_MAX};

use super::plan::{DELAY_US_MAX, GBPS_MAX, SWITCHES_MAX};

/// Why a network cannot be built. Each is a sentence for the user.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the fields are what the sentences name")]
pub enum TopologyError {
    /// The text is no description.
    Syntax(String),
    /// No switch, or too many.
    Switches { given: usize },
    /// Two switches have one name.
    NameTwice { name: String },
    /// A link names a switch that there is not.
    NoSuchSwitch { name: String },
    /// Both ends of a link are at one switch.
    SelfLink { name: String },
    /// Nobody can talk to anybody.
    Hosts { given: u32 },
    /// More ports than a switch has.
    Ports { name: String, ports: usize },
    /// A number of a link is out of range.
    Link { name: String, what: &'static str, given: f64, least: f64, most: f64 },
    /// No way leads from one switch to the hosts of another one.
    NoWay { from: String, to: String },
    /// Ways to two switches share some links and not all: one group of links would not do.
    Overlap { name: String },
    /// Frames for unknown addresses would go round for ever.
    Circle { name: String },
    /// A switch refuses what it is given.
    Config { name: String, error: ConfigError },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => f.write_str(error.trim_end()),
            Self::Switches { given } => {
                write!(f, "there are {given} switches, but must be 1 to {SWITCHES_MAX}")
            }
            Self::NameTwice { name } => write!(f, "two switches are called `{name}`: give each its own name"),
            Self::NoSuchSwitch { name } => {
                write!(f, "a link goes to `{name}`, but no switch is called that")
            }
            Self::SelfLink { name } => write!(f, "a link goes from `{name}` to itself"),
            Self::Hosts { given } => {
                write!(f, "there are {given} hosts, but must be 2 at least: a server and a client")
            }
            Self::Ports { name, ports } => {
                write!(f, "switch `{name}` has {ports} ports, but must have {PORTS_MAX} at most")
            }
            Self::Link { name, what, given, least, most } => {
                write!(f, "{what} of {name} is {given}, but must be {least} to {most}")
            }
            Self::NoWay { from, to } => {
                write!(f, "no links lead from switch `{from}` to the hosts of `{to}`")
            }
            Self::Overlap { name } => write!(
                f,
                "switch `{name}` would need groups of links that overlap, or one of more than {GROUP_MEMBERS_MAX} \
                 links: connect the switches of one tier alike"
            ),
            Self::Circle { name } => write!(
                f,
                "a frame for an unknown address would come back to switch `{name}` again and again: use a tree, \
                 parallel links, or tiers in which every switch is linked to all of the next one"
            ),
            Self::Config { name, error } => write!(f, "switch `{name}`: {error}"),
        }
    }
}

impl std::error::Error for TopologyError {}

pub(super) fn rate_in_range(name: impl fmt::Display, gbps: f64) -> Result<(), TopologyError> {
    // 0 is no limit; else a switch takes 1 Mb/s and more.
    let ok = gbps == 0.0 || (0.001..=GBPS_MAX).contains(&gbps);
    in_range(name, "the rate in Gb/s", gbps, ok, 0.001, GBPS_MAX)
}

pub(super) fn delay_in_range(name: impl fmt::Display, delay_us: f64) -> Result<(), TopologyError> {
    let ok = (0.0..=DELAY_US_MAX).contains(&delay_us);
    in_range(name, "the delay in microseconds", delay_us, ok, 0.0, DELAY_US_MAX)
}

pub(super) fn weight_in_range(name: impl fmt::Display, weight: u32) -> Result<(), TopologyError> {
    let ok = (1..=GROUP_WEIGHT_MAX).contains(&weight);
    in_range(name, "the weight", weight.into(), ok, 1.0, GROUP_WEIGHT_MAX.into())
}

pub(super) fn count_in_range(name: impl fmt::Display, count: u32) -> Result<(), TopologyError> {
    let ok = (1..=GROUP_MEMBERS_MAX).contains(&count);
    in_range(name, "the count", count.into(), ok, 1.0, GROUP_MEMBERS_MAX.into())
}

fn in_range(
    name: impl fmt::Display,
    what: &'static str,
    given: f64,
    is_ok: bool,
    least: f64,
    most: f64,
) -> Result<(), TopologyError> {
    if is_ok {
        return Ok(());
    }
    Err(TopologyError::Link { name: name.to_string(), what, given, least, most })
}
