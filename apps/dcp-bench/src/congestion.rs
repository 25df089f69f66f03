//! How fast a sender may go: its congestion control, and RHCC beside it.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use dcp::core::{CongestionControl, DcqcnConfig, QpConfig, Rate, RhccConfig, RhccThreshold, SwiftConfig};
use dcp_switch::pipeline::{Probability, RedConfig};

use crate::failure::Failure;
use crate::units;

/// Options of congestion control.
#[derive(Args, Debug)]
#[command(next_help_heading = "Congestion control")]
pub struct CongestionArgs {
    /// What limits a queue pair
    #[arg(long, value_enum, value_name = "SCHEME", default_value_t = Scheme::Window)]
    pub cc: Scheme,
    /// Also follow the delay at the receiving host
    #[arg(long)]
    pub rhcc: bool,
    /// Delay at the receiving host that --rhcc steers for: nanoseconds, or auto
    #[arg(long, value_name = "NS", default_value = "auto", requires = "rhcc")]
    pub rhcc_threshold: Threshold,
    /// Line rate that dcqcn and --rhcc start from [default: --link-gbps, or 100]
    #[arg(long, value_name = "G", value_parser = parse_line)]
    pub line_gbps: Option<f64>,
    /// Mark packets in the loop's switch: queued bytes from which it marks, from which it marks all, and the
    /// probability just below that [default with --cc dcqcn: 100000,400000,20%, less on links below 25 Gb/s]
    #[arg(long, value_name = "KMIN,KMAX,PMAX")]
    pub ecn: Option<Ecn>,
}

/// Congestion control of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scheme {
    /// Nothing
    None,
    /// --window bytes in flight
    Window,
    /// A rate that congestion notifications cut
    Dcqcn,
    /// A window that follows the delay of data and the headers that come back
    Swift,
}

/// D_thr of RHCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold(RhccThreshold);

/// Where a switch marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecn(pub RedConfig);

/// How fast senders may go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Congestion {
    /// The scheme.
    pub scheme: Scheme,
    /// RHCC's threshold, where it runs.
    pub rhcc: Option<RhccThreshold>,
    /// Line rate in Gb/s, if it was given.
    pub line_gbps: Option<f64>,
    /// Marking in the loop's switch.
    pub ecn: Option<RedConfig>,
}

impl Default for Congestion {
    fn default() -> Self {
        Self { scheme: Scheme::Window, rhcc: None, line_gbps: None, ecn: None }
    }
}

/// Rate of a link that [`RedConfig::DCQCN`] is for, in Gb/s.
const MARKS_GBPS: f64 = 25.0;
/// Line rate where nothing tells it, in Gb/s.
const LINE_GBPS: f64 = 100.0;

impl CongestionArgs {
    /// What the options say.
    pub const fn congestion(&self) -> Congestion {
        let rhcc = if self.rhcc { Some(self.rhcc_threshold.0) } else { None };
        let ecn = match self.ecn {
            Some(Ecn(red)) => Some(red),
            None => None,
        };
        Congestion { scheme: self.cc, rhcc, line_gbps: self.line_gbps, ecn }
    }
}

impl Scheme {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Window => "window",
            Self::Dcqcn => "dcqcn",
            Self::Swift => "swift",
        }
    }
}

impl Congestion {
    /// Sets it in a queue pair; `window_bytes` is that of the static window, and the largest of a moving one.
    pub fn apply(&self, qp: &mut QpConfig, window_bytes: u64, link_gbps: f64) {
        let bytes = u32::try_from(window_bytes).unwrap_or(u32::MAX);
        let line = self.line(link_gbps);
        if self.rhcc.is_some() || self.scheme == Scheme::Dcqcn {
            qp.rate_max = qp.rate_max.min(line);
        }
        qp.cc = match self.scheme {
            Scheme::None => CongestionControl::None,
            Scheme::Window => CongestionControl::Window { bytes },
            Scheme::Dcqcn => {
                let config = DcqcnConfig::paper(qp.rate_max);
                CongestionControl::Dcqcn(DcqcnConfig { rate_min: config.rate_min.min(qp.rate_max), ..config })
            }
            Scheme::Swift => CongestionControl::Swift(SwiftConfig {
                window_max: bytes,
                window_min: SwiftConfig::new().window_min.min(bytes),
                ..SwiftConfig::new()
            }),
        };
        qp.rhcc = self.rhcc.map(|threshold| RhccConfig { threshold, ..RhccConfig::new() });
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are in range")]
    fn line(&self, link_gbps: f64) -> Rate {
        let link = (link_gbps > 0.0).then_some(link_gbps);
        Rate::from_bps((self.line_gbps.or(link).unwrap_or(LINE_GBPS) * 1e9) as u64)
    }

    /// Where the loop's switch marks: DCQCN's sender needs marks. Like HPCC's simulations, in proportion to a link's
    /// rate; and no less than a few packets.
    pub fn marking(&self, link_gbps: f64) -> Option<RedConfig> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than 400 KB")]
        let scaled = |bytes: u32, least: u32| {
            let part = if link_gbps > 0.0 { (link_gbps / MARKS_GBPS).min(1.0) } else { 1.0 };
            ((f64::from(bytes) * part) as u32).max(least)
        };
        let RedConfig { min_bytes, max_bytes, at_max } = RedConfig::DCQCN;
        let default =
            RedConfig { min_bytes: scaled(min_bytes, 10_000), max_bytes: scaled(max_bytes, 40_000), at_max };
        self.ecn.or((self.scheme == Scheme::Dcqcn).then_some(default))
    }

    /// Refuses what cannot work; `is_loop`: with a switch in this process.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self, is_loop: bool, link_gbps: f64, threshold_bytes: u64) -> Result<(), Failure> {
        if self.ecn.is_some() && !is_loop {
            return Err(Failure::usage(
                "--ecn is for the loop, whose switch is in this process: let the switch between the hosts mark",
            ));
        }
        if let Some(red) = self.ecn.filter(|red| red.min_bytes > red.max_bytes) {
            let (least, most) = (red.min_bytes, red.max_bytes);
            return Err(Failure::usage(format!(
                "--ecn marks from {least} bytes, but all already from {most}"
            )));
        }
        let late =
            self.marking(link_gbps).filter(|red| is_loop && u64::from(red.min_bytes) >= threshold_bytes);
        if let Some(red) = late {
            return Err(Failure::usage(format!(
                "--ecn marks from {} bytes, but the switch trims from --threshold {threshold_bytes}: nothing would be \
                 marked before it is trimmed",
                red.min_bytes
            ))
            .with_hint("raise --threshold, or give --ecn smaller numbers"));
        }
        Ok(())
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(RhccThreshold::Auto));
        }
        let ns = text.parse().ok().filter(|ns| (1..=1_000_000_000).contains(ns));
        ns.map(|ns| Self(RhccThreshold::Fixed(ns)))
            .ok_or_else(|| "nanoseconds from 1 to 1000000000, or auto".to_owned())
    }
}

impl FromStr for Ecn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "three values: bytes, bytes and a probability, as 100K,400K,20%".to_owned();
        let parts: Vec<&str> = text.split(',').collect();
        let &[least, most, top] = parts.as_slice() else { return Err(wanted()) };
        let bytes = |text| u32::try_from(units::parse_size(text)?).map_err(|_| wanted());
        let at_max = Probability::new(units::parse_probability(top)?.get()).ok_or_else(wanted)?;
        Ok(Self(RedConfig { min_bytes: bytes(least)?, max_bytes: bytes(most)?, at_max }))
    }
}

fn parse_line(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=10_000.0).contains(rate));
    rate.ok_or_else(|| "a rate in Gb/s from 0.001 to 10000".to_owned())
}

#[cfg(test)]
mod tests {
    use dcp::core::{CqId, PdId};

    use super::*;

    fn applied(congestion: Congestion, link_gbps: f64) -> QpConfig {
        let mut qp = QpConfig::new(PdId(0), CqId(0));
        congestion.apply(&mut qp, 256 << 10, link_gbps);
        qp
    }

    #[test]
    fn line_rate_is_the_links_unless_given() {
        let dcqcn = Congestion { scheme: Scheme::Dcqcn, ..Congestion::default() };
        assert_eq!(applied(dcqcn, 10.0).rate_max, Rate::from_gbps(10));
        assert_eq!(applied(dcqcn, 0.0).rate_max, Rate::from_gbps(100));
        let given = Congestion { line_gbps: Some(40.0), ..dcqcn };
        assert_eq!(applied(given, 10.0).rate_max, Rate::from_gbps(40));
        assert_eq!(applied(Congestion::default(), 10.0).rate_max, Rate::UNLIMITED, "a window needs no pace");
    }

    #[test]
    fn words_are_read() {
        let red = "100K,400K,20%".parse::<Ecn>().unwrap().0;
        assert_eq!((red.min_bytes, red.max_bytes), (100 << 10, 400 << 10));
        for wrong in ["", "1", "1,2", "1,2,3", "x,2,1%", "1,2,1%,4"] {
            assert!(wrong.parse::<Ecn>().is_err(), "{wrong}");
        }
        assert_eq!("auto".parse(), Ok(Threshold(RhccThreshold::Auto)));
        assert_eq!("200".parse(), Ok(Threshold(RhccThreshold::Fixed(200))));
        assert!("0".parse::<Threshold>().is_err());
    }

    #[test]
    fn marks_come_before_trims() {
        let dcqcn = Congestion { scheme: Scheme::Dcqcn, ..Congestion::default() };
        assert!(dcqcn.check(true, 0.0, 512 << 10).is_ok());
        assert!(dcqcn.check(true, 0.0, 8 << 10).unwrap_err().message.contains("--threshold 8192"));
        assert!(dcqcn.check(false, 0.0, 512 << 10).is_ok(), "another switch marks");
    }
}
