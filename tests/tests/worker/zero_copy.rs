//! D5: what the network does to a frame is not done to the sender's memory.

use std::cell::Cell;
use std::rc::Rc;

use dcp::dpdk::Mbuf;
use dcp::wire::{Classifier, SERVICE_PORT, Tag};
use dcp_pipeline::Frame;
use dcp_switch::MbufFrame;

use crate::relay::{Edit, Toward};
use crate::rig::{Dpdk, Parts, Rig};

fn is_data(frame: &MbufFrame) -> bool {
    frame.classify(&mut Classifier::new([SERVICE_PORT])).is_some_and(|it| it.tag == Tag::Data)
}

/// Trims every third data packet, and counts.
fn trim_every_third(trimmed: Rc<Cell<u64>>) -> Edit {
    let mut seen = 0u64;
    Box::new(move |frame: Mbuf, toward| {
        let mut frame = MbufFrame(frame);
        if toward == Toward::Server && is_data(&frame) {
            seen += 1;
            if seen.is_multiple_of(3) {
                frame.trim().expect("there are mbufs");
                trimmed.set(trimmed.get() + 1);
            }
        }
        Some(frame.0)
    })
}

#[test]
fn d5_forced_trimming_leaves_the_senders_copy_alone() {
    let dpdk = Dpdk::take();
    for (size, piece) in [(50_000, 50_000), (50_000, 4_000), (1, 1), (1025, 1025)] {
        let trimmed = Rc::new(Cell::new(0));
        let parts = Parts { size, segments_max: 2, ..Parts::default() };
        let mut rig = Rig::new(&dpdk, parts, trim_every_third(Rc::clone(&trimmed)));
        for _ in 0..30 {
            rig.post(piece);
        }
        rig.finish();
        let counters = *rig.client.worker.endpoint().counters();
        assert!(trimmed.get() > 0);
        assert_eq!((counters.retransmitted, counters.ho_returned), (trimmed.get(), trimmed.get()));
        assert_eq!(counters.timeouts, 0);
        rig.assert_no_leak();
    }
}

#[test]
fn d5_marking_copies_and_losses_leave_the_senders_copy_alone() {
    let dpdk = Dpdk::take();
    let mut seen = 0u64;
    let mut copies: Vec<MbufFrame> = Vec::new();
    let edit = Box::new(move |frame: Mbuf, _| {
        let mut frame = MbufFrame(frame);
        seen += 1;
        match seen % 4 {
            0 => _ = frame.mark_ce().expect("there are mbufs"),
            // A clone that stays behind, marked and trimmed.
            1 => copies.extend(frame.try_clone()),
            2 => copies.iter_mut().filter(|copy| is_data(copy)).for_each(|copy| {
                copy.mark_ce().expect("there are mbufs");
                copy.trim().expect("there are mbufs");
            }),
            _ => copies.clear(),
        }
        Some(frame.0)
    });
    let parts = Parts::default();
    let mut rig = Rig::new(&dpdk, parts, edit);
    for _ in 0..30 {
        rig.post(parts.size);
    }
    rig.finish();
    rig.assert_no_leak();
}
