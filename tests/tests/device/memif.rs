//! Two processes over shared memory.

use std::path::PathBuf;

use crate::probe::Probe;

/// A socket's path, free when the test begins and ends.
pub(crate) struct Socket(PathBuf);

impl Socket {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("dcp-{name}-{}.sock", std::process::id())))
    }

    pub(crate) fn uri(&self, rest: &str) -> String {
        format!("memif:{}{rest}", self.0.display())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn frames_of_every_length_pass_whole_both_ways() {
    let socket = Socket::new("memif-lengths");
    for mtu in [256, 4096, 8192] {
        let mut echo = Probe::start(None, &format!("echo {} mtu={mtu}", socket.uri(",id=3,role=server")));
        echo.wait_for("ready");
        let mut check = Probe::start(None, &format!("check {} mtu={mtu}", socket.uri(",id=3")));
        check.wait_for("checked");
        assert!(check.end().0.success());
        assert!(echo.is_alive());
    }
}

#[test]
fn client_waits_for_a_server_that_comes_late() {
    let socket = Socket::new("memif-late");
    let mut check = Probe::start(None, &format!("check {} wait=30000", socket.uri(",role=client")));
    check.wait_for("ready");
    let _echo = Probe::start(None, &format!("echo {}", socket.uri(",role=server")));
    check.wait_for("checked");
}

/// The peer dies in the middle of traffic; DPDK alone crashes the survivor in 7 of 10 such ends.
#[test]
fn server_outlives_twenty_killed_clients() {
    let socket = Socket::new("memif-server");
    let mut survivor = Probe::start(None, &format!("flood {}", socket.uri(",role=server")));
    survivor.wait_for("ready");
    for round in 0..20 {
        let mut client = Probe::start(None, &format!("flood {}", socket.uri(",role=client")));
        client.wait_for("up");
        survivor.wait_for("up");
        client.kill();
        survivor.wait_for("down");
        assert!(survivor.is_alive(), "round {round}");
    }
    survivor.kill();
    let mut echo = Probe::start(None, &format!("echo {}", socket.uri("")));
    echo.wait_for("ready");
    Probe::start(None, &format!("check {}", socket.uri(""))).wait_for("checked");
}

#[test]
fn client_outlives_killed_servers_and_finds_each_new_one() {
    let socket = Socket::new("memif-client");
    let first = Probe::start(None, &format!("flood {}", socket.uri(",role=server")));
    let mut survivor = Probe::start(None, &format!("flood {} wait=30000", socket.uri(",role=client")));
    survivor.wait_for("up");
    first.kill();
    survivor.wait_for("down");
    for round in 0..20 {
        // The dead one's socket file is in the way.
        assert!(socket.0.exists());
        let mut server = Probe::start(None, &format!("flood {}", socket.uri(",role=server")));
        server.wait_for("up");
        survivor.wait_for("up");
        server.kill();
        survivor.wait_for("down");
        assert!(survivor.is_alive(), "round {round}");
    }
}
