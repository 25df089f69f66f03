//! A bitmap in chunks of 128 bits, linked in order and taken from a pool as packets run ahead.

use std::hint::black_box;

const CHUNK_BITS: u32 = 128;
/// Chunks of the pool: 2560 packets, as in the whole bitmap.
const CHUNKS: usize = 20;
const NONE: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Chunk {
    bits: u128,
    next: u8,
}

pub(crate) struct Chunks {
    pool: [Chunk; CHUNKS],
    free: u8,
    first: u8,
    /// First packet of the first chunk.
    base: u32,
    head: u32,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        let mut pool = [Chunk { bits: 0, next: NONE }; CHUNKS];
        for (chunk, next) in pool[..CHUNKS - 1].iter_mut().zip(1..) {
            chunk.next = next;
        }
        Self { pool, free: 0, first: NONE, base: 0, head: 0 }
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
        let ahead = psn.wrapping_sub(self.base);
        let Some(index) = self.walk(ahead / CHUNK_BITS) else { return };
        self.pool[index].bits |= 1 << (ahead % CHUNK_BITS);
        if psn == self.head {
            self.advance();
        }
    }

    /// The chunk so many links behind the first; missing ones are taken from the pool.
    #[inline]
    fn walk(&mut self, links: u32) -> Option<usize> {
        if self.first == NONE {
            self.first = self.take()?;
        }
        let mut at = usize::from(self.first);
        for _ in 0..links {
            if self.pool[at].next == NONE {
                self.pool[at].next = self.take()?;
            }
            at = usize::from(self.pool[at].next);
        }
        Some(at)
    }

    #[inline]
    fn take(&mut self) -> Option<u8> {
        let taken = self.free;
        let chunk = self.pool.get_mut(usize::from(taken))?;
        self.free = chunk.next;
        *chunk = Chunk { bits: 0, next: NONE };
        Some(taken)
    }

    #[inline]
    fn advance(&mut self) {
        while self.first != NONE {
            let chunk = &mut self.pool[usize::from(self.first)];
            self.head = self.base + chunk.bits.trailing_ones();
            if self.head < self.base + CHUNK_BITS {
                return;
            }
            let emptied = self.first;
            self.first = chunk.next;
            chunk.next = self.free;
            self.free = emptied;
            self.base += CHUNK_BITS;
        }
    }
}
