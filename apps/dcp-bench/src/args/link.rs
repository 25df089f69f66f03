//! Options of a run between two processes.

use std::net::Ipv4Addr;

use clap::Args;
use dcp::device::DeviceUri;
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::wire::MacAddr;

use crate::failure::Failure;
use crate::plan::{Device, Link, PORT, Side};
use crate::units;

/// Who the other side is, and the way to it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Two processes")]
pub struct LinkArgs {
    /// Host name or address of the server to connect to
    #[arg(value_name = "HOST")]
    pub host: Option<String>,
    /// Wait for one client, serve it, and end
    #[arg(long)]
    pub server: bool,
    /// memif:SOCKET[,id=N], af_packet:IFACE, tap:NAME, af_xdp:IFACE, pci:ADDRESS, vdev:ARGS, or null for a sender alone [default: loop]
    #[arg(short, long, alias = "ib-dev", value_name = "URI")]
    pub device: Option<DeviceUri>,
    /// Address of the device, with the length of its network's prefix
    #[arg(long, value_name = "A/LEN")]
    pub ip: Option<InterfaceAddress>,
    /// Gateway to a peer in another network
    #[arg(long, value_name = "IP")]
    pub gateway: Option<Ipv4Addr>,
    /// Ethernet address to use instead of the device's own
    #[arg(long, value_name = "MAC", value_parser = units::parse_mac)]
    pub mac: Option<MacAddr>,
    /// TCP port on which the two find each other [default: 18515]
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
}

impl LinkArgs {
    /// What the hosts are joined by.
    ///
    /// # Errors
    /// A usage failure: the options do not fit together.
    pub fn device(&self) -> Result<Device, Failure> {
        let uri = self.device.clone().unwrap_or(DeviceUri::Loop);
        let side = match (self.server, &self.host) {
            (true, Some(_)) => {
                return Err(Failure::usage(
                    "--server waits for a client, so it cannot connect to a HOST too",
                ));
            }
            (true, None) => Side::Server,
            (false, Some(host)) => Side::Client { host: host.clone() },
            (false, None) => return self.alone(uri),
        };
        if matches!(uri, DeviceUri::Loop | DeviceUri::Null) {
            return Err(Failure::usage(format!("{uri} is no way to another process"))
                .with_hint("name the device on both sides, such as --device memif:/tmp/dcp.sock"));
        }
        let Some(ip) = self.ip else {
            return Err(Failure::usage(format!("{uri} needs an address")).with_hint(
                "give each side one of a network, such as --ip 10.0.0.1/24 and --ip 10.0.0.2/24",
            ));
        };
        let ip = IpConfig::new(ip, self.gateway).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Device::Link(Link { uri, ip, mac: self.mac, side, port: self.port.unwrap_or(PORT) }))
    }

    /// Without another process.
    fn alone(&self, uri: DeviceUri) -> Result<Device, Failure> {
        if !matches!(uri, DeviceUri::Loop | DeviceUri::Null) {
            return Err(Failure::usage(format!("{uri} leads to another process"))
                .with_hint("add --server to wait for a client, or the HOST of a server to connect to it"));
        }
        let given = [
            ("--ip", self.ip.is_some()),
            ("--gateway", self.gateway.is_some()),
            ("--mac", self.mac.is_some()),
            ("--port", self.port.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None if uri == DeviceUri::Null => Ok(Device::Null),
            None => Ok(Device::Loop),
            Some((option, _)) => Err(Failure::usage(format!("{option} means nothing within one process"))
                .with_hint("add --server or a HOST, and --device, for a run between two")),
        }
    }
}
