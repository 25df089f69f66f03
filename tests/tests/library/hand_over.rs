//! Devices with one queue pair and several workers.

use dcp::device::{self, NetDevice};
use dcp::dpdk::register_thread;
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::verbs::{
    Access, Backoff, Device, DeviceConfig, Opcode, QpOptions, SendWorkRequest, Status, Workers,
};
use dcp::wire::Ipv4Addr;

use crate::rig::{MR_LEN, Side, pattern, started, take_turn};

const WORKERS: u16 = 2;
/// Queue pairs: of each worker to each worker of the other side.
const PAIRS: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];
const PIECE: u64 = 40_000;
const PIECE_LEN: usize = 40_000;

/// An end of a loop with one queue pair, its workers, and a queue pair for each of `PAIRS`.
fn end(net: NetDevice, host: u8, worker_of: impl Fn(&(usize, usize)) -> usize) -> Side {
    let ip = Ipv4Addr::new(10, 0, 0, host);
    let config = DeviceConfig { workers: WORKERS, mbufs: 2047, ..DeviceConfig::new(ip) };
    let network = IpConfig::new(InterfaceAddress::new(ip, 24).unwrap(), None).unwrap();
    let device = Device::open(started(), net, network, &config).unwrap();
    let pd = device.allocate_pd().unwrap();
    let cq = device.create_cq(1024).unwrap();
    let mr = pd.allocate(MR_LEN, Access::ALL).unwrap();
    let qp = |pair| pd.create_qp_on(worker_of(pair), &cq, &cq, QpOptions::default()).unwrap();
    let qps = PAIRS.iter().map(qp).collect();
    Side { device, pd, cq, mr, qps }
}

/// Both sides write on all queue pairs, several messages each, and everything arrives.
fn both_sides_write(client: &mut Side, server: &mut Side) {
    for (side, seed) in [(&*client, 1), (&*server, 2)] {
        side.mr.write(0, &pattern(PIECE_LEN, seed)).unwrap();
    }
    let remotes = [server.mr.remote(), client.mr.remote()];
    for (side, remote) in [&mut *client, &mut *server].into_iter().zip(remotes) {
        let from = [side.mr.slice(0..PIECE).unwrap()];
        for (index, qp) in side.qps.iter_mut().enumerate() {
            let to = PIECE * (index as u64 + 1);
            for wr_id in 0..50 {
                qp.post_send(&SendWorkRequest::new(wr_id, Opcode::Write(remote.at(to)), &from)).unwrap();
            }
        }
    }
    for _ in 0..50 * PAIRS.len() {
        assert_eq!(client.wait(server).status, Status::Success);
        assert_eq!(server.wait(client).status, Status::Success);
    }
    for (side, seed) in [(&*client, 2), (&*server, 1)] {
        for index in 1..=PAIRS.len() as u64 {
            let arrived = side.mr.to_vec(PIECE * index..PIECE * (index + 1)).unwrap();
            assert!(arrived == pattern(PIECE_LEN, seed), "queue pair {index}");
        }
        let stats = side.device.stats().unwrap();
        assert!(stats.workers.iter().all(|worker| worker.endpoint.placed >= 100), "{stats:?}");
        let first = stats.workers[0].worker;
        assert!(first.handed_over > 0 && first.relayed > 0, "{first:?}");
    }
}

fn ends() -> (Side, Side) {
    let (here, there) = NetDevice::open_loop(started(), &device::DeviceConfig::default()).unwrap();
    let mut client = end(here, 1, |pair| pair.0);
    let mut server = end(there, 2, |pair| pair.1);
    for (index, (ours, theirs)) in client.qps.iter_mut().zip(&mut server.qps).enumerate() {
        let pkey = 0x3000 + u16::try_from(index).unwrap();
        ours.connect(&theirs.address(), pkey).unwrap();
        theirs.connect(&ours.address(), pkey).unwrap();
    }
    (client, server)
}

#[test]
fn workers_that_share_a_queue_pair_carry_traffic_both_ways_when_polled() {
    let (_turn, _registered) = (take_turn(), register_thread(started()).unwrap());
    let (mut client, mut server) = ends();
    both_sides_write(&mut client, &mut server);
}

#[test]
fn workers_that_share_a_queue_pair_carry_traffic_both_ways_on_threads() {
    let (_turn, _registered) = (take_turn(), register_thread(started()).unwrap());
    let (mut client, mut server) = ends();
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    both_sides_write(&mut client, &mut server);
}
