//! The fixed 64-bit mixer of R-7, also the core's only source of spread.

/// SplitMix64's output function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Copy, Debug)]
pub struct Mixer;

impl Mixer {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Mixes `x`: a bijection of 64 bits in which every input bit moves every output bit.
    #[inline]
    pub const fn mix(x: u64) -> u64 {
        let mut z = x.wrapping_add(Self::GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Mixer;

    #[test]
    fn first_outputs_are_those_of_splitmix64_seeded_with_zero() {
        assert_eq!(Mixer::mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(Mixer::mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }
}
