//! Links of a rate and a length behind egress ports.
#![expect(clippy::cast_possible_truncation, reason = "small numbers of nanoseconds and bytes")]

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::Tag;

fn gbps(gbps: f64) -> LinkConfig {
    LinkConfig::of_rate(LinkRate::from_gbps(gbps).unwrap())
}

fn linked(ports: u16, link: LinkConfig) -> PipelineConfig {
    PipelineConfig { links: vec![link; usize::from(ports)], ..config(ports) }
}

fn sent_at(switch: &mut Switch, now_ns: u64, port: u16) -> Vec<ByteFrame> {
    let mut frames = Vec::new();
    switch.poll_transmit(now_ns, PortId(port), &mut frames);
    frames
}

fn arrive_at(switch: &mut Switch, now_ns: u64, from: u16, to: u16, what: What) {
    switch.handle_frame(now_ns, PortId(from), frame(from, to, what));
}

/// Runs a port by its timeouts until `end_ns`: when each frame came, and its length.
fn departures(switch: &mut Switch, port: u16, end_ns: u64) -> Vec<(u64, u32)> {
    let mut log = Vec::new();
    while let Some(now_ns) = switch.next_timeout_of(PortId(port)).filter(|&at| at <= end_ns) {
        log.extend(sent_at(switch, now_ns, port).iter().map(|frame| (now_ns, frame.len())));
    }
    log
}

#[test]
fn a_frame_comes_when_its_last_bit_has_crossed_the_link() {
    // 8 Gb/s: a byte per nanosecond. Wire bytes: 1097 + 24, and 60 + 24 for what is shorter.
    let mut switch = switch(linked(2, LinkConfig { delay_ns: 1000, ..gbps(8.0) }));
    assert_eq!(switch.next_timeout(), None);
    arrive_at(&mut switch, 5000, 0, 1, What::Data(1024));
    assert_eq!(switch.next_timeout(), Some(5000), "it can start at once");
    arrive_at(&mut switch, 5000, 0, 1, What::Data(1024));
    assert_eq!(departures(&mut switch, 1, u64::MAX), [(7121, 1097), (8242, 1097)]);
    assert_eq!(switch.next_timeout(), None);
    // The link was idle: no time was saved.
    arrive_at(&mut switch, 20_000, 0, 1, What::HeaderOnly);
    assert_eq!(departures(&mut switch, 1, u64::MAX), [(21_084, 57)]);
    assert_balanced(&switch);
}

#[test]
fn an_ideal_link_is_asked_at_once_and_a_delay_alone_costs_no_rate() {
    let mut ideal = switch(config(2));
    arrive_at(&mut ideal, 7, 0, 1, What::Ack);
    assert_eq!((ideal.next_timeout(), sent_at(&mut ideal, 7, 1).len()), (Some(0), 1));
    let mut long = switch(linked(2, LinkConfig { delay_ns: 500, ..LinkConfig::default() }));
    for _ in 0..10 {
        arrive_at(&mut long, 100, 0, 1, What::Data(100));
    }
    assert_eq!(sent_at(&mut long, 599, 1).len(), 0);
    assert_eq!((long.queued(PortId(1)).link_frames, long.has_queued(PortId(1))), (10, true));
    assert_balanced(&long);
    assert_eq!((long.next_timeout(), sent_at(&mut long, 600, 1).len()), (Some(600), 10));
}

// C-5's demand on pacing, for links: the rate is right however rarely one looks.
#[test]
fn the_rate_is_right_at_any_interval_of_polls() {
    for (rate, interval) in [(0.1, 100u64), (0.1, 1_000_000), (10.0, 997), (10.0, 33_333), (100.0, 1_000_000)]
    {
        let mut config = linked(2, gbps(rate));
        (config.trim_threshold_bytes, config.data_frames_max) = (64 << 20, 16_384);
        let mut switch = switch(config);
        // More than the link can carry between two polls.
        let (end, backlog) = (20_000_000, (rate * interval as f64 / 8.0 * 1.1) as u64 + 10_000);
        let mut bytes = 0;
        for now in (0..=end).step_by(interval as usize) {
            while switch.queued(PortId(1)).data_bytes < backlog {
                arrive_at(&mut switch, now, 0, 1, What::Data(1400));
            }
            let frames = sent_at(&mut switch, now, 1);
            bytes += frames.iter().map(|frame| u64::from(wire_len(frame.len()))).sum::<u64>();
        }
        let (got, frame) = (bytes as f64 * 8.0 / end as f64, 1497.0 * 8.0 / end as f64);
        assert!((got - rate).abs() < rate * 0.0005 + 2.0 * frame, "{rate} Gb/s every {interval} ns: {got}");
    }
}

// S-3: which frame goes is decided when the link is free for it.
#[test]
fn the_schedule_decides_under_shaping() {
    let weight = Some(WeightConfig::ExplicitMilli(538));
    let mut switch = switch(PipelineConfig { weight, ..linked(3, gbps(10.0)) });
    let (mut control, mut data) = (0u64, 0u64);
    for now in (0..20_000_000).step_by(500) {
        while switch.queued(PortId(2)).control_frames < 40 {
            arrive_at(&mut switch, now, 1, 2, What::HeaderOnly);
        }
        while switch.queued(PortId(2)).data_frames < 40 {
            arrive_at(&mut switch, now, 0, 2, What::Data(1024));
        }
        for frame in sent_at(&mut switch, now, 2) {
            let bytes = u64::from(wire_len(frame.len()));
            if tag(&frame) == Tag::HeaderOnly { control += bytes } else { data += bytes }
        }
    }
    let share = control as f64 / data as f64;
    assert!((share / 0.538 - 1.0).abs() < 0.01, "{share}");
    let got = (control + data) as f64 * 8.0 / 20_000_000.0;
    assert!((got / 10.0 - 1.0).abs() < 0.001, "{got}");
}

// S-1: a slow link fills the queue, and the queue trims.
#[test]
fn what_a_slow_link_cannot_carry_is_trimmed_and_headers_pass() {
    let mut config = linked(3, LinkConfig::default());
    config.links[2] = gbps(10.0);
    config.trim_threshold_bytes = 32 << 10;
    let mut switch = switch(config);
    // Two senders at 10 Gb/s: a frame each in 897 ns.
    for now in (0..8_968_000).step_by(897) {
        arrive_at(&mut switch, now, 0, 2, What::Data(1024));
        arrive_at(&mut switch, now, 1, 2, What::Data(1024));
        sent_at(&mut switch, now, 2);
    }
    assert_balanced(&switch);
    let egress = switch.counters(PortId(2)).egress;
    let goodput = (egress.forwarded * 1121 + egress.trimmed_forwarded * 84) as f64 * 8.0 / 8_968_000.0;
    assert!((9.9..10.01).contains(&goodput), "{goodput}: {egress:?}");
    assert_eq!(egress.ho_lost(), 0);
    assert!(egress.trimmed > 9000, "{egress:?}");
}

// Figure 11: two links of unequal capacity, adaptive routing: the sum of both, and no trim.
#[test]
fn adaptive_routing_uses_the_sum_of_unequal_links() {
    for slow in [10.0, 2.5, 1.0] {
        let members = [
            (PortId(1), 10),
            (
                PortId(2),
                if slow == 10.0 {
                    10
                } else if slow == 2.5 {
                    40
                } else {
                    100
                },
            ),
        ];
        let mut config = PipelineConfig {
            groups: vec![GroupConfig::weighted(members, LoadBalance::Adaptive)],
            group_macs: vec![(host(9), GroupId(0))],
            links: vec![LinkConfig::default(), gbps(slow), gbps(10.0)],
            ..PipelineConfig::new(3)
        };
        config.trim_threshold_bytes = 64 << 10;
        let mut switch = switch(config);
        let offered = 0.98 * (slow + 10.0);
        let (end, mut sent_bits, mut now) = (10_000_000u64, 0.0f64, 0u64);
        while now < end {
            arrive_at(&mut switch, now, 0, 9, What::Data(1024));
            sent_bits += 1121.0 * 8.0;
            now = (sent_bits / offered) as u64;
            for port in [1, 2] {
                sent_at(&mut switch, now, port);
            }
        }
        let totals = switch.totals().egress;
        assert_eq!((totals.trimmed, totals.drops.total()), (0, 0), "{slow}: {totals:?}");
        let shares = [1, 2].map(|port| switch.counters(PortId(port)).egress.offered as f64);
        assert!((shares[0] / shares[1] / (slow / 10.0) - 1.0).abs() < 0.08, "{slow}: {shares:?}");
    }
}

#[test]
fn a_full_link_holds_the_queue_and_loses_nothing() {
    let link = LinkConfig { delay_ns: 1_000_000, in_flight_frames_max: 4, ..gbps(10.0) };
    let mut switch = switch(linked(2, link));
    for _ in 0..10 {
        arrive_at(&mut switch, 0, 0, 1, What::Data(100));
    }
    assert_eq!(sent_at(&mut switch, 500_000, 1).len(), 0);
    let queued = switch.queued(PortId(1));
    assert_eq!((queued.link_frames, queued.data_frames, queued.frames()), (4, 6, 10));
    assert_eq!(departures(&mut switch, 1, u64::MAX).len(), 10);
    assert_eq!(switch.counters(PortId(1)).egress.link_frames_peak, 4);
    assert_balanced(&switch);
}

#[test]
fn a_sink_without_room_keeps_frames_on_the_link() {
    let mut switch = switch(linked(2, gbps(10.0)));
    for _ in 0..40 {
        arrive_at(&mut switch, 0, 0, 1, What::Data(100));
    }
    let mut taken = 0;
    for room in [0, 1, 5, 0, 100] {
        let mut sink = Room { frames: Vec::new(), left: room };
        taken += switch.poll_transmit(1_000_000, PortId(1), &mut sink);
        assert_balanced(&switch);
    }
    assert_eq!((taken, switch.has_queued(PortId(1))), (40, false));
}

#[test]
fn draining_counts_frames_on_the_link() {
    let mut switch = switch(linked(2, LinkConfig { delay_ns: 1000, ..LinkConfig::default() }));
    for _ in 0..3 {
        arrive_at(&mut switch, 0, 0, 1, What::Data(100));
    }
    sent_at(&mut switch, 0, 1);
    assert_eq!((switch.queued(PortId(1)).link_frames, switch.drain()), (3, 3));
    assert_eq!(switch.next_timeout(), None);
    assert_balanced(&switch);
}

// D6
#[test]
fn links_that_cannot_be_are_refused() {
    let refusal = |edit: fn(&mut LinkConfig)| {
        let mut config = linked(2, LinkConfig::default());
        edit(&mut config.links[1]);
        Switch::new(config).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(|link| link.rate = LinkRate::from_mbps(10_000_001)),
        "a link's rate in Mb/s must be 1 to 10000000, not 10000001"
    );
    assert!(refusal(|link| link.delay_ns = 11_000_000_000).contains("a link's delay in microseconds"));
    assert!(refusal(|link| link.in_flight_frames_max = 1 << 21).contains("frames on a link"));
    let links = vec![LinkConfig::default(); 3];
    let error = Switch::new(PipelineConfig { links, ..config(2) }).unwrap_err();
    assert_eq!(error.to_string(), "links are given for 3 ports; give them for all 2 or for none");
}
