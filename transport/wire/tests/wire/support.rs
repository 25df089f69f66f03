//! Frames to test with.

use dcp_wire::*;
use proptest::prelude::*;

pub(crate) const OPTIONS: ParseOptions = ParseOptions { service_port: SERVICE_PORT, icrc: false };
pub(crate) const IMM: ImmData = ImmData(0xDEAD_BEEF);
pub(crate) const RETH: Reth = Reth { va: 0x1_0000_0010, rkey: RegionKey(7), dma_len: 0x2003 };

pub(crate) fn path() -> Path {
    Path {
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC123,
        dst_port: SERVICE_PORT,
        class: 5,
        ecn: Ecn::Ect0,
        ttl: 64,
    }
}

pub(crate) fn headers(kind: Kind) -> Headers {
    Headers { path: path(), dest_qpn: Qpn::new(0x0A_1B2C).unwrap(), pkey: PKey(0xBEEF), kind }
}

pub(crate) fn msn(number: u32) -> Msn {
    Msn::new(number).unwrap()
}

pub(crate) fn ssn(number: u32) -> Ssn {
    Ssn::new(number).unwrap()
}

fn name(psn: u32) -> PacketName {
    PacketName {
        msn: msn(0xFF_FFFE),
        psn: Psn::new(psn).unwrap(),
        generation: Generation::new(0xABC).unwrap(),
    }
}

pub(crate) fn data(psn: u32, ack_req: bool, solicited: bool, op: DataOp) -> Kind {
    Kind::Data(Data { name: name(psn), ack_req, solicited, op })
}

pub(crate) fn write(part: Part<WriteImm>) -> Kind {
    let psn = if matches!(part, Part::First | Part::Only(_)) { 0 } else { 2 };
    data(psn, false, false, DataOp::Write { reth: RETH, part })
}

pub(crate) fn header_only(returned: bool, opcode: DataOpcode) -> Kind {
    let psn = if opcode.is_first() { 0 } else { 2 };
    Kind::HeaderOnly(HeaderOnly { name: name(psn), opcode, returned, ack_req: true, solicited: false })
}

pub(crate) fn ack(stream: Stream, code: Option<NakCode>) -> Kind {
    let generation = Generation::new(0xABC).unwrap();
    let nak = code.map(|code| Nak { code, msn: msn(5), generation });
    Kind::Ack(Ack { stream, emsn: msn(0xFF_FFFE), received: 0xFEDC_BA98, nak })
}

pub(crate) fn probe_ack() -> Kind {
    Kind::ProbeAck(ProbeAck {
        stream: Stream::Requests,
        emsn: msn(0xFF_FFFE),
        received: 0xFEDC_BA98,
        t1: Timestamp(0x89AB_CDEF),
        t2: Timestamp(1),
        t3: Timestamp(0xFFFF_FFFF),
    })
}

pub(crate) fn atomic(compare: u64) -> AtomicEth {
    AtomicEth { va: 0x1_0000_0010, rkey: RegionKey(7), swap_add: 0x0102_0304_0506_0708, compare }
}

pub(crate) fn write_imm(number: u32) -> WriteImm {
    WriteImm { ssn: ssn(number), imm: IMM }
}

pub(crate) fn bytes_of(hex: &str) -> Vec<u8> {
    assert_eq!(hex.len() % 2, 0);
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Headers and a payload of 0x61, 0x62 …
pub(crate) fn frame_of(headers: &Headers, payload_len: usize) -> Vec<u8> {
    let mut frame = vec![0; headers.len() + payload_len];
    let len = emit(headers, payload_len, &mut frame);
    assert_eq!(len, headers.len());
    for (i, byte) in frame[len..].iter_mut().enumerate() {
        *byte = 0x61u8.wrapping_add(u8::try_from(i % 256).unwrap());
    }
    frame
}

/// The frame, padded to Ethernet's minimum (without FCS).
pub(crate) fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The golden bytes parse into `kind`, and `kind` is emitted as the golden bytes.
pub(crate) fn check_golden(hex: &str, kind: Kind, payload_len: usize) {
    let golden = bytes_of(hex);
    let headers = headers(kind);
    let packet = parse_frame(OPTIONS, &golden).unwrap();
    assert_eq!(packet.headers, headers);
    assert_eq!(usize::from(packet.ip_len), golden.len() - 14);
    assert_eq!(usize::from(packet.payload_offset), golden.len() - payload_len);
    assert_eq!(usize::from(packet.payload_len), payload_len);
    assert_eq!(frame_of(&headers, payload_len), golden, "emitted");
}

/// Rewrites the IP checksum of an untagged frame after a test has changed its header.
pub(crate) fn fix_ip_checksum(frame: &mut [u8]) {
    let header: &[u8; 20] = frame[14..34].try_into().unwrap();
    let sum = reference_checksum(header);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// The textbook computation, word by word.
pub(crate) fn reference_checksum(header: &[u8; 20]) -> u16 {
    let mut sum = 0u32;
    for (i, pair) in header.chunks(2).enumerate() {
        if i != 5 {
            sum += u32::from(pair[0]) << 8 | u32::from(pair[1]);
        }
    }
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}

/// One frame of every kind, with its payload length.
pub(crate) fn every_kind() -> Vec<(Headers, usize)> {
    let mut all: Vec<(Headers, usize)> = DataOpcode::ALL
        .into_iter()
        .map(|opcode| {
            let op = op_of(opcode, RETH, 0x77, atomic(0x99), 0x0102);
            let psn = if opcode.is_first() { 0 } else { 2 };
            (headers(data(psn, true, false, op)), if has_payload(opcode) { 40 } else { 0 })
        })
        .collect();
    let control = [
        header_only(false, DataOpcode::WriteMiddle),
        header_only(true, DataOpcode::ReadResponseLast),
        ack(Stream::Requests, None),
        ack(Stream::Answers, Some(NakCode::Resync)),
        Kind::Cnp,
        Kind::Probe(Probe { stream: Stream::Requests, t1: Timestamp(9) }),
        probe_ack(),
    ];
    all.extend(control.map(|kind| (headers(kind), 0)));
    all
}

pub(crate) fn has_payload(opcode: DataOpcode) -> bool {
    use DataOpcode::{AtomicAck, CmpSwap, FetchAdd, ReadRequest};
    !matches!(opcode, AtomicAck | CmpSwap | FetchAdd | ReadRequest)
}

fn op_of(opcode: DataOpcode, reth: Reth, number: u32, atomic: AtomicEth, imm: u32) -> DataOp {
    use DataOpcode as O;
    let (ssn, rmsn, imm) = (ssn(number), msn(number), ImmData(imm));
    let write = |part| DataOp::Write { reth, part };
    let send = |part| DataOp::Send { ssn, part };
    let answer = |part| DataOp::ReadResponse { rmsn, part };
    match opcode {
        O::SendFirst => send(Part::First),
        O::SendMiddle => send(Part::Middle),
        O::SendLast => send(Part::Last(None)),
        O::SendLastImm => send(Part::Last(Some(imm))),
        O::SendOnly => send(Part::Only(None)),
        O::SendOnlyImm => send(Part::Only(Some(imm))),
        O::WriteFirst => write(Part::First),
        O::WriteMiddle => write(Part::Middle),
        O::WriteLast => write(Part::Last(None)),
        O::WriteLastImm => write(Part::Last(Some(WriteImm { ssn, imm }))),
        O::WriteOnly => write(Part::Only(None)),
        O::WriteOnlyImm => write(Part::Only(Some(WriteImm { ssn, imm }))),
        O::ReadRequest => DataOp::ReadRequest(reth),
        O::ReadResponseFirst => answer(Part::First),
        O::ReadResponseMiddle => answer(Part::Middle),
        O::ReadResponseLast => answer(Part::Last(None)),
        O::ReadResponseOnly => answer(Part::Only(None)),
        O::AtomicAck => DataOp::AtomicAck { rmsn, original: atomic.swap_add },
        O::CmpSwap => DataOp::CmpSwap(atomic),
        O::FetchAdd => DataOp::FetchAdd(AtomicEth { compare: 0, ..atomic }),
    }
}

prop_compose! {
    fn any_path()(
        src_mac in any::<[u8; 6]>(), dst_mac in any::<[u8; 6]>(), vlan in any::<Option<u16>>(),
        src_ip in any::<u32>(), dst_ip in any::<u32>(), src_port in any::<u16>(),
        class in 0u8..16, ecn in 0u8..4, ttl in any::<u8>(),
    ) -> Path {
        Path {
            src_mac: MacAddr(src_mac),
            dst_mac: MacAddr(dst_mac),
            vlan: vlan.map(VlanTag),
            src_ip: Ipv4Addr::from(src_ip),
            dst_ip: Ipv4Addr::from(dst_ip),
            src_port,
            dst_port: SERVICE_PORT,
            class,
            ecn: Ecn::from_tos(ecn),
            ttl,
        }
    }
}

prop_compose! {
    fn any_name(opcode: DataOpcode)(msn in any::<u32>(), psn in 1u32..SPACE_24, generation in 0u16..4096) -> PacketName {
        PacketName {
            msn: Msn::from_low_bits(msn),
            psn: if opcode.is_first() { Psn::ZERO } else { Psn::new(psn).unwrap() },
            generation: Generation::new(generation).unwrap(),
        }
    }
}

fn any_opcode() -> impl Strategy<Value = DataOpcode> {
    (0..DataOpcode::ALL.len()).prop_map(|i| DataOpcode::ALL[i])
}

fn any_stream() -> impl Strategy<Value = Stream> {
    any::<bool>().prop_map(|answers| if answers { Stream::Answers } else { Stream::Requests })
}

prop_compose! {
    fn any_op(opcode: DataOpcode)(
        va in any::<u64>(), rkey in any::<u32>(), dma_len in 0..=MESSAGE_BYTES_MAX, number in 0u32..SPACE_24,
        swap_add in any::<u64>(), compare in any::<u64>(), imm in any::<u32>(),
    ) -> DataOp {
        let rkey = RegionKey(rkey);
        op_of(opcode, Reth { va, rkey, dma_len }, number, AtomicEth { va, rkey, swap_add, compare }, imm)
    }
}

prop_compose! {
    fn any_data()(opcode in any_opcode())(
        name in any_name(opcode), ack_req in any::<bool>(), solicited in any::<bool>(), op in any_op(opcode),
    ) -> Kind {
        Kind::Data(Data { name, ack_req, solicited, op })
    }
}

prop_compose! {
    fn any_header_only()(opcode in any_opcode())(
        opcode in Just(opcode), name in any_name(opcode), returned in any::<bool>(), ack_req in any::<bool>(),
        solicited in any::<bool>(),
    ) -> Kind {
        Kind::HeaderOnly(HeaderOnly { name, opcode, returned, ack_req, solicited })
    }
}

fn any_nak() -> impl Strategy<Value = Nak> {
    let code = prop_oneof![
        (0u8..32).prop_map(|code| NakCode::Rnr(RnrTimer::new(code).unwrap())),
        Just(NakCode::Resync),
        Just(NakCode::InvalidRequest),
        Just(NakCode::RemoteAccess),
        Just(NakCode::RemoteOperational),
    ];
    (code, 0u32..SPACE_24, 0u16..4096).prop_map(|(code, number, generation)| Nak {
        code,
        msn: msn(number),
        generation: Generation::new(generation).unwrap(),
    })
}

fn any_control() -> impl Strategy<Value = Kind> {
    let ack = (any_stream(), 0u32..SPACE_24, any::<u32>(), proptest::option::of(any_nak()))
        .prop_map(|(stream, emsn, received, nak)| Kind::Ack(Ack { stream, emsn: msn(emsn), received, nak }));
    let probe = (any_stream(), any::<u32>())
        .prop_map(|(stream, t1)| Kind::Probe(Probe { stream, t1: Timestamp(t1) }));
    let probe_ack =
        (any_stream(), 0u32..SPACE_24, any::<[u32; 4]>()).prop_map(|(stream, emsn, [received, a, b, c])| {
            let [t1, t2, t3] = [a, b, c].map(Timestamp);
            Kind::ProbeAck(ProbeAck { stream, emsn: msn(emsn), received, t1, t2, t3 })
        });
    prop_oneof![ack, probe, probe_ack, Just(Kind::Cnp)]
}

/// Headers of any kind.
pub(crate) fn any_headers() -> impl Strategy<Value = Headers> {
    let kind = prop_oneof![4 => any_data(), 1 => any_header_only(), 2 => any_control()];
    (any_path(), 0u32..SPACE_24, any::<u16>(), kind).prop_map(|(path, qpn, pkey, kind)| Headers {
        path,
        dest_qpn: Qpn::new(qpn).unwrap(),
        pkey: PKey(pkey),
        kind,
    })
}

/// Headers of any kind, and a payload length that the kind may have.
pub(crate) fn any_frame() -> impl Strategy<Value = (Headers, usize)> {
    (any_headers(), 0usize..4097).prop_map(|(headers, len)| {
        let payload = matches!(&headers.kind, Kind::Data(data) if has_payload(data.opcode()));
        (headers, if payload { len } else { 0 })
    })
}
