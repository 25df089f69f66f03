//! The value a frame parses into, and is emitted from.

use crate::{
    Ecn, Generation, ImmData, Ipv4Addr, MacAddr, Msn, PKey, Psn, Qpn, RegionKey, Ssn, Stream, Timestamp,
    VlanTag,
};

/// Addresses of a frame: the path it takes between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    /// Ethernet source.
    pub src_mac: MacAddr,
    /// Ethernet destination.
    pub dst_mac: MacAddr,
    /// 802.1Q tag, if the frame has one.
    pub vlan: Option<VlanTag>,
    /// IPv4 source.
    pub src_ip: Ipv4Addr,
    /// IPv4 destination.
    pub dst_ip: Ipv4Addr,
    /// UDP source port: path entropy.
    pub src_port: u16,
    /// UDP destination port: the receiver's service port.
    pub dst_port: u16,
    /// ToS bits 7-4, the traffic class: 0 … 15.
    pub class: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// IPv4 time to live.
    pub ttl: u8,
}

/// Everything a frame says before its payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Headers {
    /// Addresses.
    pub path: Path,
    /// Queue pair the frame is for.
    pub dest_qpn: Qpn,
    /// Key of the connection.
    pub pkey: PKey,
    /// What the frame is.
    pub kind: Kind,
}

/// A parsed frame: its headers and where its payload lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Packet {
    /// Everything before the payload.
    pub headers: Headers,
    /// IPv4 total length in bytes, as the frame states it.
    pub ip_len: u16,
    /// Offset of the first payload byte in the frame.
    pub payload_offset: u16,
    /// Payload bytes.
    pub payload_len: u16,
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A packet of a message (tag 10).
    Data(Data),
    /// A trimmed packet (tag 11): its first 57 bytes.
    HeaderOnly(HeaderOnly),
    /// Acknowledgement or negative acknowledgement (tag 01).
    Ack(Ack),
    /// Congestion notification (tag 01).
    Cnp,
    /// Question for progress and delay (tag 01).
    Probe(Probe),
    /// Answer to a [`Probe`] (tag 01).
    ProbeAck(ProbeAck),
}

/// Names one packet of a stream, in one of its transmissions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketName {
    /// The message.
    pub msn: Msn,
    /// The packet inside the message.
    pub psn: Psn,
    /// The transmission (sRetryNo).
    pub generation: Generation,
}

/// A packet of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Data {
    /// Which packet it is.
    pub name: PacketName,
    /// Whether the sender wants an ACK now.
    pub ack_req: bool,
    /// Solicited event bit.
    pub solicited: bool,
    /// Operation and its extension headers.
    pub op: DataOp,
}

/// Operation of a data packet with its extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataOp {
    /// SEND.
    Send {
        /// Receive request it consumes.
        ssn: Ssn,
        /// Place in the message.
        part: Part<ImmData>,
    },
    /// RDMA WRITE.
    Write {
        /// Where it goes; in every packet.
        reth: Reth,
        /// Place in the message.
        part: Part<WriteImm>,
    },
    /// RDMA READ request.
    ReadRequest(Reth),
    /// Atomic compare and swap.
    CmpSwap(AtomicEth),
    /// Atomic fetch and add.
    FetchAdd(AtomicEth),
    /// Data of a READ answer (answer stream).
    ReadResponse {
        /// MSN of the request answered.
        rmsn: Msn,
        /// Place in the answer.
        part: Part<core::convert::Infallible>,
    },
    /// Answer of an atomic (answer stream).
    AtomicAck {
        /// MSN of the request answered.
        rmsn: Msn,
        /// Value before the operation.
        original: u64,
    },
}

/// Place of a packet in its message; the end of one may carry an immediate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part<I> {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last(Option<I>),
    /// The only one.
    Only(Option<I>),
}

/// What a WRITE with immediate adds to its last packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteImm {
    /// Receive request it consumes.
    pub ssn: Ssn,
    /// The immediate.
    pub imm: ImmData,
}

/// RDMA extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reth {
    /// Address of *this packet's* first byte in the peer's memory.
    pub va: u64,
    /// Region it belongs to.
    pub rkey: RegionKey,
    /// Length of the *whole* message in bytes.
    pub dma_len: u32,
}

/// Atomic extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AtomicEth {
    /// Address of the 8 bytes.
    pub va: u64,
    /// Region they belong to.
    pub rkey: RegionKey,
    /// Value to swap in, or to add.
    pub swap_add: u64,
    /// Value to compare with; 0 for fetch and add.
    pub compare: u64,
}

/// A trimmed packet. Its extension headers are gone, so the opcode is all that is known of the operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeaderOnly {
    /// Which packet was trimmed.
    pub name: PacketName,
    /// Opcode of the trimmed packet.
    pub opcode: DataOpcode,
    /// False: made by a switch, for the receiver to bounce. True: bounced, for the sender to resend (bit R).
    pub returned: bool,
    /// AckReq of the trimmed packet.
    pub ack_req: bool,
    /// Solicited bit of the trimmed packet.
    pub solicited: bool,
}

/// Progress of a receiver; a negative one names the message that failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ack {
    /// Stream it speaks of.
    pub stream: Stream,
    /// First message that is not complete; everything before it is.
    pub emsn: Msn,
    /// IP bytes of data packets received so far, modulo 2^32.
    pub received: u32,
    /// Present in a negative acknowledgement.
    pub nak: Option<Nak>,
}

/// Why and what a NAK refuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nak {
    /// Reason.
    pub code: NakCode,
    /// Message refused.
    pub msn: Msn,
    /// Its generation.
    pub generation: Generation,
}

/// Reason of a NAK.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NakCode {
    /// No receive request; wait for the time that the code (0 … 31) names.
    Rnr(RnrTimer),
    /// A packet came twice while another is missing: send the message again.
    Resync,
    /// The request breaks a rule.
    InvalidRequest,
    /// No right to the memory.
    RemoteAccess,
    /// The responder failed.
    RemoteOperational,
}

/// InfiniBand RNR timer code, 0 … 31.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// The code, or `None` above 31.
    pub const fn new(code: u8) -> Option<Self> {
        if code < 32 { Some(Self(code)) } else { None }
    }

    /// The code as a number below 32.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Question for progress and delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Probe {
    /// Stream it asks about.
    pub stream: Stream,
    /// When it was sent, on the sender's clock.
    pub t1: Timestamp,
}

/// Answer to a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProbeAck {
    /// Progress, as in an ACK. Never negative.
    pub stream: Stream,
    /// First message that is not complete.
    pub emsn: Msn,
    /// IP bytes of data packets received so far.
    pub received: u32,
    /// `t1` of the probe.
    pub t1: Timestamp,
    /// When the probe reached the responder, on its clock.
    pub t2: Timestamp,
    /// When the answer was built, on the same clock as `t2`.
    pub t3: Timestamp,
}

/// Opcodes of data packets, as in InfiniBand's RC transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are InfiniBand's")]
pub enum DataOpcode {
    SendFirst = 0x00,
    SendMiddle = 0x01,
    SendLast = 0x02,
    SendLastImm = 0x03,
    SendOnly = 0x04,
    SendOnlyImm = 0x05,
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    WriteLastImm = 0x09,
    WriteOnly = 0x0A,
    WriteOnlyImm = 0x0B,
    ReadRequest = 0x0C,
    ReadResponseFirst = 0x0D,
    ReadResponseMiddle = 0x0E,
    ReadResponseLast = 0x0F,
    ReadResponseOnly = 0x10,
    AtomicAck = 0x12,
    CmpSwap = 0x13,
    FetchAdd = 0x14,
}
