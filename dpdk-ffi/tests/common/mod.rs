//! One EAL for all tests of a test program, which run as threads of one process.
#![allow(dead_code, clippy::unwrap_used, reason = "each test program uses a part; all of it is test code")]

use std::sync::OnceLock;

use dpdk_ffi::{Eal, EalConfig, FabricConfig, Mbuf, MbufBatch, Pool, PoolConfig, QueuePair, create_links};

pub(crate) fn eal() -> &'static Eal {
    static EAL: OnceLock<Eal> = OnceLock::new();
    EAL.get_or_init(|| {
        let config = EalConfig { memory_mib: 256, ..EalConfig::default() };
        Eal::start(config).unwrap_or_else(|error| panic!("{error}"))
    })
}

pub(crate) fn headers(count: u32) -> Pool {
    Pool::new(eal(), PoolConfig::header("hdr", count)).unwrap()
}

pub(crate) fn payloads(count: u32) -> Pool {
    Pool::new(eal(), PoolConfig::payload("pay", count)).unwrap()
}

pub(crate) fn link(ring_size: u32) -> (QueuePair, QueuePair) {
    create_links(eal(), FabricConfig { links: 1, ring_size }).unwrap().pop().unwrap()
}

/// A batch of one-byte frames 0, 1, 2 …
pub(crate) fn numbered(pool: &Pool, count: u8) -> MbufBatch {
    let mut batch = MbufBatch::new();
    for number in 0..count {
        batch.push(frame(pool, &[number])).unwrap();
    }
    batch
}

pub(crate) fn frame(pool: &Pool, bytes: &[u8]) -> Mbuf {
    Mbuf::from_bytes(pool, bytes).unwrap()
}

/// A frame split into segments of the given lengths, with bytes 0, 1, 2 …
pub(crate) fn split_frame(pool: &Pool, lengths: &[usize]) -> Mbuf {
    let mut next = 0u8;
    let mut segments = lengths.iter().map(|&len| {
        let bytes: Vec<u8> = (0..len)
            .map(|_| {
                next = next.wrapping_add(1);
                next.wrapping_sub(1)
            })
            .collect();
        frame(pool, &bytes)
    });
    let mut whole = segments.next().unwrap();
    segments.for_each(|segment| whole.append(segment).unwrap());
    whole
}

pub(crate) fn bytes(frame: &Mbuf) -> Vec<u8> {
    let mut bytes = vec![0; frame.frame_len()];
    frame.copy_to_slice(0, &mut bytes).unwrap();
    bytes
}
