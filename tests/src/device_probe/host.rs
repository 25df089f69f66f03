//! A worker on a device: answers ARP and pings, resolves an address.

use std::net::Ipv4Addr;
use std::time::Duration;

use dcp::Worker;
use dcp::core::EndpointConfig;
use dcp::device::{NetDevice, WorkerOptions};
use dcp::dpdk::{Clock, Eal};
use dcp::net::{InterfaceAddress, IpConfig, Resolution};

use crate::Fault;

fn environment(error: impl std::fmt::Display) -> Fault {
    (3, error.to_string())
}

/// Runs for ever; prints `resolved MAC` or `unreachable` for `peer`.
pub(crate) fn run(
    eal: &Eal,
    mut device: NetDevice,
    clock: Clock,
    address: InterfaceAddress,
    peer: Option<Ipv4Addr>,
    wait: Duration,
) -> Result<(), Fault> {
    device.wait_for_link(&clock, wait).map_err(environment)?;
    let mut worker = make_worker(eal, &mut device, clock, address)?;
    println!("up");
    let mut asking = peer;
    loop {
        worker.poll();
        let Some(peer) = asking else { continue };
        match worker.resolve(peer).ok_or((1, "no network stack".to_owned()))?.map_err(environment)? {
            Resolution::Pending => continue,
            Resolution::Known(mac) => {
                println!("resolved {}", mac.0.map(|byte| format!("{byte:02x}")).join(":"));
            }
            Resolution::Unreachable | Resolution::Full => println!("unreachable"),
        }
        asking = None;
    }
}

fn make_worker(
    eal: &Eal,
    device: &mut NetDevice,
    clock: Clock,
    address: InterfaceAddress,
) -> Result<Worker, Fault> {
    let endpoint = EndpointConfig::new(device.mac(), address.address());
    let options = WorkerOptions { endpoint, mbufs: 1023, segments_max: 1, clock };
    let address = IpConfig::new(address, None).map_err(environment)?;
    device.worker(eal, address, &options).map_err(environment)
}
