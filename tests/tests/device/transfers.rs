//! WRITE, SEND and READ between two processes, and peers that die in the middle.

use crate::memif::Socket;
use crate::probe::Probe;
use dcp_tests::namespace::Namespace;

/// One server, one client, 64 MiB each way.
fn moves(namespace: Option<&Namespace>, server: &str, client: &str, port: u16) {
    let mut serve = Probe::start(namespace, &format!("serve {server} ip=10.9.0.1/24 port={port}"));
    serve.wait_for("listening");
    let to = format!("to=localhost:{port}");
    let mut transfer = Probe::start(namespace, &format!("transfer {client} ip=10.9.0.2/24 {to}"));
    transfer.wait_for("moved");
    serve.wait_for("served");
    assert!(transfer.end().0.success());
}

#[test]
fn every_operation_passes_over_memif() {
    let socket = Socket::new("memif-moves");
    moves(None, &socket.uri(",role=server"), &socket.uri(",role=client"), 18_701);
}

#[test]
fn every_operation_passes_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.ip("link set lo up");
    namespace.add_veth(9000);
    moves(Some(&namespace), "af_packet:v0", "af_packet:v1", 18_702);
}

#[test]
fn server_outlives_clients_that_die_while_they_write_and_serves_the_next() {
    let socket = Socket::new("memif-dying");
    let server = format!("serve {} ip=10.9.0.1/24 port=18703", socket.uri(",role=server"));
    let mut serve = Probe::start(None, &server);
    serve.wait_for("listening");
    let hammer = format!("hammer {} ip=10.9.0.2/24 to=localhost:18703", socket.uri(",role=client"));
    for round in 0..20 {
        let mut client = Probe::start(None, &hammer);
        client.wait_for("moving");
        client.kill();
        serve.wait_for("lost");
        assert!(serve.is_alive(), "round {round}");
    }
    let transfer = format!("transfer {} ip=10.9.0.2/24 to=localhost:18703", socket.uri(",role=client"));
    Probe::start(None, &transfer).wait_for("moved");
}

#[test]
fn client_of_a_dead_server_gets_an_error_within_its_retries() {
    let socket = Socket::new("memif-dead");
    let mut serve =
        Probe::start(None, &format!("serve {} ip=10.9.0.1/24 port=18704", socket.uri(",role=server")));
    serve.wait_for("listening");
    let hammer = format!("hammer {} ip=10.9.0.2/24 to=localhost:18704", socket.uri(",role=client"));
    let mut client = Probe::start(None, &hammer);
    client.wait_for("moving");
    serve.kill();
    let (status, errors) = client.end();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("RETRY_EXC_ERR"), "{errors}");
}
