//! A10: headers split over several segments are the same headers.

use dcp::dpdk::{Mbuf, Pool, PoolConfig};
use dcp_pipeline::{FaultConfig, PipelineConfig, Probability};
use dcp_switch::Switch;

use crate::relay::{Edit, Relay};
use crate::rig::{Dpdk, Parts, Rig};

/// Lengths of the first segments; the rest of a frame follows in pieces of 1000 bytes.
const SPLITS: [&[usize]; 5] = [&[10, 32], &[14, 20, 8, 12], &[1, 1, 1, 1, 53], &[56, 1], &[42, 15, 16]];
const REST: usize = 1000;

/// A copy of `frame` in segments of the given lengths.
fn split(frame: &Mbuf, lengths: &[usize], pool: &Pool) -> Mbuf {
    let mut bytes = vec![0; frame.frame_len()];
    frame.copy_to_slice(0, &mut bytes).expect("as long as the frame");
    let mut lengths = lengths.iter().copied().chain(std::iter::repeat(REST));
    let mut rest = &bytes[..];
    let mut whole: Option<Mbuf> = None;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(lengths.next().unwrap_or(REST)));
        rest = behind;
        let segment = Mbuf::from_bytes(pool, piece).expect("a large pool");
        match &mut whole {
            None => whole = Some(segment),
            Some(whole) => whole.append(segment).expect("few segments"),
        }
    }
    whole.expect("a frame has bytes")
}

fn splitter(lengths: &'static [usize], pool: Pool) -> Edit {
    Box::new(move |frame, _| Some(split(&frame, lengths, &pool)))
}

fn assert_all_parsed(rig: &Rig) {
    for host in [&rig.client, &rig.server] {
        assert_eq!(host.worker.counters().unparsed.iter().sum::<u64>(), 0);
        assert_eq!(host.worker.endpoint().counters().dropped_total(), 0);
    }
}

#[test]
fn a10_split_headers_are_accepted_by_workers() {
    let dpdk = Dpdk::take();
    for lengths in SPLITS {
        let pool = dpdk.pool(PoolConfig::frames("frames", 16_383, 1024));
        let parts = Parts::default();
        let mut rig = Rig::new(&dpdk, parts, splitter(lengths, pool.clone()));
        for _ in 0..20 {
            rig.post(parts.size);
        }
        rig.finish();
        assert_all_parsed(&rig);
        assert_eq!(rig.client.worker.endpoint().counters().retransmitted, 0, "{lengths:?}");
        rig.assert_no_leak();
        assert_eq!(pool.in_use(), 0, "{lengths:?}");
    }
}

// Trimming, bouncing and resending, with every frame in pieces on either side of the switch.
#[test]
fn a10_split_headers_are_trimmed_by_the_switch_and_bounced() {
    let dpdk = Dpdk::take();
    for lengths in SPLITS {
        let pool = dpdk.pool(PoolConfig::frames("frames", 16_383, 1024));
        let parts = Parts::default();
        let mut links = dpdk.links(3, parts.ring_size).into_iter();
        let [(client_end, client_port), (server_end, server_port), (relay_end, switch_port)] =
            [(); 3].map(|()| links.next().expect("three links"));
        let trim = FaultConfig { trim: Probability::from_ppm(300_000), ..FaultConfig::NONE };
        let config = PipelineConfig { faults: vec![trim; 2], ..PipelineConfig::new(2) };
        let switch = Switch::new(config, vec![switch_port, server_port], dpdk.clock()).expect("legal");
        let relay = Relay::new(client_port, relay_end, splitter(lengths, pool.clone())).with_switch(switch);
        let mut rig = Rig::around(&dpdk, parts, client_end, server_end, relay);
        for _ in 0..20 {
            rig.post(parts.size);
        }
        rig.finish();
        assert_all_parsed(&rig);
        let trimmed = rig.relay.switch().pipeline().totals().egress.trimmed;
        let counters = *rig.client.worker.endpoint().counters();
        assert!(trimmed > 0, "{lengths:?}");
        assert_eq!((counters.retransmitted, counters.timeouts), (trimmed, 0), "{lengths:?}");
        rig.assert_no_leak();
        assert_eq!(pool.in_use(), 0, "{lengths:?}");
    }
}
