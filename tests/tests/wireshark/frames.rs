//! Frames to dissect.

use dcp_wire::*;

/// A frame, and how it is to be parsed.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) what: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether the frame has an ICRC, and whether that is right.
    pub(crate) icrc: Option<bool>,
}

impl Sample {
    pub(crate) fn packet(&self) -> Packet {
        let options = ParseOptions { icrc: self.icrc.is_some(), ..ParseOptions::default() };
        parse_frame(options, &self.bytes).unwrap_or_else(|error| panic!("{}: {error:?}", self.what))
    }

    pub(crate) fn is_header_only(&self) -> bool {
        matches!(self.packet().headers.kind, Kind::HeaderOnly(_))
    }
}

/// The golden frames of `dcp-wire`'s own tests.
pub(crate) fn golden() -> Vec<Sample> {
    let source = include_str!("../../../transport/wire/tests/wire/golden.rs");
    let frame = |block: &str| {
        let mut words = block.split('"').skip(1).step_by(2);
        let (ip_udp, bth, rest) = (words.next()?, words.next()?, words.next()?);
        let what = block.trim_start().split(',').next()?.to_owned();
        let hex = format!("020000000002020000000001 0800 {ip_udp}{bth}{rest}").replace(' ', "");
        Some(Sample { what, bytes: bytes_of(&hex), icrc: None })
    };
    source.split("golden!(").skip(1).filter_map(frame).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The golden frames with other paths, padding, VLAN tag and ICRC.
pub(crate) fn captures() -> [(&'static str, Vec<Sample>); 3] {
    [("vlan", with_vlan()), ("icrc", with_icrc()), ("padded", padded())]
}

/// The frame of a golden one with changes, and a payload of so many bytes.
fn changed(sample: &Sample, trailer: usize, change: impl FnOnce(&mut Path)) -> (Vec<u8>, usize) {
    let packet = sample.packet();
    let mut headers = packet.headers;
    change(&mut headers.path);
    let payload = usize::from(packet.payload_len);
    let mut bytes = vec![0x5A; headers.len() + payload];
    emit(&headers, payload + trailer, &mut bytes);
    (bytes, headers.len())
}

fn with_vlan() -> Vec<Sample> {
    let of = |(number, sample): (u8, Sample)| {
        let (bytes, _) = changed(&sample, 0, |path| {
            path.vlan = Some(VlanTag(0x6000 | 7));
            path.class = number % 16;
            path.ecn = Ecn::from_tos(number % 4);
        });
        Sample { bytes, ..sample }
    };
    (0..).zip(golden()).map(of).collect()
}

/// All but header-only packets, whose ICRC is gone.
pub(crate) fn with_icrc() -> Vec<Sample> {
    let of = |(number, sample): (u8, Sample)| {
        let (mut bytes, _) = changed(&sample, ICRC_LEN, |path| {
            path.src_port = 0x8000 + u16::from(number);
            path.ttl = 3;
        });
        let sum = icrc(&bytes, []).unwrap();
        bytes.extend(sum);
        assert!(icrc_ok(&bytes));
        Sample { bytes, icrc: Some(true), ..sample }
    };
    (0..).zip(golden().into_iter().filter(|sample| !sample.is_header_only())).map(of).collect()
}

fn padded() -> Vec<Sample> {
    let of = |sample: Sample| {
        let mut bytes = sample.bytes.clone();
        bytes.resize(bytes.len().max(60), 0);
        Sample { bytes, ..sample }
    };
    golden().into_iter().map(of).collect()
}
