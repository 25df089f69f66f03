//! How much a client sends: as fast as it goes, at a pace, or at the times of an arrival process.

use clap::{Args, ValueEnum};
use dcp::core::{Mixer, QpConfig, Rate};

use crate::failure::Failure;
use crate::sizes::SizeDist;
use crate::units;

/// Options of the offered load.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Gb/s that a client sends, over all of its queue pairs: paced packet by packet, or with --arrivals message by
    /// message
    #[arg(long, alias = "rate_limit", value_name = "G", value_parser = units::parse_gbps)]
    pub rate: Option<f64>,
    /// Send messages at their times whether others have completed or not, and count latency from these times
    #[arg(long, value_enum, value_name = "HOW", requires = "rate")]
    pub arrivals: Option<Arrivals>,
    /// Draw the size of each message
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "size")]
    pub size_dist: Option<SizeDist>,
    /// Post so many messages together
    #[arg(short = 'l', long = "post_list", value_name = "N", default_value_t = 1)]
    pub post_list: u32,
}

/// When messages of an open-loop load are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Arrivals {
    /// After gaps that are exponentially distributed
    Poisson,
    /// After equal gaps
    Fixed,
}

/// How much a client sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Gb/s of a client; none: as fast as it goes.
    pub rate_gbps: Option<f64>,
    /// Times of messages; none: each as soon as there is room for it.
    pub arrivals: Option<Arrivals>,
    /// Sizes of messages; none: all the same.
    pub size_dist: Option<SizeDist>,
    /// Messages posted together, at least 1.
    pub post_list: u32,
}

impl Default for Load {
    fn default() -> Self {
        Self { rate_gbps: None, arrivals: None, size_dist: None, post_list: 1 }
    }
}

impl LoadArgs {
    /// What the options say.
    pub const fn load(&self) -> Load {
        Load {
            rate_gbps: self.rate,
            arrivals: self.arrivals,
            size_dist: self.size_dist,
            post_list: self.post_list,
        }
    }
}

impl Arrivals {
    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Fixed => "fixed",
        }
    }
}

impl Load {
    /// Sets the pace of one of `qps` queue pairs.
    pub fn apply(&self, qp: &mut QpConfig, qps: u32) {
        if let (Some(gbps), None) = (self.rate_gbps, self.arrivals) {
            qp.rate_max = qp.rate_max.min(rate(gbps, qps));
        }
    }

    /// Checks it for a client with so many queue pairs of such depth.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self, qps: u32, tx_depth: u32) -> Result<(), Failure> {
        if self.rate_gbps.is_some_and(|gbps| rate(gbps, qps) < Rate::MIN) {
            let least = Rate::MIN.bps() as f64 * f64::from(qps) / 1e9;
            return Err(Failure::usage(format!("--rate must be at least {least} with {qps} queue pairs")));
        }
        if self.post_list == 0 || self.post_list > tx_depth {
            let list = self.post_list;
            return Err(Failure::usage(format!(
                "--post_list is {list}, but must be 1 to {tx_depth}, the depth"
            )));
        }
        if self.post_list > 1 && self.arrivals.is_some() {
            return Err(Failure::usage("--arrivals sends message by message: leave out --post_list"));
        }
        Ok(())
    }

    /// Time between messages of a queue pair on average, in nanoseconds, where they have times. `size`: in bytes, if all
    /// are the same.
    pub fn mean_gap_ns(&self, qps: u32, size: u64) -> Option<f64> {
        let (gbps, _) = self.rate_gbps.zip(self.arrivals)?;
        let bytes = self.size_dist.map_or(size.max(1) as f64, SizeDist::mean);
        Some(bytes * 8.0 * f64::from(qps) / gbps)
    }
}

/// The part of one of `qps` queue pairs.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the parser checked the range")]
fn rate(gbps: f64, qps: u32) -> Rate {
    Rate::from_bps((gbps * 1e9 / f64::from(qps)) as u64)
}

/// Gaps between messages, each from its own random number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    arrivals: Arrivals,
    mean_ns: f64,
    state: u64,
}

impl Gaps {
    /// Those of the queue pair `flow` of a client.
    pub(crate) fn new(arrivals: Arrivals, mean_ns: f64, seed: u64, client: u32, flow: usize) -> Self {
        let place = u64::from(client) << 32 | flow as u64;
        Self { arrivals, mean_ns, state: Mixer::mix(seed ^ Mixer::mix(place ^ SALT)) }
    }

    /// The next one in nanoseconds.
    pub(crate) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GAMMA);
        // Above 0 and up to 1.
        let unit = ((Mixer::mix(self.state) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        match self.arrivals {
            Arrivals::Poisson => -unit.ln() * self.mean_ns,
            Arrivals::Fixed => self.mean_ns,
        }
    }

    /// Time of the first message: equal gaps of many queue pairs do not all begin at once.
    pub(crate) fn first(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Poisson => self.next(),
            Arrivals::Fixed => Mixer::mix(self.state) as f64 / u64::MAX as f64 * self.mean_ns,
        }
    }
}

/// Keeps these numbers apart from others of the same seed.
const SALT: u64 = 0x6172_7269_7661_6C73;
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_their_mean_and_their_spread() {
        for (arrivals, spread) in [(Arrivals::Poisson, 1000.0), (Arrivals::Fixed, 0.0)] {
            let mut gaps = Gaps::new(arrivals, 1000.0, 1, 1, 0);
            let count = 100_000;
            let all: Vec<f64> = (0..count).map(|_| gaps.next()).collect();
            let mean = all.iter().sum::<f64>() / f64::from(count);
            let variance = all.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(count);
            assert!((mean - 1000.0).abs() < 15.0, "{mean}");
            assert!((variance.sqrt() - spread).abs() < 20.0, "{variance}");
        }
    }

    #[test]
    fn gap_is_the_time_of_a_message_at_the_rate() {
        let load = Load { rate_gbps: Some(10.0), arrivals: Some(Arrivals::Fixed), ..Load::default() };
        // 1250 bytes are 10^4 bits, 1 us at 10 Gb/s; four queue pairs share it.
        assert_eq!(load.mean_gap_ns(4, 1250), Some(4000.0));
        assert_eq!(Load { arrivals: None, ..load }.mean_gap_ns(4, 1250), None);
    }

    #[test]
    fn queue_pairs_share_the_pace_of_their_client() {
        let mut qp = QpConfig::new(dcp::core::PdId(0), dcp::core::CqId(0));
        Load { rate_gbps: Some(10.0), ..Load::default() }.apply(&mut qp, 4);
        assert_eq!(qp.rate_max, Rate::from_mbps(2500));
    }
}
