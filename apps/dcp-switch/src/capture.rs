//! Which frames go to which capture file.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use dcp_switch::pipeline::{PortId, TapPoint};
use dcp_switch::{CapturePoint, Switch};
use serde::de::{Deserialize, Deserializer, Error};

use crate::failure::Failure;

/// `FILE[,port=N][,side=in|out]`: frames of one port or all, as they arrive, as they leave, or both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureTo {
    /// The file.
    pub file: PathBuf,
    /// One port, or all of them.
    pub port: Option<u16>,
    /// One side, or both.
    pub side: Option<TapPoint>,
}

impl FromStr for CaptureTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(',');
        let file = words.next().filter(|file| !file.is_empty()).ok_or("a capture needs a file")?;
        let mut capture = Self { file: file.into(), port: None, side: None };
        for word in words {
            match word.split_once('=') {
                Some(("port", number)) if number.parse::<u16>().is_ok() => capture.port = number.parse().ok(),
                Some(("side", "in")) => capture.side = Some(TapPoint::Arrival),
                Some(("side", "out")) => capture.side = Some(TapPoint::Departure),
                _ => {
                    return Err(format!(
                        "a capture does not take {word:?}: it takes port=N, side=in or side=out"
                    ));
                }
            }
        }
        Ok(capture)
    }
}

impl<'de> Deserialize<'de> for CaptureTo {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl CaptureTo {
    /// Begins the capture.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn start(&self, switch: &mut Switch) -> Result<(), Failure> {
        let failed = |error| Failure::environment(format!("cannot write {}: {error}", self.file.display()));
        let file = BufWriter::new(File::create(&self.file).map_err(failed)?);
        #[expect(clippy::disallowed_methods, reason = "a program, and captures have the time of day")]
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let points = self.points(switch.pipeline().ports());
        switch.capture(&points, Box::new(file), unix_ns).map_err(failed)
    }

    fn points(&self, ports: u16) -> Vec<CapturePoint> {
        let ports = self.port.map_or(0..ports, |port| port..port + 1);
        let sides = self.side.map_or(vec![TapPoint::Arrival, TapPoint::Departure], |side| vec![side]);
        let at = |port| sides.iter().map(move |&point| CapturePoint { port: PortId(port), point });
        ports.flat_map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_name_a_file_a_port_and_a_side() {
        let all: CaptureTo = "all.pcap".parse().unwrap();
        assert_eq!(all.points(3).len(), 6);
        let one: CaptureTo = "one.pcap,port=2,side=out".parse().unwrap();
        assert_eq!(one.points(3), [CapturePoint { port: PortId(2), point: TapPoint::Departure }]);
        for wrong in ["", ",port=1", "a,port=x", "a,side=up", "a,b"] {
            assert!(wrong.parse::<CaptureTo>().is_err(), "{wrong}");
        }
    }
}
