//! The library in verbs' words, two devices on one link of DPDK rings.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test, helpers included")]

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dcp::dpdk::{Eal, EalConfig, FabricConfig, LcoreGuard, create_links, register_thread};
use dcp::verbs::{
    Access, Backoff, Completion, Cq, Device, DeviceConfig, Mr, Opcode, Operation, Pd, PostError, Qp,
    QpOptions, QpState, RecvWorkRequest, SendWorkRequest, Status, Workers,
};
use dcp::wire::Ipv4Addr;

/// DPDK starts once per process; tests take turns.
fn eal() -> (&'static Arc<Eal>, MutexGuard<'static, ()>) {
    static EAL: OnceLock<Arc<Eal>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let eal = EAL.get_or_init(|| Arc::new(Eal::start(EalConfig::default()).unwrap()));
    (eal, turn)
}

/// One side: a device with everything on it.
struct Side {
    device: Device,
    pd: Pd,
    cq: Cq,
    mr: Mr,
    qps: Vec<Qp>,
}

impl Side {
    fn wait(&self, peer: &Self) -> Completion {
        for _ in 0..50_000_000u64 {
            peer.device.poll();
            if let Some(completion) = self.cq.poll_one().unwrap() {
                return completion;
            }
            std::thread::yield_now();
        }
        panic!("no completion came");
    }
}

struct Rig {
    client: Side,
    server: Side,
    _registered: LcoreGuard,
    _turn: MutexGuard<'static, ()>,
}

const MR_LEN: usize = 1 << 20;

/// Two devices with `workers` workers each, and a queue pair per worker, connected.
fn rig(workers: usize, options: &QpOptions) -> Rig {
    let (eal, turn) = eal();
    let registered = register_thread(eal).unwrap();
    let links = create_links(eal, FabricConfig { links: workers, ring_size: 1024 }).unwrap();
    let (left, right): (Vec<_>, Vec<_>) = links.into_iter().unzip();
    let mut client = side(eal, left, 1, options);
    let mut server = side(eal, right, 2, options);
    for worker in 0..workers {
        let pkey = 0x1000 + u16::try_from(worker).unwrap();
        let (to_server, to_client) = (server.qps[worker].address(), client.qps[worker].address());
        client.qps[worker].connect(&to_server, pkey).unwrap();
        server.qps[worker].connect(&to_client, pkey).unwrap();
    }
    Rig { client, server, _registered: registered, _turn: turn }
}

fn side(eal: &Arc<Eal>, queues: Vec<dcp::dpdk::QueuePair>, host: u8, options: &QpOptions) -> Side {
    let workers = queues.len();
    let config = DeviceConfig { mbufs: 2047, ..DeviceConfig::new(Ipv4Addr::new(10, 0, 0, host)) };
    let device = Device::new(eal, queues, &config).unwrap();
    let pd = device.allocate_pd().unwrap();
    let cq = device.create_cq(1024).unwrap();
    let mr = pd.allocate(MR_LEN, Access::ALL).unwrap();
    let qps =
        (0..workers).map(|worker| pd.create_qp_on(worker, &cq, &cq, options.clone()).unwrap()).collect();
    Side { device, pd, cq, mr, qps }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i % 251).to_le_bytes()[0].wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn every_operation_moves_its_bytes() {
    let Rig { mut client, mut server, _registered, _turn } = rig(1, &QpOptions::default());
    let bytes = pattern(100_000, 1);
    client.mr.write(0, &bytes).unwrap();
    let target = server.mr.remote();

    let sges = [client.mr.slice(0..100_000).unwrap()];
    client.qps[0].post_send(&SendWorkRequest::new(1, Opcode::Write(target.at(64)), &sges)).unwrap();
    let done = client.wait(&server);
    assert_eq!((done.wr_id, done.status, done.operation), (1, Status::Success, Operation::Write));
    assert_eq!(server.mr.to_vec(64..100_064).unwrap(), bytes);

    let into = [server.mr.slice(500_000..600_000).unwrap()];
    server.qps[0].post_recv(&RecvWorkRequest { wr_id: 7, sges: &into }).unwrap();
    client.qps[0].post_send(&SendWorkRequest::new(2, Opcode::SendImm(99), &sges)).unwrap();
    assert_eq!(client.wait(&server).wr_id, 2);
    let received = server.wait(&client);
    assert_eq!((received.wr_id, received.byte_len, received.imm), (7, 100_000, Some(99)));
    assert_eq!(server.mr.to_vec(500_000..600_000).unwrap(), bytes);

    let back = [client.mr.slice(200_000..300_000).unwrap()];
    client.qps[0].post_send(&SendWorkRequest::new(3, Opcode::Read(target.at(64)), &back)).unwrap();
    assert_eq!(client.wait(&server).status, Status::Success);
    assert_eq!(client.mr.to_vec(200_000..300_000).unwrap(), bytes);

    server.mr.write(800_000, &41u64.to_ne_bytes()).unwrap();
    let result = [client.mr.slice(900_000..900_008).unwrap()];
    let add = Opcode::FetchAdd { remote: target.at(800_000), add: 1 };
    client.qps[0].post_send(&SendWorkRequest::new(4, add, &result)).unwrap();
    assert_eq!(client.wait(&server).status, Status::Success);
    assert_eq!(client.mr.to_vec(900_000..900_008).unwrap(), 41u64.to_ne_bytes());
    assert_eq!(server.mr.to_vec(800_000..800_008).unwrap(), 42u64.to_ne_bytes());

    client.qps[0].post_send(&SendWorkRequest::inline(5, Opcode::Write(target.at(0)), b"inline")).unwrap();
    assert_eq!(client.wait(&server).status, Status::Success);
    assert_eq!(server.mr.to_vec(0..6).unwrap(), b"inline");
}

#[test]
fn misuse_is_refused_with_a_typed_error() {
    let Rig { mut client, server, _registered, _turn } =
        rig(1, &QpOptions { send_depth: 4, ..QpOptions::default() });
    assert!(client.mr.slice(0..MR_LEN as u64 + 1).is_err());
    assert!(client.mr.write(MR_LEN as u64 - 1, b"ab").is_err());
    let sges = [client.mr.slice(0..8).unwrap()];
    let to = Opcode::Write(server.mr.remote().at(0));
    let mut fresh = client.pd.create_qp(&client.cq, QpOptions::default()).unwrap();
    let early = fresh.post_send(&SendWorkRequest::new(0, to, &sges));
    assert_eq!(early, Err(PostError::NotReady { state: QpState::Init }));
    let foreign = client.pd.create_qp(&server.cq, QpOptions::default());
    assert!(foreign.is_err(), "a completion queue of another device");
    for wr_id in 0..4 {
        client.qps[0].post_send(&SendWorkRequest::new(wr_id, to, &sges)).unwrap();
    }
    let full = client.qps[0].post_send(&SendWorkRequest::new(4, to, &sges));
    assert_eq!(full, Err(PostError::QueueFull { depth: 4 }));
    for wr_id in 0..4 {
        assert_eq!(client.wait(&server).wr_id, wr_id);
    }
    client.qps[0].post_send(&SendWorkRequest::new(5, to, &sges)).unwrap();
    assert_eq!(client.wait(&server).wr_id, 5);
    let long = [0; 1025];
    let inline = client.qps[0].post_send(&SendWorkRequest::inline(6, to, &long));
    assert_eq!(inline, Err(PostError::InlineTooLong { len: 1025, limit: 1024 }));
}

#[test]
fn f4_region_dropped_with_work_under_way_is_not_freed_under_it() {
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let to = server.mr.remote();
    let mr = client.pd.allocate(MR_LEN, Access::default()).unwrap();
    mr.write(0, &pattern(MR_LEN, 9)).unwrap();
    let sges = [mr.slice(0..MR_LEN as u64).unwrap()];
    client.qps[0].post_send(&SendWorkRequest::new(1, Opcode::Write(to.at(0)), &sges)).unwrap();
    drop(mr);
    assert_eq!(client.wait(&server).status, Status::Success);
    assert_eq!(server.mr.to_vec(0..MR_LEN as u64).unwrap(), pattern(MR_LEN, 9));
    // The key is dead for what is posted later.
    client.qps[0].post_send(&SendWorkRequest::new(2, Opcode::Write(to.at(0)), &sges)).unwrap();
    assert_eq!(client.wait(&server).status, Status::LocalProtection);
}

#[test]
fn peers_lose_access_when_a_region_is_dropped() {
    let Rig { mut client, mut server, _registered, _turn } = rig(1, &QpOptions::default());
    let gone = server.mr.remote();
    server.mr = server.pd.allocate(MR_LEN, Access::ALL).unwrap();
    let sges = [client.mr.slice(0..8).unwrap()];
    client.qps[0].post_send(&SendWorkRequest::new(1, Opcode::Write(gone.at(0)), &sges)).unwrap();
    assert_eq!(client.wait(&server).status, Status::RemoteAccess);
    assert_eq!(client.qps[0].state(), QpState::Error);
}

#[test]
fn closed_queue_pair_flushes_what_is_outstanding() {
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let into = [client.mr.slice(0..64).unwrap()];
    for wr_id in 0..3 {
        client.qps[0].post_recv(&RecvWorkRequest { wr_id, sges: &into }).unwrap();
    }
    client.qps[0].close().unwrap();
    for wr_id in 0..3 {
        let completion = client.wait(&server);
        assert_eq!((completion.wr_id, completion.status), (wr_id, Status::Flushed));
    }
}

#[test]
fn two_threaded_workers_carry_queue_pairs_in_both_directions() {
    let Rig { mut client, mut server, _registered, _turn } = rig(2, &QpOptions::default());
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    let (to_server, to_client) = (server.mr.remote(), client.mr.remote());
    client.mr.write(0, &pattern(4096, 3)).unwrap();
    server.mr.write(0, &pattern(4096, 4)).unwrap();
    let (from_client, from_server) =
        ([client.mr.slice(0..4096).unwrap()], [server.mr.slice(0..4096).unwrap()]);
    for round in 0..200u64 {
        for worker in 0..2 {
            let at = 8192 * (round % 50 + 1) + 4096 * worker as u64;
            let write = SendWorkRequest::new(round, Opcode::Write(to_server.at(at)), &from_client);
            client.qps[worker].post_send(&write).unwrap();
            let write = SendWorkRequest::new(round, Opcode::Write(to_client.at(at)), &from_server);
            server.qps[worker].post_send(&write).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(client.wait(&server).status, Status::Success);
            assert_eq!(server.wait(&client).status, Status::Success);
        }
    }
    for at in (8192..8192 * 50).step_by(4096) {
        assert_eq!(server.mr.to_vec(at..at + 4096).unwrap(), pattern(4096, 3));
        assert_eq!(client.mr.to_vec(at..at + 4096).unwrap(), pattern(4096, 4));
    }
    let stats = client.device.stats().unwrap();
    assert!(stats.workers.iter().all(|worker| worker.endpoint.data_packets >= 200));
}

#[test]
fn completion_wakes_who_waits_on_the_descriptor() {
    use rustix::event::{PollFd, PollFlags, poll};
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    client.cq.arm();
    assert_eq!(client.cq.poll_one(), Ok(None));
    let write = SendWorkRequest::inline(1, Opcode::Write(server.mr.remote().at(0)), b"x");
    client.qps[0].post_send(&write).unwrap();
    let fd = client.cq.event_fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    assert_eq!(poll(&mut fds, None), Ok(1));
    assert_eq!(client.cq.poll_one().unwrap().map(|completion| completion.wr_id), Some(1));
}
