//! The examples of the library run, without rights.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dcp_tests::build::{self, cargo};

fn example(name: &str) -> String {
    let build::Output { target, profile, .. } = build::output();
    let mut cargo = cargo(&["run", "--quiet", "--package", "dcp", "--example", name, "--profile", &profile]);
    let output = cargo.arg("--target-dir").arg(target).output().expect("cargo starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn hello_write_writes() {
    assert_eq!(example("hello_write"), "SUCCESS: the server has \"hello, remote memory\"\n");
}

#[test]
fn ping_pong_reports_a_latency() {
    let printed = example("ping_pong");
    assert!(printed.starts_with("10000 rounds of 64 bytes; half a round trip: "), "{printed}");
}

#[test]
fn counter_counts() {
    assert_eq!(example("counter"), "counted to 1000\nit was 1000 when it was set back to 0\n");
}

#[test]
fn kv_fetch_finds_what_is_there() {
    let printed = example("kv_fetch");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert!(lines[1].starts_with("350: \"value of 350\" in "), "{printed}");
    assert!(lines[3].starts_with("701: not there, after "), "{printed}");
}

#[test]
fn two_processes_move_a_text_over_memif() {
    let build::Output { target, profile, .. } = build::output();
    let mut cargo = cargo(&["build", "--quiet", "--package", "dcp", "--example", "two_processes"]);
    let built =
        cargo.args(["--profile", &profile, "--target-dir"]).arg(&target).output().expect("cargo starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let directory = if profile == "dev" { "debug" } else { &profile };
    let program = target.join(directory).join("examples/two_processes");
    let socket = std::env::temp_dir().join(format!("dcp-example-{}.sock", std::process::id()));
    let command = |role: &str, ip: &str| {
        let mut command = Command::new(&program);
        command.arg(format!("memif:{},role={role}", socket.display())).arg(ip);
        command
    };
    let server = command("server", "10.9.0.1").stdout(Stdio::piped()).spawn();
    let mut server = Ended(server.expect("it starts"));
    let mut said = BufReader::new(server.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let port = said.next().and_then(|line| line.strip_prefix("listening ").map(str::to_owned));
    let host = format!("localhost:{}", port.expect("a port"));
    let client = command("client", "10.9.0.2").arg(host).output().expect("it starts");
    let errors = String::from_utf8_lossy(&client.stderr);
    assert_eq!(String::from_utf8_lossy(&client.stdout), "SUCCESS\n", "{errors}");
    assert_eq!(said.next().as_deref(), Some("the server has \"hello, other process\""));
    assert!(server.0.wait().expect("it can be waited for").success());
    let _ = std::fs::remove_file(socket);
}

/// A program, ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
