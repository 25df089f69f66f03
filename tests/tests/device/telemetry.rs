//! Telemetry in each way that DPDK is started here.

use std::path::Path;

use dcp_tests::Telemetry;

use crate::memif::Socket;
use crate::probe::Probe;

/// The telemetry of a probe that was started with `telemetry=on`.
fn telemetry(probe: &mut Probe) -> Telemetry {
    let line = probe.wait_for("telemetry");
    Telemetry::open(Path::new(line.trim_start_matches("telemetry ")), probe.pid())
}

// Without huge pages --no-huge and --no-shconf; with them --in-memory.
#[test]
fn telemetry_answers_without_files_of_dpdk() {
    let mut serve = Probe::start(None, "serve null telemetry=on ip=10.9.0.1/24");
    let telemetry = telemetry(&mut serve);
    serve.wait_for("listening");
    let port = loop {
        let port = telemetry.ask("/dcp/port,0");
        if port["driver"].is_string() {
            break port;
        }
    };
    assert_eq!((&port["driver"], &port["ip"]), (&"net_null".into(), &"10.9.0.1".into()), "{port}");
}

// With DPDK's channel between processes.
#[test]
fn telemetry_answers_over_memif_and_names_the_peer() {
    let socket = Socket::new("memif-telemetry");
    let server = format!("serve {} telemetry=on ip=10.9.0.1/24", socket.uri(",role=server"));
    let mut serve = Probe::start(None, &server);
    let telemetry = telemetry(&mut serve);
    let listening = serve.wait_for("listening");
    let port = listening.rsplit(' ').next().expect("a port");
    let client = format!("hammer {} ip=10.9.0.2/24 to=localhost:{port}", socket.uri(",role=client"));
    let mut hammer = Probe::start(None, &client);
    hammer.wait_for("moving");
    let qps = telemetry.ask("/dcp/qp");
    let name = qps[0].as_str().expect("one queue pair");
    let qp = telemetry.ask(&format!("/dcp/qp,{name}"));
    assert_eq!((&qp["state"], &qp["peer_ip"]), (&"RTS".into(), &"10.9.0.2".into()), "{qp}");
    assert!(qp["placed"].as_u64().is_some_and(|placed| placed >= 1024), "{qp}");
}
