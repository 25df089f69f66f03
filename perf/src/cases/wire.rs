//! Headers to bytes and back.

use std::hint::black_box;

use dcp_wire::{
    BounceRewrite, Data, DataOp, Follower, Headers, Kind, ParseOptions, Part, Qpn, Template, WritePacket,
};

use super::frames::{ack, mac, write};
use super::{Case, Entry};

/// Frames of a round.
const FRAMES: usize = 32;
/// Payload of a data packet; only its length matters here.
const PAYLOAD: usize = 4096;

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: FRAMES as u64, make };
    vec![
        entry("wire/emit/write", || Box::new(Emit::new(write(0, mac(1)), PAYLOAD))),
        entry("wire/emit/template", || Box::new(FromTemplate::new(write(0, mac(1)), PAYLOAD))),
        entry("wire/emit/ack", || Box::new(Emit::new(ack(mac(1)), 0))),
        entry("wire/parse/write", || Box::new(Parse::new(&write(0, mac(1)), PAYLOAD))),
        entry("wire/follow/write", || Box::new(Follow::new())),
        entry("wire/parse/ack", || Box::new(Parse::new(&ack(mac(1)), 0))),
        entry("wire/trim_and_bounce/write", || Box::new(TrimAndBounce::new())),
    ]
}

fn bytes_of(headers: &Headers, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; headers.len() + payload];
    dcp_wire::emit(headers, payload, &mut bytes);
    bytes
}

struct Emit {
    headers: Headers,
    payload: usize,
    bytes: Vec<u8>,
}

impl Emit {
    fn new(headers: Headers, payload: usize) -> Self {
        Self { bytes: bytes_of(&headers, payload), headers, payload }
    }
}

impl Case for Emit {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        for _ in 0..FRAMES {
            black_box(dcp_wire::emit(black_box(&self.headers), self.payload, black_box(&mut self.bytes)));
        }
    }
}

/// As an endpoint's connections do it.
struct FromTemplate {
    template: Template,
    packet: WritePacket,
    emit: Emit,
}

impl FromTemplate {
    fn new(headers: Headers, payload: usize) -> Self {
        let template = Template::new(&headers.path, headers.dest_qpn, headers.pkey);
        let Kind::Data(Data { name, ack_req, solicited, op: DataOp::Write { reth, .. } }) = headers.kind
        else {
            unreachable!("a WRITE, as made above")
        };
        let packet = WritePacket { name, ack_req, solicited, reth, first: false, last: false };
        Self { template, packet, emit: Emit::new(headers, payload) }
    }
}

impl Case for FromTemplate {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        let Emit { payload, bytes, .. } = &mut self.emit;
        for _ in 0..FRAMES {
            black_box(black_box(&self.template).emit_write(
                black_box(&self.packet),
                *payload,
                black_box(bytes),
            ));
        }
    }
}

struct Parse(Vec<u8>);

impl Parse {
    fn new(headers: &Headers, payload: usize) -> Self {
        let bytes = bytes_of(headers, payload);
        assert!(dcp_wire::parse_frame(ParseOptions::default(), &bytes).is_ok(), "a legal frame");
        Self(bytes)
    }
}

impl Case for Parse {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        for _ in 0..FRAMES {
            let _ = black_box(dcp_wire::parse_frame(ParseOptions::default(), black_box(&self.0)));
        }
    }
}

/// A packet like the one before.
struct Follow {
    follower: Follower,
    bytes: Vec<u8>,
}

impl Follow {
    fn new() -> Self {
        let mut headers = write(1, mac(1));
        if let Kind::Data(Data { op: DataOp::Write { part, .. }, .. }) = &mut headers.kind {
            *part = Part::Middle;
        }
        let bytes = bytes_of(&headers, PAYLOAD);
        let packet = dcp_wire::parse_frame(ParseOptions::default(), &bytes).expect("a legal frame");
        let follower = Follower::of(&packet, &bytes).expect("one of the middle");
        assert!(follower.name_of(&bytes, bytes.len()).is_some(), "it looks like itself");
        Self { follower, bytes }
    }
}

impl Case for Follow {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        for _ in 0..FRAMES {
            let bytes = black_box(&self.bytes);
            black_box(black_box(&self.follower).name_of(bytes, bytes.len()));
        }
    }
}

/// What a switch and then a receiver make of a packet that did not fit.
struct TrimAndBounce {
    whole: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl TrimAndBounce {
    fn new() -> Self {
        let whole = bytes_of(&write(0, mac(1)), PAYLOAD);
        Self { frames: vec![whole.clone(); FRAMES], whole }
    }
}

impl Case for TrimAndBounce {
    fn prepare(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.copy_from_slice(&self.whole));
    }

    fn run(&mut self) {
        let rewrite = BounceRewrite { dest_qpn: Qpn::from_low_bits(2), src_port: 0xC001, dst_port: 17791 };
        for frame in &mut self.frames {
            let trimmed = dcp_wire::trim(frame);
            let bounced = dcp_wire::bounce(frame, black_box(&rewrite));
            assert!(trimmed.is_ok() && bounced.is_ok(), "a data packet");
        }
    }
}
