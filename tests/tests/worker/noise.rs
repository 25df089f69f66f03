//! A6: frames that are not ours.

use dcp::dpdk::{Mbuf, MbufBatch, Pool, PoolConfig, QueuePair};
use dcp::wire::ParseError;
use dcp_pipeline::PipelineConfig;
use dcp_switch::Switch;

use crate::rig::{Dpdk, Host, Parts};

/// An Ethernet header with a broadcast destination, then zeros up to 60 bytes.
fn ethernet(ether_type: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
    frame
}

/// An IPv4 frame with a right header checksum.
fn ipv4(protocol: u8, fragment: u16, udp_port: u16) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&46u16.to_be_bytes());
    ip[6..8].copy_from_slice(&fragment.to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol;
    ip[12..20].copy_from_slice(&[10, 0, 0, 9, 10, 0, 0, 2]);
    let sum: u32 = ip.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from((folded & 0xffff) + (folded >> 16)).expect("folded twice");
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame[34..36].copy_from_slice(&9999u16.to_be_bytes());
    frame[36..38].copy_from_slice(&udp_port.to_be_bytes());
    frame[38..40].copy_from_slice(&26u16.to_be_bytes());
    frame
}

/// Noise, and how it is to be counted.
fn noise() -> Vec<(Vec<u8>, ParseError)> {
    const UDP: u8 = 17;
    const DF: u16 = 0x4000;
    vec![
        (ethernet(0x0806), ParseError::EtherType),
        (ethernet(0x86dd), ParseError::EtherType),
        (ethernet(0x88cc), ParseError::EtherType),
        (vec![0; 60], ParseError::EtherType),
        (vec![0; 1500], ParseError::EtherType),
        (vec![0xff; 60], ParseError::EtherType),
        (ipv4(UDP, DF, 53), ParseError::OtherPort),
        (ipv4(UDP, DF, 4791), ParseError::OtherPort),
        (ipv4(6, DF, 17791), ParseError::NotUdp),
        (ipv4(1, DF, 0), ParseError::NotUdp),
        (ipv4(UDP, 0x2000, 17791), ParseError::Fragment),
        (ethernet(0x0800), ParseError::IpHeader),
        (vec![0; 13], ParseError::TooShort),
    ]
}

fn send_all(pool: &Pool, to: &mut QueuePair, frames: &[(Vec<u8>, ParseError)]) {
    let mut batch = MbufBatch::new();
    for (bytes, _) in frames {
        batch.push(Mbuf::from_bytes(pool, bytes).expect("a large pool")).expect("few frames");
    }
    assert_eq!(to.tx.burst(&mut batch), frames.len());
}

#[test]
fn a6_noise_is_ignored_and_counted_by_a_worker() {
    let dpdk = Dpdk::take();
    let pool = dpdk.pool(PoolConfig::frames("noise", 255, 2048));
    let (end, mut wire) = dpdk.links(1, 64).remove(0);
    let mut host = Host::new(&dpdk, end, Parts::default(), 2);
    let frames = noise();
    const ROUNDS: u64 = 50;
    for _ in 0..ROUNDS {
        send_all(&pool, &mut wire, &frames);
        host.worker.poll();
    }
    let mut expected = [0; ParseError::COUNT];
    for (_, error) in &frames {
        assert!(error.is_noise());
        expected[error.index()] += ROUNDS;
    }
    let counters = host.worker.counters();
    assert_eq!(counters.unparsed, expected);
    assert_eq!((counters.received, counters.sent), (ROUNDS * frames.len() as u64, 0));
    assert_eq!(host.worker.endpoint().counters(), &dcp::core::Counters::default());
    drop((host, wire));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a6_noise_is_passed_on_by_the_switch_untrimmed() {
    let dpdk = Dpdk::take();
    let pool = dpdk.pool(PoolConfig::frames("noise", 4095, 2048));
    let mut links = dpdk.links(3, 512);
    let (ends, ports): (Vec<_>, Vec<_>) = links.drain(..).unzip();
    let [mut first, mut second, mut third] = <[QueuePair; 3]>::try_from(ends).expect("three");
    let config = PipelineConfig { trim_threshold_bytes: 0, ..PipelineConfig::new(3) };
    let mut switch = Switch::new(config, ports, dpdk.clock()).expect("legal");
    let frames = noise();
    send_all(&pool, &mut first, &frames);
    for _ in 0..10 {
        switch.poll();
    }
    let totals = switch.pipeline().totals();
    assert_eq!(totals.egress.trimmed, 0);
    let arrived = totals.egress.forwarded + totals.egress.drops.total();
    assert_eq!(arrived + totals.ingress.drops.total(), 2 * frames.len() as u64 - 1, "a runt reaches no port");
    let mut got = MbufBatch::new();
    second.rx.burst(&mut got);
    third.rx.burst(&mut got);
    assert_eq!(got.len() as u64, totals.egress.forwarded);
    drop((got, switch, first, second, third));
    assert_eq!(pool.in_use(), 0);
}
