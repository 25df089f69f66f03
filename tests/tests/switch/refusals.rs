//! D6, G1: what cannot work is refused at start: a sentence, exit code 2 for what makes no sense, 3 for the machine.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use dcp_tests::build;
use dcp_tests::machine::is_root_or_skip;

use crate::program::{Sockets, Switch};
use dcp_tests::namespace::Namespace;

#[track_caller]
fn refused(code: i32, words: &str) -> String {
    refused_in(None, code, words)
}

#[track_caller]
fn refused_in(namespace: Option<&Namespace>, code: i32, words: &str) -> String {
    let end = Switch::launch(namespace, words).end();
    assert_eq!(end.status.code(), Some(code), "{words}: {}", end.stderr);
    assert!(end.stdout.is_empty(), "{words}: {}", end.stdout);
    end.stderr
}

const TWO: &str = "--port memif:/tmp/dcp-refused.sock,id=0 --port memif:/tmp/dcp-refused.sock,id=1";

#[test]
fn values_out_of_range_are_bad_usage() {
    for (words, sentence) in [
        ("--threshold 2G", "0 to 1G"),
        ("--control-bytes x", "no size"),
        ("--radix 1", "2 to 1024"),
        ("--weight 65", "0.016 to 64.000"),
        ("--radix 4 --weight 1", "--weight"),
        ("--ecn 2K,1K,0.5", "KMIN must not be above KMAX"),
        ("--link-gbps 20000", "0.001 to 10000"),
        ("--link-delay-us 10000001", "delay in microseconds must be 0 to 10000000"),
        ("--trim 101%", "0 to 1"),
        ("--trim-to 1025,0", "64 to 1024 bytes"),
        ("--trim-to 128,64", "0 to 63"),
        ("--group 0,2", "port 2, which does not exist"),
        ("--group 0,1 --group 1", "in a group already"),
        ("--mtu 9000", "256 to 8192"),
        ("--pcap f,port=2", "ports are 0 to 1"),
        ("--lb best", "ecmp, spray, spray-random or adaptive"),
        ("--nonsense", "--nonsense"),
    ] {
        let said = refused(2, &format!("{TWO} {words}"));
        assert!(said.contains(sentence), "{words}: {said}");
    }
}

#[test]
fn ports_that_cannot_be_are_bad_usage() {
    assert!(refused(2, "--port memfi:/tmp/s --port tap:t0").contains("is no device"));
    assert!(refused(2, "--port loop --port tap:t0").contains("loop cannot be a port"));
    assert!(refused(2, "--port tap:t0").contains("two ports or more"));
    assert!(refused(2, "--port tap:t0 --port tap:t0").contains("ports 0 and 1 are both tap:t0"));
    let many: String = (0..33).map(|id| format!("--port memif:/tmp/s,id={id} ")).collect();
    assert!(refused(2, &many).contains("at most 32 ports, not 33"));
}

#[test]
fn mistakes_in_a_file_are_named_with_line_and_key() {
    let sockets = Sockets::new("file");
    let file = sockets.file("bad.toml");
    let path = file.display();
    for (text, sentence) in [
        (
            "threshold = \"64K\"\n\ncontrol_bytes = 5\n",
            "bad.toml:3: unknown field `control_bytes`, expected one of",
        ),
        ("threshold = \"4G\"\n", "bad.toml:1: threshold: 4G is out of range: a size is 0 to 1G"),
        ("seed = 1\n[[port]]\nuri = \"tap\"\n", "bad.toml:3: uri: tap alone is no device"),
    ] {
        std::fs::write(&file, text).expect("it can be written");
        let said = refused(2, &format!("--config {path}"));
        assert!(said.contains(sentence), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(refused(2, "--config /nosuch/file.toml").contains("cannot read /nosuch/file.toml"));
}

#[test]
fn devices_that_do_not_open_are_the_machines_fault() {
    let said = refused(3, "--port af_packet:nosuch0 --port af_packet:nosuch1");
    assert!(said.contains("port 0: ") && said.contains("nosuch0"), "{said}");
    let said = refused(3, "--port memif:/nosuch/directory/s,id=0 --port memif:/nosuch/directory/s,id=1");
    assert!(said.contains("/nosuch/directory/s"), "{said}");
    let said = refused(3, &format!("{TWO} --cores 4096"));
    assert!(said.contains("core 4096"), "{said}");
    // More than any machine has.
    let many: String = (0..31).map(|id| format!("--port memif:/tmp/dcp-refused.sock,id={id} ")).collect();
    let said = refused(3, &format!("{many} --mbufs 1048575 --mtu 8192"));
    assert!(said.contains("--mbufs"), "{said}");
    let said = refused(3, &format!("{TWO} --json /nosuch/out.json"));
    assert!(said.contains("cannot write /nosuch/out.json"), "{said}");
}

#[test]
fn second_switch_on_a_socket_is_refused() {
    let sockets = Sockets::new("taken");
    let switch = Switch::start(None, &sockets.ports(2));
    let said = refused(3, &sockets.ports(2));
    assert!(said.contains("another process serves"), "{said}");
    drop(switch.stop());
}

#[test]
fn interface_that_is_down_comes_with_the_command_that_brings_it_up() {
    let Some(namespace) = Namespace::new_or_skip("an interface that is down") else { return };
    namespace.add_veth(1500);
    namespace.ip("link set v1 down");
    let said = refused_in(Some(&namespace), 3, "--port af_packet:v0 --port af_packet:v1");
    assert!(said.contains("port 1: ") && said.contains("'ip link set v1 up'"), "{said}");
}

#[test]
fn tap_without_rights_says_which_are_missing() {
    if !is_root_or_skip("becoming another user") {
        return;
    }
    // Where every user can reach it.
    let sockets = Sockets::new("user");
    let program = sockets.file("dcp-switch");
    std::fs::copy(build::dcp_switch(), &program).expect("there is room for a copy");
    for path in [&program, &program.parent().expect("it has one").to_path_buf()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--port", "tap:t0", "--port", "tap:t1", "--json"])
        .output();
    let Ok(output) = output else {
        println!("skipped: becoming another user needs the program setpriv");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(error["error"]["kind"], "environment");
}
