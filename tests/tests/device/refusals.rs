//! Devices that cannot be opened: one sentence that says what to do, exit code 3 (G1, G4).

use std::os::unix::fs::PermissionsExt;

use dcp_tests::machine::is_root_or_skip;

use crate::probe::{PROGRAM, Probe};
use dcp_tests::namespace::Namespace;

fn refusal(namespace: Option<&Namespace>, words: &str) -> String {
    refused_with(3, namespace, words)
}

fn refused_with(code: i32, namespace: Option<&Namespace>, words: &str) -> String {
    let (status, sentence) = Probe::start(namespace, words).end();
    assert_eq!(status.code(), Some(code), "{words}: {sentence}");
    assert_eq!(sentence.lines().count(), 1, "{words}: {sentence}");
    sentence
}

#[test]
fn malformed_uri_is_bad_usage() {
    assert!(refused_with(2, None, "echo memfi:/tmp/s").contains("memif:SOCKET"));
}

#[test]
fn unknown_interfaces_are_named() {
    for uri in ["af_packet:nosuch0", "af_xdp:nosuch0"] {
        let sentence = refusal(None, &format!("echo {uri}"));
        assert!(sentence.contains("nosuch0") && sentence.contains("ip link"), "{sentence}");
    }
}

#[test]
fn unknown_cards_and_drivers_are_named() {
    let sentence = refusal(None, "echo vdev:net_nosuch0");
    assert!(sentence.contains("net_nosuch0"), "{sentence}");
    let sentence = refusal(None, "echo pci:0000:ff:1f.7");
    assert!(sentence.contains("0000:ff:1f.7"), "{sentence}");
}

#[test]
fn interface_that_is_down_comes_with_the_command_that_brings_it_up() {
    let Some(namespace) = Namespace::new_or_skip("an interface that is down") else { return };
    namespace.add_veth(1500);
    namespace.ip("link set v0 down");
    let sentence = refusal(Some(&namespace), "echo af_packet:v0");
    assert!(sentence.contains("'ip link set v0 up'"), "{sentence}");
}

#[test]
fn interface_without_a_link_is_waited_for_and_said() {
    let Some(namespace) = Namespace::new_or_skip("an interface without a link") else { return };
    namespace.add_veth(1500);
    namespace.ip("link set v1 down");
    let sentence = refusal(Some(&namespace), "echo af_packet:v0 wait=300");
    assert!(sentence.contains("no link") && sentence.contains("af_packet:v0"), "{sentence}");
}

// G4
#[test]
fn mtu_that_does_not_fit_is_refused_with_the_one_that_does() {
    let Some(namespace) = Namespace::new_or_skip("small links") else { return };
    namespace.add_veth(1500);
    let sentence = refusal(Some(&namespace), "echo af_packet:v0 mtu=4096");
    assert!(sentence.contains("at most 1430"), "{sentence}");
    let sentence = refusal(Some(&namespace), "echo tap:t9 mtu=2048");
    assert!(sentence.contains("at most 1430"), "{sentence}");
    namespace.ip("link set v0 mtu 300");
    let sentence = refusal(Some(&namespace), "echo af_packet:v0");
    assert!(sentence.contains("326 or more"), "{sentence}");
}

#[test]
fn name_of_a_tap_that_is_taken_is_refused() {
    let Some(namespace) = Namespace::new_or_skip("a tap") else { return };
    namespace.add_veth(1500);
    let sentence = refusal(Some(&namespace), "echo tap:v0");
    assert!(sentence.contains("v0 exists already"), "{sentence}");
}

#[test]
fn memif_says_what_is_wrong_with_its_socket() {
    let sentence = refusal(None, "echo memif:/nosuch/directory/s");
    assert!(sentence.contains("/nosuch/directory/s"), "{sentence}");
    let sentence = refusal(None, "echo memif:/dev/null");
    assert!(sentence.contains("no socket"), "{sentence}");
    let sentence = refusal(None, "echo memif:/tmp/dcp-nobody.sock,role=client wait=300");
    assert!(sentence.contains("start the peer"), "{sentence}");
}

#[test]
fn ordinary_user_is_told_what_it_takes() {
    if !is_root_or_skip("becoming another user") {
        return;
    }
    // Where every user can reach it.
    let program = std::env::temp_dir().join(format!("dcp-device-probe-{}", std::process::id()));
    std::fs::copy(PROGRAM, &program).expect("there is room for a copy");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("the copy is ours");
    for (uri, needs) in [("tap:t0", "CAP_NET_ADMIN"), ("af_packet:lo", "CAP_NET_RAW")] {
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["echo", uri])
            .output()
            .expect("there is a setpriv program");
        let sentence = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{sentence}");
        assert!(sentence.contains(needs) && sentence.lines().count() == 1, "{sentence}");
    }
    std::fs::remove_file(&program).expect("the copy is ours");
}

// Refused by the kernel where this was measured; where it is not, the device opens.
#[test]
fn af_xdp_opens_or_says_what_to_use_instead() {
    let Some(namespace) = Namespace::new_or_skip("af_xdp over veth") else { return };
    namespace.add_veth(1500);
    let mut probe = Probe::start(Some(&namespace), "echo af_xdp:v0 wait=300");
    if !probe.opens() {
        let (status, sentence) = probe.end();
        println!("{sentence}");
        assert!(status.code() == Some(3) && sentence.contains("use af_packet:v0"), "{status}: {sentence}");
    }
}
