//! Values as they are written, on the command line and in the file alike.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dcp::device::DeviceUri;
use dcp::wire::MacAddr;
use dcp_switch::pipeline::{
    LinkRate, LoadBalance, PORTS_MAX, Probability, QUEUE_BYTES_MAX, RedConfig, TrimQueue, TrimTo, Weight,
};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A text or a number of the file, as the text that would stand on the command line.
#[derive(Debug)]
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }
        }
        from.deserialize_any(Words)
    }
}

macro_rules! written_as_words {
    ($($value:ident),*) => {$(
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Word::deserialize(from)?.0.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

written_as_words!(Size, Chance, Rate, Ecn, Balance, MilliWeight, Trim, Seconds, Radix, PortUri, Mac, Cores);

/// Bytes of a queue: `65536`, `64K`, `1M`; the letters are powers of 1024.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub u32);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("iB").unwrap_or(text);
        let (digits, shift) = match number.chars().last() {
            Some('K' | 'k') => (&number[..number.len() - 1], 10),
            Some('M' | 'm') => (&number[..number.len() - 1], 20),
            Some('G' | 'g') => (&number[..number.len() - 1], 30),
            _ => (text, 0),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!(
                "{text:?} is no size: write a whole number of bytes, with K, M or G for 1024, 1024^2, 1024^3"
            ));
        }
        let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
        let bytes =
            bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes <= QUEUE_BYTES_MAX);
        bytes.map(Self).ok_or_else(|| format!("{text} is out of range: a size is 0 to 1G"))
    }
}

/// A probability: `0.01` or `1%`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance(pub Probability);

impl FromStr for Chance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let value = decimal(number).map(|value| value / scale).and_then(Probability::new);
        value.map(Self).ok_or_else(|| format!("{text:?} is no probability: write 0 to 1, or 0% to 100%"))
    }
}

/// The rate of a link in Gb/s; 0 for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub LinkRate);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let legal = |gbps: &f64| *gbps == 0.0 || (0.001..=10_000.0).contains(gbps);
        let rate = decimal(text).filter(legal).and_then(LinkRate::from_gbps);
        rate.map(Self).ok_or_else(|| {
            format!("{text:?} is no rate of a link: write 0.001 to 10000 Gb/s, or 0 for no limit")
        })
    }
}

/// ECN marking: `KMIN,KMAX,PMAX`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecn(pub RedConfig);

impl FromStr for Ecn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [kmin, kmax, pmax] = text.split(',').map(str::trim).collect::<Vec<_>>()[..] else {
            return Err(format!("{text:?} is no marking: write KMIN,KMAX,PMAX such as 100K,400K,0.2"));
        };
        let (Size(min_bytes), Size(max_bytes), Chance(at_max)) =
            (kmin.parse()?, kmax.parse()?, pmax.parse()?);
        if min_bytes > max_bytes {
            return Err(format!("KMIN must not be above KMAX, but {kmin} is above {kmax}"));
        }
        Ok(Self(RedConfig { min_bytes, max_bytes, at_max }))
    }
}

/// How a frame finds its link in a group of parallel ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balance(pub LoadBalance);

impl FromStr for Balance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ecmp" => Ok(Self(LoadBalance::Ecmp)),
            "spray" => Ok(Self(LoadBalance::SprayRoundRobin)),
            "spray-random" => Ok(Self(LoadBalance::SprayRandom)),
            "adaptive" => Ok(Self(LoadBalance::Adaptive)),
            _ => Err(format!("there is no balancing {text:?}: write ecmp, spray, spray-random or adaptive")),
        }
    }
}

/// The control queue's weight against the data queue's, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MilliWeight(pub u32);

impl FromStr for MilliWeight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = f64::from(Weight::MIN.milli())..=f64::from(Weight::MAX.milli());
        let milli =
            decimal(text).map(|weight| (weight * 1000.0).round()).filter(|milli| range.contains(milli));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "16 to 64000")]
        let milli = milli.map(|milli| Self(milli as u32));
        milli.ok_or_else(|| {
            format!("{text:?} is no weight of the control queue: write {} to {}", Weight::MIN, Weight::MAX)
        })
    }
}

/// Trimming as other switches do it: `sonic`, `nvidia`, or `BYTES,DSCP[,control|data]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trim(pub TrimTo);

impl FromStr for Trim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no trimming: write sonic, nvidia, or BYTES,DSCP,QUEUE such as 128,48,control"
            )
        };
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let (bytes, dscp, trim_queue) = match words[..] {
            ["sonic"] => return Ok(Self(TrimTo::SONIC)),
            ["nvidia"] => return Ok(Self(TrimTo::NVIDIA)),
            [bytes, dscp] | [bytes, dscp, "control"] => (bytes, dscp, TrimQueue::Control),
            [bytes, dscp, "data"] => (bytes, dscp, TrimQueue::Data),
            _ => return Err(wrong()),
        };
        let trim_bytes: u32 = bytes.parse().map_err(|_| wrong())?;
        let trim_dscp: u8 = dscp.parse().map_err(|_| wrong())?;
        if !(64..=1024).contains(&trim_bytes) || trim_dscp > 63 {
            return Err(format!(
                "{text} is out of range: 64 to 1024 bytes can be kept, and a DSCP is 0 to 63"
            ));
        }
        Ok(Self(TrimTo { trim_bytes, trim_dscp, trim_queue }))
    }
}

/// A time in seconds, above 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = decimal(text).filter(|seconds| (0.01..=1e6).contains(seconds));
        let seconds = seconds.map(|seconds| Self(Duration::from_secs_f64(seconds)));
        seconds.ok_or_else(|| format!("{text:?} is no interval: write 0.01 to 1000000 seconds"))
    }
}

/// The paper's N: ports that may send to one at a time, plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Radix(pub u16);

impl FromStr for Radix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ports = text.parse().ok().filter(|ports| (2..=PORTS_MAX).contains(ports));
        ports.map(Self).ok_or_else(|| format!("{text:?} is no radix: write 2 to {PORTS_MAX}"))
    }
}

/// A device that can be a port of the switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortUri(pub DeviceUri);

impl FromStr for PortUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse().map_err(|error: dcp::device::UriError| error.to_string())? {
            DeviceUri::Loop => {
                Err("loop cannot be a port: it has both ends in one program; use memif:SOCKET,id=N"
                    .to_owned())
            }
            DeviceUri::Null => {
                Err("null cannot be a port: it delivers nothing, and empty frames without end come from it"
                    .to_owned())
            }
            uri => Ok(Self(uri)),
        }
    }
}

/// An Ethernet address of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mac(pub MacAddr);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: Option<Vec<u8>> = text
            .split(':')
            .map(|byte| if byte.len() == 2 { u8::from_str_radix(byte, 16).ok() } else { None })
            .collect();
        let bytes = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        let host = bytes.filter(|bytes| bytes[0] & 1 == 0);
        host.map(|bytes| Self(MacAddr(bytes))).ok_or_else(|| {
            format!("{text:?} is no address of a host: write six bytes such as 02:00:00:00:00:01")
        })
    }
}

/// Cores of the machine: `1` or `0,1`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cores(pub Vec<usize>);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cores: Option<Vec<usize>> = text.split(',').map(|core| core.trim().parse().ok()).collect();
        cores.map(Self).ok_or_else(|| format!("{text:?} is no list of cores: write numbers such as 1 or 0,1"))
    }
}

/// Digits with at most one point and an exponent: no sign in front, `inf` or `nan`.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if plain && !text.starts_with(['+', '-']) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: FromStr<Err = String> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text)
    }

    #[test]
    fn sizes_take_powers_of_1024_up_to_a_gibibyte() {
        for (text, bytes) in [("0", 0), ("64K", 65536), ("1M", 1 << 20), ("512KiB", 1 << 19), ("1G", 1 << 30)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "1.5M", "-1", "64KB", "2G", "1073741825", "99999999999999999999"] {
            assert!(refused::<Size>(text).contains(if text.len() > 1 { text } else { "size" }), "{text}");
        }
    }

    // D6
    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        for text in ["-1", "1.1", "101%", "nan", "x"] {
            assert!(refused::<Chance>(text).contains("0 to 1"), "{text}");
        }
        for text in ["-1", "10001", "0.0001", "inf"] {
            assert!(refused::<Rate>(text).contains("0.001 to 10000"), "{text}");
        }
        for text in ["0", "0.015", "64.001", "w"] {
            assert!(refused::<MilliWeight>(text).contains("0.016 to 64.000"), "{text}");
        }
        for text in ["63,0", "1025,0", "128,64", "128", "128,48,back", "cisco"] {
            assert!(refused::<Trim>(text).contains(text), "{text}");
        }
        for text in ["0", "1", "1025", "-9"] {
            assert!(refused::<Radix>(text).contains("2 to 1024"), "{text}");
        }
        assert!(refused::<Ecn>("400K,100K,0.2").contains("KMIN must not be above KMAX"));
        assert!(refused::<Ecn>("100K,400K").contains("KMIN,KMAX,PMAX"));
        assert!(refused::<Ecn>("100K,400K,2").contains("0 to 1"));
        assert!(refused::<Mac>("01:00:5e:00:00:01").contains("of a host"));
    }

    #[test]
    fn legal_values_are_what_they_say() {
        assert_eq!(
            ("1%".parse(), "100%".parse()),
            ("0.01".parse::<Chance>(), Ok(Chance(Probability::ALWAYS)))
        );
        assert_eq!("3".parse(), Ok(MilliWeight(3000)));
        assert_eq!("sonic".parse(), Ok(Trim(TrimTo::SONIC)));
        let data = TrimTo { trim_bytes: 64, trim_dscp: 10, trim_queue: TrimQueue::Data };
        assert_eq!("64, 10, data".parse(), Ok(Trim(data)));
        assert_eq!("0,1".parse(), Ok(Cores(vec![0, 1])));
        let ecn = RedConfig { min_bytes: 1024, max_bytes: 1024, at_max: Probability::ALWAYS };
        assert_eq!("1K,1K,100%".parse(), Ok(Ecn(ecn)));
    }

    #[test]
    fn devices_that_cannot_be_ports_are_refused() {
        assert!(refused::<PortUri>("loop").contains("memif:SOCKET"));
        assert!(refused::<PortUri>("null").contains("null"));
        assert!(refused::<PortUri>("memfi:/tmp/s").contains("memfi"));
    }
}
