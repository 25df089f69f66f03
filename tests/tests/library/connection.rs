//! Queue pairs that connect over TCP.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use dcp::connect::{ConnectError, ControlEvent, Listener};
use dcp::core::DropReason;
use dcp::verbs::{Connection, Opcode, QpOptions, RecvWorkRequest, SendWorkRequest, Status};
use serde_json::json;

use crate::rig::{MR_LEN, Rig, Side, pattern, unconnected};

const PATIENCE: Duration = Duration::from_secs(30);

/// Connects the first queue pairs of both sides, each on a thread of its own.
fn connect(client: &mut Side, server: &mut Side) -> (Connection, Connection) {
    let listener = Listener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).unwrap();
    let port = listener.address().unwrap().port();
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let incoming = server.device.accept(&listener, PATIENCE).unwrap();
            server.qps[0].accept(incoming, &[server.mr.remote()], PATIENCE).unwrap()
        });
        let connected =
            client.qps[0].connect_to(("localhost", port).text(), &[client.mr.remote()], PATIENCE).unwrap();
        (connected, accepted.join().unwrap())
    })
}

trait Text {
    fn text(self) -> String;
}

impl Text for (&str, u16) {
    fn text(self) -> String {
        format!("{}:{}", self.0, self.1)
    }
}

#[test]
fn sides_with_different_limits_agree_on_the_smaller_ones_and_move_everything() {
    let client = QpOptions { mtu: 4096, window: 64, max_rd_atomic: 16, icrc: false, ..QpOptions::default() };
    let server = QpOptions { mtu: 1024, window: 4, max_rd_atomic: 8, icrc: true, ..QpOptions::default() };
    let Rig { mut client, mut server, _registered, _turn } = unconnected(1, &client, &server);
    let into = [server.mr.slice(500_000..600_000).unwrap()];
    server.qps[0].post_recv(&RecvWorkRequest { wr_id: 7, sges: &into }).unwrap();
    let (to_server, to_client) = connect(&mut client, &mut server);
    for (connection, qp) in [(&to_server, &client.qps[0]), (&to_client, &server.qps[0])] {
        let agreed = connection.agreement();
        assert_eq!((agreed.mtu, agreed.window, agreed.max_rd_atomic), (1024, 4, 2));
        assert!(agreed.icrc);
        assert_eq!(qp.mtu(), 1024);
    }
    let remote = to_server.remotes().next().unwrap();
    assert_eq!(remote, server.mr.remote());
    let bytes = pattern(100_000, 3);
    client.mr.write(0, &bytes).unwrap();
    let sges = [client.mr.slice(0..100_000).unwrap()];
    // More than the smaller window and the fewer READs, at once.
    for wr_id in 0..20 {
        let opcode = if wr_id % 2 == 0 { Opcode::Write(remote.at(0)) } else { Opcode::Read(remote.at(0)) };
        client.qps[0].post_send(&SendWorkRequest::new(wr_id, opcode, &sges)).unwrap();
    }
    client.qps[0].post_send(&SendWorkRequest::new(20, Opcode::Send, &sges)).unwrap();
    for wr_id in 0..=20 {
        let done = client.wait(&server);
        assert_eq!((done.wr_id, done.status), (wr_id, Status::Success));
    }
    assert_eq!(server.wait(&client).wr_id, 7);
    assert_eq!(server.mr.to_vec(0..100_000).unwrap(), bytes);
    assert_eq!(server.mr.to_vec(500_000..600_000).unwrap(), bytes);
    let stats = server.device.stats().unwrap();
    assert_eq!(stats.workers[0].endpoint.dropped(DropReason::BeyondWindow), 0);
}

#[test]
fn applications_talk_and_part_over_the_control_channel() {
    let options = QpOptions::default();
    let Rig { mut client, mut server, _registered, _turn } = unconnected(1, &options, &options);
    let (mut to_server, mut to_client) = connect(&mut client, &mut server);
    assert_eq!(to_client.poll(), Ok(None));
    to_server.send(&json!({ "size": MR_LEN })).unwrap();
    assert_eq!(to_client.wait_message().unwrap()["size"], MR_LEN);
    part(to_server, to_client, || {});
}

/// One side closes, the other hears it, does something yet, and closes too.
fn part(first: Connection, mut last: Connection, before_the_end: impl FnOnce()) {
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| first.close());
        let event = loop {
            if let Some(event) = last.poll().unwrap() {
                break event;
            }
        };
        assert_eq!(event, ControlEvent::Bye);
        before_the_end();
        assert!(!closing.is_finished(), "it did not wait for the other side");
        last.close();
    });
}

#[test]
fn side_that_closes_first_answers_until_the_other_closes_too() {
    let options = QpOptions::default();
    let Rig { mut client, mut server, _registered, _turn } = unconnected(1, &options, &options);
    let (to_server, to_client) = connect(&mut client, &mut server);
    let into = [client.mr.slice(0..4096).unwrap()];
    client.qps[0].post_recv(&RecvWorkRequest { wr_id: 5, sges: &into }).unwrap();
    let sges = [server.mr.slice(0..4096).unwrap()];
    part(to_server, to_client, || {
        // The client's program does nothing but close; nobody else polls its device.
        server.qps[0].post_send(&SendWorkRequest::new(6, Opcode::Send, &sges)).unwrap();
        let done = server.wait(&server);
        assert_eq!((done.wr_id, done.status), (6, Status::Success));
    });
}

#[test]
fn connected_queue_pair_is_not_connected_twice() {
    let options = QpOptions::default();
    let Rig { mut client, mut server, _registered, _turn } = unconnected(1, &options, &options);
    let _connections = connect(&mut client, &mut server);
    let again = client.qps[0].connect_to("localhost:1", &[], PATIENCE);
    assert!(matches!(again, Err(ConnectError::Local { .. })), "{again:?}");
}
