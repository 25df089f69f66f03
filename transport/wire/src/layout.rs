//! Where the fields lie (protocol §1). Offsets from the IP header on are relative to that header, because a
//! VLAN tag moves everything behind it by [`VLAN_LEN`].

/// Ethernet header without a VLAN tag.
pub const ETHERNET_LEN: usize = 14;
/// What one 802.1Q tag adds.
pub const VLAN_LEN: usize = 4;
/// IPv4 header without options.
pub const IP_LEN: usize = 20;
/// UDP header.
pub const UDP_LEN: usize = 8;
/// Base transport header.
pub const BTH_LEN: usize = 12;
/// A header-only packet without a VLAN tag: Ethernet, IPv4, UDP, BTH, MSN.
pub const HO_LEN: usize = 57;
/// Headers of a packet of a WRITE without immediate, untagged.
pub(crate) const WRITE_LEN: usize = 73;
/// Its IP total length.
pub const HO_IP_LEN: u16 = 43;
/// Its UDP length.
pub const HO_UDP_LEN: u16 = 23;
/// Longest header of any kind, with a VLAN tag.
pub const HEADER_LEN_MAX: usize = 85 + VLAN_LEN;
/// Bytes of a frame that must be contiguous for [`crate::parse`]: enough for any header.
pub const PARSE_LEN: usize = 128;
/// Longest message in bytes.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 31;
/// ICRC trailer.
pub const ICRC_LEN: usize = 4;
/// Default UDP service port. Not RoCE's 4791, which RDMA NICs keep for themselves.
pub const SERVICE_PORT: u16 = 17791;
/// TTL of emitted and bounced frames.
pub const TTL: u8 = 64;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const PROTOCOL_UDP: u8 = 17;
pub(crate) const FLAG_DF: u16 = 0x4000;
/// More-fragments flag and fragment offset.
pub(crate) const FRAGMENT_MASK: u16 = 0x3FFF;

/// From the IP header to the end of a header-only packet.
pub(crate) const IP_TO_MSN: usize = HO_LEN - ETHERNET_LEN;

/// Longest extension behind the MSN: AtomicETH.
pub(crate) const EXTENSION_LEN_MAX: usize = 28;

/// Offsets relative to the IP header.
pub(crate) mod at {
    pub(crate) const TOS: usize = 1;
    pub(crate) const IP_TOTAL: usize = 2;
    pub(crate) const FLAGS: usize = 6;
    pub(crate) const TTL: usize = 8;
    pub(crate) const PROTOCOL: usize = 9;
    pub(crate) const IP_CHECKSUM: usize = 10;
    pub(crate) const SRC_IP: usize = 12;
    pub(crate) const DST_IP: usize = 16;
    pub(crate) const SRC_PORT: usize = 20;
    pub(crate) const DST_PORT: usize = 22;
    pub(crate) const UDP_TOTAL: usize = 24;
    pub(crate) const UDP_CHECKSUM: usize = 26;
    pub(crate) const OPCODE: usize = 28;
    pub(crate) const BTH_FLAGS: usize = 29;
    pub(crate) const PKEY: usize = 30;
    pub(crate) const RETRY_HIGH: usize = 32;
    pub(crate) const DEST_QPN: usize = 33;
    pub(crate) const RETRY_LOW: usize = 36;
    pub(crate) const PSN: usize = 37;
    pub(crate) const MSN: usize = 40;
}

/// Bits of the BTH.
pub(crate) mod bit {
    pub(crate) const SOLICITED: u8 = 0x80;
    pub(crate) const ANSWERS: u8 = 0x40;
    pub(crate) const PAD: u8 = 0x30;
    pub(crate) const VERSION: u8 = 0x0F;
    pub(crate) const FECN: u8 = 0x80;
    pub(crate) const BECN: u8 = 0x40;
    pub(crate) const RETRY_HIGH: u8 = 0x3E;
    pub(crate) const RETURNED: u8 = 0x01;
    pub(crate) const ACK_REQ: u8 = 0x80;
    pub(crate) const RETRY_LOW: u8 = 0x7F;
}

/// Opcodes that are not a [`crate::DataOpcode`].
pub(crate) mod opcode {
    pub(crate) const ACK: u8 = 0x11;
    pub(crate) const CNP: u8 = 0x81;
    pub(crate) const PROBE: u8 = 0xC0;
    pub(crate) const PROBE_ACK: u8 = 0xC1;
}

/// AETH syndromes.
pub(crate) mod syndrome {
    pub(crate) const ACK: u8 = 0x1F;
    pub(crate) const RNR: u8 = 0x20;
    pub(crate) const RNR_LAST: u8 = 0x3F;
    pub(crate) const RESYNC: u8 = 0x60;
    pub(crate) const INVALID_REQUEST: u8 = 0x61;
    pub(crate) const REMOTE_ACCESS: u8 = 0x62;
    pub(crate) const REMOTE_OPERATIONAL: u8 = 0x63;
}

/// The `N` bytes at `offset`. For constant offsets into arrays: the check goes away in the optimiser.
#[inline(always)]
pub(crate) fn take<const N: usize>(bytes: &[u8; IP_TO_MSN], offset: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[offset..offset + N]);
    taken
}

/// Big-endian 16 bits at `offset`.
#[inline(always)]
pub(crate) fn be16(bytes: &[u8; IP_TO_MSN], offset: usize) -> u16 {
    u16::from_be_bytes(take(bytes, offset))
}

/// Big-endian 24 bits at `offset`.
#[inline(always)]
pub(crate) fn be24(bytes: &[u8; IP_TO_MSN], offset: usize) -> u32 {
    u32::from_be_bytes([0, bytes[offset], bytes[offset + 1], bytes[offset + 2]])
}

/// Writes `value` at `offset`.
#[inline(always)]
pub(crate) fn put<const N: usize>(bytes: &mut [u8; IP_TO_MSN], offset: usize, value: [u8; N]) {
    bytes[offset..offset + N].copy_from_slice(&value);
}

/// The three low bytes of a 24-bit number, big-endian.
#[inline(always)]
pub(crate) fn low24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

/// Big-endian 64 bits at `offset`, which is a constant everywhere.
#[inline(always)]
pub(crate) fn word<const N: usize>(bytes: &[u8; N], offset: usize) -> u64 {
    u64::from_be(raw_word(bytes, offset))
}

/// The same in the order in which they stand there: to be compared, not to be understood.
#[inline(always)]
pub(crate) fn raw_word<const N: usize>(bytes: &[u8; N], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_ne_bytes(word)
}
