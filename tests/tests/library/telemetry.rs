//! Counters on DPDK's telemetry socket, asked for as `dpdk-telemetry.py` does.

use std::sync::atomic::{AtomicBool, Ordering};

use dcp::verbs::{Backoff, Opcode, QpOptions, SendWorkRequest, Status, Workers};
use dcp_rhcc::root::Root;
use dcp_rhcc::signal::{Signal, telemetry::software};
use dcp_tests::Telemetry;
use serde_json::Value;

use crate::rig::{Rig, Side, rig, started};

/// Of this process.
fn telemetry() -> Telemetry {
    Telemetry::open(&started().telemetry_socket().unwrap(), std::process::id())
}

/// 100 WRITEs of one packet, all of them acknowledged.
fn write_hundred(client: &mut Side, server: &Side, worker: usize) {
    let sges = [client.mr.slice(0..4096).unwrap()];
    for wr_id in 0..100 {
        let write = SendWorkRequest::new(wr_id, Opcode::Write(server.mr.remote().at(0)), &sges);
        client.qps[worker].post_send(&write).unwrap();
        assert_eq!(client.wait(server).status, Status::Success);
    }
}

/// What a list has, without the number of the device, which counts up in a process.
fn names(list: &Value) -> Vec<(u64, u64)> {
    let parse = |name: &Value| {
        let (device, number) = name.as_str()?.split_once('/')?;
        Some((device.parse().ok()?, number.parse().ok()?))
    };
    list.as_array().unwrap().iter().map(|name| parse(name).unwrap()).collect()
}

#[test]
fn telemetry_lists_and_counts_ports_workers_and_queue_pairs() {
    // No packet is resent because the machine is slow.
    let options = QpOptions { timeout: 0, ..QpOptions::default() };
    let Rig { mut client, server, _registered, _turn } = rig(2, &options);
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    write_hundred(&mut client, &server, 0);
    write_hundred(&mut client, &server, 1);
    let telemetry = telemetry();

    let ports = telemetry.ask("/dcp/port");
    let first: u64 = ports[0].as_str().unwrap().parse().unwrap();
    assert_eq!(ports, serde_json::json!([first.to_string(), (first + 1).to_string()]));
    let port = telemetry.ask(&format!("/dcp/port,{first}"));
    assert_eq!((&port["ip"], &port["driver"]), (&"10.0.0.1".into(), &"net_ring".into()), "{port}");
    assert_eq!((&port["workers"], &port["link"]), (&2.into(), &"up".into()), "{port}");
    assert!(port["tx_frames"].as_u64().unwrap() >= 200, "{port}");

    let workers = names(&telemetry.ask("/dcp/worker"));
    assert_eq!(workers, [(first, 0), (first, 1), (first + 1, 0), (first + 1, 1)]);
    for worker in 0..2 {
        let sender = telemetry.ask(&format!("/dcp/worker,{first}/{worker}"));
        assert_eq!((&sender["data_packets"], &sender["qps"]), (&100.into(), &1.into()), "{sender}");
        let receiver = telemetry.ask(&format!("/dcp/worker,{}/{worker}", first + 1));
        assert_eq!((&receiver["placed"], &receiver["data_packets"]), (&100.into(), &0.into()));
        assert!(receiver["acks"].as_u64().unwrap() > 0 && receiver["polls"].as_u64().unwrap() > 0);
    }

    let qps = names(&telemetry.ask("/dcp/qp"));
    let numbers: Vec<u64> = client.qps.iter().chain(&server.qps).map(|qp| qp.qpn().into()).collect();
    assert_eq!(qps.iter().map(|(_, qpn)| *qpn).collect::<Vec<_>>(), numbers);
    let qp = telemetry.ask(&format!("/dcp/qp,{first}/{}", numbers[1]));
    assert_eq!((&qp["state"], &qp["worker"], &qp["peer_ip"]), (&"RTS".into(), &1.into(), &"10.0.0.2".into()));
    assert_eq!((&qp["data_packets"], &qp["data_bytes"]), (&100.into(), &409_600.into()), "{qp}");
    // Without a device, the first that has it.
    assert_eq!(telemetry.ask(&format!("/dcp/qp,{}", numbers[1])), qp);

    for unknown in
        ["/dcp/qp,77", "/dcp/qp,x", "/dcp/worker,9", "/dcp/port,-1", "/dcp/port,99999999999999999999"]
    {
        assert_eq!(telemetry.ask(unknown), Value::Null, "{unknown}");
    }
    let stats = client.device.stats().unwrap();
    assert_eq!(stats.qps[1].counters.data_packets, 100);
    assert!(stats.port.is_some_and(|port| port.tx_frames >= 200));
}

#[test]
fn telemetry_of_devices_that_are_gone_is_empty_and_of_silent_ones_says_so() {
    let Rig { client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let telemetry = telemetry();
    // Nobody polls.
    let device = names(&telemetry.ask("/dcp/worker"))[0].0;
    let worker = telemetry.ask(&format!("/dcp/worker,{device}/0"));
    assert!(worker["answers"].as_str().unwrap().starts_with("no"), "{worker}");
    assert_eq!(telemetry.ask("/dcp/qp"), serde_json::json!([]));
    for _ in 0..100 {
        telemetry.ask(&format!("/dcp/port,{device}"));
    }
    // Questions that nobody waits for any more do no harm.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.device.poll();
                server.device.poll();
            }
        });
        let qps = loop {
            let qps = names(&telemetry.ask("/dcp/qp"));
            if qps.len() == 2 {
                break qps;
            }
        };
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(qps[0].1, u64::from(client.qps[0].qpn()));
    });
    drop((client, server));
    for list in ["/dcp/port", "/dcp/worker", "/dcp/qp"] {
        assert_eq!(telemetry.ask(list), serde_json::json!([]), "{list}");
    }
    assert_eq!(telemetry.ask(&format!("/dcp/worker,{device}/0")), Value::Null);
}

// C-4
#[test]
fn rhcc_receiver_hears_by_telemetry_how_loaded_workers_are() {
    let Rig { mut client, server, _registered, _turn } = rig(2, &QpOptions::default());
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    let socket = started().telemetry_socket().unwrap();
    let mut signal = software(&Root::machine(), Some(&socket)).unwrap();
    assert_eq!(signal.occupancy(0).unwrap(), None, "the first reading begins");
    write_hundred(&mut client, &server, 0);
    let occupancy = signal.occupancy(1).unwrap().expect("frames came");
    assert!(occupancy.milli() <= 100_000, "{occupancy}");
}
