//! Why a device could not be opened.

use std::fmt;

use dpdk_ffi::{FabricError, InterfaceError, PoolError, PortError};

/// Why a device could not be opened: one sentence that says what to do. All of them are the machine's or the device's
/// fault (exit code 3 of the programs), except where [`is_usage`](Self::is_usage) says otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// `loop` has two ends and is opened by [`open_loop`](super::NetDevice::open_loop).
    LoopHasTwoEnds,
    /// An MTU outside 256 … 8192.
    BadMtu {
        /// The MTU asked for.
        mtu: u32,
    },
    /// An MTU that the device cannot carry.
    Mtu {
        /// The device.
        uri: String,
        /// The MTU asked for.
        mtu: u32,
        /// The largest that it carries.
        most: u32,
    },
    /// The interface's own MTU is too small for any connection.
    LinkTooSmall {
        /// The device.
        uri: String,
        /// The interface's MTU.
        ip_bytes: u32,
        /// The smallest that works.
        least: u32,
    },
    /// No queue at all, or more than the device has.
    Queues {
        /// The device.
        uri: String,
        /// Queue pairs asked for.
        count: u16,
        /// The most that it has.
        most: u16,
    },
    /// Its queue pairs are all taken.
    NoQueues {
        /// The device.
        uri: String,
    },
    /// The interface does not exist, or the kernel does not describe it.
    Interface(InterfaceError),
    /// The interface is switched off.
    InterfaceDown {
        /// Its name.
        interface: String,
    },
    /// The name is taken already.
    InterfaceExists {
        /// Its name.
        interface: String,
    },
    /// The process may not do this.
    Permission {
        /// The device.
        uri: String,
        /// What is missing.
        needs: &'static str,
    },
    /// The kernel has no TUN/TAP.
    NoTun,
    /// memif's socket cannot be made or reached.
    Socket {
        /// Its path.
        socket: String,
        /// The system's reason.
        reason: String,
    },
    /// The socket has a server already, so this cannot be another.
    SocketTaken {
        /// Its path.
        socket: String,
    },
    /// AF_XDP is refused by the kernel or the driver of the interface.
    NoXdp {
        /// The interface.
        interface: String,
        /// DPDK's reason.
        reason: String,
    },
    /// net_af_packet makes a fanout group of its process and interface numbers, and another process has that group.
    Fanout {
        /// The interface.
        interface: String,
    },
    /// DPDK refused the device.
    Port {
        /// The device.
        uri: String,
        /// Its reason.
        error: PortError,
    },
    /// No memory for its frames.
    Pool(PoolError),
    /// The link inside the process could not be made.
    Fabric(FabricError),
    /// No link after waiting for it.
    NoLink {
        /// The device.
        uri: String,
        /// Milliseconds waited.
        waited_ms: u64,
        /// What may be missing.
        advice: &'static str,
    },
}

impl DeviceError {
    /// Whether what was asked for makes no sense on any machine (exit code 2 of the programs, else 3).
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::LoopHasTwoEnds | Self::BadMtu { .. })
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoopHasTwoEnds => {
                f.write_str("loop joins two ends in one process: use memif:SOCKET between processes")
            }
            Self::BadMtu { mtu } => write!(f, "an MTU of {mtu} does not exist: choose 256 to 8192"),
            Self::Mtu { uri, mtu, most } => {
                write!(f, "{uri} cannot carry an MTU of {mtu}: choose at most {most}")
            }
            Self::LinkTooSmall { uri, ip_bytes, least } => write!(
                f,
                "{uri} has a link MTU of {ip_bytes}, too small for any connection: raise it to {least} or more with 'ip link set'"
            ),
            Self::Queues { uri, count, most } => {
                write!(f, "{count} queue pairs were asked of {uri}: use 1 to {most}")
            }
            Self::NoQueues { uri } => write!(f, "{uri} has no queues"),
            Self::Interface(error) => error.fmt(f),
            Self::InterfaceDown { interface } => {
                write!(f, "interface {interface} is down: run 'ip link set {interface} up'")
            }
            Self::InterfaceExists { interface } => write!(
                f,
                "interface {interface} exists already: choose another name for the tap, or remove it with 'ip link del {interface}'"
            ),
            Self::Permission { uri, needs } => {
                write!(f, "this process may not open {uri}: run it as root or give it {needs}")
            }
            Self::NoTun => {
                f.write_str("there is no /dev/net/tun here: load the kernel's tun module, or give the container the device")
            }
            Self::Socket { socket, reason } => write!(
                f,
                "memif's socket {socket} cannot be used ({reason}): check that its directory exists and that you may write there"
            ),
            Self::SocketTaken { socket } => write!(
                f,
                "another process serves {socket} already: open it with role=client, or choose another path"
            ),
            Self::NoXdp { interface, reason } => write!(
                f,
                "the kernel or the driver of {interface} refuses AF_XDP ({reason}): use af_packet:{interface}"
            ),
            Self::Fanout { interface } => write!(
                f,
                "another process came by the same packet fanout group as this one on {interface}: start this one again, so that it has another process number"
            ),
            Self::Port { uri, error } => write!(f, "{uri} cannot be opened: {error}"),
            Self::Pool(error) => error.fmt(f),
            Self::Fabric(error) => error.fmt(f),
            Self::NoLink { uri, waited_ms, advice } => {
                write!(f, "{uri} had no link for {waited_ms} ms: {advice}")
            }
        }
    }
}

impl std::error::Error for DeviceError {}
