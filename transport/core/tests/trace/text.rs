//! Packets and times as words.

use std::fmt::Write;

use dcp_pair::MR_VA;
use dcp_wire::{
    Ack, AtomicEth, Data, DataOp, DataOpcode, Generation, HeaderOnly, ImmData, Kind, Msn, Nak, NakCode,
    Packet, PacketName, Part, Probe, ProbeAck, Psn, RegionKey, Reth, RnrTimer, Ssn, Stream, Timestamp,
    WriteImm,
};

/// A line's words and `key=value` pairs.
pub(crate) struct Fields {
    pub(crate) words: Vec<String>,
    pub(crate) pairs: Vec<(String, u64)>,
}

impl Fields {
    pub(crate) fn of(text: &str) -> Self {
        let (mut words, mut pairs) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => pairs.push((key.to_owned(), value.parse().expect("a number"))),
                None => words.push(word.to_owned()),
            }
        }
        Self { words, pairs }
    }

    pub(crate) fn or(&self, key: &str, default: u64) -> u64 {
        self.pairs.iter().find(|(name, _)| name == key).map_or(default, |&(_, value)| value)
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    fn msn(&self, key: &str) -> Msn {
        Msn::from_low_bits(self.or(key, 0) as u32)
    }

    fn generation(&self) -> Generation {
        Generation::from_low_bits(self.or("gen", 0) as u16)
    }
}

/// In the largest unit that needs no fraction.
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1000) => format!("{}us", ns / 1000),
        _ => format!("{ns}ns"),
    }
}

pub(crate) fn parse_time(text: &str) -> u64 {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "ms" => 1_000_000,
        "us" => 1000,
        _ => 1,
    };
    digits.parse::<u64>().expect("a time") * unit
}

/// What a frame says, without keys and timestamps.
pub(crate) fn render(packet: &Packet) -> String {
    match packet.headers.kind {
        Kind::Data(data) => render_data(&data, packet.payload_len),
        Kind::HeaderOnly(header) => {
            let returned = if header.returned { " returned" } else { "" };
            format!("HO {:?} {}{returned}", header.opcode, render_name(header.name))
        }
        Kind::Ack(Ack { stream, emsn, received, nak: None }) => {
            format!("ACK{} emsn={} recv={received}", render_stream(stream), emsn.get())
        }
        Kind::Ack(Ack { stream, emsn, received, nak: Some(nak) }) => {
            let code = match nak.code {
                NakCode::Rnr(code) => format!("rnr{}", code.get()),
                code => format!("{code:?}"),
            };
            let (stream, emsn, msn) = (render_stream(stream), emsn.get(), nak.msn.get());
            format!("NAK {code}{stream} emsn={emsn} recv={received} msn={msn} gen={}", nak.generation.get())
        }
        Kind::Probe(probe) => format!("PROBE{}", render_stream(probe.stream)),
        Kind::ProbeAck(ProbeAck { stream, emsn, received, .. }) => {
            format!("PROBE_ACK{} emsn={} recv={received}", render_stream(stream), emsn.get())
        }
        Kind::Cnp => "CNP".to_owned(),
    }
}

fn render_stream(stream: Stream) -> &'static str {
    if stream == Stream::Answers { " answers" } else { "" }
}

fn render_name(name: PacketName) -> String {
    format!("msn={} psn={} gen={}", name.msn.get(), name.psn.get(), name.generation.get())
}

fn render_data(data: &Data, payload_len: u16) -> String {
    let mut text = format!("{:?} {}", data.op.opcode(), render_name(data.name));
    let imm_of = |part: Part<ImmData>| match part {
        Part::Last(Some(imm)) | Part::Only(Some(imm)) => format!(" imm={}", imm.0),
        _ => String::new(),
    };
    let _ = match data.op {
        DataOp::Send { ssn, part } => write!(text, " ssn={}{}", ssn.get(), imm_of(part)),
        DataOp::Write { reth, part: Part::Last(Some(imm)) | Part::Only(Some(imm)) } => {
            write!(text, "{} ssn={} imm={}", render_reth(reth), imm.ssn.get(), imm.imm.0)
        }
        DataOp::Write { reth, .. } | DataOp::ReadRequest(reth) => write!(text, "{}", render_reth(reth)),
        DataOp::CmpSwap(eth) | DataOp::FetchAdd(eth) => {
            write!(text, " at={} add={}", eth.va - MR_VA, eth.swap_add)
        }
        DataOp::ReadResponse { rmsn, .. } => write!(text, " rmsn={}", rmsn.get()),
        DataOp::AtomicAck { rmsn, original } => write!(text, " rmsn={} was={original}", rmsn.get()),
    };
    let ack = if data.ack_req { " ack" } else { "" };
    format!("{text} len={payload_len}{ack}")
}

fn render_reth(reth: Reth) -> String {
    format!(" at={} of={}", reth.va - MR_VA, reth.dma_len)
}

/// The frame that words describe.
pub(crate) fn parse(fields: &Fields, rkey: RegionKey) -> Kind {
    let stream = if fields.has("answers") { Stream::Answers } else { Stream::Requests };
    let (emsn, received) = (fields.msn("emsn"), fields.or("recv", 0) as u32);
    match fields.words[0].as_str() {
        "ACK" => Kind::Ack(Ack { stream, emsn, received, nak: None }),
        "NAK" => {
            let code = match fields.words[1].as_str() {
                "Resync" => NakCode::Resync,
                "InvalidRequest" => NakCode::InvalidRequest,
                "RemoteAccess" => NakCode::RemoteAccess,
                "RemoteOperational" => NakCode::RemoteOperational,
                rnr => NakCode::Rnr(RnrTimer::new(rnr[3..].parse().expect("rnrN")).expect("below 32")),
            };
            let nak = Some(Nak { code, msn: fields.msn("msn"), generation: fields.generation() });
            Kind::Ack(Ack { stream, emsn, received, nak })
        }
        "PROBE" => Kind::Probe(Probe { stream, t1: Timestamp(0) }),
        "PROBE_ACK" => {
            let zero = Timestamp(0);
            Kind::ProbeAck(ProbeAck { stream, emsn, received, t1: zero, t2: zero, t3: zero })
        }
        "HO" => Kind::HeaderOnly(HeaderOnly {
            name: name(fields),
            opcode: opcode(&fields.words[1]),
            returned: fields.has("returned"),
            ack_req: false,
            solicited: false,
        }),
        _ => Kind::Data(Data {
            name: name(fields),
            ack_req: fields.has("ack"),
            solicited: false,
            op: data_op(fields, rkey),
        }),
    }
}

fn name(fields: &Fields) -> PacketName {
    let psn = Psn::from_low_bits(fields.or("psn", 0) as u32);
    PacketName { msn: fields.msn("msn"), psn, generation: fields.generation() }
}

fn opcode(word: &str) -> DataOpcode {
    let all = (0..32).filter_map(DataOpcode::from_number);
    all.into_iter().find(|opcode| format!("{opcode:?}") == word).expect("an opcode")
}

fn data_op(fields: &Fields, rkey: RegionKey) -> DataOp {
    use DataOpcode as O;
    let va = MR_VA + fields.or("at", 0);
    let reth = Reth { va, rkey, dma_len: fields.or("of", 0) as u32 };
    let (ssn, imm) = (Ssn::from_low_bits(fields.or("ssn", 0) as u32), ImmData(fields.or("imm", 0) as u32));
    let rmsn = fields.msn("rmsn");
    let write_imm = WriteImm { ssn, imm };
    match opcode(&fields.words[0]) {
        O::SendFirst => DataOp::Send { ssn, part: Part::First },
        O::SendMiddle => DataOp::Send { ssn, part: Part::Middle },
        O::SendLast => DataOp::Send { ssn, part: Part::Last(None) },
        O::SendOnly => DataOp::Send { ssn, part: Part::Only(None) },
        O::SendLastImm => DataOp::Send { ssn, part: Part::Last(Some(imm)) },
        O::SendOnlyImm => DataOp::Send { ssn, part: Part::Only(Some(imm)) },
        O::WriteFirst => DataOp::Write { reth, part: Part::First },
        O::WriteMiddle => DataOp::Write { reth, part: Part::Middle },
        O::WriteLast => DataOp::Write { reth, part: Part::Last(None) },
        O::WriteOnly => DataOp::Write { reth, part: Part::Only(None) },
        O::WriteLastImm => DataOp::Write { reth, part: Part::Last(Some(write_imm)) },
        O::WriteOnlyImm => DataOp::Write { reth, part: Part::Only(Some(write_imm)) },
        O::ReadRequest => DataOp::ReadRequest(reth),
        O::ReadResponseFirst => DataOp::ReadResponse { rmsn, part: Part::First },
        O::ReadResponseMiddle => DataOp::ReadResponse { rmsn, part: Part::Middle },
        O::ReadResponseLast => DataOp::ReadResponse { rmsn, part: Part::Last(None) },
        O::ReadResponseOnly => DataOp::ReadResponse { rmsn, part: Part::Only(None) },
        O::AtomicAck => DataOp::AtomicAck { rmsn, original: fields.or("was", 0) },
        O::CmpSwap | O::FetchAdd => {
            DataOp::FetchAdd(AtomicEth { va, rkey, swap_add: fields.or("add", 0), compare: 0 })
        }
    }
}
