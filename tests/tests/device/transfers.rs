//! WRITE, SEND and READ between two processes, and peers that die in the middle.

use crate::memif::Socket;
use crate::probe::Probe;
use dcp_tests::namespace::Namespace;

/// A serving probe, and the `to=` that reaches it.
fn serve(namespace: Option<&Namespace>, uri: &str) -> (Probe, String) {
    let mut serve = Probe::start(namespace, &format!("serve {uri} ip=10.9.0.1/24"));
    let listening = serve.wait_for("listening");
    let port = listening.rsplit(' ').next().expect("a port");
    let to = format!("ip=10.9.0.2/24 to=localhost:{port}");
    (serve, to)
}

/// One server, one client, 64 MiB each way. Returns the MTU that both used.
fn moves(namespace: Option<&Namespace>, server: &str, client: &str, between: impl FnOnce()) -> u32 {
    let (mut serve, to) = serve(namespace, server);
    let mut transfer = Probe::start(namespace, &format!("transfer {client} {to}"));
    transfer.wait_for("ready");
    between();
    transfer.wait_for("moved");
    let served = serve.wait_for("served");
    assert!(transfer.end().0.success());
    served.rsplit(' ').next().and_then(|mtu| mtu.parse().ok()).expect("an MTU")
}

#[test]
fn every_operation_passes_over_memif() {
    let socket = Socket::new("memif-moves");
    moves(None, &socket.uri(",role=server"), &socket.uri(",role=client"), || {});
}

#[test]
fn every_operation_passes_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    let mtu = moves(Some(&namespace), "af_packet:v0", "af_packet:v1", || {});
    assert_eq!(mtu, 4096);
}

#[test]
fn every_operation_passes_over_bridged_taps() {
    let Some(namespace) = Namespace::new_or_skip("taps on a bridge") else { return };
    namespace.ip("link add br0 type bridge");
    namespace.ip("link set br0 up");
    let mtu = moves(Some(&namespace), "tap:t0", "tap:t1", || {
        namespace.ip("link set t0 master br0");
        namespace.ip("link set t1 master br0");
    });
    assert_eq!(mtu, 1024);
}

#[test]
fn g4_different_mtus_are_negotiated_down() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    assert_eq!(moves(Some(&namespace), "af_packet:v0 mtu=1024", "af_packet:v1", || {}), 1024);
    assert_eq!(moves(Some(&namespace), "af_packet:v0", "af_packet:v1 mtu=512", || {}), 512);
}

/// Packets of one WRITE of a client that is killed: 4 MiB at an MTU of 4096.
const PACKETS: u64 = 1024;

/// Twenty clients die while they write; each time in the middle of a message, so that packets of it were placed and
/// others never came. Then one that lives is served.
fn outlives_dying_clients(namespace: Option<&Namespace>, server: &str, client: &str) {
    let (mut serve, to) = serve(namespace, server);
    let mut in_the_middle = 0;
    for round in 0..20 {
        let mut hammer = Probe::start(namespace, &format!("hammer {client} {to}"));
        hammer.wait_for("moving");
        hammer.kill();
        let lost = serve.wait_for("lost");
        assert!(serve.is_alive(), "round {round}");
        let placed: u64 = lost.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number");
        assert!(placed >= PACKETS, "round {round}: {lost}");
        in_the_middle += u32::from(!placed.is_multiple_of(PACKETS));
    }
    // Between two messages there is a moment, too.
    assert!(in_the_middle >= 19, "{in_the_middle} of 20 died in the middle of a message");
    let mut transfer = Probe::start(namespace, &format!("transfer {client} {to}"));
    transfer.wait_for("moved");
    serve.wait_for("served");
}

#[test]
fn server_outlives_clients_that_die_while_they_write_over_memif() {
    let socket = Socket::new("memif-dying");
    outlives_dying_clients(None, &socket.uri(",role=server"), &socket.uri(",role=client"));
}

#[test]
fn server_outlives_clients_that_die_while_they_write_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    outlives_dying_clients(Some(&namespace), "af_packet:v0", "af_packet:v1");
}

/// The other way round: the server dies under a client's WRITE.
fn dead_server_is_an_error(namespace: Option<&Namespace>, server: &str, client: &str) {
    let (serve, to) = serve(namespace, server);
    let mut hammer = Probe::start(namespace, &format!("hammer {client} {to}"));
    hammer.wait_for("moving");
    serve.kill();
    let (status, errors) = hammer.end();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("RETRY_EXC_ERR"), "{errors}");
}

#[test]
fn client_of_a_dead_server_gets_an_error_within_its_retries_over_memif() {
    let socket = Socket::new("memif-dead");
    dead_server_is_an_error(None, &socket.uri(",role=server"), &socket.uri(",role=client"));
}

#[test]
fn client_of_a_dead_server_gets_an_error_within_its_retries_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(9000);
    dead_server_is_an_error(Some(&namespace), "af_packet:v0", "af_packet:v1");
}
