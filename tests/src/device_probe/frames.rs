//! Frames of the probe: Ethernet, an EtherType for experiments, a kind, a number, bytes that follow from the number.

/// IEEE 802 local experimental EtherType 1.
pub(crate) const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
pub(crate) const HEADER_LEN: usize = 14;
/// Kind, number, length.
const PREFIX_LEN: usize = 1 + 4 + 2;
pub(crate) const ASKED: u8 = b'?';
pub(crate) const ANSWERED: u8 = b'!';

/// A frame of `len` bytes.
pub(crate) fn frame(kind: u8, source: [u8; 6], number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend(source);
    bytes.extend(ETHERTYPE);
    bytes.push(kind);
    bytes.extend(number.to_be_bytes());
    bytes.extend(u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    let mut state = number.wrapping_mul(2_654_435_761).wrapping_add(1);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.push(state.to_be_bytes()[1]);
    }
    bytes
}

/// Kind and number of a frame of ours.
pub(crate) fn read(bytes: &[u8]) -> Option<(u8, u32)> {
    if bytes.len() < HEADER_LEN + PREFIX_LEN || bytes[12..14] != ETHERTYPE {
        return None;
    }
    let number = bytes[15..19].first_chunk().map(|bytes| u32::from_be_bytes(*bytes))?;
    Some((bytes[14], number))
}
