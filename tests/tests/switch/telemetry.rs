//! DPDK's telemetry socket.

use std::path::Path;

use dcp_tests::Telemetry;

use crate::program::{Sockets, Switch};

#[test]
fn telemetry_lists_ports_and_has_the_counters_of_each() {
    let sockets = Sockets::new("telemetry");
    let mut switch = Switch::start(None, &format!("{} --telemetry", sockets.ports(2)));
    let line = switch.wait_for("telemetry at ");
    let path = line.rsplit(' ').next().expect("a path");
    let telemetry = Telemetry::open(Path::new(path), switch.pid());
    let ports = telemetry.ask("/dcp/switch");
    assert_eq!(ports.as_array().map(Vec::len), Some(2), "{ports}");
    assert!(ports[1].as_str().is_some_and(|uri| uri.contains("id=1")), "{ports}");
    let port = telemetry.ask("/dcp/switch,1");
    assert_eq!((&port["link_up"], &port["received"], &port["ho_lost"]), (&0.into(), &0.into(), &0.into()));
    assert!(telemetry.ask("/dcp/switch,2").is_null(), "there is no such port");
    switch.stop();
}
