//! Queues that really fill.

use crate::program::{Sockets, Switch, count, serve, transfer};

/// D2, D4, S-1: a window of 256 KiB into a link of 1 Gb/s behind a threshold of 160 KiB. Senders and switch take turns on
/// few cores, so a window comes as one burst: a much lower threshold would cut nearly all of it, time and again.
#[test]
fn a_slow_link_trims_what_is_too_much_and_loses_nothing() {
    let sockets = Sockets::new("slow");
    let words = "--threshold 160K --link-gbps 1 --ecn 40K,120K,0.5";
    let switch = Switch::start(None, &format!("{} {words}", sockets.ports(2)));
    let (_serve, port) = serve(None, &sockets.host(0), 1);
    transfer(None, &sockets.host(1), 2, port).wait_for("moved");
    let report = switch.stop();
    assert!(count(&report, "/totals/egress/trimmed") > 0);
    assert_eq!(count(&report, "/totals/egress/ho_lost"), 0);
    assert_eq!(count(&report, "/totals/egress/drops/data_queue_full"), 0);
    // The frame that goes over the threshold is the last one.
    assert!(count(&report, "/ports/0/egress/data_queue/bytes_peak") < (160 << 10) + 5000);
}

/// Two clients of two servers meet on a link between two switches that takes half of what they send.
#[test]
fn two_clients_share_a_link_between_two_switches() {
    let (near, far) = (Sockets::new("near"), Sockets::new("far"));
    let ports = near.ports(3);
    let first = Switch::start(None, &format!("{ports} --threshold 160K --link-gbps 0.5"));
    let uplink = near.host(2);
    let mut second = Switch::start(None, &format!("{} --port {uplink} --threshold 160K", far.ports(2)));
    second.wait_for("port 2 is up");
    let (_a, port_a) = serve(None, &far.host(0), 1);
    let (_b, port_b) = serve(None, &far.host(1), 9);
    let mut one = transfer(None, &near.host(0), 2, port_a);
    let mut other = transfer(None, &near.host(1), 3, port_b);
    one.wait_for("moved");
    other.wait_for("moved");
    let (first, second) = (first.stop(), second.stop());
    assert!(count(&first, "/ports/2/egress/trimmed") > 100, "{first:?}");
    assert_eq!(count(&first, "/totals/egress/ho_lost"), 0);
    assert_eq!(count(&second, "/totals/egress/ho_lost"), 0);
}

/// D3: a control queue that holds nothing loses every header; the coarse timer recovers, and bytes are never torn.
#[test]
fn a_switch_without_a_control_queue_is_slow_and_right() {
    let sockets = Sockets::new("none");
    let words = "--control-bytes 0 --trim 0.005%";
    let switch = Switch::start(None, &format!("{} {words}", sockets.ports(2)));
    let (_serve, port) = serve(None, &sockets.host(0), 1);
    transfer(None, &sockets.host(1), 2, port).wait_for("moved");
    let report = switch.stop();
    let lost = count(&report, "/totals/egress/ho_lost");
    assert_eq!(lost, count(&report, "/totals/egress/trimmed"));
    assert_eq!(count(&report, "/totals/egress/control_queue/forwarded"), 0);
}
