//! Why a switch does not start (D6).

use core::fmt;
use core::ops::RangeInclusive;

use dcp_wire::MacAddr;

use crate::port::PortId;
use crate::route::GroupId;
use crate::weight::Weight;

/// A number that has a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named like the fields")]
pub enum Parameter {
    Ports,
    TrimThresholdBytes,
    DataFramesMax,
    ControlBytesMax,
    ControlFramesMax,
    MacEntriesMax,
    ServicePorts,
    IncastPorts,
    TrimmableFrameLen,
    AckSharePpm,
    EcnMinBytes,
    EcnMaxBytes,
    Groups,
    GroupMembers,
    GroupWeight,
    LinkMbps,
    LinkDelayMicros,
    InFlightFramesMax,
    HeldFramesMax,
    ReorderFrames,
    TrimBytes,
    TrimDscp,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ports => "the number of ports",
            Self::TrimThresholdBytes => "the trim threshold in bytes",
            Self::DataFramesMax => "the data queue's size in frames",
            Self::ControlBytesMax => "the control queue's size in bytes",
            Self::ControlFramesMax => "the control queue's size in frames",
            Self::MacEntriesMax => "the size of the MAC table",
            Self::ServicePorts => "the number of service ports",
            Self::IncastPorts => "the number of ports of the incast",
            Self::TrimmableFrameLen => "the length of the smallest frame to be trimmed",
            Self::AckSharePpm => "the ACK class's share in millionths",
            Self::EcnMinBytes => "ECN's Kmin in bytes",
            Self::EcnMaxBytes => "ECN's Kmax in bytes",
            Self::Groups => "the number of groups",
            Self::GroupMembers => "the number of ports of a group",
            Self::GroupWeight => "the weight of a group's port",
            Self::LinkMbps => "a link's rate in Mb/s",
            Self::LinkDelayMicros => "a link's delay in microseconds",
            Self::InFlightFramesMax => "the number of frames on a link",
            Self::HeldFramesMax => "the number of frames that faults hold back",
            Self::ReorderFrames => "the number of frames that overtake a reordered one",
            Self::TrimBytes => "the length to trim to, in bytes,",
            Self::TrimDscp => "the DSCP of trimmed frames",
        })
    }
}

/// A list with one element for each port, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named like the fields")]
pub enum PerPort {
    Faults,
    EgressFaults,
    Links,
}

impl fmt::Display for PerPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faults => "faults",
            Self::EgressFaults => "egress faults",
            Self::Links => "links",
        })
    }
}

/// Why a switch does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A number is outside its range.
    OutOfRange {
        /// Which.
        parameter: Parameter,
        /// As given.
        value: u32,
        /// Smallest legal value.
        min: u32,
        /// Largest legal value.
        max: u32,
    },
    /// S-3: an explicit weight is outside its range.
    Weight {
        /// As given, in thousandths.
        milli: u32,
    },
    /// A static address is on a port that does not exist.
    StaticMacPort {
        /// The address.
        address: MacAddr,
        /// Its port.
        port: PortId,
    },
    /// A static address is a group address.
    StaticMacGroup {
        /// The address.
        address: MacAddr,
    },
    /// The MAC table has no place for a static address: too many of them, or given twice.
    StaticMacTable {
        /// The address.
        address: MacAddr,
    },
    /// Something is given for some ports only.
    PerPort {
        /// What.
        what: PerPort,
        /// How many were given.
        given: usize,
        /// How many ports there are.
        ports: u16,
    },
    /// A group has a port that does not exist.
    GroupPort {
        /// The group.
        group: GroupId,
        /// Its port.
        port: PortId,
    },
    /// A port is in two groups, or in one twice.
    GroupPortTwice {
        /// The later group.
        group: GroupId,
        /// The port.
        port: PortId,
    },
    /// An address, or the default route, is given to a group that does not exist.
    NoSuchGroup {
        /// The group.
        group: GroupId,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { parameter, value, min, max } => {
                write!(f, "{parameter} must be {min} to {max}, not {value}")
            }
            Self::Weight { milli } => write!(
                f,
                "the control queue's weight must be {} to {}, not {}.{:03}",
                Weight::MIN,
                Weight::MAX,
                milli / 1000,
                milli % 1000,
            ),
            Self::StaticMacPort { address, port } => {
                write!(f, "static address {:02x?} is on port {}, which does not exist", address.0, port.0)
            }
            Self::StaticMacGroup { address } => {
                write!(f, "static address {:02x?} is a group address", address.0)
            }
            Self::StaticMacTable { address } => {
                write!(f, "static address {:02x?} is given twice, or the MAC table is full", address.0)
            }
            Self::PerPort { what, given, ports } => {
                write!(f, "{what} are given for {given} ports; give them for all {ports} or for none")
            }
            Self::GroupPort { group, port } => {
                write!(f, "group {} has port {}, which does not exist", group.0, port.0)
            }
            Self::GroupPortTwice { group, port } => {
                write!(f, "port {} of group {} is in a group already", port.0, group.0)
            }
            Self::NoSuchGroup { group } => write!(f, "there is no group {}", group.0),
        }
    }
}

impl core::error::Error for ConfigError {}

pub(crate) fn in_range(
    parameter: Parameter,
    value: u32,
    range: RangeInclusive<u32>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange { parameter, value, min: *range.start(), max: *range.end() })
}
