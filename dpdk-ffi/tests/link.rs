//! Links over net_ring: both ways, many, full, and one run after another.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{bytes, eal, frame, headers, link, numbered};
use dpdk_ffi::{FabricConfig, FabricError, MbufBatch, create_links};

/// The 32 devices of the process are shared by the tests of this file.
fn devices() -> MutexGuard<'static, ()> {
    static DEVICES: Mutex<()> = Mutex::new(());
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn link_carries_frames_both_ways_in_order() {
    let _devices = devices();
    let pool = headers(255);
    let (mut host, mut switch) = link(64);
    for (from, to) in [(&mut host.tx, &mut switch.rx), (&mut switch.tx, &mut host.rx)] {
        let mut batch = numbered(&pool, 20);
        assert_eq!(from.burst(&mut batch), 20);
        assert!(batch.is_empty());
        let mut got = MbufBatch::new();
        assert_eq!(to.burst(&mut got), 20);
        let numbers: Vec<u8> = got.iter().map(|frame| frame.head()[0]).collect();
        assert_eq!(numbers, (0..20).collect::<Vec<u8>>());
        assert_eq!(pool.in_use(), 20);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn full_ring_takes_a_part_and_leaves_the_rest_in_order() {
    let _devices = devices();
    let pool = headers(255);
    let (mut host, mut switch) = link(8);
    assert_eq!(host.tx.free_count(), Some(8));
    let mut batch = numbered(&pool, 20);
    assert_eq!(host.tx.burst(&mut batch), 8);
    assert_eq!(host.tx.free_count(), Some(0));
    assert_eq!(host.tx.burst(&mut batch), 0);
    assert_eq!(batch.len(), 12);
    assert_eq!(bytes(&batch.as_slice()[0]), [8]);
    let mut got = MbufBatch::new();
    assert_eq!(switch.rx.burst(&mut got), 8);
    drop(got);
    assert_eq!(pool.in_use(), 12);
    drop(batch);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn receive_stops_at_the_room_of_the_batch() {
    let _devices = devices();
    let pool = headers(255);
    let (mut host, mut switch) = link(256);
    let mut batch = numbered(&pool, 64);
    host.tx.burst(&mut batch);
    let mut got = numbered(&pool, 60);
    assert_eq!(switch.rx.burst(&mut got), 4);
    assert_eq!(switch.rx.burst(&mut got), 0);
    assert_eq!(got.drain().count(), 64);
    assert_eq!(switch.rx.burst(&mut got), 60);
}

#[test]
fn links_of_33_hosts_fit_and_do_not_mix() {
    let _devices = devices();
    let pool = headers(255);
    let mut links = create_links(eal(), FabricConfig { links: 33, ring_size: 32 }).unwrap();
    for (number, (host, switch)) in (0..).zip(&mut links) {
        for queue in [&mut host.tx, &mut switch.tx] {
            let mut batch = MbufBatch::new();
            batch.push(frame(&pool, &[number])).unwrap();
            assert_eq!(queue.burst(&mut batch), 1);
        }
    }
    for (number, (host, switch)) in (0..).zip(&mut links) {
        for queue in [&mut host.rx, &mut switch.rx] {
            let mut batch = MbufBatch::new();
            assert_eq!(queue.burst(&mut batch), 1);
            assert_eq!(bytes(&batch.as_slice()[0]), [number]);
        }
    }
    let mut macs: Vec<[u8; 6]> = links.iter().flat_map(|(host, switch)| [host.mac, switch.mac]).collect();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), 66);
    assert!(macs.iter().all(|mac| mac[0] & 3 == 2), "unicast, locally administered");
}

#[test]
fn too_many_links_are_refused_with_the_number_that_fits() {
    let _devices = devices();
    let error = create_links(eal(), FabricConfig { links: 257, ring_size: 8 }).unwrap_err();
    assert_eq!(error, FabricError::TooManyLinks { links: 257, needed: 34, free: 32, links_max: 256 });
    let all = create_links(eal(), FabricConfig { links: 256, ring_size: 8 }).unwrap();
    assert!(create_links(eal(), FabricConfig { links: 1, ring_size: 8 }).is_err());
    drop(all);
    drop(link(8));
}

#[test]
fn second_run_sees_no_frame_of_the_first() {
    let _devices = devices();
    let pool = headers(255);
    for _ in 0..40 {
        let (mut host, mut switch) = link(64);
        let mut got = MbufBatch::new();
        assert_eq!(switch.rx.burst(&mut got) + host.rx.burst(&mut got), 0);
        assert_eq!(pool.in_use(), 0);
        host.tx.burst(&mut numbered(&pool, 30));
        switch.tx.burst(&mut numbered(&pool, 30));
        assert_eq!(pool.in_use(), 60);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn queues_outlive_each_other_and_move_between_threads() {
    let _devices = devices();
    let pool = headers(255);
    let (host, switch) = link(64);
    let (mut tx, mut rx) = (host.tx, switch.rx);
    drop((host.rx, switch.tx));
    let sender = {
        let pool = pool.clone();
        std::thread::spawn(move || {
            let _guard = dpdk_ffi::register_thread(eal()).unwrap();
            tx.burst(&mut numbered(&pool, 10))
        })
    };
    assert_eq!(sender.join().unwrap(), 10);
    let mut got = MbufBatch::new();
    assert_eq!(rx.burst(&mut got), 10);
    drop((rx, got));
    assert_eq!(pool.in_use(), 0);
}
