//! Work requests of every kind, and what becomes of those that are wrong.

use dcp::verbs::{
    Access, CqOverflow, Opcode, Operation, PostError, QpOptions, QpState, RecvWorkRequest, SendWorkRequest,
    Status,
};

use crate::rig::{MR_LEN, Rig, pattern, rig};

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
fn b9_completions_that_find_a_queue_full_are_an_error_and_not_lost_in_silence() {
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let small = client.device.create_cq(4).unwrap();
    let mut qp = client.pd.create_qp(&small, QpOptions::default()).unwrap();
    let into = [client.mr.slice(0..64).unwrap()];
    for wr_id in 0..5 {
        qp.post_recv(&RecvWorkRequest { wr_id, sges: &into }).unwrap();
    }
    qp.close().unwrap();
    for wr_id in 0..4 {
        assert_eq!(small.poll_one().unwrap().map(|completion| completion.wr_id), Some(wr_id));
    }
    assert_eq!(small.poll_one(), Err(CqOverflow { depth: 4 }));
    // Others are not harmed.
    let write = SendWorkRequest::inline(9, Opcode::Write(server.mr.remote().at(0)), b"x");
    client.qps[0].post_send(&write).unwrap();
    assert_eq!(client.wait(&server).wr_id, 9);
}

#[test]
fn b9_completion_queue_of_none_is_refused_and_of_one_works() {
    let Rig { client, server, _registered, _turn } = rig(1, &QpOptions::default());
    assert!(client.device.create_cq(0).is_err());
    let one = client.device.create_cq(1).unwrap();
    let mut qp = client.pd.create_qp(&one, QpOptions::default()).unwrap();
    let mut peer = server.pd.create_qp(&server.cq, QpOptions::default()).unwrap();
    qp.connect(&peer.address(), 0x2000).unwrap();
    peer.connect(&qp.address(), 0x2000).unwrap();
    for wr_id in 0..20 {
        let write = SendWorkRequest::inline(wr_id, Opcode::Write(server.mr.remote().at(0)), b"x");
        qp.post_send(&write).unwrap();
        let done = loop {
            server.device.poll();
            if let Some(completion) = one.poll_one().unwrap() {
                break completion;
            }
        };
        assert_eq!((done.wr_id, done.status), (wr_id, Status::Success));
    }
}
