//! Two processes over the kernel's virtual wires.

use crate::probe::Probe;
use dcp_tests::namespace::Namespace;

/// Echo on one device, check on the other.
fn check_between(namespace: &Namespace, echo: &str, check: &str, between: impl FnOnce()) -> String {
    let mut echo = Probe::start(Some(namespace), &format!("echo {echo}"));
    echo.wait_for("ready");
    let mut check = Probe::start(Some(namespace), &format!("check {check}"));
    let ready = check.wait_for("ready");
    between();
    check.wait_for("checked");
    assert!(check.end().0.success());
    ready
}

#[test]
fn veth_with_ordinary_frames_carries_mtu_1024() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    let ready = check_between(&namespace, "af_packet:v0", "af_packet:v1", || {});
    assert!(ready.contains("mtu=1024 most=1430 transmit=External"), "{ready}");
}

#[test]
fn veth_with_jumbo_frames_carries_mtu_4096_and_8192() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    let ready = check_between(&namespace, "af_packet:v0", "af_packet:v1", || {});
    assert!(ready.contains("mtu=4096 most=8192"), "{ready}");
    let ready = check_between(&namespace, "af_packet:v0 mtu=8192", "af_packet:v1 mtu=8192", || {});
    assert!(ready.contains("mtu=8192"), "{ready}");
}

#[test]
fn taps_on_a_bridge_are_a_wire() {
    let Some(namespace) = Namespace::new_or_skip("taps on a bridge") else { return };
    namespace.ip("link add br0 type bridge");
    namespace.ip("link set br0 up");
    let ready = check_between(&namespace, "tap:t0", "tap:t1", || {
        namespace.ip("link set t0 master br0");
        namespace.ip("link set t1 master br0");
    });
    assert!(ready.contains("mtu=1024 most=1430"), "{ready}");
}

#[test]
fn killed_peers_over_veth_leave_nothing_behind() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    let mut echo = Probe::start(Some(&namespace), "echo af_packet:v0");
    echo.wait_for("up");
    for _ in 0..3 {
        let mut flood = Probe::start(Some(&namespace), "flood af_packet:v1");
        flood.wait_for("up");
        flood.kill();
    }
    assert!(echo.is_alive());
    Probe::start(Some(&namespace), "check af_packet:v1").wait_for("checked");
}
