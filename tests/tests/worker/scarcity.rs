//! G3: too few mbufs, too little room. Slow, not stuck; nothing leaks.

use dcp::core::CongestionControl;
use dcp::dpdk::{AttachError, HugePreference, MbufBatch, MbufStash, PoolConfig, Region};

use crate::relay::as_is;
use crate::rig::{Dpdk, Parts, Rig};

fn run(dpdk: &Dpdk, parts: Parts, messages: u32) -> Rig {
    let mut rig = Rig::new(dpdk, parts, as_is());
    for _ in 0..messages {
        rig.post(parts.size);
    }
    rig.finish();
    rig
}

#[test]
fn g3_pool_of_512_mbufs_serves_a_depth_of_1024() {
    let dpdk = Dpdk::take();
    let parts = Parts {
        header_mbufs: 512,
        payload_mbufs: 512,
        ring_size: 1024,
        depth: 1024,
        size: 8192,
        cc: CongestionControl::None,
        ..Parts::default()
    };
    let rig = run(&dpdk, parts, 1024);
    assert_eq!(rig.client.worker.endpoint().counters().retransmitted, 0);
    rig.assert_no_leak();
}

// While the rings are not drained, the sender runs out of mbufs, says so, and goes on later.
#[test]
fn g3_exhausted_pool_is_counted_and_recovers() {
    let dpdk = Dpdk::take();
    for (header_mbufs, payload_mbufs) in [(512, 512), (100, 512), (512, 100), (7, 512), (512, 1)] {
        let parts = Parts {
            header_mbufs,
            payload_mbufs,
            ring_size: 1024,
            depth: 1024,
            size: 4096,
            cc: CongestionControl::None,
            ..Parts::default()
        };
        let mut rig = Rig::new(&dpdk, parts, as_is());
        for _ in 0..200 {
            rig.post(parts.size);
        }
        for _ in 0..100 {
            rig.client.worker.poll();
        }
        assert!(rig.client.worker.pool_exhaustions() > 0, "{header_mbufs} {payload_mbufs}");
        assert!(rig.client.worker.counters().starved > 0, "{header_mbufs} {payload_mbufs}");
        rig.finish();
        rig.assert_no_leak();
    }
}

#[test]
fn g3_full_rings_take_parts_of_bursts_and_nothing_is_lost() {
    let dpdk = Dpdk::take();
    for ring_size in [1, 3, 16] {
        let parts = Parts { ring_size, cc: CongestionControl::None, ..Parts::default() };
        let rig = run(&dpdk, parts, 40);
        assert_eq!(rig.client.worker.endpoint().counters().timeouts, 0, "ring of {ring_size}");
        rig.assert_no_leak();
    }
}

#[test]
fn g3_rig_dropped_with_full_rings_leaks_nothing() {
    let dpdk = Dpdk::take();
    for rounds in [1, 2, 3, 10, 100] {
        let parts = Parts { ring_size: 16, cc: CongestionControl::None, ..Parts::default() };
        let mut rig = Rig::new(&dpdk, parts, as_is());
        (0..40).for_each(|_| rig.post(parts.size));
        for _ in 0..rounds {
            rig.client.worker.poll();
            rig.relay.poll();
        }
        rig.assert_source_is_untouched();
        rig.assert_no_leak();
    }
}

// Pieces that meet inside an MTU make frames of three segments; the payload pool runs dry in the middle of some.
#[test]
fn g3_gathered_frames_go_out_whole_or_not_at_all() {
    let dpdk = Dpdk::take();
    for (payload_mbufs, segments_max) in [(4095, 4), (17, 4), (5, 4), (4, 4)] {
        let parts = Parts {
            payload_mbufs,
            segments_max,
            size: 5000,
            cc: CongestionControl::None,
            ..Parts::default()
        };
        let mut rig = Rig::new(&dpdk, parts, as_is());
        (0..40).for_each(|_| rig.post(400));
        rig.finish();
        assert_eq!(rig.client.worker.endpoint().counters().retransmitted, 0, "{payload_mbufs}");
        rig.assert_no_leak();
    }
}

#[test]
fn g3_second_segment_that_finds_no_mbuf_leaks_nothing() {
    let dpdk = Dpdk::take();
    let headers = dpdk.pool(PoolConfig::header("header", 63));
    let payloads = dpdk.pool(PoolConfig::payload("payload", 1));
    let region = Region::alloc(8192, HugePreference::Never).unwrap();
    let mut stash = MbufStash::new(&headers, &payloads);
    for _ in 0..3 {
        stash.refill();
        let mut frame = stash.take_header().unwrap();
        stash.attach(&mut frame, &region, 0, 4096).unwrap();
        assert_eq!(stash.attach(&mut frame, &region, 4096, 4096), Err(AttachError::NoMbuf));
        assert_eq!((frame.segments(), frame.frame_len(), region.in_flight()), (2, 4096, 1));
        let mut batch = MbufBatch::new();
        batch.push(frame).unwrap();
        drop(batch);
        assert_eq!((payloads.in_use(), region.in_flight()), (0, 0));
    }
    drop(stash);
    assert_eq!((headers.in_use(), payloads.in_use()), (0, 0));
}
