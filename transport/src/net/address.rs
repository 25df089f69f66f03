//! The IPv4 address of a device, its network, and the way out of it.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An address with the length of its network's prefix, written `10.0.0.1/24`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceAddress {
    address: Ipv4Addr,
    prefix_len: u8,
}

impl InterfaceAddress {
    /// An address that a host can have.
    ///
    /// # Errors
    /// A prefix above 32 bits; an address that is nobody's, everybody's or this host's own.
    pub fn new(address: Ipv4Addr, prefix_len: u8) -> Result<Self, AddressError> {
        if prefix_len == 0 || prefix_len > 32 {
            return Err(AddressError::Prefix { prefix_len });
        }
        let this = Self { address, prefix_len };
        let host = u32::from(address) & !this.mask();
        // RFC 3021: a network of two has neither its own name nor a broadcast address.
        let is_network = prefix_len < 31 && (host == 0 || host == !this.mask());
        if is_network
            || address.is_unspecified()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_loopback()
        {
            return Err(AddressError::NoHost { address, prefix_len });
        }
        Ok(this)
    }

    /// The address.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Bits of the network's prefix: 1 … 32.
    pub const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// Whether `other` is reached without a gateway.
    pub fn is_neighbour(self, other: Ipv4Addr) -> bool {
        u32::from(self.address) & self.mask() == u32::from(other) & self.mask()
    }

    fn mask(self) -> u32 {
        u32::MAX << (32 - u32::from(self.prefix_len))
    }
}

impl FromStr for InterfaceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Syntax { text: text.to_owned() };
        let (address, prefix_len) = text.split_once('/').ok_or_else(wrong)?;
        if !prefix_len.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        Self::new(address.parse().map_err(|_| wrong())?, prefix_len.parse().map_err(|_| wrong())?)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// A device's own address and the way to others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IpConfig {
    interface: InterfaceAddress,
    gateway: Option<Ipv4Addr>,
}

impl IpConfig {
    /// # Errors
    /// A gateway that is this host itself, or that could only be reached through a gateway.
    pub fn new(interface: InterfaceAddress, gateway: Option<Ipv4Addr>) -> Result<Self, AddressError> {
        match gateway {
            Some(gateway) if gateway == interface.address || !interface.is_neighbour(gateway) => {
                Err(AddressError::Gateway { gateway, interface })
            }
            _ => Ok(Self { interface, gateway }),
        }
    }

    /// The own address.
    pub const fn address(&self) -> Ipv4Addr {
        self.interface.address
    }

    /// Whose Ethernet address frames to `destination` go to: its own, or the gateway's.
    ///
    /// # Errors
    /// Another network, and no gateway.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Result<Ipv4Addr, AddressError> {
        if self.interface.is_neighbour(destination) {
            return Ok(destination);
        }
        self.gateway.ok_or(AddressError::NoRoute { destination, interface: self.interface })
    }
}

/// Why addresses do not work; what the user wrote is to blame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressError {
    /// Not of the form `A/len`.
    Syntax {
        /// The text.
        text: String,
    },
    /// A prefix length that no network has.
    Prefix {
        /// The length.
        prefix_len: u8,
    },
    /// An address that no host can have.
    NoHost {
        /// The address.
        address: Ipv4Addr,
        /// Its prefix length.
        prefix_len: u8,
    },
    /// A gateway that is of no use.
    Gateway {
        /// The gateway.
        gateway: Ipv4Addr,
        /// The own address.
        interface: InterfaceAddress,
    },
    /// A peer in another network, and no gateway.
    NoRoute {
        /// The peer.
        destination: Ipv4Addr,
        /// The own address.
        interface: InterfaceAddress,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { text } => write!(f, "{text:?} is no address: write it like 10.0.0.1/24"),
            Self::Prefix { prefix_len } => {
                write!(f, "a prefix of {prefix_len} bits does not exist: use 1 to 32")
            }
            Self::NoHost { address, prefix_len } => {
                write!(f, "{address}/{prefix_len} is no host's address: choose one inside the network")
            }
            Self::Gateway { gateway, interface } => {
                write!(f, "gateway {gateway} is of no use to {interface}: name another host of that network")
            }
            Self::NoRoute { destination, interface } => write!(
                f,
                "{destination} is not in the network of {interface}: choose addresses of one network, or name a gateway"
            ),
        }
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(text: &str) -> InterfaceAddress {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_print_as_they_parse() {
        for text in ["10.0.0.1/24", "192.168.255.1/16", "10.0.0.0/31", "10.0.0.255/32", "1.2.3.4/1"] {
            assert_eq!(interface(text).to_string(), text);
        }
    }

    #[test]
    fn malformed_and_impossible_addresses_are_refused() {
        for text in
            ["", "10.0.0.1", "10.0.0.1/", "10.0.0/24", "10.0.0.1/+8", "10.0.0.1/256", "::1/64", "a/24"]
        {
            assert!(matches!(text.parse::<InterfaceAddress>(), Err(AddressError::Syntax { .. })), "{text}");
        }
        for text in ["10.0.0.1/0", "10.0.0.1/33"] {
            assert!(matches!(text.parse::<InterfaceAddress>(), Err(AddressError::Prefix { .. })), "{text}");
        }
        for text in
            ["10.0.0.0/24", "10.0.0.255/24", "0.0.0.0/8", "127.0.0.1/8", "224.0.0.1/4", "255.255.255.255/32"]
        {
            assert!(matches!(text.parse::<InterfaceAddress>(), Err(AddressError::NoHost { .. })), "{text}");
        }
    }

    #[test]
    fn neighbours_are_reached_directly_and_others_through_the_gateway() {
        let gateway = Ipv4Addr::new(10, 0, 0, 254);
        let config = IpConfig::new(interface("10.0.0.1/24"), Some(gateway)).unwrap();
        assert_eq!(config.next_hop(Ipv4Addr::new(10, 0, 0, 7)), Ok(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(config.next_hop(Ipv4Addr::new(10, 0, 1, 7)), Ok(gateway));
        let alone = IpConfig::new(interface("10.0.0.1/24"), None).unwrap();
        let error = alone.next_hop(Ipv4Addr::new(10, 0, 1, 7)).unwrap_err();
        assert!(error.to_string().contains("10.0.1.7"), "{error}");
    }

    #[test]
    fn gateway_must_be_another_neighbour() {
        for gateway in [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 1, 1)] {
            let error = IpConfig::new(interface("10.0.0.1/24"), Some(gateway)).unwrap_err();
            assert!(matches!(error, AddressError::Gateway { .. }));
        }
    }
}
