//! Ordinary traffic between kernels: pings and TCP over taps, and over veth with packet sockets.

use crate::probe::Probe;
use crate::program::{Switch, count, serve, transfer};
use dcp_tests::namespace::Namespace;

/// A switch in a namespace of its own, and two hosts in theirs.
struct Network {
    switch: Namespace,
    hosts: [Namespace; 2],
}

impl Network {
    fn new_or_skip(what: &str) -> Option<Self> {
        let switch = Namespace::new_or_skip(what)?;
        Some(Self { switch, hosts: [Namespace::new_or_skip(what)?, Namespace::new_or_skip(what)?] })
    }

    /// Gives host `n` the address 10.8.0.n on its interface.
    fn address(&self, n: usize, interface: &str) {
        let host = &self.hosts[n - 1];
        host.ip(&format!("addr add 10.8.0.{n}/24 dev {interface}"));
        host.ip(&format!("link set {interface} up"));
    }

    fn ping(&self) {
        Probe::start(Some(&self.hosts[0]), "ping 10.8.0.2").wait_for("answered 6");
    }
}

/// Moves bytes by TCP from the first host to the second.
fn tcp(network: &Network) {
    const BYTES: usize = 16 << 20;
    let mut receiver = Probe::start(Some(&network.hosts[1]), "tcp-receive 5201");
    receiver.wait_for("listening");
    Probe::start(Some(&network.hosts[0]), &format!("tcp-send 10.8.0.2:5201 {BYTES}")).wait_for("sent");
    receiver.wait_for(&format!("received {BYTES}"));
}

#[test]
fn pings_and_tcp_pass_between_two_taps() {
    let Some(network) = Network::new_or_skip("taps") else { return };
    let switch = Switch::start(Some(&network.switch), "--port tap:t0 --port tap:t1");
    for (n, tap) in [(1, "t0"), (2, "t1")] {
        network.switch.ip(&format!("link set {tap} netns {}", network.hosts[n - 1]));
        network.address(n, tap);
    }
    network.ping();
    tcp(&network);
    let report = switch.stop();
    assert_eq!(count(&report, "/totals/egress/trimmed"), 0);
    assert_eq!(count(&report, "/totals/egress/drops/total"), 0);
}

/// The kernel leaves checksums of veth's frames unfinished; the switch finishes them.
#[test]
fn pings_and_tcp_pass_between_kernels_over_veth() {
    let Some(network) = Network::new_or_skip("af_packet over veth") else { return };
    for (n, port) in [(1, "p0"), (2, "p1")] {
        let host = &network.hosts[n - 1];
        network.switch.ip(&format!("link add {port} type veth peer name e0 netns {host}"));
        network.switch.ip(&format!("link set {port} up"));
        // One segment per frame: longer ones do not fit the link.
        network.hosts[n - 1].ip("link set e0 gso_max_segs 1");
        network.address(n, "e0");
    }
    let switch = Switch::start(Some(&network.switch), "--port af_packet:p0 --port af_packet:p1");
    network.ping();
    tcp(&network);
    let report = switch.stop();
    assert!(count(&report, "/ports/0/device/finished_checksums") > 1000);
    assert_eq!(count(&report, "/ports/0/device/cut"), 0);
    assert_eq!(count(&report, "/totals/egress/drops/total"), 0);
}

#[test]
fn a_client_over_veth_is_killed_and_replaced() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    for (host, port) in [("h0", "p0"), ("h1", "p1")] {
        namespace.add_joined(host, port, 9000);
    }
    let ports = "--port af_packet:p0 --port af_packet:p1 --trim 1%";
    let switch = Switch::start(Some(&namespace), ports);
    let (mut server, port) = serve(Some(&namespace), "af_packet:h0", 1);
    let words = format!("hammer af_packet:h1 ip=10.9.0.2/24 to=localhost:{port} size=16777216");
    let mut client = Probe::start(Some(&namespace), &words);
    client.wait_for("moving");
    client.kill();
    server.wait_for("lost");
    transfer(Some(&namespace), "af_packet:h1", 2, port).wait_for("moved");
    assert!(count(&switch.stop(), "/totals/egress/trimmed") > 100);
}

/// Nobody is at the other end of a tap that is down: what waits for it is dropped, and the others go on.
#[test]
fn a_tap_that_is_down_does_not_hold_the_others_up() {
    let Some(network) = Network::new_or_skip("taps") else { return };
    let words = "--port tap:t0 --port tap:t1 --port tap:t2";
    let switch = Switch::start(Some(&network.switch), words);
    for (n, tap) in [(1, "t0"), (2, "t1")] {
        network.switch.ip(&format!("link set {tap} netns {}", network.hosts[n - 1]));
        network.address(n, tap);
    }
    network.switch.ip("link set t2 down");
    network.ping();
    tcp(&network);
    network.switch.ip("link set t2 up");
    network.ping();
    drop(switch.stop());
}
