//! The data that messages carry: cheap to make, and different at every offset of every message.

const WORD: usize = 8;
/// Bytes generated at a time when data is compared; fits the first-level cache.
const CHUNK: usize = 4096;
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bytes of one message: any stretch of them can be made without what comes before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the message, or of the buffer it lives in.
    pub message: u64,
}

impl Pattern {
    /// Writes the first bytes of the message into `buffer`.
    pub fn fill(self, buffer: &mut [u8]) {
        self.fill_from(0, buffer);
    }

    /// Writes the bytes of the message from `offset` on into `buffer`.
    pub fn fill_from(self, offset: u64, buffer: &mut [u8]) {
        let words = self.words();
        let skip = usize::try_from(offset % WORD as u64).unwrap_or(0);
        let mut index = offset / WORD as u64;
        let mut rest = buffer;
        if skip > 0 {
            let (head, tail) = rest.split_at_mut(rest.len().min(WORD - skip));
            head.copy_from_slice(&words.at(index)[skip..skip + head.len()]);
            index = index.wrapping_add(1);
            rest = tail;
        }
        let (whole, tail) = rest.as_chunks_mut::<WORD>();
        for word in whole {
            *word = words.at(index);
            index = index.wrapping_add(1);
        }
        tail.copy_from_slice(&words.at(index)[..tail.len()]);
    }

    /// Offset in the message of the first byte of `data` that differs from it, `data` lying at `offset`.
    pub fn first_mismatch(self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut expected = [0; CHUNK];
        let mut at = offset;
        for chunk in data.chunks(CHUNK) {
            let expected = &mut expected[..chunk.len()];
            self.fill_from(at, expected);
            if let Some(index) = first_difference(expected, chunk) {
                return Some(at.wrapping_add(index as u64));
            }
            at = at.wrapping_add(chunk.len() as u64);
        }
        None
    }

    fn words(self) -> Words {
        Words { base: mix(self.seed ^ mix(self.message.wrapping_add(GAMMA))) }
    }
}

/// Index of the first byte in which two slices of one length differ.
pub fn first_difference(expected: &[u8], actual: &[u8]) -> Option<usize> {
    debug_assert_eq!(expected.len(), actual.len());
    if expected == actual {
        return None;
    }
    expected.iter().zip(actual).position(|(e, a)| e != a)
}

/// splitmix64 by index.
#[derive(Clone, Copy)]
struct Words {
    base: u64,
}

impl Words {
    #[inline]
    fn at(self, index: u64) -> [u8; WORD] {
        mix(self.base.wrapping_add(index.wrapping_mul(GAMMA))).to_le_bytes()
    }
}

#[inline]
const fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: Pattern = Pattern { seed: 1, message: 7 };

    fn flips(length: usize) -> [usize; 3] {
        [0, length / 2, length - 1]
    }

    #[test]
    fn any_stretch_equals_the_same_stretch_of_the_whole() {
        let mut whole = [0; 200];
        PATTERN.fill(&mut whole);
        for start in 0..40 {
            for length in 0..60 {
                let mut part = vec![0; length];
                PATTERN.fill_from(start as u64, &mut part);
                assert_eq!(part, &whole[start..start + length], "{start}+{length}");
            }
        }
    }

    #[test]
    fn flipped_byte_of_a_message_is_found() {
        for length in [1, 2, 7, 4096, 4097, 10_000] {
            let mut data = vec![0; length];
            PATTERN.fill_from(13, &mut data);
            assert_eq!(PATTERN.first_mismatch(13, &data), None);
            for flip in flips(length) {
                data[flip] ^= 0x01;
                assert_eq!(PATTERN.first_mismatch(13, &data), Some(13 + flip as u64), "{length}");
                data[flip] ^= 0x01;
            }
        }
    }

    // I4
    #[test]
    fn flipped_byte_is_found_in_zeros_ones_and_noise() {
        let mut noise = vec![0; 10_000];
        PATTERN.fill(&mut noise);
        for expected in [vec![0; 10_000], vec![0xFF; 10_000], noise] {
            assert_eq!(first_difference(&expected, &expected), None);
            for flip in flips(expected.len()) {
                let mut data = expected.clone();
                data[flip] ^= 0x80;
                assert_eq!(first_difference(&expected, &data), Some(flip));
            }
        }
    }

    #[test]
    fn data_that_never_arrived_is_found_at_once() {
        for untouched in [0x00, 0xFF] {
            let at = PATTERN.first_mismatch(0, &[untouched; 64]);
            assert!(at.is_some_and(|at| at < 8));
        }
    }

    #[test]
    fn messages_and_seeds_differ() {
        let bytes = |pattern: Pattern| {
            let mut word = [0; 8];
            pattern.fill(&mut word);
            word
        };
        assert_ne!(bytes(PATTERN), bytes(Pattern { message: 8, ..PATTERN }));
        assert_ne!(bytes(PATTERN), bytes(Pattern { seed: 2, ..PATTERN }));
        assert_ne!(bytes(Pattern { seed: 0, message: 1 }), bytes(Pattern { seed: 1, message: 0 }));
    }

    #[test]
    fn empty_data_matches() {
        assert_eq!(PATTERN.first_mismatch(u64::MAX, &[]), None);
    }
}
