//! Device URIs: `memif:/run/dcp.sock,id=1`, `af_packet:eth1`, `loop`.

use std::fmt;
use std::str::FromStr;

/// Which device, as it is written on a command line. Printing gives a URI that parses to the same value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DeviceUri {
    /// `loop`: both ends in this process.
    Loop,
    /// `memif:SOCKET[,id=N][,role=server|client]`: shared memory with another process.
    Memif {
        /// Path of the socket over which the two find each other.
        socket: String,
        /// Number of the link on that socket. Default 0.
        id: u32,
        /// Who makes the socket. Default: whoever comes first.
        role: Option<MemifRole>,
    },
    /// `tap:NAME`: a new interface of the kernel.
    Tap {
        /// Its name.
        interface: String,
    },
    /// `af_packet:IFACE`: an interface of the kernel, through packet sockets.
    AfPacket {
        /// Its name.
        interface: String,
    },
    /// `af_xdp:IFACE`: the same through XDP sockets, where the kernel and the driver allow it.
    AfXdp {
        /// Its name.
        interface: String,
    },
    /// `null`: a sender only; nothing is delivered.
    Null,
    /// `pci:0000:3b:00.0`: a network card that DPDK drives itself.
    Pci {
        /// Domain, bus, device and function.
        address: String,
    },
    /// `vdev:RAW`: any virtual device of DPDK's, in DPDK's words.
    Vdev {
        /// Driver name with a number, such as `net_ring0`.
        name: String,
        /// What follows the first comma.
        arguments: String,
    },
}

/// The two ends of a net_memif link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemifRole {
    /// Makes the socket and waits.
    Server,
    /// Connects to it.
    Client,
}

impl MemifRole {
    /// Its name in URIs and in DPDK.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// A UNIX socket's path, with its final zero, has 108 bytes.
pub const SOCKET_LEN_MAX: usize = 107;
/// The kernel's IFNAMSIZ without the final zero.
pub const INTERFACE_LEN_MAX: usize = 15;

impl DeviceUri {
    /// The part in front of the colon.
    pub const fn scheme(&self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Memif { .. } => "memif",
            Self::Tap { .. } => "tap",
            Self::AfPacket { .. } => "af_packet",
            Self::AfXdp { .. } => "af_xdp",
            Self::Null => "null",
            Self::Pci { .. } => "pci",
            Self::Vdev { .. } => "vdev",
        }
    }
}

impl FromStr for DeviceUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) => (scheme, Some(rest)),
            None => (text, None),
        };
        let target = || match rest {
            Some(rest) if !rest.is_empty() => Ok(rest),
            _ => Err(UriError::NoTarget { scheme: scheme.to_owned() }),
        };
        match scheme {
            "loop" | "null" if rest.is_some() => Err(UriError::Surplus { scheme: scheme.to_owned() }),
            "loop" => Ok(Self::Loop),
            "null" => Ok(Self::Null),
            "memif" => memif(target()?),
            "tap" => Ok(Self::Tap { interface: interface(target()?)? }),
            "af_packet" => Ok(Self::AfPacket { interface: interface(target()?)? }),
            "af_xdp" => Ok(Self::AfXdp { interface: interface(target()?)? }),
            "pci" => Ok(Self::Pci { address: pci(target()?)? }),
            "vdev" => vdev(target()?),
            _ => Err(UriError::Scheme { text: text.to_owned() }),
        }
    }
}

fn memif(text: &str) -> Result<DeviceUri, UriError> {
    let mut words = text.split(',');
    let socket = words.next().unwrap_or_default();
    if socket.is_empty() || socket.len() > SOCKET_LEN_MAX || !socket.bytes().all(|b| b > b' ' && b != 0x7f) {
        return Err(UriError::Socket { socket: socket.to_owned() });
    }
    let (mut id, mut role) = (None, None);
    for word in words {
        let wrong = || UriError::Option { word: word.to_owned() };
        match word.split_once('=') {
            // Digits only: `parse` would take a sign too.
            Some(("id", number)) if id.is_none() && number.bytes().all(|b| b.is_ascii_digit()) => {
                id = Some(number.parse().map_err(|_| wrong())?);
            }
            Some(("role", "server")) if role.is_none() => role = Some(MemifRole::Server),
            Some(("role", "client")) if role.is_none() => role = Some(MemifRole::Client),
            _ => return Err(wrong()),
        }
    }
    Ok(DeviceUri::Memif { socket: socket.to_owned(), id: id.unwrap_or(0), role })
}

fn interface(name: &str) -> Result<String, UriError> {
    let legal = |b: u8| b.is_ascii_graphic() && !matches!(b, b'/' | b',' | b':' | b'=');
    if name.len() > INTERFACE_LEN_MAX || !name.bytes().all(legal) || matches!(name, "." | "..") {
        return Err(UriError::Interface { name: name.to_owned() });
    }
    Ok(name.to_owned())
}

/// `DDDD:BB:DD.F`; the domain may be left out. Printed in full, in small letters.
fn pci(text: &str) -> Result<String, UriError> {
    let wrong = || UriError::Pci { address: text.to_owned() };
    let (front, function) = text.rsplit_once('.').ok_or_else(wrong)?;
    let numbers: Vec<&str> = front.split(':').collect();
    let (domain, bus, device) = match numbers[..] {
        [bus, device] => ("0000", bus, device),
        [domain, bus, device] => (domain, bus, device),
        _ => return Err(wrong()),
    };
    let hex = |word: &str, len: usize, max: u32| {
        let legal = word.len() == len && word.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u32::from_str_radix(word, 16).ok().filter(|&number| legal && number <= max);
        number.ok_or_else(wrong)
    };
    let (domain, bus) = (hex(domain, 4, 0xffff)?, hex(bus, 2, 0xff)?);
    let (device, function) = (hex(device, 2, 0x1f)?, hex(function, 1, 7)?);
    Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

fn vdev(text: &str) -> Result<DeviceUri, UriError> {
    let (name, arguments) = text.split_once(',').unwrap_or((text, ""));
    let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !legal || !name.starts_with("net_") || arguments.bytes().any(|b| b < b' ') {
        return Err(UriError::Vdev { text: text.to_owned() });
    }
    Ok(DeviceUri::Vdev { name: name.to_owned(), arguments: arguments.to_owned() })
}

impl fmt::Display for DeviceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())?;
        match self {
            Self::Loop | Self::Null => Ok(()),
            Self::Memif { socket, id, role } => {
                write!(f, ":{socket},id={id}")?;
                role.map_or(Ok(()), |role| write!(f, ",role={}", role.name()))
            }
            Self::Tap { interface } | Self::AfPacket { interface } | Self::AfXdp { interface } => {
                write!(f, ":{interface}")
            }
            Self::Pci { address } => write!(f, ":{address}"),
            Self::Vdev { name, arguments } if arguments.is_empty() => write!(f, ":{name}"),
            Self::Vdev { name, arguments } => write!(f, ":{name},{arguments}"),
        }
    }
}

/// Why a text is no device URI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UriError {
    /// It begins with none of the known words.
    Scheme {
        /// The text.
        text: String,
    },
    /// Nothing stands behind the colon.
    NoTarget {
        /// The word in front of it.
        scheme: String,
    },
    /// Something stands behind a word that takes nothing.
    Surplus {
        /// The word.
        scheme: String,
    },
    /// No path that a UNIX socket can have.
    Socket {
        /// The path.
        socket: String,
    },
    /// An option that memif does not have, has already, or a value that it cannot have.
    Option {
        /// The option.
        word: String,
    },
    /// No name that an interface can have.
    Interface {
        /// The name.
        name: String,
    },
    /// No address of a PCI device.
    Pci {
        /// The address.
        address: String,
    },
    /// No virtual network device.
    Vdev {
        /// The text.
        text: String,
    },
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { text } => write!(
                f,
                "{text:?} is no device: write loop, null, memif:SOCKET, tap:NAME, af_packet:IFACE, af_xdp:IFACE, pci:ADDRESS or vdev:ARGUMENTS"
            ),
            Self::NoTarget { scheme } => {
                let what = match scheme.as_str() {
                    "memif" => "the path of a socket",
                    "pci" => "the address of a card",
                    "vdev" => "DPDK's words for the device",
                    _ => "the name of an interface",
                };
                write!(f, "{scheme} alone is no device: write {what} behind '{scheme}:'")
            }
            Self::Surplus { scheme } => write!(f, "{scheme} takes nothing behind it: write just '{scheme}'"),
            Self::Socket { socket } => write!(
                f,
                "{socket:?} cannot be memif's socket: use a path of 1 to {SOCKET_LEN_MAX} characters without spaces and commas"
            ),
            Self::Option { word } => {
                write!(
                    f,
                    "memif does not take {word:?} there: it takes id=NUMBER and role=server or role=client, once each"
                )
            }
            Self::Interface { name } => write!(
                f,
                "{name:?} cannot be an interface: use 1 to {INTERFACE_LEN_MAX} characters without spaces, slashes, commas and colons"
            ),
            Self::Pci { address } => {
                write!(f, "{address:?} is no PCI address: write it like 0000:3b:00.0, as 'lspci -D' does")
            }
            Self::Vdev { text } => {
                write!(
                    f,
                    "{text:?} is no virtual network device: write it like net_ring0 or net_null0,size=64"
                )
            }
        }
    }
}

impl std::error::Error for UriError {}

#[cfg(test)]
mod tests;
