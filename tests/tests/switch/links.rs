//! Ports that come up one by one, and what floods.

use crate::probe::Probe;
use crate::program::{Sockets, Switch, count};

#[test]
fn broadcasts_reach_every_port_and_answers_come_back() {
    let sockets = Sockets::new("flood");
    let mut switch = Switch::start(None, &sockets.ports(4));
    let mut echoes: Vec<Probe> =
        (0..2).map(|id| Probe::start(None, &format!("echo {}", sockets.host(id)))).collect();
    echoes.iter_mut().for_each(|echo| drop(echo.wait_for("up")));
    Probe::start(None, &format!("check {}", sockets.host(2))).wait_for("checked");
    assert!(echoes.iter_mut().all(Probe::is_alive));
    switch.wait_for("port 2 is down");
    let report = switch.stop();
    assert!(count(&report, "/ports/2/ingress/flood_copies") > 1000);
    // Nobody is at the fourth port: copies for it are lost, and counted.
    assert!(count(&report, "/ports/3/egress/drops/link_down") > 500);
    assert_eq!(count(&report, "/ports/3/device/sent"), 0);
}

#[test]
fn hosts_may_come_in_any_order_and_again() {
    let sockets = Sockets::new("order");
    let mut switch = Switch::start(None, &sockets.ports(3));
    let mut all_say = |words: &str| (0..3).for_each(|_| drop(switch.wait_for(words)));
    all_say("is down");
    for round in 0..3 {
        let order = [round % 3, (round + 1) % 3, (round + 2) % 3];
        let mut hosts = order.map(|id| Probe::start(None, &format!("flood {}", sockets.host(id))));
        hosts.iter_mut().for_each(|host| drop(host.wait_for("up")));
        all_say("is up");
        hosts.into_iter().for_each(Probe::kill);
        all_say("is down");
    }
    drop(switch.stop());
}

/// DPDK's net_memif aborts when it greets a client that has gone: ours wait for that.
#[test]
fn hosts_that_leave_at_once_do_no_harm() {
    let sockets = Sockets::new("hasty");
    let switch = Switch::start(None, &sockets.ports(2));
    // With a host there the switch greets others late.
    let mut echo = Probe::start(None, &format!("echo {}", sockets.host(0)));
    echo.wait_for("up");
    for _ in 0..8 {
        let mut hasty = Probe::start(None, &format!("check {} wait=0", sockets.host(1)));
        let (status, errors) = hasty.end();
        assert!(matches!(status.code(), Some(0 | 3)), "{errors}");
    }
    Probe::start(None, &format!("check {}", sockets.host(1))).wait_for("checked");
    drop(switch.stop());
}

/// Also while a port waits for its host, and one has a silent one.
#[test]
fn an_idle_switch_takes_little_of_a_core() {
    let sockets = Sockets::new("idle");
    let mut switch = Switch::start(None, &sockets.ports(2));
    let mut host = Probe::start(None, &format!("echo {}", sockets.host(0)));
    host.wait_for("up");
    switch.wait_for("port 0 is up");
    let before = switch.cpu_ticks();
    std::process::Command::new("sleep").arg("2").status().expect("there is a sleep program");
    let taken = switch.cpu_ticks() - before;
    // Of 200 ticks of 10 ms.
    assert!(taken < 80, "{taken} ticks");
}
