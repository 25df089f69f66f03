//! Copies past the caches, for memory that is not in them anyway.
//!
//! An ordinary store to a line that no cache holds reads the line first, and pushes another one out. A streaming
//! (non-temporal) store does neither, and the processor goes on while it is under way. In return it is *weakly ordered*:
//! another core may see what was stored later before it sees this. [`Streaming`] therefore ends with a fence, one for
//! all copies of a burst: with one for each, the processor would wait after all.

use std::cell::Cell;
use std::ptr;

/// A stretch of a program with streaming copies. When it is dropped, what was copied becomes visible before whatever
/// the program stores next: completions, frames, flags. The thread itself sees its copies at once.
#[derive(Debug)]
pub struct Streaming {
    used: Cell<bool>,
    available: bool,
}

impl Streaming {
    /// Begins one. Without a copy it costs nothing; a processor that has no streaming stores copies as always.
    #[inline]
    pub fn begin() -> Self {
        Self { used: Cell::new(false), available: available() }
    }

    /// # Safety
    /// `from` must be readable and `to` writable for `len` bytes. They may overlap.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        let apart = from.addr().abs_diff(to.addr()) >= len;
        if self.available && apart {
            self.used.set(true);
            // SAFETY: as the caller promised; the instructions are there, and the ranges apart.
            unsafe { copy_past_caches(from, to, len) };
        } else {
            // SAFETY: as the caller promised.
            unsafe { ptr::copy(from, to, len) };
        }
    }
}

impl Drop for Streaming {
    #[inline]
    fn drop(&mut self) {
        if self.used.get() {
            fence();
        }
    }
}

#[cfg(target_arch = "x86_64")]
use x86::{available, copy_past_caches, fence};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    use std::ptr;

    /// Bytes of a cache line. Only whole ones are streamed: a part of one costs more than it saves.
    const LINE: usize = 64;

    #[inline]
    pub(super) fn available() -> bool {
        is_x86_feature_detected!("avx")
    }

    #[inline]
    pub(super) fn fence() {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }

    /// # Safety
    /// AVX must be there, `from` readable and `to` writable for `len` bytes, the two apart.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
        let head = to.align_offset(LINE).min(len);
        let tail = head + (len - head) / LINE * LINE;
        // SAFETY: up to the first whole line.
        unsafe { copy_part(from, to, head) };
        for at in (head..tail).step_by(LINE / 2) {
            // SAFETY: half a line inside both ranges; the other half comes next.
            unsafe { copy_half_line(from.wrapping_add(at).cast(), to.wrapping_add(at).cast()) };
        }
        // SAFETY: behind the last whole line.
        unsafe { copy_part(from.wrapping_add(tail), to.wrapping_add(tail), len - tail) };
    }

    /// # Safety
    /// Both must be valid for 32 bytes, and `to` aligned to them.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn copy_half_line(from: *const __m256i, to: *mut __m256i) {
        // SAFETY: as the caller promised; from any address.
        let bytes = unsafe { _mm256_loadu_si256(from) };
        // SAFETY: as the caller promised.
        unsafe { _mm256_stream_si256(to, bytes) };
    }

    /// Mostly there is none, and no call.
    ///
    /// # Safety
    /// As for `copy_nonoverlapping`.
    #[inline]
    unsafe fn copy_part(from: *const u8, to: *mut u8, len: usize) {
        if len > 0 {
            // SAFETY: as the caller promised.
            unsafe { ptr::copy_nonoverlapping(from, to, len) };
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
use plain::{available, copy_past_caches, fence};

#[cfg(not(target_arch = "x86_64"))]
mod plain {
    #[inline]
    pub(super) fn available() -> bool {
        false
    }

    #[inline]
    pub(super) fn fence() {}

    /// # Safety
    /// As for `copy_nonoverlapping`.
    #[inline]
    pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as the caller promised.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "any byte will do")]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    /// Copies inside `memory`, and returns what it should be afterwards.
    fn copy(memory: &mut [u8], from: usize, to: usize, len: usize) -> Vec<u8> {
        let mut expected = memory.to_vec();
        expected.copy_within(from..from + len, to);
        assert!(from.max(to) + len <= memory.len());
        let base = memory.as_mut_ptr();
        let streaming = Streaming::begin();
        // SAFETY: both ranges are inside, as just asserted.
        unsafe { streaming.copy(base.wrapping_add(from), base.wrapping_add(to), len) };
        expected
    }

    #[test]
    fn any_length_arrives_at_any_alignment_and_nothing_beside_it_is_touched() {
        let before = bytes(4096);
        for len in (0..=260).chain([1000, 1024, 1500]) {
            for (from, to) in [(0, 2048), (1, 2048), (63, 2049), (5, 2111), (64, 2112), (17, 2079)] {
                let mut memory = before.clone();
                let expected = copy(&mut memory, from, to, len);
                assert!(memory == expected, "{len} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn ranges_that_overlap_are_copied_as_if_by_way_of_a_third() {
        for (from, to, len) in [(0, 1, 1000), (64, 0, 1000), (0, 64, 1000), (100, 100, 700), (0, 999, 1000)] {
            let mut memory = bytes(2048);
            let expected = copy(&mut memory, from, to, len);
            assert!(memory == expected, "{len} bytes from {from} to {to}");
        }
    }

    /// On x86-64 every machine of the last ten years streams; one that does not would hide what the tests above check.
    #[test]
    fn the_copies_are_streamed_where_the_processor_can() {
        let streaming = Streaming::begin();
        let (from, mut to) = (bytes(256), vec![0; 256]);
        // SAFETY: both have 256 bytes.
        unsafe { streaming.copy(from.as_ptr(), to.as_mut_ptr(), 256) };
        assert_eq!(streaming.used.get(), available());
        assert_eq!(from, to);
    }
}
