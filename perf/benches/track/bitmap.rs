//! A bitmap as large as the bandwidth-delay product: one bit per packet that may be under way.

use std::hint::black_box;

/// The paper's 320 bytes per queue pair (Table 3).
const BITS: u32 = 2560;
const WORDS: usize = 40;
const _: () = assert!(64 * WORDS == BITS as usize);

/// Packets received from `head` on, in a ring of bits.
pub(crate) struct Bitmap {
    words: [u64; WORDS],
    head: u32,
}

impl Bitmap {
    pub(crate) fn new() -> Self {
        Self { words: [0; WORDS], head: 0 }
    }

    /// Takes the packets of a message, and returns where the head comes to.
    pub(crate) fn track(&mut self, order: &[u32]) -> u32 {
        *self = Self::new();
        for &psn in order {
            self.receive(black_box(psn));
        }
        self.head
    }

    #[inline]
    fn receive(&mut self, psn: u32) {
        if psn.wrapping_sub(self.head) >= BITS {
            return;
        }
        let at = psn % BITS;
        self.words[at as usize / 64] |= 1 << (at % 64);
        if psn == self.head {
            self.advance();
        }
    }

    /// Moves the head over everything that is there.
    #[inline]
    fn advance(&mut self) {
        loop {
            let at = self.head % BITS;
            let (word, bit) = (&mut self.words[at as usize / 64], at % 64);
            let ones = (*word >> bit).trailing_ones();
            if ones == 0 {
                return;
            }
            let mask = if ones == 64 { u64::MAX } else { ((1 << ones) - 1) << bit };
            *word &= !mask;
            self.head += ones;
            if bit + ones < 64 {
                return;
            }
        }
    }
}
