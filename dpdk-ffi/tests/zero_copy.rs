//! Frames that point into a region, and the count of those in flight.

#![expect(clippy::unwrap_used, reason = "test code")]

mod common;

use common::{bytes, eal, headers, link, payloads};
use dpdk_ffi::{
    AttachError, HugePreference, Mbuf, MbufBatch, MbufStash, Pool, Region, RegionError, RegionRangeError,
    Streaming,
};

struct Rig {
    headers: Pool,
    payloads: Pool,
    stash: MbufStash,
    region: Region,
}

/// Region bytes are 0, 1, 2 … modulo 251.
fn rig() -> Rig {
    let (headers, payloads) = (headers(255), payloads(255));
    let mut stash = MbufStash::new(&headers, &payloads);
    stash.refill();
    let region = Region::alloc(LEN, HugePreference::Auto).unwrap();
    region.write(0, &pattern()).unwrap();
    Rig { headers, payloads, stash, region }
}

const LEN: usize = 200_000;

fn pattern() -> Vec<u8> {
    (0..LEN).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

impl Rig {
    fn frame(&mut self, ranges: &[(u64, usize)]) -> Mbuf {
        let mut frame = self.stash.take_header().unwrap();
        frame.grow_head(3).unwrap().copy_from_slice(b"hdr");
        for &(offset, len) in ranges {
            self.stash.attach(&mut frame, &self.region, offset, len).unwrap();
        }
        frame
    }

    fn assert_idle(self) {
        assert_eq!(self.region.in_flight(), 0);
        drop(self.stash);
        assert_eq!((self.headers.in_use(), self.payloads.in_use()), (0, 0));
    }
}

#[test]
fn gathered_frame_reads_as_its_ranges_and_counts_them() {
    let mut rig = rig();
    let frame = rig.frame(&[(0, 4096), (100_000, 65_535), (7, 1), (9, 0)]);
    assert_eq!((frame.segments(), frame.frame_len()), (4, 3 + 4096 + 65_535 + 1));
    let pattern = pattern();
    let expected = [&b"hdr"[..], &pattern[..4096], &pattern[100_000..165_535], &pattern[7..8]].concat();
    assert!(bytes(&frame) == expected);
    assert_eq!(frame.head(), b"hdr");
    assert_eq!(rig.region.in_flight(), 3);
    drop(frame);
    rig.assert_idle();
}

/// Whatever mbufs were used for before: long chains, cut ones, copies.
#[test]
fn frame_taken_at_once_is_like_one_put_together() {
    let mut rig = rig();
    let pattern = pattern();
    for round in 0..300usize {
        let (offset, len) = (round * 97 % 1000, 1 + round * 131 % 9000);
        let mut frame = rig.stash.take_frame(5, &rig.region, u64::try_from(offset).unwrap(), len).unwrap();
        frame.head_mut().unwrap().copy_from_slice(b"heads");
        let expected = [&b"heads"[..], &pattern[offset..offset + len]].concat();
        assert!(bytes(&frame) == expected, "round {round}");
        assert_eq!((frame.segments(), frame.head_len(), rig.region.in_flight()), (2, 5, 1));
        let mut other = rig.frame(&[(0, 10), (20, 30), (50, 5)]);
        assert_eq!((other.segments(), other.frame_len()), (4, 48));
        match round % 4 {
            0 => other.truncate(15).unwrap(),
            1 => drop(frame.copy(&rig.headers)),
            2 => frame.append(other.private_copy(9).unwrap()).unwrap(),
            _ => {}
        }
        let mut batch = MbufBatch::new();
        batch.discard(frame);
        batch.discard(other);
        batch.free_all();
        rig.stash.refill();
    }
    rig.assert_idle();
}

#[test]
fn frame_that_cannot_be_taken_takes_nothing() {
    let mut rig = rig();
    for (offset, len) in [(LEN as u64, 1), (u64::MAX, 2), (199_999, 2)] {
        let error = rig.stash.take_frame(3, &rig.region, offset, len).unwrap_err();
        assert!(matches!(error, AttachError::Range(_)), "{error}");
    }
    let error = rig.stash.take_frame(3, &rig.region, 0, 65_536).unwrap_err();
    assert_eq!(error, AttachError::TooLong { len: 65_536 });
    assert_eq!((rig.stash.headers(), rig.stash.payloads(), rig.region.in_flight()), (128, 128, 0));
    let mut held = rig.frame(&[]);
    while rig.stash.payloads() > 0 {
        rig.stash.attach(&mut held, &rig.region, 0, 1).unwrap();
    }
    let headers = rig.stash.headers();
    assert_eq!(rig.stash.take_frame(3, &rig.region, 0, 1).unwrap_err(), AttachError::NoMbuf);
    assert_eq!((rig.stash.headers(), rig.region.in_flight()), (headers, 128));
    drop(held);
    rig.assert_idle();
}

#[test]
fn bad_ranges_change_nothing() {
    let mut rig = rig();
    let mut frame = rig.frame(&[]);
    for (offset, len) in [(LEN as u64, 1), (u64::MAX, 2), (199_999, 2)] {
        let error = rig.stash.attach(&mut frame, &rig.region, offset, len).unwrap_err();
        assert!(matches!(error, AttachError::Range(_)), "{error}");
    }
    let error = rig.stash.attach(&mut frame, &rig.region, 0, 65_536).unwrap_err();
    assert_eq!(error, AttachError::TooLong { len: 65_536 });
    assert_eq!((frame.segments(), frame.frame_len(), rig.region.in_flight()), (1, 3, 0));
    while rig.stash.payloads() > 0 {
        rig.stash.attach(&mut frame, &rig.region, 0, 1).unwrap();
    }
    assert_eq!(rig.stash.attach(&mut frame, &rig.region, 0, 1), Err(AttachError::NoMbuf));
    assert_eq!((frame.segments(), rig.region.in_flight()), (129, 128));
    drop(frame);
    rig.assert_idle();
}

// D5: trimming a zero-copy frame changes none of the sender's bytes.
#[test]
fn trimmed_frame_leaves_the_region_as_it_was() {
    let mut rig = rig();
    for len in [0, 2, 3, 4, 57, 5000] {
        let mut frame = rig.frame(&[(0, 4096), (10_000, 4096)]);
        frame.truncate(len).unwrap();
        frame.head_mut().unwrap().fill(0xff);
        assert_eq!(
            rig.region.in_flight(),
            if len <= 3 {
                0
            } else if len <= 4099 {
                1
            } else {
                2
            }
        );
        assert_eq!(rig.region.compare(0, &pattern()), Ok(None));
    }
    rig.assert_idle();
}

#[test]
fn bytes_of_the_region_are_never_lent_out() {
    let mut rig = rig();
    let mut frame = rig.frame(&[(5, 100)]);
    assert!(!frame.is_shared());
    assert_eq!((frame.head(), frame.head_len()), (&b"hdr"[..], 3));
    assert_eq!(frame.head_mut().unwrap().len(), 3);
    let mut header = [0; 8];
    assert_eq!(frame.header_into(&mut header), 8);
    assert_eq!(&header, b"hdr\x05\x06\x07\x08\x09");
    drop(frame);
    rig.assert_idle();
}

#[test]
fn frame_over_a_link_is_freed_by_another_thread_and_counted() {
    for registered in [true, false] {
        let mut rig = rig();
        let (mut host, mut switch) = link(128);
        let mut batch = MbufBatch::new();
        for number in 0..60 {
            batch.push(rig.frame(&[(number * 1000, 1000)])).unwrap();
        }
        assert_eq!(host.tx.burst(&mut batch), 60);
        assert_eq!(rig.region.in_flight(), 60);
        let receiver = std::thread::spawn(move || {
            let _guard = registered.then(|| dpdk_ffi::register_thread(eal()).unwrap());
            let mut got = MbufBatch::new();
            switch.rx.burst(&mut got);
            got.len()
        });
        assert_eq!(receiver.join().unwrap(), 60);
        assert_eq!(rig.region.in_flight(), 0);
        drop(host);
        rig.assert_idle();
    }
}

#[test]
fn partly_sent_and_stale_frames_are_all_counted_back() {
    let mut rig = rig();
    let (mut host, switch) = link(8);
    let mut batch = MbufBatch::new();
    for _ in 0..20 {
        batch.push(rig.frame(&[(0, 10), (20, 10)])).unwrap();
    }
    assert_eq!(host.tx.burst(&mut batch), 8);
    assert_eq!(rig.region.in_flight(), 40);
    drop(batch);
    assert_eq!(rig.region.in_flight(), 16);
    drop((host, switch));
    rig.assert_idle();
}

#[test]
fn region_outlives_its_handles_until_the_last_frame() {
    let mut rig = rig();
    let frame = rig.frame(&[(0, 4096)]);
    let outlived = dpdk_ffi::region::regions_outlived_handles();
    rig.region = Region::alloc(1, HugePreference::Never).unwrap();
    assert!(dpdk_ffi::region::regions_outlived_handles() > outlived);
    let waiting = dpdk_ffi::region::regions_awaiting_frames();
    assert!(waiting >= 1);
    assert!(bytes(&frame)[3..] == pattern()[..4096]);
    drop(frame);
    assert!(dpdk_ffi::region::regions_awaiting_frames() < waiting);
    rig.assert_idle();
}

#[test]
fn more_stashes_than_counter_slots_still_count_right() {
    let (headers, payloads) = (headers(20_000), payloads(20_000));
    let region = Region::alloc(64, HugePreference::Never).unwrap();
    let mut stashes: Vec<MbufStash> = (0..140).map(|_| MbufStash::new(&headers, &payloads)).collect();
    let build = |stash: &mut MbufStash| {
        stash.refill();
        let mut frame = stash.take_header().unwrap();
        stash.attach(&mut frame, &region, 0, 64).unwrap();
        frame
    };
    let frames: Vec<Mbuf> = stashes.iter_mut().map(build).collect();
    assert_eq!(region.in_flight(), 140);
    drop((frames, stashes));
    assert_eq!((region.in_flight(), headers.in_use(), payloads.in_use()), (0, 0, 0));
}

#[test]
fn received_payload_may_land_in_the_region_it_came_from() {
    let mut rig = rig();
    let frame = rig.frame(&[(0, 1000)]);
    frame.copy_out(3, &rig.region, 500, 1000).unwrap();
    assert_eq!(rig.region.compare(500, &pattern()[..1000]), Ok(None));
    drop(frame);
    rig.assert_idle();
}

#[test]
fn region_checks_every_offset() {
    let region = Region::alloc(16, HugePreference::Auto).unwrap();
    assert_eq!(region.compare(0, &[0; 16]), Ok(None));
    assert!(region.write(12, b"abcd").is_ok());
    let mut four = [0; 4];
    region.read(12, &mut four).unwrap();
    assert_eq!(&four, b"abcd");
    assert_eq!(region.compare(11, b"\0abXd"), Ok(Some(3)));
    for (offset, len) in [(13u64, 4usize), (16, 1), (17, 0), (u64::MAX, 1), (u64::MAX, 0)] {
        assert!(region.fill(offset, len, 1).is_err(), "{len} at {offset}");
        assert!(region.write(offset, &vec![0; len]).is_err());
    }
    assert!(region.write(16, b"").is_ok());
    region.copy_from(0, &region, 8, 8).unwrap();
    assert_eq!(region.compare(4, b"abcd"), Ok(None));
    assert!(region.atomic_u64(8).is_ok());
    assert!(region.atomic_u64(4).is_err() && region.atomic_u64(16).is_err());
    assert_eq!(Region::alloc(0, HugePreference::Auto).unwrap_err(), RegionError::Empty);
    assert!(matches!(Region::alloc(usize::MAX, HugePreference::Auto), Err(RegionError::NoMemory { .. })));
}

#[test]
fn streamed_copy_between_regions_is_the_same_as_an_ordinary_one() {
    let filled = |byte| {
        let region = Region::alloc(8192, HugePreference::Never).unwrap();
        region.fill(0, 8192, byte).unwrap();
        region
    };
    let from = filled(0);
    from.write(0, &pattern()[..4096]).unwrap();
    for (offset, from_offset, len) in
        [(0, 0, 4096), (4096, 64, 1024), (3, 1, 4000), (8191, 7, 1), (8192, 0, 0)]
    {
        let (ordinary, streamed) = (filled(0xee), filled(0xee));
        ordinary.copy_from(offset, &from, from_offset, len).unwrap();
        let streaming = Streaming::begin();
        streamed.stream_from(offset, &from, from_offset, len, &streaming).unwrap();
        drop(streaming);
        let mut expected = vec![0; 8192];
        ordinary.read(0, &mut expected).unwrap();
        assert_eq!(streamed.compare(0, &expected), Ok(None), "{len} bytes from {from_offset} to {offset}");
    }
}

#[test]
fn streamed_copy_inside_one_region_may_overlap_and_stays_inside() {
    let region = Region::alloc(4096, HugePreference::Never).unwrap();
    region.write(0, &pattern()[..4096]).unwrap();
    let streaming = Streaming::begin();
    region.stream_from(100, &region, 0, 3000, &streaming).unwrap();
    assert_eq!(region.compare(100, &pattern()[..3000]), Ok(None));
    let small = Region::alloc(16, HugePreference::Never).unwrap();
    for (offset, len) in [(4093, 4), (4096, 1), (4097, 0), (u64::MAX, 1)] {
        let error = RegionRangeError { offset, len, region_len: 4096 };
        assert_eq!(region.stream_from(offset, &small, 0, len, &streaming), Err(error));
        assert_eq!(small.stream_from(0, &region, offset, len, &streaming), Err(error));
    }
    assert_eq!(small.compare(0, &[0; 16]), Ok(None));
    assert_eq!(region.compare(100, &pattern()[..3000]), Ok(None));
}

// F2: a sparse region far beyond 2 GiB costs only what is touched.
#[test]
fn sparse_region_of_3_gib_works_beyond_32_bits_of_offset() {
    let region = Region::alloc(3 << 30, HugePreference::Never).unwrap();
    region.write(0x8000_0001, b"far").unwrap();
    assert_eq!(region.compare(0x8000_0000, b"\0far\0"), Ok(None));
}
