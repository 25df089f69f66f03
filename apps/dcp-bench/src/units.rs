//! Sizes, probabilities and times as they are written on the command line.

use std::time::Duration;

use dcp::wire::MacAddr;

/// Longest run in seconds, about eleven days.
const SECONDS_MAX: f64 = 1e6;

/// Bytes from `65536`, `64K`, `64KiB`, `1M` or `1G`; the letters are powers of 1024, small or capital.
///
/// # Errors
/// A sentence for the user.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("iB").unwrap_or(text);
    let (digits, shift) = match number.chars().last() {
        Some('K' | 'k') => (&number[..number.len() - 1], 10),
        Some('M' | 'm') => (&number[..number.len() - 1], 20),
        Some('G' | 'g') => (&number[..number.len() - 1], 30),
        _ => (text, 0),
    };
    if let Some(short) = text.strip_suffix(['B', 'b'])
        && short.ends_with(['K', 'k', 'M', 'm', 'G', 'g'])
    {
        return Err(format!("write {short}: K, M and G stand for 1024, 1024^2 and 1024^3 bytes"));
    }
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("a size is a whole number of bytes, with K, M or G for 1024, 1024^2, 1024^3".to_owned());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| "the size does not fit in 64 bits".to_owned())
}

/// Cores by number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cores(pub Vec<usize>);

/// Cores from `0`, `0,2` or `1-3`; each at most once, since two threads on one core wait for each other.
///
/// # Errors
/// A sentence for the user.
pub fn parse_cores(text: &str) -> Result<Cores, String> {
    let wrong = || "cores are numbers and ranges, such as 0,2 or 1-3".to_owned();
    let number = |text: &str| match text.parse::<usize>() {
        Ok(core) if core <= CORE_MAX && text.bytes().all(|b| b.is_ascii_digit()) => Ok(core),
        _ => Err(wrong()),
    };
    let mut cores: Vec<usize> = Vec::new();
    for word in text.split(',') {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    match cores.iter().enumerate().find(|(index, core)| cores[..*index].contains(core)) {
        Some((_, twice)) => Err(format!("core {twice} is listed twice")),
        None => Ok(Cores(cores)),
    }
}

/// Beyond any machine's last core.
const CORE_MAX: usize = 9999;

/// The Ethernet address of a host from `02:00:00:00:00:01`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_mac(text: &str) -> Result<MacAddr, String> {
    let mut bytes = [0; 6];
    let mut words = text.split(':');
    let read = |word: &str| match word.len() {
        2 if !word.starts_with('+') => u8::from_str_radix(word, 16).ok(),
        _ => None,
    };
    for byte in &mut bytes {
        *byte = words
            .next()
            .and_then(read)
            .ok_or("an Ethernet address is six pairs of hex digits, such as 02:00:00:00:00:01")?;
    }
    if words.next().is_some() || bytes[0] & 1 == 1 || bytes == [0; 6] {
        return Err("this is no host's Ethernet address; one such as 02:00:00:00:00:01 is".to_owned());
    }
    Ok(MacAddr(bytes))
}

/// How likely something is: 0 … 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// The probability, or `None` outside 0 … 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// As a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A probability from `1%` or `0.01`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_probability(text: &str) -> Result<Probability, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let value = decimal(number).ok_or("a probability is a number such as 0.01 or 1%")?;
    Probability::new(value / scale).ok_or_else(|| "a probability is 0 to 1, or 0% to 100%".to_owned())
}

/// A time from seconds such as `10` or `0.5`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = decimal(text).ok_or("a time is a number of seconds such as 10 or 0.5")?;
    if seconds > SECONDS_MAX {
        return Err(format!("the longest run is {SECONDS_MAX} seconds"));
    }
    let time = Duration::from_secs_f64(seconds);
    if time.is_zero() { Err("the time must be above 0".to_owned()) } else { Ok(time) }
}

/// A rate in Gb/s from `10` or `0.5`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_gbps(text: &str) -> Result<f64, String> {
    match decimal(text) {
        Some(gbps) if gbps > 0.0 && gbps <= 1e6 => Ok(gbps),
        _ => Err("a rate is a number of Gb/s above 0, such as 10 or 0.5".to_owned()),
    }
}

/// A seed from `42`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// Digits with at most one point and an exponent: no sign in front, `inf` or `nan`.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if plain && !text.starts_with(['+', '-']) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("64K", 65536),
            ("64k", 65536),
            ("1M", 1048576),
            ("2G", 2 << 30),
            ("007", 7),
            ("64KiB", 65536),
            ("1MiB", 1048576),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_size("17179869183G"), Ok(u64::MAX - (1 << 30) + 1));
    }

    #[test]
    fn sizes_that_mean_nothing_are_refused() {
        for text in ["1KB", "64kb", "2GB", "1Mb", "xKB"] {
            assert!(parse_size(text).is_err_and(|e| e.starts_with("write ")), "{text}");
        }
        for text in ["", "K", "-1", "+1", "1.5M", "iB", "1iB", "1B", "1 K", "0x10", "１", "M1", "1é"] {
            assert!(parse_size(text).is_err_and(|e| e.starts_with("a size is")), "{text}");
        }
        for text in ["18446744073709551616", "17179869184G", "18446744073709551615K"] {
            assert!(parse_size(text).is_err_and(|e| e.contains("64 bits")), "{text}");
        }
    }

    #[test]
    fn probabilities_take_percent_and_fraction() {
        for (text, value) in [
            ("0", 0.0),
            ("1", 1.0),
            ("0.01", 0.01),
            ("1%", 0.01),
            ("100%", 1.0),
            (".5", 0.5),
            ("1e-3", 0.001),
            ("1E-1%", 0.001),
        ] {
            assert_eq!(parse_probability(text).map(Probability::get), Ok(value), "{text}");
        }
    }

    #[test]
    fn probabilities_outside_zero_and_one_are_refused() {
        for text in
            ["1.01", "100.1%", "5", "-0.1", "nan", "inf", "1e3", "+1", "1e", "1-1", "", "%", ".", "1.2.3"]
        {
            assert!(parse_probability(text).is_err(), "{text}");
        }
        assert!(Probability::new(f64::NAN).is_none());
    }

    #[test]
    fn seeds_are_whole_numbers() {
        assert_eq!(parse_seed("18446744073709551615"), Ok(u64::MAX));
        for text in ["-1", "1.5", "", "18446744073709551616", "0x1"] {
            assert!(parse_seed(text).is_err_and(|e| e.ends_with("0 to 18446744073709551615")), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_above_zero() {
        assert_eq!(parse_seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "0.0", "-1", "1e9", "inf", "1000001", "9999999999999999999999", "", "5s"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_are_numbers_and_ranges() {
        for (text, cores) in [("0", &[0][..]), ("3,1", &[3, 1]), ("1-3", &[1, 2, 3]), ("5-5,0", &[5, 0])] {
            assert_eq!(parse_cores(text), Ok(Cores(cores.to_vec())), "{text}");
        }
        for text in ["", ",", "a", "-1", "1-", "3-1", "+1", "99999", "0,0", "0-2,1"] {
            assert!(parse_cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ethernet_addresses_are_those_of_hosts() {
        assert_eq!(parse_mac("02:00:0a:00:00:fF"), Ok(MacAddr([2, 0, 10, 0, 0, 255])));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "01:00:00:00:00:01",
            "00:00:00:00:00:00",
            "2:0:0:0:0:1",
        ] {
            assert!(parse_mac(text).is_err(), "{text}");
        }
    }
}
