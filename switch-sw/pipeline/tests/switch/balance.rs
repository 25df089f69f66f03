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
fn d3_acks_without_room_in_the_control_queue_go_with_the_data() {
    for control_frames_max in [0, 1] {
        let mut switch = switch(PipelineConfig { control_frames_max, ..config(2) });
        for what in [What::Ack, What::Ack, What::HeaderOnly] {
            arrive(&mut switch, 0, 1, what);
        }
        let queued = switch.queued(PortId(1));
        assert_eq!(
            (queued.control_frames, queued.data_frames),
            (control_frames_max as usize, 2 - control_frames_max as usize)
        );
        assert_eq!(switch.counters(PortId(1)).egress.ho_lost(), 1);
        assert_balanced(&switch);
    }
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
    Timeout,
    Pass(u64),
    Link { port: u16, side: Direction, up: bool },
    Faults { port: u16, side: Direction, ppm: u32 },
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
    let side = || prop_oneof![Just(Direction::Ingress), Just(Direction::Egress)];
    prop_oneof![
        // Host 5 is behind a group, hosts 6 and 7 do not exist: the default way, or flooded.
        20 => (0u16..5, 0u16..8, what).prop_map(|(from, to, what)| Step::Arrive { from, to, what }),
        1 => (0u16..5).prop_map(Step::Runt),
        4 => (0u16..5, 0usize..6).prop_map(|(port, room)| Step::Transmit { port, room }),
        2 => Just(Step::Timeout),
        4 => (0u64..3000).prop_map(Step::Pass),
        1 => (0u16..5, side(), any::<bool>()).prop_map(|(port, side, up)| Step::Link { port, side, up }),
        1 => (0u16..5, side(), 0u32..300_000).prop_map(|(port, side, ppm)| Step::Faults { port, side, ppm }),
        1 => Just(Step::Drain),
    ]
}

/// All faults, most of them in both ways.
fn all_faults(ppm: u32) -> FaultConfig {
    let p = Probability::from_ppm(ppm);
    FaultConfig {
        drop: p,
        trim: p,
        duplicate: p,
        corrupt: p,
        delay: p,
        reorder: p,
        every: Every { drop: 13, trim: 7, duplicate: 11, corrupt: 5, delay: 9, reorder: 6 },
        delay_ns: 2000,
        reorder_frames: 2,
        reorder_ns: 3000,
        held_frames_max: 4,
    }
}

/// Ports 3 and 4 are a group; ports 1 and 3 have links; everything that can be on is on.
fn everything(seed: u64, balance: LoadBalance, trim_to: Option<TrimTo>) -> PipelineConfig {
    let link = LinkConfig { delay_ns: 500, ..LinkConfig::of_rate(LinkRate::from_mbps(9_000)) };
    let mut links = vec![LinkConfig::default(); 5];
    (links[1], links[3]) = (link, LinkConfig { in_flight_frames_max: 3, ..link });
    let group = GroupConfig::weighted([(PortId(3), 1), (PortId(4), 4)], balance);
    PipelineConfig {
        seed,
        trim_threshold_bytes: 4000,
        data_frames_max: 16,
        faults: vec![all_faults(60_000); 5],
        egress_faults: vec![all_faults(60_000); 5],
        links,
        static_macs: (0..3).map(|port| (host(port), PortId(port))).collect(),
        groups: vec![GroupConfig { avoid_down: seed.is_multiple_of(2), ..group }],
        group_macs: vec![(host(5), GroupId(0))],
        default_group: seed.is_multiple_of(3).then_some(GroupId(0)),
        mac_age_ns: 5000,
        ecn: Some(RedConfig { min_bytes: 1000, max_bytes: 3000, at_max: Probability::from_ppm(500_000) }),
        trim_to,
        ..PipelineConfig::new(5)
    }
}

fn any_balance() -> impl Strategy<Value = LoadBalance> {
    prop_oneof![
        Just(LoadBalance::Ecmp),
        Just(LoadBalance::SprayRoundRobin),
        Just(LoadBalance::SprayRandom),
        Just(LoadBalance::Adaptive),
    ]
}

fn any_trim() -> impl Strategy<Value = Option<TrimTo>> {
    let data = TrimTo { trim_queue: TrimQueue::Data, ..TrimTo::SONIC };
    prop_oneof![3 => Just(None), 1 => Just(Some(TrimTo::NVIDIA)), 1 => Just(Some(data))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    // D2, S-4 under everything at once, after every step.
    #[test]
    fn every_frame_is_accounted_for_after_every_step(
        steps in proptest::collection::vec(any_step(), 1..400), seed in any::<u64>(), acks in any::<bool>(),
        learn_macs in any::<bool>(), control_frames_max in 0u32..12, balance in any_balance(), trim in any_trim(),
    ) {
        let mut switch = switch(PipelineConfig {
            acks_use_control_queue: acks, learn_macs, control_frames_max, ..everything(seed, balance, trim)
        });
        let (mut arrived, mut left, mut now) = (0, 0, 0);
        for step in steps {
            match step {
                Step::Arrive { from, to, what } => {
                    switch.handle_frame(now, PortId(from), frame(from, to, what));
                    arrived += 1;
                }
                Step::Runt(from) => {
                    switch.handle_frame(now, PortId(from), ByteFrame(vec![1; 9].into()));
                    arrived += 1;
                }
                Step::Transmit { port, room } => {
                    let mut sink = Room { frames: Vec::new(), left: room };
                    left += switch.poll_transmit(now, PortId(port), &mut sink) as u64;
                }
                Step::Timeout => switch.handle_timeout(now),
                Step::Pass(ns) => now += ns,
                Step::Link { port, side, up } => switch.set_link(PortId(port), side, up),
                Step::Faults { port, side: Direction::Ingress, ppm } => switch.set_faults(PortId(port), all_faults(ppm)),
                Step::Faults { port, ppm, .. } => switch.set_egress_faults(PortId(port), all_faults(ppm)),
                Step::Drain => { switch.drain(); }
            }
            assert_balanced(&switch);
            for port in (0..5).map(PortId) {
                let queued = switch.queued(port);
                prop_assert!(queued.data_bytes <= 4000 + (64 << 10) + 1600 && queued.data_frames <= 16);
                prop_assert!(queued.control_frames <= control_frames_max as usize && queued.held_frames <= 4);
            }
        }
        let totals = switch.totals();
        prop_assert_eq!(totals.ingress.received, arrived);
        prop_assert_eq!(totals.egress.forwarded + totals.egress.trimmed_forwarded, left);
        // Left alone the switch empties by its timeouts, however it stands.
        while let Some(at) = switch.next_timeout() {
            now = now.max(at);
            switch.handle_timeout(now);
            for port in 0..5 {
                switch.poll_transmit(now, PortId(port), &mut Vec::new());
            }
        }
        assert_balanced(&switch);
        prop_assert_eq!((switch.queued_frames(), switch.totals().ingress.held), (0, 0));
    }
}
