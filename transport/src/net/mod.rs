//! What a host on an IPv4 network owes its neighbours: ARP and ICMP echo. Sans-IO: frames and time come in as arguments.

mod address;
mod arp;
mod icmp;
mod neighbours;
mod stack;

pub use address::{AddressError, InterfaceAddress, IpConfig};
pub use neighbours::Resolution;
pub use stack::{NetAnswer, NetCounters, NetStack};
