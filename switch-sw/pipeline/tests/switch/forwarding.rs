//! Which port a frame leaves by.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::MacAddr;

/// Frames waiting per port, which are then gone.
fn waiting(switch: &mut Switch) -> Vec<usize> {
    (0..switch.ports()).map(|port| sent(switch, port).len()).collect()
}

#[test]
fn a_known_destination_gets_the_frame_alone_and_unchanged() {
    let mut switch = switch(config(4));
    arrive(&mut switch, 0, 2, What::Data(1024));
    assert_eq!(switch.queued(PortId(2)), Queued { data_bytes: 1097, data_frames: 1, ..Queued::default() });
    assert_eq!(sent(&mut switch, 2), [frame(0, 2, What::Data(1024))]);
    assert_eq!(waiting(&mut switch), [0; 4]);
    assert_balanced(&switch);
}

#[test]
fn an_unknown_destination_and_a_group_are_flooded_to_all_other_ports() {
    for dst in [host(77), BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
        for from in 0..4 {
            let mut switch = switch(config(4));
            switch.handle_frame(0, PortId(from), frame_to(dst, host(from), What::Data(100)));
            let expected: Vec<usize> = (0..4).map(|port| usize::from(port != from)).collect();
            let counters = switch.counters(PortId(from)).ingress;
            assert_eq!((counters.received, counters.flood_copies, counters.routed), (1, 2, 3));
            assert_balanced(&switch);
            assert_eq!(waiting(&mut switch), expected);
        }
    }
}

#[test]
fn an_address_is_learned_from_the_frames_it_sends() {
    let mut switch = switch(PipelineConfig::new(4));
    arrive(&mut switch, 1, 3, What::Ack);
    assert_eq!(waiting(&mut switch), [1, 0, 1, 1], "flooded");
    arrive(&mut switch, 3, 1, What::Ack);
    assert_eq!(waiting(&mut switch), [0, 1, 0, 0]);
    arrive(&mut switch, 1, 3, What::Ack);
    assert_eq!(waiting(&mut switch), [0, 0, 0, 1]);
}

#[test]
fn a_host_that_moves_is_followed_at_once() {
    let mut switch = switch(PipelineConfig::new(4));
    arrive(&mut switch, 0, 9, What::Ack);
    arrive(&mut switch, 1, 0, What::Ack);
    waiting(&mut switch);
    switch.handle_frame(0, PortId(3), frame(0, 9, What::Ack));
    waiting(&mut switch);
    arrive(&mut switch, 1, 0, What::Ack);
    assert_eq!(waiting(&mut switch), [0, 0, 0, 1], "in spite of the last destination being cached");
}

#[test]
fn a_static_address_is_not_learned_over() {
    let mut config = config(3);
    config.learn_macs = true;
    let mut switch = switch(config);
    switch.handle_frame(0, PortId(2), frame(0, 1, What::Ack));
    waiting(&mut switch);
    arrive(&mut switch, 1, 0, What::Ack);
    assert_eq!(waiting(&mut switch), [1, 0, 0]);
}

#[test]
fn group_and_zero_source_addresses_are_not_learned() {
    for src in [BROADCAST, MacAddr([1, 0, 0, 0, 0, 0]), MacAddr([0; 6])] {
        let mut switch = switch(PipelineConfig::new(3));
        switch.handle_frame(0, PortId(0), frame_to(host(1), src, What::Ack));
        waiting(&mut switch);
        switch.handle_frame(0, PortId(1), frame_to(src, host(1), What::Ack));
        assert_eq!(waiting(&mut switch), [1, 0, 1], "flooded");
    }
}

#[test]
fn a_full_table_floods_what_it_does_not_know_and_counts() {
    let mut switch = switch(PipelineConfig { mac_entries_max: 1, ..PipelineConfig::new(2) });
    for number in 0..200 {
        switch.handle_frame(0, PortId(0), frame(number, 999, What::Ack));
    }
    let counters = switch.counters(PortId(0)).ingress;
    assert!(counters.unlearned >= 184, "{counters:?}");
    assert_eq!(switch.counters(PortId(1)).egress.forwarded + switch.queued(PortId(1)).frames(), 200);
}

#[test]
fn a_frame_for_its_own_port_is_dropped_and_counted() {
    let mut switch = switch(config(2));
    switch.handle_frame(0, PortId(0), frame(0, 0, What::Data(10)));
    assert_eq!(switch.counters(PortId(0)).ingress.drops.get(DropReason::SamePort), 1);
    assert_eq!(waiting(&mut switch), [0, 0]);
    assert_balanced(&switch);
}

#[test]
fn runts_and_frames_without_a_port_to_go_to_are_counted() {
    let mut switch = switch(config(1));
    switch.handle_frame(0, PortId(0), ByteFrame(vec![0xFF; 13].into()));
    switch.handle_frame(0, PortId(0), ByteFrame(vec![].into()));
    switch.handle_frame(0, PortId(0), frame(0, 5, What::Ack));
    let drops = switch.counters(PortId(0)).ingress.drops;
    assert_eq!((drops.get(DropReason::Runt), drops.get(DropReason::NoPort)), (2, 1));
    assert_balanced(&switch);
}

#[test]
fn frames_of_one_class_keep_their_order() {
    let mut switch = switch(config(2));
    for len in 0..100 {
        arrive(&mut switch, 0, 1, What::Data(len));
    }
    let lengths: Vec<u32> = sent(&mut switch, 1).iter().map(Frame::len).collect();
    assert!(lengths.is_sorted() && lengths.len() == 100);
}

#[test]
fn a_sink_gets_no_more_than_it_has_room_for() {
    let mut switch = switch(config(2));
    for _ in 0..10 {
        arrive(&mut switch, 0, 1, What::Data(10));
    }
    for (room, moved) in [(0, 0), (3, 3), (100, 7), (5, 0)] {
        assert_eq!(sent_up_to(&mut switch, 1, room).len(), moved);
        assert_balanced(&switch);
    }
    assert!(!switch.has_queued(PortId(1)));
}

/// A frame that cannot be copied, edited or counted on.
struct Stubborn(ByteFrame);

impl Frame for Stubborn {
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        self.0.classify(classifier)
    }
    fn flow_hash(&self) -> u32 {
        self.0.flow_hash()
    }
    fn len(&self) -> u32 {
        self.0.len()
    }
    fn trim(&mut self) -> Result<(), EditRefused> {
        Err(EditRefused::NoBuffer)
    }
    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        Err(EditRefused::NoBuffer)
    }
    fn try_clone(&self) -> Option<Self> {
        None
    }
}

#[test]
fn a_frame_that_cannot_be_copied_floods_one_port_and_counts_the_others() {
    let mut switch = Pipeline::new(config(4)).unwrap();
    switch.handle_frame(0, PortId(0), Stubborn(frame(0, 50, What::Data(10))));
    assert_eq!(switch.totals().egress.drops.get(DropReason::NoCopy), 2);
    assert_eq!(switch.queued_frames(), 1);
    assert_balanced(&switch);
}

#[test]
fn a_frame_that_cannot_be_trimmed_is_dropped_and_counted() {
    let mut switch = Pipeline::new(PipelineConfig { trim_threshold_bytes: 0, ..config(2) }).unwrap();
    switch.handle_frame(0, PortId(0), Stubborn(frame(0, 1, What::Data(10))));
    switch.handle_frame(0, PortId(0), Stubborn(frame(0, 1, What::Data(10))));
    let egress = switch.counters(PortId(1)).egress;
    assert_eq!((egress.drops.get(DropReason::TrimRefused), egress.trimmed), (1, 0));
    assert_eq!(switch.queued_frames(), 1);
    assert_balanced(&switch);
}
