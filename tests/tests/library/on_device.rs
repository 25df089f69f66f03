//! Workers made on an open network device.

use dcp::Worker;
use dcp::core::EndpointConfig;
use dcp::device::{self, DeviceError, NetDevice, WorkerOptions};
use dcp::dpdk::{Clock, register_thread};
use dcp::net::{InterfaceAddress, IpConfig, Resolution};
use dcp::verbs::{Device, DeviceConfig, ResourceError};
use dcp::wire::Ipv4Addr;

use crate::rig::{started, take_turn};

/// More than the EAL's memory holds.
const TOO_MANY: u32 = 1 << 30;
/// Far more than a question and its answer take.
const ROUNDS: u32 = 1_000_000;

const fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn network(host: u8) -> IpConfig {
    IpConfig::new(InterfaceAddress::new(ip(host), 24).unwrap(), None).unwrap()
}

fn worker(device: &mut NetDevice, host: u8, mbufs: u32) -> Result<Worker, DeviceError> {
    let endpoint = EndpointConfig::new(device.mac(), ip(host));
    let options = WorkerOptions { endpoint, mbufs, segments_max: 1, clock: Clock::calibrate() };
    device.worker(started(), network(host), &options)
}

#[test]
fn worker_on_a_device_answers_for_its_address() {
    let (_turn, _registered) = (take_turn(), register_thread(started()).unwrap());
    let (mut here, mut there) = NetDevice::open_loop(started(), &device::DeviceConfig::default()).unwrap();
    let mut asking = worker(&mut here, 1, 1023).unwrap();
    let mut answering = worker(&mut there, 2, 1023).unwrap();
    let found = (0..ROUNDS).find_map(|_| {
        asking.poll();
        answering.poll();
        match asking.resolve(ip(2)).unwrap().unwrap() {
            Resolution::Known(mac) => Some(mac),
            _ => None,
        }
    });
    assert_eq!(found, Some(there.mac()));
}

#[test]
fn device_has_a_worker_for_each_queue_pair_and_no_more() {
    let (_turn, _registered) = (take_turn(), register_thread(started()).unwrap());
    let config = device::DeviceConfig { queues: 2, ..device::DeviceConfig::default() };
    let (mut here, _there) = NetDevice::open_loop(started(), &config).unwrap();
    let _workers = [worker(&mut here, 1, 1023).unwrap(), worker(&mut here, 1, 1023).unwrap()];
    let error = worker(&mut here, 1, 1023).unwrap_err();
    assert_eq!(error, DeviceError::NoQueues { uri: "loop".to_owned() });
    assert_eq!(error.to_string(), "loop has no queues");
}

#[test]
fn mbufs_that_find_no_memory_are_a_lack_of_mbufs_to_a_device_too() {
    let (_turn, _registered) = (take_turn(), register_thread(started()).unwrap());
    let (mut here, there) = NetDevice::open_loop(started(), &device::DeviceConfig::default()).unwrap();
    let error = worker(&mut here, 1, TOO_MANY).unwrap_err();
    assert!(matches!(error, DeviceError::Pool(_)), "{error}");
    let config = DeviceConfig { mbufs: TOO_MANY, ..DeviceConfig::new(ip(2)) };
    let error = Device::open(started(), there, network(2), &config).unwrap_err();
    assert!(matches!(error, ResourceError::Pool(_)), "{error}");
}
