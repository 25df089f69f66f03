//! A worker on a device: answers ARP and pings, resolves an address.

use std::net::Ipv4Addr;
use std::time::Duration;

use dcp::core::{Endpoint, EndpointConfig};
use dcp::device::{NetDevice, WorkerQueues};
use dcp::dpdk::{Clock, Eal, Pool, PoolConfig};
use dcp::net::{InterfaceAddress, IpConfig, NetStack, Resolution};
use dcp::{Worker, WorkerConfig};

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
    let config = EndpointConfig::new(device.mac(), address.address());
    let (transmit, mtu, mac) = (device.transmit(), device.mtu(), device.mac());
    let header_pool = device.header_pool(eal, 1023).map_err(environment)?;
    let payload_pool = Pool::new(eal, PoolConfig::payload("pay", 1023)).map_err(environment)?;
    let WorkerQueues { queues, upkeep } =
        device.take_queues().pop().ok_or((3, "the device has no queues".to_owned()))?;
    let mut worker = Worker::new(WorkerConfig {
        service_port: config.service_port,
        endpoint: Endpoint::new(config),
        queues,
        header_pool,
        payload_pool,
        clock,
        segments_max: 1,
    });
    worker.set_transmit(transmit, mtu);
    if let Some(upkeep) = upkeep {
        worker.set_upkeep(upkeep);
    }
    let ip = IpConfig::new(address, None).map_err(environment)?;
    worker.set_net_stack(NetStack::new(mac, ip));
    Ok(worker)
}
