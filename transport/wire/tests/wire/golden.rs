//! Golden frames of every kind, computed from protocol §1 by hand and not by `emit`: Ethernet 02:…:01 → 02:…:02,
//! 10.0.0.1:0xC123 → 10.0.0.2:17791, class 5, ECT(0), TTL 64, QPN 0x0A1B2C, P_Key 0xBEEF, MSN 0xFFFFFE, sRetryNo 0xABC.
//! Written as IPv4 and UDP header, BTH, the rest.

use crate::support::{
    IMM, RETH, ack, atomic, check_golden, data, header_only, msn, probe_ack, ssn, write_imm,
};
use dcp_wire::*;

macro_rules! golden {
    ($name:ident, $ip_udp:literal, $bth:literal, $rest:literal, $kind:expr, payload $len:literal) => {
        #[test]
        fn $name() {
            check_golden(concat!("0200000000020200000000010800", $ip_udp, $bth, $rest), $kind, $len);
        }
    };
}

golden!(
    send_first_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0000beef2a0a1b2c3c000000",
    "fffffe00010261626364",
    data(0x000000, false, false, DataOp::Send { ssn: ssn(0x102), part: Part::First }),
    payload 4
);
golden!(
    send_middle_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0100beef2a0a1b2c3c010203",
    "fffffe00010261626364",
    data(0x010203, false, false, DataOp::Send { ssn: ssn(0x102), part: Part::Middle }),
    payload 4
);
golden!(
    send_last_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0200beef2a0a1b2cbcffffff",
    "fffffeffffff61626364",
    data(0xffffff, true, false, DataOp::Send { ssn: ssn(0xffffff), part: Part::Last(None) }),
    payload 4
);
golden!(
    send_last_imm_has_its_golden_bytes,
    "455a0036000040004011265b0a0000010a000002c123457f00220000",
    "0380beef2a0a1b2c3c000001",
    "fffffe000102deadbeef61626364",
    data(0x000001, false, true, DataOp::Send { ssn: ssn(0x102), part: Part::Last(Some(IMM)) }),
    payload 4
);
golden!(
    send_only_has_its_golden_bytes,
    "455a002e00004000401126630a0000010a000002c123457f001a0000",
    "0400beef2a0a1b2c3c000000",
    "fffffe000102",
    data(0x000000, false, false, DataOp::Send { ssn: ssn(0x102), part: Part::Only(None) }),
    payload 0
);
golden!(
    send_only_imm_has_its_golden_bytes,
    "455a0036000040004011265b0a0000010a000002c123457f00220000",
    "0580beef2a0a1b2cbc000000",
    "fffffe000102deadbeef61626364",
    data(0x000000, true, true, DataOp::Send { ssn: ssn(0x102), part: Part::Only(Some(IMM)) }),
    payload 4
);
golden!(
    write_first_has_its_golden_bytes,
    "455a003f00004000401126520a0000010a000002c123457f002b0000",
    "0600beef2a0a1b2c3c000000",
    "fffffe0000000100000010000000070000200361626364",
    data(0x000000, false, false, DataOp::Write { reth: RETH, part: Part::First }),
    payload 4
);
golden!(
    write_middle_has_its_golden_bytes,
    "455a003f00004000401126520a0000010a000002c123457f002b0000",
    "0700beef2a0a1b2c3c000002",
    "fffffe0000000100000010000000070000200361626364",
    data(0x000002, false, false, DataOp::Write { reth: RETH, part: Part::Middle }),
    payload 4
);
golden!(
    write_last_has_its_golden_bytes,
    "455a003f00004000401126520a0000010a000002c123457f002b0000",
    "0800beef2a0a1b2cbc000003",
    "fffffe0000000100000010000000070000200361626364",
    data(0x000003, true, false, DataOp::Write { reth: RETH, part: Part::Last(None) }),
    payload 4
);
golden!(
    write_last_imm_has_its_golden_bytes,
    "455a0046000040004011264b0a0000010a000002c123457f00320000",
    "0900beef2a0a1b2c3c000003",
    "fffffe00010200000001000000100000000700002003deadbeef61626364",
    data(0x000003, false, false, DataOp::Write { reth: RETH, part: Part::Last(Some(write_imm(0x102))) }),
    payload 4
);
golden!(
    write_only_has_its_golden_bytes,
    "455a003f00004000401126520a0000010a000002c123457f002b0000",
    "0a00beef2a0a1b2c3c000000",
    "fffffe0000000100000010000000070000200361626364",
    data(0x000000, false, false, DataOp::Write { reth: RETH, part: Part::Only(None) }),
    payload 4
);
golden!(
    write_only_imm_has_its_golden_bytes,
    "455a0042000040004011264f0a0000010a000002c123457f002e0000",
    "0b00beef2a0a1b2c3c000000",
    "fffffe00010200000001000000100000000700002003deadbeef",
    data(0x000000, false, false, DataOp::Write { reth: RETH, part: Part::Only(Some(write_imm(0x102))) }),
    payload 0
);
golden!(
    read_request_has_its_golden_bytes,
    "455a003b00004000401126560a0000010a000002c123457f00270000",
    "0c00beef2a0a1b2c3c000000",
    "fffffe00000001000000100000000700002003",
    data(0x000000, false, false, DataOp::ReadRequest(RETH)),
    payload 0
);
golden!(
    read_response_first_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0d00beef2a0a1b2c3c000000",
    "fffffefffffd61626364",
    data(0x000000, false, false, DataOp::ReadResponse { rmsn: msn(0xfffffd), part: Part::First }),
    payload 4
);
golden!(
    read_response_middle_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0e00beef2a0a1b2c3c000001",
    "fffffefffffd61626364",
    data(0x000001, false, false, DataOp::ReadResponse { rmsn: msn(0xfffffd), part: Part::Middle }),
    payload 4
);
golden!(
    read_response_last_has_its_golden_bytes,
    "455a0032000040004011265f0a0000010a000002c123457f001e0000",
    "0f00beef2a0a1b2c3c000002",
    "fffffefffffd61626364",
    data(0x000002, false, false, DataOp::ReadResponse { rmsn: msn(0xfffffd), part: Part::Last(None) }),
    payload 4
);
golden!(
    read_response_only_has_its_golden_bytes,
    "455a002e00004000401126630a0000010a000002c123457f001a0000",
    "1000beef2a0a1b2c3c000000",
    "fffffefffffd",
    data(0x000000, false, false, DataOp::ReadResponse { rmsn: msn(0xfffffd), part: Part::Only(None) }),
    payload 0
);
golden!(
    atomic_ack_has_its_golden_bytes,
    "455a0036000040004011265b0a0000010a000002c123457f00220000",
    "1200beef2a0a1b2c3c000000",
    "fffffefffffd1122334455667788",
    data(0x000000, false, false, DataOp::AtomicAck { rmsn: msn(0xfffffd), original: 0x1122_3344_5566_7788 }),
    payload 0
);
golden!(
    cmp_swap_has_its_golden_bytes,
    "455a0047000040004011264a0a0000010a000002c123457f00330000",
    "1300beef2a0a1b2c3c000000",
    "fffffe00000001000000100000000701020304050607081112131415161718",
    data(0x000000, false, false, DataOp::CmpSwap(atomic(0x1112_1314_1516_1718))),
    payload 0
);
golden!(
    fetch_add_has_its_golden_bytes,
    "455a0047000040004011264a0a0000010a000002c123457f00330000",
    "1400beef2a0a1b2c3c000000",
    "fffffe00000001000000100000000701020304050607080000000000000000",
    data(0x000000, false, false, DataOp::FetchAdd(atomic(0))),
    payload 0
);
golden!(
    header_only_has_its_golden_bytes,
    "455e002b00004000401126620a0000010a000002c123457f00170000",
    "0700beef2a0a1b2cbc000002",
    "fffffe",
    header_only(false, DataOpcode::WriteMiddle),
    payload 0
);
golden!(
    header_only_returned_has_its_golden_bytes,
    "455e002b00004000401126620a0000010a000002c123457f00170000",
    "0100beef2b0a1b2cbc000002",
    "fffffe",
    header_only(true, DataOpcode::SendMiddle),
    payload 0
);
golden!(
    ack_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef000a1b2c00000000",
    "1ffffffefedcba98",
    ack(Stream::Requests, None),
    payload 0
);
golden!(
    ack_of_answers_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1140beef000a1b2c00000000",
    "1ffffffefedcba98",
    ack(Stream::Answers, None),
    payload 0
);
golden!(
    nak_rnr_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "2cfffffefedcba98",
    ack(Stream::Requests, Some(NakCode::Rnr(RnrTimer::new(12).unwrap()))),
    payload 0
);
golden!(
    nak_rnr_last_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "3ffffffefedcba98",
    ack(Stream::Requests, Some(NakCode::Rnr(RnrTimer::new(31).unwrap()))),
    payload 0
);
golden!(
    nak_resync_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "60fffffefedcba98",
    ack(Stream::Requests, Some(NakCode::Resync)),
    payload 0
);
golden!(
    nak_invalid_request_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "61fffffefedcba98",
    ack(Stream::Requests, Some(NakCode::InvalidRequest)),
    payload 0
);
golden!(
    nak_remote_access_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "62fffffefedcba98",
    ack(Stream::Requests, Some(NakCode::RemoteAccess)),
    payload 0
);
golden!(
    nak_remote_operational_has_its_golden_bytes,
    "4556003000004000401126650a0000010a000002c123457f001c0000",
    "1100beef2a0a1b2c3c000005",
    "63fffffefedcba98",
    ack(Stream::Requests, Some(NakCode::RemoteOperational)),
    payload 0
);
golden!(
    cnp_has_its_golden_bytes,
    "45560038000040004011265d0a0000010a000002c123457f00240000",
    "8100beef400a1b2c00000000",
    "00000000000000000000000000000000",
    Kind::Cnp,
    payload 0
);
golden!(
    probe_has_its_golden_bytes,
    "4556002e00004000401126670a0000010a000002c123457f001a0000",
    "c040beef000a1b2c00000000",
    "89abcdef0000",
    Kind::Probe(Probe { stream: Stream::Answers, t1: Timestamp(0x89ab_cdef) }),
    payload 0
);
golden!(
    probe_ack_has_its_golden_bytes,
    "4556003c00004000401126590a0000010a000002c123457f00280000",
    "c100beef000a1b2c00000000",
    "1ffffffefedcba9889abcdef00000001ffffffff",
    probe_ack(),
    payload 0
);
