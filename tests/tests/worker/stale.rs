//! G5: a second run in one process starts from nothing.

use dcp::core::CongestionControl;

use crate::relay::as_is;
use crate::rig::{Dpdk, Parts, Rig};

#[test]
fn g5_second_run_sees_no_packet_of_the_first() {
    let dpdk = Dpdk::take();
    let parts = Parts { cc: CongestionControl::None, ..Parts::default() };
    for round in 0..20 {
        let mut rig = Rig::new(&dpdk, parts, as_is());
        for _ in 0..3 {
            rig.poll();
        }
        for host in [&rig.client, &rig.server] {
            assert_eq!(host.worker.counters().received, 0, "run {round}");
        }
        (0..40).for_each(|_| rig.post(parts.size));
        // The first half of the runs end in the middle, with frames everywhere.
        if round < 10 {
            (0..round).for_each(|_| rig.poll());
            (0..5).for_each(|_| _ = rig.client.worker.poll());
        } else {
            rig.finish();
            let counters = rig.server.worker.endpoint().counters();
            assert_eq!((counters.dropped_total(), counters.duplicates()), (0, 0), "run {round}");
            assert_eq!(rig.server.worker.counters().unparsed.iter().sum::<u64>(), 0);
        }
        rig.assert_no_leak();
    }
}
