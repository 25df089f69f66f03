//! What the hosts of a run are joined by.

use dcp::device::DeviceUri;
use dcp::net::IpConfig;
use dcp::wire::MacAddr;

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
