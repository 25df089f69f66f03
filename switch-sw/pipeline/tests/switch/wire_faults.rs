//! S-7: faults that need time, other frames or a cut link; in both directions, by dice and by exact pattern.

use crate::support::*;
use dcp_pipeline::*;

const SIDES: [Direction; 2] = [Direction::Ingress, Direction::Egress];

/// A switch of two ports with those faults between port 0 and port 1, on one side or the other.
fn faulty(side: Direction, faults: FaultConfig) -> Switch {
    let mut switch = switch(config(2));
    match side {
        Direction::Ingress => switch.set_faults(PortId(0), faults),
        Direction::Egress => switch.set_egress_faults(PortId(1), faults),
    }
    switch
}

fn every(every: Every) -> FaultConfig {
    FaultConfig { every, ..FaultConfig::NONE }
}

/// Frames of 0, 1, 2 … payload bytes, each sent at its number in nanoseconds; the payloads that came out, in order.
fn payloads(switch: &mut Switch, numbers: core::ops::Range<u16>) -> Vec<u32> {
    let mut came = Vec::new();
    for number in numbers {
        switch.handle_frame(number.into(), PortId(0), frame(0, 1, What::Data(number.into())));
        came.extend(sent(switch, 1).iter().map(|frame| frame.len() - 73));
        assert_balanced(switch);
    }
    came
}

#[test]
fn every_nth_frame_is_dropped_exactly() {
    for side in SIDES {
        let mut switch = faulty(side, every(Every { drop: 3, ..Every::NEVER }));
        assert_eq!(payloads(&mut switch, 1..11), [1, 2, 4, 5, 7, 8, 10]);
        let totals = switch.totals();
        let drops = if side == Direction::Ingress { totals.ingress.drops } else { totals.egress.drops };
        assert_eq!(drops.get(DropReason::Injected), 3);
    }
}

// D5
#[test]
fn every_third_data_packet_is_trimmed_whatever_comes_between() {
    for side in SIDES {
        let mut switch = faulty(side, every(Every { trim: 3, ..Every::NEVER }));
        let mut lengths = Vec::new();
        for _ in 0..7 {
            for what in [What::Ack, What::Data(500), What::Other(9)] {
                arrive(&mut switch, 0, 1, what);
                lengths.extend(sent(&mut switch, 1).iter().map(Frame::len));
            }
        }
        let data: Vec<u32> = lengths.chunks(3).map(|chunk| chunk[1]).collect();
        assert_eq!(data, [573, 573, 57, 573, 573, 57, 573]);
        assert_eq!(switch.totals().egress.trimmed, 2);
    }
}

#[test]
fn every_second_frame_is_doubled_and_offered_like_any() {
    for side in SIDES {
        let mut switch = faulty(side, every(Every { duplicate: 2, ..Every::NEVER }));
        assert_eq!(payloads(&mut switch, 1..5), [1, 2, 2, 3, 4, 4]);
        let totals = switch.totals();
        assert_eq!((totals.ingress.duplicated + totals.egress.duplicated, totals.egress.offered), (2, 6));
    }
}

#[test]
fn a_reordered_frame_is_overtaken_by_so_many() {
    for side in SIDES {
        let faults = FaultConfig { reorder_frames: 2, ..every(Every { reorder: 5, ..Every::NEVER }) };
        let mut switch = faulty(side, faults);
        assert_eq!(payloads(&mut switch, 1..14), [1, 2, 3, 4, 6, 7, 5, 8, 9, 11, 12, 10, 13]);
        assert_eq!(switch.totals().egress.faults.reordered + switch.totals().ingress.faults.reordered, 2);
    }
}

#[test]
fn a_reordered_frame_comes_after_its_time_when_no_others_do() {
    for side in SIDES {
        let faults = FaultConfig { reorder_ns: 700, ..every(Every { reorder: 1, ..Every::NEVER }) };
        let mut switch = faulty(side, faults);
        arrive(&mut switch, 0, 1, What::Ack);
        assert_eq!(switch.next_timeout(), Some(700));
        switch.handle_timeout(699);
        assert_eq!(sent(&mut switch, 1).len(), 0);
        assert_balanced(&switch);
        switch.handle_timeout(700);
        assert_eq!((sent(&mut switch, 1).len(), switch.next_timeout()), (1, None));
        assert_balanced(&switch);
    }
}

// C5: one packet held for two seconds while the others go on.
#[test]
fn a_delayed_frame_comes_late_and_the_others_in_time() {
    for side in SIDES {
        let faults = FaultConfig { delay_ns: 2_000_000_000, ..every(Every { delay: 4, ..Every::NEVER }) };
        let mut switch = faulty(side, faults);
        assert_eq!(payloads(&mut switch, 1..8), [1, 2, 3, 5, 6, 7]);
        assert_eq!(switch.next_timeout(), Some(2_000_000_004));
        switch.handle_timeout(2_000_000_004);
        assert_eq!(sent(&mut switch, 1).iter().map(Frame::len).collect::<Vec<_>>(), [77]);
    }
}

#[test]
fn frames_beyond_the_bound_are_not_held_and_counted() {
    for side in SIDES {
        let always = FaultConfig { delay: Probability::ALWAYS, held_frames_max: 3, ..FaultConfig::NONE };
        let mut switch = faulty(side, always);
        for _ in 0..5 {
            arrive(&mut switch, 0, 1, What::Ack);
        }
        assert_eq!(sent(&mut switch, 1).len(), 2);
        let PortCounters { ingress, egress } = switch.totals();
        let sum = |get: fn(&FaultCounters) -> u64| get(&ingress.faults) + get(&egress.faults);
        assert_eq!((sum(|faults| faults.delayed), sum(|faults| faults.hold_refused)), (3, 2));
        assert_balanced(&switch);
        assert_eq!(switch.drain(), 3);
        assert_balanced(&switch);
    }
}

#[test]
fn held_frames_come_although_the_fault_was_turned_off() {
    for side in SIDES {
        let mut switch = faulty(side, FaultConfig { delay: Probability::ALWAYS, ..FaultConfig::NONE });
        arrive(&mut switch, 0, 1, What::Data(1));
        match side {
            Direction::Ingress => switch.set_faults(PortId(0), FaultConfig::NONE),
            Direction::Egress => switch.set_egress_faults(PortId(1), FaultConfig::NONE),
        }
        arrive(&mut switch, 0, 1, What::Data(2));
        assert_eq!(sent(&mut switch, 1).len(), 1);
        switch.handle_timeout(10_000);
        assert_eq!(sent(&mut switch, 1).len(), 1);
        assert_balanced(&switch);
    }
}

#[test]
fn a_corrupt_frame_differs_in_one_byte_behind_its_header() {
    for side in SIDES {
        let mut switch = faulty(side, every(Every { corrupt: 1, ..Every::NEVER }));
        let sent_copy = frame(0, 1, What::Data(64));
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..400 {
            switch.handle_frame(0, PortId(0), sent_copy.clone());
            let frames = sent(&mut switch, 1);
            let (good, bad) = (&sent_copy.0, &frames[0].0);
            let changed: Vec<usize> = (0..good.len()).filter(|&at| good[at] != bad[at]).collect();
            assert_eq!((good.len(), changed.len()), (bad.len(), 1));
            places.insert(changed[0]);
        }
        assert!(*places.first().unwrap() == 61 && *places.last().unwrap() == 136, "{places:?}");
        assert_eq!(sent_copy, frame(0, 1, What::Data(64)), "D5: not the sender's copy");
        arrive(&mut switch, 0, 1, What::HeaderOnly);
        assert_eq!(sent(&mut switch, 1), [frame(0, 1, What::HeaderOnly)], "nothing there to change");
        let faults =
            if side == Direction::Ingress { switch.totals().ingress } else { Default::default() }.faults;
        let egress = switch.totals().egress.faults;
        assert_eq!(
            (faults.corrupted + egress.corrupted, faults.corrupt_refused + egress.corrupt_refused),
            (400, 1)
        );
    }
}

#[test]
fn a_link_can_be_cut_in_one_direction_and_mended() {
    for side in SIDES {
        let mut switch = switch(config(2));
        let port = PortId(if side == Direction::Ingress { 0 } else { 1 });
        arrive(&mut switch, 0, 1, What::Ack);
        switch.set_link(port, side, false);
        let waiting = sent(&mut switch, 1).len();
        assert_eq!(waiting, usize::from(side == Direction::Ingress), "what waits for a cut link is lost");
        arrive(&mut switch, 0, 1, What::Ack);
        arrive(&mut switch, 1, 0, What::Ack);
        assert_eq!((sent(&mut switch, 1).len(), sent(&mut switch, 0).len()), (0, 1));
        switch.set_link(port, side, true);
        arrive(&mut switch, 0, 1, What::Ack);
        assert_eq!(sent(&mut switch, 1).len(), 1);
        let lost = switch.counters(PortId(0)).ingress.drops.get(DropReason::LinkDown)
            + switch.counters(PortId(1)).egress.drops.get(DropReason::LinkDown);
        assert_eq!(lost, 2 - waiting as u64);
        assert_balanced(&switch);
    }
}

#[test]
fn faults_of_the_two_directions_have_dice_of_their_own() {
    let half = FaultConfig { drop: Probability::from_ppm(500_000), ..FaultConfig::NONE };
    let run = |side| payloads(&mut faulty(side, half), 0..64);
    assert_ne!(run(Direction::Ingress), run(Direction::Egress));
    assert_eq!(run(Direction::Egress), run(Direction::Egress));
}

// D6
#[test]
fn faults_out_of_range_are_refused() {
    let refusal = |faults| {
        let config = PipelineConfig { egress_faults: vec![FaultConfig::NONE, faults], ..config(2) };
        Switch::new(config).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(FaultConfig { reorder_frames: 0, ..FaultConfig::NONE }),
        "the number of frames that overtake a reordered one must be 1 to 65536, not 0"
    );
    assert_eq!(
        refusal(FaultConfig { held_frames_max: 0, ..FaultConfig::NONE }),
        "the number of frames that faults hold back must be 1 to 65536, not 0"
    );
    let error =
        Switch::new(PipelineConfig { egress_faults: vec![FaultConfig::NONE], ..config(2) }).unwrap_err();
    assert_eq!(error.to_string(), "egress faults are given for 1 ports; give them for all 2 or for none");
}
