//! What `dcp-wire` parsed, as tshark prints it.

use std::collections::HashMap;

use dcp_wire::*;

use crate::frames::Sample;

/// Every field that a frame can have.
pub(crate) const FIELDS: &[&str] = &[
    "dcp.class",
    "dcp.tag",
    "dcp.ecn",
    "dcp.ho",
    "dcp.ho.returned",
    "dcp.opcode",
    "dcp.se",
    "dcp.m",
    "dcp.pad",
    "dcp.tver",
    "dcp.pkey",
    "dcp.fecn",
    "dcp.becn",
    "dcp.retry",
    "dcp.returned",
    "dcp.dest_qpn",
    "dcp.ackreq",
    "dcp.psn",
    "dcp.msn",
    "dcp.ssn",
    "dcp.rmsn",
    "dcp.va",
    "dcp.rkey",
    "dcp.dmalen",
    "dcp.imm",
    "dcp.atomic.swap_add",
    "dcp.atomic.compare",
    "dcp.atomic.original",
    "dcp.syndrome",
    "dcp.emsn",
    "dcp.received",
    "dcp.nak",
    "dcp.nak.msn",
    "dcp.rnr_timer",
    "dcp.cnp",
    "dcp.zero",
    "dcp.t1",
    "dcp.t2",
    "dcp.t3",
    "dcp.receiver_delay",
    "dcp.payload",
    "dcp.payload_len",
    "dcp.icrc",
    "dcp.icrc.status",
    "vlan.id",
    "dcp.bad_opcode",
    "dcp.bad_tag",
    "dcp.bad_length",
];

type Fields = HashMap<&'static str, String>;

fn bit(value: bool) -> String {
    u8::from(value).to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fields of a frame; those that it does not have are missing.
pub(crate) fn expected(sample: &Sample) -> Fields {
    let packet = sample.packet();
    let headers = &packet.headers;
    let mut fields = Fields::new();
    add_path(&mut fields, &headers.path);
    fields.insert("dcp.tag", (headers.kind.tag() as u8).to_string());
    fields.insert("dcp.pad", "0".to_owned());
    fields.insert("dcp.tver", "0".to_owned());
    fields.insert("dcp.pkey", format!("0x{:04x}", headers.pkey.0));
    fields.insert("dcp.fecn", "0".to_owned());
    fields.insert("dcp.becn", bit(headers.kind == Kind::Cnp));
    fields.insert("dcp.dest_qpn", format!("0x{:06x}", headers.dest_qpn.get()));
    add_kind(&mut fields, &headers.kind);
    add_rest(&mut fields, sample, &packet);
    fields
}

fn add_path(fields: &mut Fields, path: &Path) {
    fields.insert("dcp.class", path.class.to_string());
    fields.insert("dcp.ecn", (path.ecn as u8).to_string());
    if let Some(tag) = path.vlan {
        fields.insert("vlan.id", (tag.0 & 0xFFF).to_string());
    }
}

fn add_kind(fields: &mut Fields, kind: &Kind) {
    // Where a kind has no use for a bit it is zero.
    for field in ["dcp.se", "dcp.m", "dcp.returned", "dcp.ackreq", "dcp.psn", "dcp.retry"] {
        fields.insert(field, "0".to_owned());
    }
    match kind {
        Kind::Data(data) => {
            add_name(fields, data.name, data.opcode(), (data.ack_req, data.solicited));
            add_operation(fields, &data.op);
        }
        Kind::HeaderOnly(header) => {
            add_name(fields, header.name, header.opcode, (header.ack_req, header.solicited));
            fields.insert("dcp.returned", bit(header.returned));
            fields.insert("dcp.ho", bit(true));
            if header.returned {
                fields.insert("dcp.ho.returned", bit(true));
            }
        }
        Kind::Ack(ack) => add_ack(fields, ack),
        Kind::Cnp => {
            fields.insert("dcp.opcode", "0x81".to_owned());
            fields.insert("dcp.cnp", hex(&[0; 16]));
        }
        Kind::Probe(probe) => {
            fields.insert("dcp.opcode", "0xc0".to_owned());
            fields.insert("dcp.m", bit(probe.stream == Stream::Answers));
            fields.insert("dcp.t1", probe.t1.0.to_string());
            fields.insert("dcp.zero", "0000".to_owned());
        }
        Kind::ProbeAck(answer) => add_probe_ack(fields, answer),
    }
}

fn add_name(fields: &mut Fields, name: PacketName, opcode: DataOpcode, (ack_req, solicited): (bool, bool)) {
    fields.insert("dcp.opcode", format!("0x{:02x}", opcode.number()));
    fields.insert("dcp.msn", name.msn.get().to_string());
    fields.insert("dcp.psn", name.psn.get().to_string());
    fields.insert("dcp.retry", name.generation.get().to_string());
    fields.insert("dcp.ackreq", bit(ack_req));
    fields.insert("dcp.se", bit(solicited));
}

fn add_operation(fields: &mut Fields, op: &DataOp) {
    match op {
        DataOp::Send { ssn, part } => {
            fields.insert("dcp.ssn", ssn.get().to_string());
            if let Part::Last(Some(imm)) | Part::Only(Some(imm)) = part {
                add_imm(fields, *imm);
            }
        }
        DataOp::Write { reth, part } => {
            add_reth(fields, reth);
            if let Part::Last(Some(with)) | Part::Only(Some(with)) = part {
                fields.insert("dcp.ssn", with.ssn.get().to_string());
                add_imm(fields, with.imm);
            }
        }
        DataOp::ReadRequest(reth) => add_reth(fields, reth),
        DataOp::CmpSwap(atomic) | DataOp::FetchAdd(atomic) => {
            fields.insert("dcp.va", format!("0x{:016x}", atomic.va));
            fields.insert("dcp.rkey", format!("0x{:08x}", atomic.rkey.0));
            fields.insert("dcp.atomic.swap_add", format!("0x{:016x}", atomic.swap_add));
            fields.insert("dcp.atomic.compare", format!("0x{:016x}", atomic.compare));
        }
        DataOp::ReadResponse { rmsn, .. } => {
            fields.insert("dcp.rmsn", rmsn.get().to_string());
        }
        DataOp::AtomicAck { rmsn, original } => {
            fields.insert("dcp.rmsn", rmsn.get().to_string());
            fields.insert("dcp.atomic.original", format!("0x{original:016x}"));
        }
    }
}

fn add_imm(fields: &mut Fields, imm: ImmData) {
    fields.insert("dcp.imm", format!("0x{:08x}", imm.0));
}

fn add_reth(fields: &mut Fields, reth: &Reth) {
    fields.insert("dcp.va", format!("0x{:016x}", reth.va));
    fields.insert("dcp.rkey", format!("0x{:08x}", reth.rkey.0));
    fields.insert("dcp.dmalen", reth.dma_len.to_string());
}

fn add_ack(fields: &mut Fields, ack: &Ack) {
    fields.insert("dcp.opcode", "0x11".to_owned());
    add_progress(fields, ack.stream, ack.emsn, ack.received);
    let Some(nak) = ack.nak else {
        return;
    };
    let syndrome = match nak.code {
        NakCode::Rnr(timer) => {
            fields.insert("dcp.rnr_timer", timer.get().to_string());
            0x20 | timer.get()
        }
        NakCode::Resync => 0x60,
        NakCode::InvalidRequest => 0x61,
        NakCode::RemoteAccess => 0x62,
        NakCode::RemoteOperational => 0x63,
    };
    fields.insert("dcp.syndrome", format!("0x{syndrome:02x}"));
    fields.insert("dcp.nak", bit(true));
    fields.insert("dcp.nak.msn", nak.msn.get().to_string());
    fields.insert("dcp.psn", nak.msn.get().to_string());
    fields.insert("dcp.retry", nak.generation.get().to_string());
}

fn add_progress(fields: &mut Fields, stream: Stream, emsn: Msn, received: u32) {
    fields.insert("dcp.m", bit(stream == Stream::Answers));
    fields.insert("dcp.syndrome", "0x1f".to_owned());
    fields.insert("dcp.emsn", emsn.get().to_string());
    fields.insert("dcp.received", received.to_string());
}

fn add_probe_ack(fields: &mut Fields, answer: &ProbeAck) {
    fields.insert("dcp.opcode", "0xc1".to_owned());
    add_progress(fields, answer.stream, answer.emsn, answer.received);
    let [t1, t2, t3] = [answer.t1, answer.t2, answer.t3].map(|time| time.0);
    for (field, time) in [("dcp.t1", t1), ("dcp.t2", t2), ("dcp.t3", t3)] {
        fields.insert(field, time.to_string());
    }
    fields.insert("dcp.receiver_delay", t3.wrapping_sub(t2).to_string());
}

fn add_rest(fields: &mut Fields, sample: &Sample, packet: &Packet) {
    let (start, len) = (usize::from(packet.payload_offset), usize::from(packet.payload_len));
    if let Kind::Data(data) = &packet.headers.kind {
        use DataOpcode::{AtomicAck, CmpSwap, FetchAdd, ReadRequest};
        if !matches!(data.opcode(), AtomicAck | CmpSwap | FetchAdd | ReadRequest) {
            fields.insert("dcp.payload_len", len.to_string());
        }
    }
    if len > 0 {
        fields.insert("dcp.payload", hex(&sample.bytes[start..start + len]));
    }
    if let Some(is_right) = sample.icrc {
        fields.insert("dcp.icrc", hex(&sample.bytes[start + len..start + len + ICRC_LEN]));
        fields.insert("dcp.icrc.status", bit(is_right));
    }
}
