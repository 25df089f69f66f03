//! Message sizes drawn from a distribution.

use clap::ValueEnum;

/// A distribution of message sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SizeDist {
    /// Flows of web search (DCTCP's trace): most are small, most bytes are in large ones
    Websearch,
}

/// Bytes, and how many of a hundred messages are no larger; linear in between. As in HPCC's simulations
/// (`WebSearch_distribution.txt`).
const WEBSEARCH: [(u64, f64); 12] = [
    (0, 0.0),
    (10_000, 15.0),
    (20_000, 20.0),
    (30_000, 30.0),
    (50_000, 40.0),
    (80_000, 53.0),
    (200_000, 60.0),
    (1_000_000, 70.0),
    (2_000_000, 80.0),
    (5_000_000, 90.0),
    (10_000_000, 97.0),
    (30_000_000, 100.0),
];

impl SizeDist {
    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Websearch => "websearch",
        }
    }

    const fn points(self) -> &'static [(u64, f64)] {
        match self {
            Self::Websearch => &WEBSEARCH,
        }
    }

    /// Largest message in bytes.
    pub fn largest(self) -> u64 {
        self.points().last().map_or(1, |&(bytes, _)| bytes)
    }

    /// Mean size in bytes.
    pub fn mean(self) -> f64 {
        let part =
            |pair: &[(u64, f64)]| (pair[1].1 - pair[0].1) / 100.0 * (pair[0].0 + pair[1].0) as f64 / 2.0;
        self.points().windows(2).map(part).sum()
    }

    /// The size that belongs to a random number, in bytes; at least 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the points")]
    pub fn size(self, random: u64) -> u64 {
        let percent = (random >> 11) as f64 / (1u64 << 53) as f64 * 100.0;
        let points = self.points();
        let above = points.partition_point(|&(_, up_to)| up_to <= percent).clamp(1, points.len() - 1);
        let ((low, from), (high, to)) = (points[above - 1], points[above]);
        let size = low as f64 + (high - low) as f64 * (percent - from) / (to - from);
        (size as u64).clamp(1, high)
    }
}

#[cfg(test)]
mod tests {
    use dcp::core::Mixer;

    use super::*;

    #[test]
    fn shares_of_sizes_are_those_of_the_distribution() {
        let count = 100_000u64;
        let sizes: Vec<u64> = (0..count).map(|i| SizeDist::Websearch.size(Mixer::mix(i))).collect();
        for (bytes, percent) in WEBSEARCH {
            let share = sizes.iter().filter(|&&size| size <= bytes).count() as f64 / count as f64 * 100.0;
            assert!((share - percent).abs() < 0.6, "{share} % are at most {bytes}, not {percent}");
        }
        let mean = sizes.iter().sum::<u64>() as f64 / count as f64;
        assert!((mean / SizeDist::Websearch.mean() - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn extremes_are_in_range() {
        assert_eq!(SizeDist::Websearch.size(0), 1);
        assert!((29_000_000..=30_000_000).contains(&SizeDist::Websearch.size(u64::MAX)));
    }

    #[test]
    fn mean_is_that_of_the_trace() {
        assert_eq!(SizeDist::Websearch.mean(), 1_711_250.0);
    }
}
