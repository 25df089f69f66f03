//! Trimming like a switch that knows nothing of DCP.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::{Tag, ip_checksum};

fn trimming(to: TrimTo) -> PipelineConfig {
    PipelineConfig { trim_to: Some(to), trim_threshold_bytes: 1500, ..config(2) }
}

/// What came of the third of three data packets, the first that is too much.
fn third(to: TrimTo, payload: usize) -> (Switch, ByteFrame) {
    let mut switch = switch(trimming(to));
    for _ in 0..2 {
        arrive(&mut switch, 0, 1, What::Data(1000));
    }
    arrive(&mut switch, 0, 1, What::Data(payload));
    let mut frames = sent(&mut switch, 1);
    assert_eq!(frames.len(), 3);
    let index = if to.trim_queue == TrimQueue::Control { 0 } else { 2 };
    (switch, frames.remove(index))
}

fn ip_header(frame: &ByteFrame) -> [u8; 20] {
    *frame.0[14..].first_chunk().unwrap()
}

#[test]
fn the_first_bytes_are_kept_and_marked_and_the_ip_header_is_right() {
    for to in
        [TrimTo::SONIC, TrimTo::NVIDIA, TrimTo { trim_bytes: 64, trim_dscp: 63, trim_queue: TrimQueue::Data }]
    {
        let (switch, trimmed) = third(to, 1000);
        let (whole, ip) = (frame(0, 1, What::Data(1000)), ip_header(&trimmed));
        assert_eq!(trimmed.len(), to.trim_bytes);
        assert_eq!(u32::from(u16::from_be_bytes([ip[2], ip[3]])), to.trim_bytes - 14);
        assert_eq!((ip[1] >> 2, ip[1] & 3), (to.trim_dscp, whole.0[15] & 3), "DSCP and ECN");
        assert_eq!([ip[10], ip[11]], ip_checksum(&ip).to_be_bytes());
        assert_eq!(
            trimmed.0[34..],
            whole.0[34..to.trim_bytes as usize],
            "UDP length and the rest as they were"
        );
        let egress = switch.counters(PortId(1)).egress;
        assert_eq!((egress.trimmed, egress.trimmed_forwarded), (1, 1));
        assert_balanced(&switch);
    }
}

#[test]
fn a_shorter_frame_is_sent_whole_with_the_dscp() {
    let (_, remarked) = third(TrimTo::SONIC, 10);
    let (whole, ip) = (frame(0, 1, What::Data(10)), ip_header(&remarked));
    assert_eq!((remarked.len(), ip[1] >> 2), (whole.len(), 48));
    assert_eq!(ip[2..4], whole.0[16..18]);
    assert_eq!([ip[10], ip[11]], ip_checksum(&ip).to_be_bytes());
}

#[test]
fn a_vlan_tag_counts_as_part_of_the_frame() {
    let mut bytes = frame(0, 1, What::Data(500)).0.to_vec();
    bytes.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
    let len = bytes.len();
    assert_eq!(trim_to(&mut bytes, len, 128, 48), Ok(128));
    let ip: [u8; 20] = bytes[18..38].try_into().unwrap();
    assert_eq!((u16::from_be_bytes([ip[2], ip[3]]), ip[1] >> 2), (110, 48));
    assert_eq!([ip[10], ip[11]], ip_checksum(&ip).to_be_bytes());
}

#[test]
fn what_is_no_ip_is_refused_whatever_its_bytes() {
    let good = frame(0, 1, What::Data(0)).0;
    for len in 0..34 {
        assert!(trim_to(&mut good[..len].to_vec(), 1000, 128, 0).is_err(), "{len}");
    }
    assert!(trim_to(&mut good[..34].to_vec(), 1000, 128, 0).is_ok());
    assert!(trim_to(&mut good.to_vec(), 1000, 33, 0).is_err());
    for (at, value) in [(12, 9), (14, 0x46), (14, 0x65)] {
        let mut bytes = good.to_vec();
        bytes[at] = value;
        assert!(trim_to(&mut bytes, 1000, 128, 0).is_err());
    }
}

// D5
#[test]
fn a_shared_buffer_is_not_edited() {
    let mut switch = switch(trimming(TrimTo { trim_queue: TrimQueue::Data, ..TrimTo::SONIC }));
    let kept = frame(0, 1, What::Data(1600));
    for _ in 0..2 {
        switch.handle_frame(0, PortId(0), kept.clone());
    }
    assert_eq!(sent(&mut switch, 1).iter().map(Frame::len).collect::<Vec<_>>(), [1673, 128]);
    assert_eq!(kept, frame(0, 1, What::Data(1600)));
}

// SONiC's DSCP 48 carries the tag bits 00, NVIDIA's 11 the bits 11: chance, not protocol.
#[test]
fn the_dscp_decides_what_the_next_switch_takes_it_for() {
    assert_eq!(tag(&third(TrimTo::SONIC, 1000).1), Tag::NotDcp);
    let trimmed = third(TrimTo::NVIDIA, 1000).1;
    assert_eq!(tag(&trimmed), Tag::HeaderOnly);
    let parsed = dcp_wire::parse_frame(dcp_wire::ParseOptions::default(), &trimmed.0);
    assert!(parsed.is_err(), "but no endpoint takes it for a header-only packet");
}

#[test]
fn trimmed_frames_in_the_data_queue_are_bounded() {
    let to = TrimTo { trim_queue: TrimQueue::Data, ..TrimTo::SONIC };
    let mut switch = switch(PipelineConfig { control_bytes_max: 1000, ..trimming(to) });
    for _ in 0..100 {
        arrive(&mut switch, 0, 1, What::Data(1000));
    }
    let queued = switch.queued(PortId(1));
    assert!((2500..=2700).contains(&queued.data_bytes), "{queued:?}");
    let egress = switch.counters(PortId(1)).egress;
    assert_eq!(egress.ho_lost(), 100 - queued.data_frames as u64);
    assert_balanced(&switch);
}

// S-3: r shrinks with what is kept, and so does the N for which the weight is enough.
#[test]
fn the_operator_is_told_what_it_means_and_the_weight_follows() {
    let switch = |to| switch(PipelineConfig { trim_to: to, acks_use_control_queue: false, ..config(4) });
    // r = 1121/152: 3/(7.375 − 3) = 0.6857; with header-only packets 3/(13.345 − 3) = 0.2899.
    assert_eq!(switch(None).weight().milli(), 289);
    let sonic = switch(Some(TrimTo::SONIC));
    assert_eq!(sonic.weight().milli(), 685);
    assert_eq!(
        sonic.notes()[0].to_string(),
        "frames are trimmed to 128 bytes with DSCP 48: DCP endpoints do not take them for header-only packets, and the \
         weight formula holds for N up to 8 at MTU 1024"
    );
}

// D6
#[test]
fn trim_sizes_and_dscps_out_of_range_are_refused() {
    let refusal = |to| Switch::new(trimming(to)).unwrap_err().to_string();
    for trim_bytes in [0, 63, 1025, u32::MAX] {
        let sentence = refusal(TrimTo { trim_bytes, ..TrimTo::SONIC });
        assert_eq!(
            sentence,
            format!("the length to trim to, in bytes, must be 64 to 1024, not {trim_bytes}")
        );
    }
    let sentence = refusal(TrimTo { trim_dscp: 64, ..TrimTo::SONIC });
    assert_eq!(sentence, "the DSCP of trimmed frames must be 0 to 63, not 64");
    for trim_bytes in [64, 1024] {
        assert!(Switch::new(trimming(TrimTo { trim_bytes, ..TrimTo::NVIDIA })).is_ok());
    }
}
