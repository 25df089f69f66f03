//! Server, switch and client as three processes over shared memory.

use crate::probe::Probe;
use crate::program::{Sockets, Switch, count, serve, transfer};

// S-2, S-7: server, switch and client.
#[test]
fn every_operation_passes_with_trimming_forced() {
    let sockets = Sockets::new("trim");
    let switch = Switch::start(None, &format!("{} --trim 5% --seed 7", sockets.ports(2)));
    let (_serve, port) = serve(None, &sockets.host(0), 1);
    transfer(None, &sockets.host(1), 2, port).wait_for("moved");
    let report = switch.stop();
    for port in ["/ports/0", "/ports/1"] {
        let trimmed = count(&report, &format!("{port}/egress/trimmed"));
        assert!(trimmed > 100, "{port}: {trimmed}");
        assert_eq!(count(&report, &format!("{port}/egress/ho_lost")), 0);
        // Every header took the control queue.
        assert!(count(&report, &format!("{port}/egress/control_queue/forwarded")) >= trimmed);
    }
    assert_eq!(count(&report, "/totals/egress/drops/injected"), 0);
}

/// With faults of every kind at once, from a file.
#[test]
fn every_operation_survives_the_faults_of_a_configuration_file() {
    let sockets = Sockets::new("faults");
    let file = sockets.file("switch.toml");
    let socket = sockets.socket();
    let text = format!(
        "seed = 3\nthreshold = \"64K\"\n[[port]]\nuri = \"memif:{0},id=0\"\n\
         faults = {{ trim = \"1%\", dup = \"1%\", reorder = \"1%\", every = {{ drop = 20000 }} }}\n\
         [[port]]\nuri = \"memif:{0},id=1\"\nfaults = {{ trim = 0.01, dup = 0.01, reorder = 0.01 }}\n",
        socket.display()
    );
    std::fs::write(&file, text).expect("the file can be written");
    let switch = Switch::start(None, &format!("--config {}", file.display()));
    let (_serve, port) = serve(None, &sockets.host(0), 1);
    transfer(None, &sockets.host(1), 2, port).wait_for("moved");
    let report = switch.stop();
    assert!(count(&report, "/totals/ingress/duplicated") > 100);
    assert!(count(&report, "/totals/ingress/faults/reordered") > 100);
    assert!(count(&report, "/totals/egress/trimmed") > 100);
}

/// The coarse timer carries queue pairs over the gap; eight times 0.5 s are allowed.
#[test]
fn a_transfer_outlives_a_switch_that_is_killed_and_started_again() {
    let sockets = Sockets::new("restart");
    let switch = Switch::start(None, &sockets.ports(2));
    let (mut serve, port) = serve(None, &sockets.host(0), 1);
    let mut transfer = transfer(None, &sockets.host(1), 2, port);
    transfer.wait_for("moving");
    switch.kill();
    assert!(sockets.socket().exists(), "a killed switch leaves its socket behind");
    let switch = Switch::start(None, &sockets.ports(2));
    transfer.wait_for("moved");
    serve.wait_for("served");
    assert!(count(&switch.stop(), "/totals/egress/forwarded") > 0);
    assert!(!sockets.socket().exists(), "a stopped switch takes its socket along");
}

#[test]
fn clients_that_are_killed_free_their_port_for_the_next() {
    let sockets = Sockets::new("killed");
    let mut switch = Switch::start(None, &sockets.ports(3));
    let (mut serve, port) = serve(None, &sockets.host(0), 1);
    // A third host, so that the interrupt thread never runs by itself.
    let mut echo = Probe::start(None, &format!("echo {}", sockets.host(2)));
    echo.wait_for("up");
    for _ in 0..3 {
        let words = format!("hammer {} ip=10.9.0.2/24 to=localhost:{port} size=16777216", sockets.host(1));
        let mut client = Probe::start(None, &words);
        client.wait_for("moving");
        switch.wait_for("port 1 is up");
        client.kill();
        switch.wait_for("port 1 is down");
        serve.wait_for("lost");
    }
    transfer(None, &sockets.host(1), 2, port).wait_for("moved");
    let report = switch.stop();
    assert_eq!(report.0["ports"][2]["link"], "up");
}
