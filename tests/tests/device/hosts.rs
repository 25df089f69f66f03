//! Workers as hosts of a network: ARP both ways, pings from the kernel.

use crate::memif::Socket;
use crate::probe::Probe;
use dcp_tests::namespace::Namespace;

#[test]
fn kernel_and_worker_find_each_other_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    namespace.ip("addr add 10.9.0.2/24 dev v1");
    let mut host = Probe::start(Some(&namespace), "host af_packet:v0 ip=10.9.0.1/24 peer=10.9.0.2");
    host.wait_for("resolved");
    Probe::start(Some(&namespace), "ping 10.9.0.1").wait_for("answered 6");
}

#[test]
fn kernel_and_worker_find_each_other_over_a_tap() {
    let Some(namespace) = Namespace::new_or_skip("a tap") else { return };
    let mut host = Probe::start(Some(&namespace), "host tap:t0 ip=10.9.0.1/24 peer=10.9.0.2");
    host.wait_for("ready");
    namespace.ip("addr add 10.9.0.2/24 dev t0");
    host.wait_for("resolved");
    Probe::start(Some(&namespace), "ping 10.9.0.1").wait_for("answered 6");
}

#[test]
fn workers_on_bridged_taps_resolve_each_other() {
    let Some(namespace) = Namespace::new_or_skip("taps on a bridge") else { return };
    namespace.ip("link add br0 type bridge");
    namespace.ip("link set br0 up");
    let mut first = Probe::start(Some(&namespace), "host tap:t0 ip=10.9.0.1/24");
    first.wait_for("up");
    namespace.ip("link set t0 master br0");
    let mut second = Probe::start(Some(&namespace), "host tap:t1 ip=10.9.0.2/24 peer=10.9.0.1");
    second.wait_for("ready");
    namespace.ip("link set t1 master br0");
    second.wait_for("resolved");
}

#[test]
fn workers_resolve_each_other_over_memif_also_after_one_was_killed() {
    let socket = Socket::new("memif-hosts");
    let mut first = Probe::start(None, &format!("host {} ip=10.9.0.1/24", socket.uri(",role=server")));
    first.wait_for("ready");
    for _ in 0..3 {
        let words = format!("host {} ip=10.9.0.2/24 peer=10.9.0.1", socket.uri(",role=client"));
        let mut second = Probe::start(None, &words);
        second.wait_for("resolved");
        second.kill();
        assert!(first.is_alive());
    }
}

#[test]
fn absent_neighbour_is_unreachable() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    let mut host = Probe::start(Some(&namespace), "host af_packet:v0 ip=10.9.0.1/24 peer=10.9.0.77");
    host.wait_for("unreachable");
}
