//! What runs leave behind: nothing.

use dcp::dpdk::pool::pools_awaiting_mbufs;
use dcp::dpdk::region::regions_awaiting_frames;
use dcp::verbs::{Opcode, QpOptions, SendWorkRequest, Status};

use crate::rig::{MR_LEN, Rig, pattern, rig};

#[test]
fn g5_second_pair_of_devices_in_a_process_sees_no_frame_of_the_first() {
    for round in 0..3 {
        let Rig { mut client, server, _registered, _turn } = rig(1, &QpOptions::default());
        for side in [&client, &server] {
            for _ in 0..100 {
                side.device.poll();
            }
            assert_eq!(side.device.stats().unwrap().workers[0].worker.received, 0, "round {round}");
        }
        client.mr.write(0, &pattern(MR_LEN, 5)).unwrap();
        let whole = [client.mr.slice(0..MR_LEN as u64).unwrap()];
        let write = Opcode::Write(server.mr.remote().at(0));
        client.qps[0].post_send(&SendWorkRequest::new(1, write, &whole)).unwrap();
        assert_eq!(client.wait(&server).status, Status::Success);
        // The second is dropped in the middle of a message.
        client.qps[0].post_send(&SendWorkRequest::new(2, write, &whole)).unwrap();
        for _ in 0..3 {
            client.device.poll();
        }
        drop((client, server));
        assert_eq!((pools_awaiting_mbufs(), regions_awaiting_frames()), (0, 0), "round {round}");
    }
}
