//! Frames and pools: split headers, trimming, copying, and mbufs back to the baseline whatever happens.

mod common;

use common::{bytes, eal, frame, headers, numbered, payloads, split_frame};
use dpdk_ffi::mbuf::{CopyError, FrameRangeError};
use dpdk_ffi::{HugePreference, Mbuf, MbufBatch, MbufStash, Pool, PoolConfig, Region};

// A10: headers split over several segments read the same.
#[test]
fn split_headers_gather_like_whole_ones() {
    let pool = headers(255);
    let whole: Vec<u8> = (0..54).collect();
    for lengths in [&[54][..], &[10, 32, 12], &[14, 20, 8, 12], &[1, 0, 53], &[0, 54], &[53, 1]] {
        let split = split_frame(&pool, lengths);
        assert_eq!((split.frame_len(), split.segments()), (54, lengths.len()));
        assert_eq!(bytes(&split), whole, "{lengths:?}");
        let mut header = [0; 42];
        assert_eq!(split.header_into(&mut header), 42);
        assert_eq!(header, whole[..42], "{lengths:?}");
        let mut longer = [0xee; 60];
        assert_eq!(split.header_into(&mut longer), 54);
        assert_eq!((&longer[..54], &longer[54..]), (&whole[..], &[0xee; 6][..]));
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn payload_over_segments_lands_in_a_region_and_nowhere_else() {
    let pool = headers(255);
    let region = Region::alloc(64, HugePreference::Never).unwrap();
    for offset in 0..54 {
        for len in 0..=54 - offset {
            let split = split_frame(&pool, &[14, 20, 8, 12]);
            region.fill(0, 64, 0xee).unwrap();
            split.copy_out(offset, &region, 3, len).unwrap();
            let mut expected = [0xee; 64];
            for (at, byte) in (offset..offset + len).enumerate() {
                expected[3 + at] = u8::try_from(byte).unwrap();
            }
            assert_eq!(region.compare(0, &expected), Ok(None), "{len} bytes at {offset}");
        }
    }
}

#[test]
fn copies_beyond_the_frame_or_the_region_are_refused() {
    let pool = headers(255);
    let region = Region::alloc(16, HugePreference::Never).unwrap();
    let short = split_frame(&pool, &[4, 4]);
    let error = short.copy_out(5, &region, 0, 4).unwrap_err();
    assert_eq!(error, CopyError::Frame(FrameRangeError { offset: 5, len: 4, frame_len: 8 }));
    for (offset, len) in [(9, 8), (16, 1), (u64::MAX, 1), (u64::MAX - 3, 8)] {
        assert!(
            matches!(short.copy_out(0, &region, offset, len), Err(CopyError::Region(_))),
            "{len} at {offset}"
        );
    }
    assert_eq!(short.copy_out(usize::MAX, &region, 0, 0), Ok(()));
    assert!(short.copy_out(usize::MAX, &region, 0, 1).is_err());
}

#[test]
fn truncating_cuts_anywhere_and_frees_the_rest() {
    let pool = headers(255);
    let whole: Vec<u8> = (0..54).collect();
    for len in 0..=60 {
        let mut split = split_frame(&pool, &[14, 20, 8, 12]);
        split.truncate(len).unwrap();
        assert_eq!(bytes(&split), whole[..len.min(54)]);
        let segments = [14, 34, 42].iter().filter(|&&end| len > end).count() + 1;
        assert_eq!(split.segments(), segments, "cut to {len}");
        assert_eq!(usize::try_from(pool.in_use()).unwrap(), segments);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn head_is_written_in_place_and_grows_up_to_its_room() {
    let pool = headers(15);
    let mut mbuf = frame(&pool, b"abc");
    mbuf.head_mut().unwrap()[0] = b'A';
    mbuf.grow_head(2).unwrap().copy_from_slice(b"de");
    assert_eq!((mbuf.head(), mbuf.head_len()), (&b"Abcde"[..], 5));
    assert!(mbuf.grow_head(252).is_none());
    assert_eq!(mbuf.grow_head(251).unwrap().len(), 251);
    assert!(mbuf.grow_head(usize::MAX).is_none());
    assert!(!mbuf.is_shared());
    assert!(Mbuf::from_bytes(&pool, &[0; 257]).is_none());
    drop(mbuf);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn copy_is_deep_and_fails_when_the_pool_does() {
    let (pool, large, tiny) =
        (headers(255), Pool::new(eal(), PoolConfig::frames("big", 15, 2048)).unwrap(), headers(1));
    let original = split_frame(&pool, &[200, 200, 200]);
    let mut copy = original.copy(&large).unwrap();
    assert_eq!(copy.segments(), 1);
    copy.head_mut().unwrap()[0] = 0xff;
    assert_eq!(bytes(&original)[0], 0);
    assert!(original.copy(&tiny).is_none());
    assert!(original.copy(&payloads(15)).is_none());
    assert_eq!(tiny.in_use(), 0);
}

#[test]
fn private_copy_takes_the_first_bytes_from_the_same_pool() {
    let pool = headers(7);
    let original = split_frame(&pool, &[14, 20, 8, 12]);
    let copy = original.private_copy(40).unwrap();
    assert_eq!((bytes(&copy), copy.segments()), ((0..40).collect::<Vec<u8>>(), 1));
    assert_eq!(bytes(&original.private_copy(usize::from(u16::MAX)).unwrap()), bytes(&original));
    let rest: Vec<Mbuf> = std::iter::from_fn(|| Mbuf::from_bytes(&pool, b"x")).collect();
    assert_eq!(rest.len(), 2);
    assert!(original.private_copy(40).is_none());
    drop((original, copy, rest));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn batch_keeps_order_and_frees_in_bulk() {
    let pool = headers(255);
    let number = |frame: &Mbuf| frame.head()[0];
    let mut batch = numbered(&pool, 64);
    let refused = batch.push(frame(&pool, b"x")).unwrap_err();
    assert_eq!((bytes(&refused), batch.room()), (b"x".to_vec(), 0));
    assert_eq!(batch.swap_remove(0).head(), [0]);
    assert_eq!(number(&batch.as_slice()[0]), 63);
    assert_eq!(batch.pop().unwrap().head(), [62]);
    let mut other = numbered(&pool, 60);
    assert_eq!(other.append(&mut batch), 4);
    assert_eq!((number(&other.as_slice()[60]), number(&batch.as_slice()[0])), (63, 4));
    assert_eq!(batch.drain().take(3).map(|frame| number(&frame)).collect::<Vec<_>>(), [4, 5, 6]);
    assert!(batch.is_empty());
    drop((refused, other));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn sifted_batch_keeps_what_comes_back_in_its_order() {
    let pool = headers(255);
    let number = |frame: &Mbuf| frame.head()[0];
    let mut batch = numbered(&pool, 64);
    let mut seen = Vec::new();
    let mut taken = MbufBatch::new();
    let mut sift = batch.sift();
    while let Some(first) = sift.rest().first() {
        seen.push(number(first));
        match number(first) % 3 {
            0 => taken.discard(sift.take().unwrap()),
            1 => sift.keep(1),
            _ => {
                let frame = sift.take().unwrap();
                sift.put_back(frame);
            }
        }
    }
    assert!(sift.take().is_none());
    drop(sift);
    assert_eq!(seen, (0..64).collect::<Vec<_>>());
    let numbers = |batch: &MbufBatch| batch.iter().map(number).collect::<Vec<_>>();
    assert_eq!(numbers(&batch), (0..64).filter(|it| it % 3 != 0).collect::<Vec<_>>());
    assert_eq!(numbers(&taken), (0..64).step_by(3).collect::<Vec<_>>());
    batch.free_all();
    assert_eq!(usize::try_from(pool.in_use()).unwrap(), taken.len());
    assert!(batch.sift().rest().is_empty() && batch.is_empty());
    // What was not looked at stays.
    let mut sift = taken.sift();
    drop(sift.take());
    sift.keep(2);
    drop(sift);
    assert_eq!(numbers(&taken), (3..64).step_by(3).collect::<Vec<_>>());
    taken.sift().keep(usize::MAX);
    assert_eq!(taken.len(), 21);
    drop(taken);
    assert_eq!(pool.in_use(), 0);
}

/// Its mbufs have no bytes of their own, whatever their last user left in them.
#[test]
fn payload_pool_makes_no_frame_of_bytes() {
    let (headers, payloads) = (headers(63), payloads(1));
    let region = Region::alloc(64, HugePreference::Never).unwrap();
    let mut stash = MbufStash::new(&headers, &payloads);
    stash.refill();
    drop(stash.take_frame(3, &region, 0, 64).unwrap());
    assert!(Mbuf::from_bytes(&payloads, b"x").is_none());
    drop(stash);
    assert_eq!((region.in_flight(), headers.in_use(), payloads.in_use()), (0, 0, 0));
}

#[test]
fn bin_frees_whenever_it_is_full() {
    let pool = headers(255);
    let mut bin = MbufBatch::new();
    for _ in 0..1000 {
        bin.discard(frame(&pool, b"x"));
    }
    assert_eq!(usize::try_from(pool.in_use()).unwrap(), bin.len());
    bin.free_all();
    assert_eq!(pool.in_use(), 0);
}

// G3: a pool that runs dry is slow, not stuck, and counted.
#[test]
fn dry_pool_is_counted_and_recovers() {
    let (headers, payloads) = (headers(100), payloads(60));
    let mut stash = MbufStash::new(&headers, &payloads);
    stash.refill();
    assert_eq!((stash.headers(), stash.payloads()), (100, 60));
    assert_eq!(stash.exhausted(), 2);
    assert_eq!((stash.available(0), stash.available(1), stash.available(7)), (100, 60, 8));
    let held: Vec<Mbuf> = std::iter::from_fn(|| stash.take_header()).collect();
    assert_eq!(held.len(), 100);
    stash.refill();
    assert_eq!((stash.headers(), stash.exhausted()), (0, 4));
    drop(held);
    stash.refill();
    assert_eq!(stash.headers(), 100);
    drop(stash);
    assert_eq!((headers.in_use(), payloads.in_use()), (0, 0));
}

#[test]
fn pool_limits_are_clamped_or_refused() {
    for count in [1, 2, 3, 4, 5, 7, 100, 512, 1023] {
        let pool =
            Pool::new(eal(), PoolConfig { name: "clamp", count, data_room: 64, cache: u32::MAX }).unwrap();
        assert_eq!(pool.available(), count);
        let all: Vec<Mbuf> = std::iter::from_fn(|| Mbuf::from_bytes(&pool, b"x")).collect();
        assert_eq!(all.len(), usize::try_from(count).unwrap());
    }
    assert!(Pool::new(eal(), PoolConfig::header("none", 0)).is_err());
    let error = Pool::new(eal(), PoolConfig::frames("huge", 1 << 22, 2048)).unwrap_err();
    assert!(error.to_string().contains("more memory"), "{error}");
    assert!(Pool::new(eal(), PoolConfig::frames("wide", 1, u16::MAX)).is_err());
}

#[test]
fn frame_outlives_its_pool() {
    let pool = headers(15);
    let survivor = frame(&pool, b"still here");
    drop(pool);
    assert_eq!(survivor.head(), b"still here");
    let before = dpdk_ffi::pool::pools_awaiting_mbufs();
    assert!(before >= 1);
    drop(survivor);
    assert!(dpdk_ffi::pool::pools_awaiting_mbufs() < before);
}
