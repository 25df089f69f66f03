//! Workers on threads of their own.

use dcp::verbs::{Backoff, Opcode, QpOptions, SendWorkRequest, Status, Workers};

use rustix::time::{ClockId, clock_gettime};

use crate::rig::{Rig, pattern, rig};

#[test]
fn two_threaded_workers_carry_queue_pairs_in_both_directions() {
    let Rig { mut client, mut server, _registered, _turn } = rig(2, &QpOptions::default());
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    let (to_server, to_client) = (server.mr.remote(), client.mr.remote());
    client.mr.write(0, &pattern(4096, 3)).unwrap();
    server.mr.write(0, &pattern(4096, 4)).unwrap();
    let (from_client, from_server) =
        ([client.mr.slice(0..4096).unwrap()], [server.mr.slice(0..4096).unwrap()]);
    for round in 0..200u64 {
        for worker in 0..2 {
            let at = 8192 * (round % 50 + 1) + 4096 * worker as u64;
            let write = SendWorkRequest::new(round, Opcode::Write(to_server.at(at)), &from_client);
            client.qps[worker].post_send(&write).unwrap();
            let write = SendWorkRequest::new(round, Opcode::Write(to_client.at(at)), &from_server);
            server.qps[worker].post_send(&write).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(client.wait(&server).status, Status::Success);
            assert_eq!(server.wait(&client).status, Status::Success);
        }
    }
    for at in (8192..8192 * 50).step_by(4096) {
        assert_eq!(server.mr.to_vec(at..at + 4096).unwrap(), pattern(4096, 3));
        assert_eq!(client.mr.to_vec(at..at + 4096).unwrap(), pattern(4096, 4));
    }
    let stats = client.device.stats().unwrap();
    assert!(stats.workers.iter().all(|worker| worker.endpoint.data_packets >= 200));
}

#[test]
fn completion_wakes_who_waits_on_the_descriptor() {
    use rustix::event::{PollFd, PollFlags, poll};
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let _client_threads = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server_threads = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    client.cq.arm();
    assert_eq!(client.cq.poll_one(), Ok(None));
    let write = SendWorkRequest::inline(1, Opcode::Write(server.mr.remote().at(0)), b"x");
    client.qps[0].post_send(&write).unwrap();
    let fd = client.cq.event_fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    assert_eq!(poll(&mut fds, None), Ok(1));
    assert_eq!(client.cq.poll_one().unwrap().map(|completion| completion.wr_id), Some(1));
}

#[test]
fn idle_worker_sleeps_and_polls_at_most_twice_per_longest_sleep() {
    let Rig { client, _registered, _turn, .. } = rig(2, &QpOptions::default());
    let backoff = Backoff::default();
    let threads = Workers::spawn(&client.device, &[], backoff).unwrap();
    // Counted, not timed: a slow machine sleeps longer than asked, but not more often.
    let asleep = |worker: &dcp::verbs::WorkerStats| worker.sleep_ns >= 300_000_000;
    let stats = loop {
        let stats = client.device.stats().unwrap();
        if stats.workers.iter().all(asleep) {
            break stats;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    };
    drop(threads);
    for worker in stats.workers {
        let awake = u64::from(backoff.spins + backoff.yields);
        let longest = u64::try_from(backoff.sleep_max.as_nanos()).unwrap();
        assert!(worker.polls - awake <= 2 * worker.sleep_ns / longest, "{worker:?}");
    }
}

#[test]
fn g1_core_that_does_not_exist_is_refused_and_the_device_still_works() {
    let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let refused = Workers::spawn(&client.device, &[9999], Backoff::default()).unwrap_err().to_string();
    assert!(refused.contains("9999"), "{refused}");
    let write = SendWorkRequest::inline(1, Opcode::Write(server.mr.remote().at(0)), b"x");
    client.qps[0].post_send(&write).unwrap();
    assert_eq!(client.wait(&server).status, Status::Success);
}

/// By hand, on a quiet machine: `cargo test --release -p dcp-tests --test library idle -- --ignored --nocapture`.
#[test]
#[ignore = "measures time, which tests do not depend on"]
fn idle_worker_takes_less_than_a_twentieth_of_a_core() {
    let Rig { client, server, _registered, _turn } = rig(1, &QpOptions::default());
    let _client = Workers::spawn(&client.device, &[], Backoff::default()).unwrap();
    let _server = Workers::spawn(&server.device, &[], Backoff::default()).unwrap();
    let seconds = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let (cpu, wall) = (seconds(ClockId::ProcessCPUTime), seconds(ClockId::Monotonic));
    std::thread::park_timeout(std::time::Duration::from_secs(10));
    let used = seconds(ClockId::ProcessCPUTime) - cpu;
    let share = used / (seconds(ClockId::Monotonic) - wall) / 2.0;
    println!("an idle worker takes {:.2} % of a core", share * 100.0);
    assert!(share < 0.05);
}
