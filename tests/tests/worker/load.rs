//! What a worker tells about its host by its receive queue.

use dcp::ReceiveLoad;

use crate::relay::as_is;
use crate::rig::{Dpdk, Parts, Rig};

#[test]
fn receive_load_counts_every_frame_and_the_age_of_its_burst() {
    let dpdk = Dpdk::take();
    let parts = Parts::default();
    let mut rig = Rig::new(&dpdk, parts, as_is());
    assert_eq!(rig.server.worker.receive_load(), ReceiveLoad::default());
    for _ in 0..16 {
        rig.post(parts.size);
    }
    rig.finish();
    for worker in [&rig.client.worker, &rig.server.worker] {
        let load = worker.receive_load();
        assert_eq!(load.frames, worker.counters().received);
        assert!(load.age_squares >= load.ages, "whole units: {load:?}");
        let bounds = load.frames..=load.frames * ReceiveLoad::BURST_MAX;
        assert!(bounds.contains(&load.burst_frames), "{load:?}");
    }
    rig.assert_no_leak();
}
