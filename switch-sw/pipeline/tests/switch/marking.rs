//! S-6: congestion marks.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::{Ecn, Tag};

/// Marks everything that finds more than `limit` bytes before it.
fn step(limit: u32) -> Option<RedConfig> {
    Some(RedConfig { min_bytes: limit, max_bytes: limit, at_max: Probability::ALWAYS })
}

fn ecn(frame: &ByteFrame) -> Ecn {
    Ecn::from_tos(frame.0[15])
}

#[test]
fn frames_are_marked_by_the_queue_that_they_find() {
    let mut switch = switch(PipelineConfig { ecn: step(1500), ..config(2) });
    for _ in 0..4 {
        arrive(&mut switch, 0, 1, What::Data(1000));
    }
    let marks: Vec<Ecn> = sent(&mut switch, 1).iter().map(ecn).collect();
    assert_eq!(marks, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce]);
    assert_eq!(switch.counters(PortId(1)).egress.marked, 2);
    arrive(&mut switch, 0, 1, What::Data(1000));
    assert_eq!(ecn(&sent(&mut switch, 1)[0]), Ecn::Ect0, "the queue is short again");
}

// S-2, S-6
#[test]
fn a_trimmed_packet_carries_the_mark_that_it_would_have_had() {
    let mut switch = switch(PipelineConfig { ecn: step(1000), trim_threshold_bytes: 1050, ..config(2) });
    for _ in 0..2 {
        arrive(&mut switch, 0, 1, What::Data(1000));
    }
    let frames = sent(&mut switch, 1);
    assert_eq!((tag(&frames[0]), ecn(&frames[0])), (Tag::HeaderOnly, Ecn::Ce));
    assert!(dcp_wire::parse_frame(dcp_wire::ParseOptions::default(), &frames[0].0).is_ok());
}

#[test]
fn what_goes_to_the_control_queue_is_not_marked() {
    let mut switch = switch(PipelineConfig { ecn: step(0), ..config(2) });
    for what in [What::Data(1000), What::Ack, What::HeaderOnly] {
        arrive(&mut switch, 0, 1, what);
    }
    assert!(sent(&mut switch, 1).iter().all(|frame| ecn(frame) == Ecn::Ect0));
}

// D5
#[test]
fn marking_does_not_show_in_the_senders_copy() {
    let mut switch = switch(PipelineConfig { ecn: step(0), ..config(2) });
    arrive(&mut switch, 0, 1, What::Data(1000));
    let kept = frame(0, 1, What::Data(1000));
    switch.handle_frame(0, PortId(0), kept.clone());
    let frames = sent(&mut switch, 1);
    assert_eq!((ecn(&frames[1]), ecn(&kept)), (Ecn::Ce, Ecn::Ect0));
}

// D6, E3
#[test]
fn crossed_limits_are_refused_and_late_ones_said() {
    let red = RedConfig { min_bytes: 2, max_bytes: 1, at_max: Probability::ALWAYS };
    let error = Switch::new(PipelineConfig { ecn: Some(red), ..config(2) }).unwrap_err();
    assert_eq!(error.to_string(), "ECN's Kmin in bytes must be 0 to 1, not 2");

    let notes = |limit| switch(PipelineConfig { ecn: step(limit), ..config(2) }).notes().len();
    assert_eq!((notes((512 << 10) - 1), notes(512 << 10)), (0, 1));
}
