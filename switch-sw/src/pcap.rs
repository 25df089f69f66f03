//! Capture files that Wireshark and tshark read: libpcap's format with nanoseconds.

use std::io::{self, Write};

/// "This file counts nanoseconds", in the byte order of the rest: little-endian.
const MAGIC: u32 = 0xA1B2_3C4D;
const LINKTYPE_ETHERNET: u32 = 1;
/// Most bytes kept of a frame.
pub const SNAP_LEN: usize = 65_535;

/// Writes frames to a capture file.
#[derive(Debug)]
pub struct PcapWriter<W> {
    to: W,
    frames: u64,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What `to` says.
    pub fn new(mut to: W) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        // Version 2.4; time zone and accuracy are 0, as always.
        header[4..8].copy_from_slice(&[2, 0, 4, 0]);
        header[16..20].copy_from_slice(&0xFFFFu32.to_le_bytes());
        header[20..].copy_from_slice(&LINKTYPE_ETHERNET.to_le_bytes());
        to.write_all(&header)?;
        Ok(Self { to, frames: 0 })
    }

    /// Adds a frame of `len` bytes, of which `bytes` are the first, seen at `unix_ns` nanoseconds after 1970.
    ///
    /// # Errors
    /// What the file says.
    pub fn write(&mut self, unix_ns: u64, len: usize, bytes: &[u8]) -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(SNAP_LEN)];
        let low = |value: u64| u32::try_from(value & 0xFFFF_FFFF).unwrap_or(0).to_le_bytes();
        let fields = [unix_ns / 1_000_000_000, unix_ns % 1_000_000_000, bytes.len() as u64, len as u64];
        self.to.write_all(fields.map(low).as_flattened())?;
        self.to.write_all(bytes)?;
        self.frames += 1;
        Ok(())
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Sees to it that everything is in the file.
    ///
    /// # Errors
    /// What the file says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_libpcap_says_it_is() {
        let mut file = Vec::new();
        let mut writer = PcapWriter::new(&mut file).unwrap();
        writer.write(1_700_000_000_123_456_789, 1500, &[1, 2, 3]).unwrap();
        assert_eq!(writer.frames(), 1);
        let header =
            [0x4D, 0x3C, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0];
        assert_eq!(file[..24], header);
        assert_eq!(file[24..28], 1_700_000_000u32.to_le_bytes());
        assert_eq!(file[28..32], 123_456_789u32.to_le_bytes());
        assert_eq!(file[32..], [3, 0, 0, 0, 0xDC, 5, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_file_that_is_full_is_an_error() {
        let mut room = [0; 30];
        let mut writer = PcapWriter::new(&mut room[..]).unwrap();
        assert!(writer.write(0, 3, &[1, 2, 3]).is_err());
        assert_eq!(writer.frames(), 0);
    }
}
