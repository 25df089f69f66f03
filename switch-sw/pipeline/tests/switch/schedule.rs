//! S-3 on whole ports: shares of link time, and no starvation.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::Tag;

/// Wire bytes of control and data over `frames` frames, both queues always backlogged.
fn served(milli: u32, frames: usize) -> (u64, u64) {
    let weight = Some(WeightConfig::ExplicitMilli(milli));
    let mut switch = switch(PipelineConfig { weight, ..config(3) });
    let (mut control, mut data) = (0, 0);
    for number in 0..frames {
        while switch.queued(PortId(2)).control_frames < 2 {
            arrive(&mut switch, 1, 2, What::HeaderOnly);
        }
        while switch.queued(PortId(2)).data_frames < 2 {
            arrive(&mut switch, 0, 2, What::Data(number * 97 % 1400));
        }
        for frame in sent_up_to(&mut switch, 2, 1) {
            let bytes = u64::from(wire_len(frame.len()));
            if tag(&frame) == Tag::HeaderOnly { control += bytes } else { data += bytes }
        }
    }
    (control, data)
}

#[test]
fn backlogged_queues_share_the_link_by_weight_within_one_percent() {
    for milli in [16, 100, 538, 1000, 4000, 25_300, 64_000] {
        let (control, data) = served(milli, 60_000);
        let (got, exact) = (control as f64 / data as f64, f64::from(milli) / 1000.0);
        assert!((got / exact - 1.0).abs() < 0.01, "weight {exact}: {got}");
    }
}

// S-3: at the extremes too.
#[test]
fn neither_queue_starves() {
    for milli in [Weight::MIN.milli(), Weight::MAX.milli()] {
        let (control, data) = served(milli, 20_000);
        assert!(control * 80 > data && data * 80 > control, "{control} : {data}");
    }
}

#[test]
fn a_lone_queue_has_the_whole_link() {
    let mut switch = switch(PipelineConfig { weight: Some(WeightConfig::ExplicitMilli(16)), ..config(2) });
    for _ in 0..100 {
        arrive(&mut switch, 0, 1, What::HeaderOnly);
    }
    assert_eq!(sent_up_to(&mut switch, 1, 100).len(), 100);
}

#[test]
fn headers_of_an_incast_within_the_derived_weight_are_not_lost() {
    // 8 senders at line rate into one port: 7/8 of the frames become headers, and all must get through.
    let incast = Incast { ports: 9, trimmable_frame_len: 1097, ack_share_ppm: 0 };
    let mut switch = switch(PipelineConfig {
        weight: Some(WeightConfig::Derived(incast)),
        trim_threshold_bytes: 32 << 10,
        control_bytes_max: 8 << 10,
        ..config(9)
    });
    // Link time in wire bytes: each round every sender sends one frame, and the receiver has time for one.
    let (mut credit, wire) = (0i64, i64::from(wire_len(1097)));
    for _ in 0..20_000 {
        for from in 0..8 {
            arrive(&mut switch, from, 8, What::Data(1024));
        }
        credit += wire;
        while credit > 0 {
            let frames = sent_up_to(&mut switch, 8, 1);
            credit -= i64::from(wire_len(frames[0].len()));
        }
    }
    let egress = switch.counters(PortId(8)).egress;
    assert_eq!(egress.ho_lost(), 0, "{egress:?}");
    assert!(egress.trimmed > 100_000);
    assert!(egress.forwarded > 0, "data goes on");
}
