//! Reports while it runs and at its end, captures, signals.

use std::fs;

use crate::probe::Probe;
use crate::program::{Sockets, Switch};

#[test]
fn counters_are_told_while_it_runs_and_at_its_end() {
    let sockets = Sockets::new("stats");
    let file = sockets.file("counters.json");
    let words = format!("{} --stats 0.1 --json {}", sockets.ports(2), file.display());
    let mut switch = Switch::launch(None, &words);
    switch.wait_for("port 1 is down");
    while fs::read_to_string(&file).unwrap_or_default().lines().count() < 3 {
        std::thread::yield_now();
    }
    switch.signal("INT");
    let end = switch.end();
    assert_eq!(end.status.code(), Some(0));
    // Tables for people, and what is lost, on standard output.
    assert!(end.stdout.contains("rx frames") && end.stdout.contains("every frame is accounted for"));
    let text = fs::read_to_string(&file).expect("it is there");
    let objects: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    let finals: Vec<bool> = objects.iter().map(|object| object["final"] == true).collect();
    assert_eq!(finals.iter().filter(|&&last| last).count(), 1);
    assert_eq!(finals.last(), Some(&true));
    assert_eq!(objects[0]["ports"].as_array().map(Vec::len), Some(2));
}

#[test]
fn frames_are_captured_at_the_ports_asked_for() {
    let sockets = Sockets::new("pcap");
    let (all, out) = (sockets.file("all.pcap"), sockets.file("out.pcap"));
    let words =
        format!("{} --pcap {} --pcap {},port=1,side=out", sockets.ports(2), all.display(), out.display());
    let switch = Switch::start(None, &words);
    let mut echo = Probe::start(None, &format!("echo {}", sockets.host(0)));
    echo.wait_for("up");
    Probe::start(None, &format!("check {}", sockets.host(1))).wait_for("checked");
    drop(switch.stop());
    let (all, out) = (fs::read(all).expect("it is there"), fs::read(out).expect("it is there"));
    for file in [&all, &out] {
        assert_eq!(file[..4], 0xA1B2_3C4D_u32.to_le_bytes());
    }
    assert!(out.len() > 100_000 && all.len() > 3 * out.len(), "{} and {}", all.len(), out.len());
}

/// DPDK's files are gone however it ends.
#[test]
fn a_killed_switch_leaves_only_its_socket() {
    let sockets = Sockets::new("kill");
    Switch::start(None, &sockets.ports(2)).kill();
    let left: Vec<_> = fs::read_dir(sockets.socket().parent().expect("it has one"))
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["s"]);
    // And that is in nobody's way.
    drop(Switch::start(None, &sockets.ports(2)).stop());
}
