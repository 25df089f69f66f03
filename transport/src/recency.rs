//! Which memory was written a short while ago, and is in a cache still.

/// Remembers where the last payloads went.
///
/// A payload that goes where another went a short while ago finds that memory in the cache, and is best left there. All
/// other memory is better written past the caches ([`dpdk_ffi::streaming`]): so large regions, and many small ones, cost
/// no more than what is written. How large a region is says nothing: only when it was written last does.
#[derive(Debug)]
pub(crate) struct Recency {
    slots: Box<[Slot; SLOTS]>,
    /// Bytes placed until now.
    placed: u64,
}

/// A payload that was placed. Both fields are the low bits of what they say: an error costs time, nothing else.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    /// Cache line that it began at.
    line: u32,
    /// KiB that had been placed before.
    placed_kib: u32,
}

/// Bytes of the shortest payload that counts: below it a copy is too short to gain by anything.
pub(crate) const LEN_MIN: usize = 1024;
/// KiB placed since, up to which memory counts as recent. What has been written meanwhile, and what it was copied from, is
/// then in the core's own cache or in its part of a shared one: an ordinary copy of 4 KiB takes 72 ns in the first, 115 to
/// 125 in the second, 150 past the caches, and 190 where the shared cache is exhausted, from 8 MiB at either side on. No
/// power of two: at exactly the size of a buffer in use the two ways of copying would take turns, which is worse than
/// either.
const RECENT_KIB: u32 = 6144;
/// One for each KiB of them, the shortest payload, and to spare.
const SLOTS: usize = 8192;

impl Recency {
    /// Nothing is recent.
    pub(crate) fn new() -> Self {
        Self { slots: Box::new([Slot::default(); SLOTS]), placed: (2 * u64::from(RECENT_KIB)) << 10 }
    }

    /// Whether a payload was placed at `address` a short while ago; one of `len` bytes is placed there now.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "low bits are enough")]
    pub(crate) fn note(&mut self, address: usize, len: usize) -> bool {
        let now = Slot { line: (address >> 6) as u32, placed_kib: (self.placed >> 10) as u32 };
        // Payloads that follow each other have slots that do; regions far apart do not share all of theirs.
        let slot = &mut self.slots[(address >> 10 ^ address >> 20) % SLOTS];
        let recent = slot.line == now.line && now.placed_kib.wrapping_sub(slot.placed_kib) <= RECENT_KIB;
        *slot = now;
        self.placed += len as u64;
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 0x7f12_3456_7000;

    /// Goes over `bytes` bytes at `base` in payloads of `len`; how many of them were recent.
    fn pass(recency: &mut Recency, base: usize, bytes: usize, len: usize) -> usize {
        (0..bytes).step_by(len).filter(|at| recency.note(base + at, len)).count()
    }

    #[test]
    fn memory_that_is_written_again_and_again_is_recent_from_the_second_time_on() {
        for (bytes, len) in [(64 << 10, 4096), (512 << 10, 4096), (4 << 20, 1024), (4 << 20, 8192)] {
            let mut recency = Recency::new();
            assert_eq!(pass(&mut recency, BASE, bytes, len), 0, "first pass over {bytes} by {len}");
            for _ in 0..5 {
                assert_eq!(pass(&mut recency, BASE, bytes, len), bytes / len, "{bytes} by {len}");
            }
        }
    }

    /// A message of 1 MiB in one buffer, of which many packets come twice.
    #[test]
    fn packets_that_are_sent_again_do_not_make_a_buffer_old() {
        let mut recency = Recency::new();
        pass(&mut recency, BASE, 1 << 20, 4096);
        for _ in 0..5 {
            assert_eq!(pass(&mut recency, BASE, 1 << 20, 4096), 256);
            assert_eq!(pass(&mut recency, BASE + 4096, 256 << 10, 4096), 64);
        }
    }

    #[test]
    fn memory_larger_than_a_cache_is_never_recent() {
        for (bytes, len) in [(8 << 20, 4096), (64 << 20, 4096), (8 << 20, 1024), (8 << 20, 8192)] {
            let mut recency = Recency::new();
            for _ in 0..3 {
                assert_eq!(pass(&mut recency, BASE, bytes, len), 0, "{bytes} by {len}");
            }
        }
    }

    #[test]
    fn many_small_regions_are_recent_only_while_they_are_few() {
        for (regions, expected) in [(4, 16), (256, 0)] {
            let mut recency = Recency::new();
            for round in 0..3 {
                for region in 0..regions {
                    let base = BASE + region * (64 << 10 | 64);
                    let recent = pass(&mut recency, base, 64 << 10, 4096);
                    assert_eq!(recent, if round == 0 { 0 } else { expected }, "{regions} regions");
                }
            }
        }
    }

    /// The low bits of the count come round; nobody may take years-old memory for recent but by its very address.
    #[test]
    fn counts_that_come_round_do_no_harm() {
        let mut recency = Recency::new();
        recency.placed = (u64::from(u32::MAX) << 10) - 4096;
        assert_eq!(pass(&mut recency, BASE, 64 << 10, 4096), 0);
        assert_eq!(pass(&mut recency, BASE, 64 << 10, 4096), 16);
    }
}
