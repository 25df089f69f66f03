//! S-5, E5: groups of parallel links.

use crate::support::*;
use dcp_pipeline::*;

/// Port 0 has a host; ports 1 … are uplinks to where hosts 10 … are.
fn uplinks(balance: LoadBalance, weights: &[u32]) -> PipelineConfig {
    let members = (1..).map(PortId).zip(weights.iter().copied());
    let ports = u16::try_from(weights.len()).unwrap() + 1;
    PipelineConfig {
        static_macs: vec![(host(0), PortId(0))],
        groups: vec![GroupConfig::weighted(members, balance)],
        group_macs: (10..20).map(|number| (host(number), GroupId(0))).collect(),
        ..PipelineConfig::new(ports)
    }
}

/// Frames waiting per port, which are then gone.
fn waiting(switch: &mut Switch) -> Vec<usize> {
    (0..switch.ports()).map(|port| sent(switch, port).len()).collect()
}

/// The frame of another flow: its UDP source port differs.
fn of_flow(mut frame: ByteFrame, src_port: u16) -> ByteFrame {
    let mut bytes = frame.0.to_vec();
    bytes[34..36].copy_from_slice(&src_port.to_be_bytes());
    frame.0 = bytes.into();
    frame
}

// E5
#[test]
fn udp_source_ports_spread_flows_over_paths() {
    let mut switch = switch(uplinks(LoadBalance::Ecmp, &[1; 8]));
    for flow in 0..4000 {
        switch.handle_frame(0, PortId(0), of_flow(frame(0, 10, What::Data(64)), 0xC000 + flow));
    }
    let counts = waiting(&mut switch);
    assert!(counts[1..].iter().all(|&count| (400..600).contains(&count)), "{counts:?}");
}

#[test]
fn a_flow_stays_on_its_path_with_ecmp() {
    let mut switch = switch(uplinks(LoadBalance::Ecmp, &[1, 1, 1]));
    for what in [What::Data(700), What::Ack, What::HeaderOnly, What::Data(1)].repeat(10) {
        arrive(&mut switch, 0, 10, what);
    }
    let counts = waiting(&mut switch);
    assert!(counts.contains(&40), "{counts:?}");
}

#[test]
fn sprayed_frames_of_one_flow_take_all_paths_by_weight() {
    for (balance, spread) in [(LoadBalance::SprayRoundRobin, 0), (LoadBalance::SprayRandom, 120)] {
        for weight in [1usize, 4, 10] {
            let mut switch = switch(uplinks(balance, &[1, u32::try_from(weight).unwrap()]));
            for _ in 0..(weight + 1) * 400 {
                arrive(&mut switch, 0, 10, What::Data(64));
                assert_balanced(&switch);
            }
            let counts = waiting(&mut switch);
            assert!(counts[1].abs_diff(400) <= spread, "{balance:?} 1:{weight}: {counts:?}");
        }
    }
}

#[test]
fn adaptive_routing_fills_queues_by_weight_and_avoids_a_slow_port() {
    let config = PipelineConfig { trim_threshold_bytes: 1 << 30, ..uplinks(LoadBalance::Adaptive, &[1, 4]) };
    let mut switch = switch(config);
    for number in 0..500 {
        arrive(&mut switch, 0, 10, What::Data(number * 37 % 1024));
    }
    let (slow, fast) = (switch.queued(PortId(1)).data_bytes, switch.queued(PortId(2)).data_bytes);
    assert!((slow * 4).abs_diff(fast) < 6000, "{slow} : {fast}");
    // Port 1 stands still, port 2 drains: all goes there.
    let before = switch.counters(PortId(1)).egress.offered;
    for _ in 0..500 {
        sent(&mut switch, 2);
        arrive(&mut switch, 0, 10, What::Data(1000));
    }
    assert_eq!(switch.counters(PortId(1)).egress.offered, before);
}

#[test]
fn what_is_learned_at_one_link_of_a_group_is_behind_all_of_them() {
    let mut config = uplinks(LoadBalance::SprayRoundRobin, &[1, 1]);
    config.group_macs.clear();
    let mut switch = switch(config);
    switch.handle_frame(0, PortId(2), frame(10, 0, What::Ack));
    waiting(&mut switch);
    for _ in 0..6 {
        arrive(&mut switch, 0, 10, What::Ack);
    }
    assert_eq!(waiting(&mut switch), [0, 3, 3]);
}

#[test]
fn a_flooded_frame_takes_one_link_of_a_group_and_never_returns_by_another() {
    let mut config = uplinks(LoadBalance::Ecmp, &[1, 1, 1]);
    config.ports = 6;
    config.groups.push(GroupConfig::equal([PortId(4), PortId(5)], LoadBalance::SprayRandom));
    let mut switch = switch(config);
    switch.handle_frame(0, PortId(0), frame_to(BROADCAST, host(0), What::Other(10)));
    let counts = waiting(&mut switch);
    assert_eq!((counts[0], counts[1..4].iter().sum::<usize>(), counts[4..].iter().sum::<usize>()), (0, 1, 1));
    switch.handle_frame(0, PortId(2), frame_to(BROADCAST, host(10), What::Other(10)));
    let counts = waiting(&mut switch);
    assert_eq!((counts[0], counts[1..4].iter().sum::<usize>(), counts[4..].iter().sum::<usize>()), (1, 0, 1));
    let ingress = switch.totals().ingress;
    assert_eq!((ingress.received, ingress.flood_copies, ingress.routed), (2, 2, 4));
    assert_balanced(&switch);
}

#[test]
fn a_frame_is_not_sent_back_by_another_link_of_its_group() {
    let mut switch = switch(uplinks(LoadBalance::SprayRoundRobin, &[1, 1]));
    switch.handle_frame(0, PortId(1), frame(11, 10, What::Ack));
    assert_eq!(switch.counters(PortId(1)).ingress.drops.get(DropReason::SamePort), 1);
    assert_eq!(waiting(&mut switch), [0; 3]);
}

#[test]
fn unknown_addresses_go_the_default_way_and_groups_of_hosts_everywhere() {
    let config = PipelineConfig {
        ports: 4,
        default_group: Some(GroupId(0)),
        ..uplinks(LoadBalance::SprayRoundRobin, &[1, 1])
    };
    let mut switch = switch(config);
    arrive(&mut switch, 0, 99, What::Data(10));
    assert_eq!(waiting(&mut switch), [0, 1, 0, 0]);
    switch.handle_frame(0, PortId(0), frame_to(BROADCAST, host(0), What::Other(10)));
    assert_eq!(waiting(&mut switch)[3], 1);
    switch.handle_frame(0, PortId(1), frame(10, 99, What::Data(10)));
    assert_eq!(waiting(&mut switch), [1, 0, 0, 1], "from there it is flooded here");
    assert_balanced(&switch);
}

#[test]
fn an_address_is_forgotten_when_it_is_silent_and_kept_while_it_talks() {
    let mut switch = switch(PipelineConfig { mac_age_ns: 1000, ..PipelineConfig::new(3) });
    // The clock of a driver starts anywhere.
    let start = 1u64 << 60;
    let arrive = |switch: &mut Switch, at, from, to| {
        switch.handle_frame(start + at, PortId(from), frame(from, to, What::Ack))
    };
    arrive(&mut switch, 0, 1, 9);
    waiting(&mut switch);
    for at in (0..5000).step_by(100) {
        arrive(&mut switch, at, 1, 9);
    }
    waiting(&mut switch);
    arrive(&mut switch, 5700, 0, 1);
    assert_eq!(waiting(&mut switch), [0, 1, 0]);
    arrive(&mut switch, 6000, 0, 1);
    assert_eq!(waiting(&mut switch), [0, 1, 1], "flooded");
}

#[test]
fn the_addresses_behind_a_port_can_be_forgotten() {
    let mut switch = switch(PipelineConfig::new(3));
    arrive(&mut switch, 1, 9, What::Ack);
    waiting(&mut switch);
    switch.forget_macs(PortId(1));
    arrive(&mut switch, 0, 1, What::Ack);
    assert_eq!(waiting(&mut switch), [0, 1, 1]);
}

// D6
#[test]
fn groups_that_cannot_be_are_refused() {
    let refusal = |edit: fn(&mut PipelineConfig)| {
        let mut config = uplinks(LoadBalance::Ecmp, &[1, 1]);
        edit(&mut config);
        Switch::new(config).unwrap_err().to_string()
    };
    assert_eq!(refusal(|c| c.ports = 2), "group 0 has port 2, which does not exist");
    assert_eq!(refusal(|c| c.groups.push(c.groups[0].clone())), "port 1 of group 1 is in a group already");
    assert_eq!(
        refusal(|c| c.groups[0].members[1].weight = 0),
        "the weight of a group's port must be 1 to 1000, not 0"
    );
    assert_eq!(
        refusal(|c| c.groups[0].members.clear()),
        "the number of ports of a group must be 1 to 64, not 0"
    );
    assert_eq!(refusal(|c| c.default_group = Some(GroupId(1))), "there is no group 1");
    assert_eq!(refusal(|c| c.group_macs.push((host(30), GroupId(7)))), "there is no group 7");
    assert!(refusal(|c| c.group_macs.push((host(0), GroupId(0)))).contains("given twice"));
    assert!(refusal(|c| c.group_macs.push((BROADCAST, GroupId(0)))).contains("group address"));
}
