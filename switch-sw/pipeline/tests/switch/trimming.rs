//! D1, D4, D5, S-1, S-2: what is trimmed, and what is not.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::*;

/// A switch whose data queues take one frame, and then more only if the bytes before it are none.
fn tight() -> PipelineConfig {
    PipelineConfig { trim_threshold_bytes: 0, ..config(4) }
}

// D1
#[test]
fn a_frame_beyond_the_threshold_leaves_as_its_header() {
    let mut switch = switch(tight());
    arrive(&mut switch, 0, 1, What::Data(1000));
    arrive(&mut switch, 0, 1, What::Data(1024));
    let queued = Queued {
        data_bytes: 1073,
        data_frames: 1,
        control_bytes: 57,
        control_frames: 1,
        ..Queued::default()
    };
    assert_eq!(switch.queued(PortId(1)), queued);
    let frames = sent(&mut switch, 1);
    assert_eq!(frames.iter().map(tag).collect::<Vec<_>>(), [Tag::HeaderOnly, Tag::Data]);
    let packet = parse_frame(ParseOptions::default(), &frames[0].0).unwrap();
    let whole = parse_frame(ParseOptions::default(), &frame(0, 1, What::Data(1024)).0).unwrap();
    let (Kind::HeaderOnly(ho), Kind::Data(data)) = (packet.headers.kind, whole.headers.kind) else {
        panic!()
    };
    assert_eq!((ho.name, ho.opcode, ho.returned), (data.name, data.opcode(), false));
    assert_eq!(packet.headers.path, whole.headers.path);
    let egress = switch.counters(PortId(1)).egress;
    assert_eq!((egress.trimmed, egress.trimmed_forwarded, egress.forwarded), (1, 1, 1));
    assert_eq!(egress.forwarded_bytes, 1073 + 57);
    assert_eq!((egress.control_forwarded, egress.control_forwarded_bytes), (1, 57));
}

// S-1: "if the bytes queued before it ≤ threshold".
#[test]
fn the_threshold_counts_the_bytes_before_a_frame() {
    let mut switch = switch(PipelineConfig { trim_threshold_bytes: 2 * 1097, ..config(2) });
    for _ in 0..3 {
        arrive(&mut switch, 0, 1, What::Data(1024));
    }
    assert_eq!(switch.counters(PortId(1)).egress.trimmed, 0, "exactly the threshold is not beyond it");
    arrive(&mut switch, 0, 1, What::Data(1024));
    assert_eq!(switch.counters(PortId(1)).egress.trimmed, 1);
    assert_eq!(switch.counters(PortId(1)).egress.data_bytes_peak, 3 * 1097);
}

#[test]
fn a_data_queue_full_of_small_frames_trims_too() {
    let mut switch = switch(PipelineConfig { data_frames_max: 3, ..config(2) });
    for _ in 0..5 {
        arrive(&mut switch, 0, 1, What::Data(0));
        arrive(&mut switch, 0, 1, What::Other(0));
    }
    let egress = switch.counters(PortId(1)).egress;
    assert_eq!((egress.trimmed, egress.drops.get(DropReason::DataQueueFull)), (3, 4));
    assert_balanced(&switch);
}

// S-0, S-1
#[test]
fn a_frame_that_is_not_dcp_is_dropped_and_never_trimmed() {
    let mut switch = switch(tight());
    arrive(&mut switch, 0, 1, What::Other(1000));
    arrive(&mut switch, 0, 1, What::Other(1000));
    assert_eq!(switch.counters(PortId(1)).egress.drops.get(DropReason::DataQueueFull), 1);
    assert_eq!(sent(&mut switch, 1), [frame(0, 1, What::Other(1000))]);
}

// D4
#[test]
fn control_frames_are_never_trimmed_and_never_wait_behind_data() {
    let mut switch = switch(tight());
    arrive(&mut switch, 0, 1, What::Data(1000));
    for what in [What::Ack, What::Cnp, What::HeaderOnly] {
        arrive(&mut switch, 2, 1, what);
    }
    // The first is due at once. The data frame's turn comes by weight, not by arrival.
    let frames = sent(&mut switch, 1);
    assert_eq!(frames[0], frame(2, 1, What::Ack));
    for what in [What::Cnp, What::HeaderOnly] {
        assert!(frames.contains(&frame(2, 1, what)), "unchanged");
    }
    assert_eq!(switch.counters(PortId(1)).egress.forwarded, 4, "an HO from elsewhere was not trimmed here");
}

// D4, S-1: the paper's way.
#[test]
fn with_the_option_off_acks_share_the_data_queue_and_its_fate() {
    let mut switch = switch(PipelineConfig { acks_use_control_queue: false, ..tight() });
    arrive(&mut switch, 0, 1, What::Ack);
    assert_eq!(switch.queued(PortId(1)).data_frames, 1);
    arrive(&mut switch, 0, 1, What::Ack);
    assert_eq!(switch.counters(PortId(1)).egress.drops.get(DropReason::DataQueueFull), 1);
    arrive(&mut switch, 0, 1, What::HeaderOnly);
    assert_eq!(switch.queued(PortId(1)).control_frames, 1);
    let tags: Vec<Tag> = sent(&mut switch, 1).iter().map(tag).collect();
    assert_eq!(tags, [Tag::HeaderOnly, Tag::Ack]);
}

#[test]
fn a_flooded_frame_is_never_trimmed() {
    let mut config = tight();
    config.faults = vec![FaultConfig { trim: Probability::ALWAYS, ..FaultConfig::NONE }; 4];
    let mut switch = switch(config);
    switch.handle_frame(0, PortId(0), frame(0, 99, What::Data(500)));
    switch.handle_frame(0, PortId(0), frame(0, 99, What::Data(500)));
    let totals = switch.totals().egress;
    assert_eq!((totals.trimmed, totals.drops.get(DropReason::DataQueueFull)), (0, 3));
    assert_eq!(sent(&mut switch, 2), [frame(0, 99, What::Data(500))]);
}

// D5
#[test]
fn trimming_and_marking_leave_a_shared_buffer_alone() {
    let original = frame(0, 1, What::Data(1000));
    let sender_keeps = original.clone();
    let untouched = original.0.to_vec();
    let mut shared = original;
    shared.trim().unwrap();
    assert_eq!(sender_keeps.0, untouched, "trimmed in place");
    assert_eq!((shared.len(), tag(&shared)), (57, Tag::HeaderOnly));

    let mut shared = sender_keeps.clone();
    assert_eq!(shared.mark_ce(), Ok(true));
    assert_eq!(sender_keeps.0, untouched, "marked in place");
    assert_eq!(shared.0[15] & 3, 3);
    assert_eq!(shared.len(), 1073);
}

// D5
#[test]
fn a_duplicate_is_not_changed_by_trimming_the_other() {
    let faults = FaultConfig { duplicate: Probability::ALWAYS, ..FaultConfig::NONE };
    let mut switch = switch(PipelineConfig { faults: vec![faults; 4], ..tight() });
    arrive(&mut switch, 0, 1, What::Data(1000));
    let frames = sent(&mut switch, 1);
    assert_eq!(frames.len(), 2);
    assert_eq!(tag(&frames[0]), Tag::HeaderOnly);
    assert_eq!(frames[1], frame(0, 1, What::Data(1000)));
}

#[test]
fn an_unshared_buffer_is_trimmed_without_a_copy() {
    let mut frame = frame(0, 1, What::Data(1000));
    let before = frame.0.as_ptr();
    frame.trim().unwrap();
    assert_eq!(frame.0.as_ptr(), before);
}

#[test]
fn a_frame_that_lies_about_its_length_is_refused_unchanged() {
    let whole = frame(0, 1, What::Data(1000));
    let mut cut = ByteFrame(whole.0.slice(..50));
    assert_eq!(cut.trim(), Err(EditRefused::NotDcp));
    assert_eq!(cut.0, whole.0.slice(..50), "shared");
    let mut cut = ByteFrame(whole.0[..50].to_vec().into());
    assert_eq!(cut.trim(), Err(EditRefused::NotDcp));
    assert_eq!(cut.0, whole.0.slice(..50), "of its own");
}

// S-2: marking is decided before trimming, so a CE mark reaches the receiver on the HO.
#[test]
fn a_congestion_mark_survives_trimming() {
    let mut switch = switch(tight());
    arrive(&mut switch, 0, 1, What::Data(1000));
    let mut marked = frame(0, 1, What::Data(1000));
    marked.mark_ce().unwrap();
    switch.handle_frame(0, PortId(0), marked);
    let frames = sent(&mut switch, 1);
    assert_eq!(parse_frame(ParseOptions::default(), &frames[0].0).unwrap().headers.path.ecn, Ecn::Ce);
}
