//! D2, D3, S-4: no frame goes missing.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::Tag;
use proptest::prelude::*;

// D2: two ports at line rate into one, and a control queue of ten.
#[test]
fn at_twice_the_load_every_frame_is_sent_trimmed_dropped_or_queued() {
    let mut switch =
        switch(PipelineConfig { trim_threshold_bytes: 16 << 10, control_frames_max: 10, ..config(3) });
    let (mut arrived, mut left, mut headers) = (0, 0, 0);
    for round in 0..5000 {
        arrive(&mut switch, 0, 2, if round % 10 == 0 { What::Ack } else { What::Data(1024) });
        arrive(&mut switch, 1, 2, if round % 7 == 0 { What::Other(1024) } else { What::Data(1024) });
        arrived += 2;
        for frame in sent_up_to(&mut switch, 2, 1) {
            left += 1;
            headers += u64::from(tag(&frame) == Tag::HeaderOnly);
        }
        assert_balanced(&switch);
    }
    let egress = switch.counters(PortId(2)).egress;
    assert_eq!(egress.offered, arrived);
    assert_eq!(egress.forwarded + egress.trimmed_forwarded, left);
    assert_eq!(egress.trimmed_forwarded, headers);
    assert!(
        egress.trimmed > 1000 && egress.ho_lost() > 0 && egress.drops.get(DropReason::DataQueueFull) > 100
    );
    assert_eq!(arrived, left + egress.drops.total() + switch.queued_frames());
}

// D3
#[test]
fn a_control_queue_of_none_or_one_loses_headers_and_says_how_many() {
    for (limit, kept) in [(0, 0u32), (1, 1)] {
        for by_bytes in [false, true] {
            let mut config = PipelineConfig { trim_threshold_bytes: 0, ..config(9) };
            if by_bytes {
                config.control_bytes_max = limit * 57;
            } else {
                config.control_frames_max = limit;
            }
            let mut switch = switch(config);
            for from in 0..8 {
                arrive(&mut switch, from, 8, What::Data(1024));
            }
            let egress = switch.counters(PortId(8)).egress;
            assert_eq!((egress.trimmed, egress.ho_lost()), (7, 7 - u64::from(kept)));
            assert_eq!(switch.queued(PortId(8)).control_frames, kept as usize);
            assert_balanced(&switch);
            let tags: Vec<Tag> = sent(&mut switch, 8).iter().map(tag).collect();
            assert_eq!(tags.iter().filter(|&&tag| tag == Tag::Data).count(), 1, "data is whole or a header");
        }
    }
}

#[test]
fn a_lost_ack_is_not_counted_as_a_lost_header() {
    let mut switch = switch(PipelineConfig { control_frames_max: 1, ..config(2) });
    for what in [What::Ack, What::Ack, What::HeaderOnly] {
        arrive(&mut switch, 0, 1, what);
    }
    let drops = switch.counters(PortId(1)).egress.drops;
    assert_eq!((drops.get(DropReason::ControlQueueFull), drops.get(DropReason::HeaderLost)), (1, 1));
}

#[test]
fn drained_frames_are_counted_and_the_switch_goes_on() {
    let mut switch = switch(PipelineConfig { trim_threshold_bytes: 2000, ..config(3) });
    for _ in 0..10 {
        arrive(&mut switch, 0, 1, What::Data(1000));
        arrive(&mut switch, 1, 2, What::Ack);
    }
    assert_eq!(switch.drain(), 20);
    assert_eq!((switch.queued_frames(), switch.drain()), (0, 0));
    assert_eq!(switch.totals().egress.drops.get(DropReason::Drained), 20);
    assert_balanced(&switch);
    arrive(&mut switch, 0, 1, What::Data(1000));
    assert_eq!(sent(&mut switch, 1), [frame(0, 1, What::Data(1000))]);
}

#[derive(Clone, Debug)]
enum Step {
    Arrive { from: u16, to: u16, what: What },
    Runt(u16),
    Transmit { port: u16, room: usize },
    Drain,
}

fn any_step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        6 => (0usize..1500).prop_map(What::Data),
        2 => Just(What::Ack),
        1 => Just(What::Cnp),
        2 => Just(What::HeaderOnly),
        1 => (0usize..1500).prop_map(What::Other),
    ];
    prop_oneof![
        // Hosts 5 … 7 do not exist: flooded.
        20 => (0u16..5, 0u16..8, what).prop_map(|(from, to, what)| Step::Arrive { from, to, what }),
        1 => (0u16..5).prop_map(Step::Runt),
        4 => (0u16..5, 0usize..6).prop_map(|(port, room)| Step::Transmit { port, room }),
        1 => Just(Step::Drain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // S-4 under faults, floods, learning and tiny queues, after every step.
    #[test]
    fn every_frame_is_accounted_for_after_every_step(
        steps in proptest::collection::vec(any_step(), 1..400), seed in any::<u64>(), acks in any::<bool>(),
        learn_macs in any::<bool>(), control_frames_max in 0u32..12,
    ) {
        let faults = FaultConfig {
            drop: Probability::from_ppm(50_000),
            trim: Probability::from_ppm(100_000),
            duplicate: Probability::from_ppm(100_000),
        };
        let mut switch = switch(PipelineConfig {
            seed, acks_use_control_queue: acks, learn_macs, control_frames_max, trim_threshold_bytes: 4000,
            data_frames_max: 16, faults: vec![faults; 5], ..config(5)
        });
        let (mut arrived, mut left) = (0, 0);
        for step in steps {
            match step {
                Step::Arrive { from, to, what } => { arrive(&mut switch, from, to, what); arrived += 1; }
                Step::Runt(from) => { switch.handle_frame(0, PortId(from), ByteFrame(vec![1; 9].into())); arrived += 1; }
                Step::Transmit { port, room } => left += sent_up_to(&mut switch, port, room).len() as u64,
                Step::Drain => { switch.drain(); }
            }
            assert_balanced(&switch);
            for port in (0..5).map(PortId) {
                let queued = switch.queued(port);
                prop_assert!(queued.data_bytes <= 4000 + 1600 && queued.data_frames <= 16);
                prop_assert!(queued.control_frames <= control_frames_max as usize);
            }
        }
        let totals = switch.totals();
        prop_assert_eq!(totals.ingress.received, arrived);
        prop_assert_eq!(totals.egress.forwarded + totals.egress.trimmed_forwarded, left);
    }
}
