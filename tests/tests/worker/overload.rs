//! A server that receives nothing but headers.

use dcp::core::CongestionControl;
use dcp::dpdk::{Mbuf, MbufBatch};
use dcp_pipeline::Frame;
use dcp_switch::MbufFrame;

use crate::relay::{Edit, Toward};
use crate::rig::{Dpdk, Parts, Rig};

fn trim_and_mark() -> Edit {
    Box::new(|frame: Mbuf, toward| {
        let mut frame = MbufFrame(frame);
        if toward == Toward::Server {
            frame.mark_ce().expect("there are mbufs");
            frame.trim().expect("there are mbufs");
        }
        Some(frame.0)
    })
}

// T-2, R-13: returned headers go first, but a CNP behind them is what ends the overload.
#[test]
fn full_bursts_of_headers_leave_room_for_a_cnp() {
    let dpdk = Dpdk::take();
    let parts = Parts { cc: CongestionControl::None, ..Parts::default() };
    let mut rig = Rig::new(&dpdk, parts, trim_and_mark());
    (0..4).for_each(|_| rig.post(parts.size));
    // More than a burst waits at the server.
    for _ in 0..8 {
        rig.client.worker.poll();
        rig.relay.poll();
    }
    let burst = MbufBatch::CAPACITY as u64;
    rig.server.worker.poll();
    assert_eq!(rig.server.worker.counters().received, burst);
    let counters = rig.server.worker.endpoint().counters();
    assert_eq!((counters.ho_bounced, counters.cnps_sent), (burst, 1));
    // And no header is lost for it.
    for _ in 0..8 {
        rig.server.worker.poll();
    }
    assert_eq!(rig.server.worker.counters().bounces_lost, 0);
    assert_eq!(rig.server.worker.endpoint().counters().ho_bounced, rig.server.worker.counters().received);
    rig.assert_no_leak();
}
