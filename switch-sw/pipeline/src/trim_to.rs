//! Trimming as switches do it that know nothing of DCP: SAI and SONiC, NVIDIA Spectrum, Ultra Ethernet.
//!
//! They keep the first bytes of a frame that finds no place, whatever they are, and give it another DSCP. So a frame
//! trimmed by one is no header-only packet to a DCP endpoint: its UDP length is that of the whole, and its DSCP, of which
//! DCP's tag is a part, is what the switch is told.

use dcp_wire::{NotDcp, update_checksum};

use crate::config_error::{ConfigError, Parameter, in_range};

/// Which queue trimmed frames take.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum TrimQueue {
    /// The control queue: SONiC's default of a queue of its own.
    #[default]
    Control,
    /// The data queue, beyond its threshold by the size of a control queue.
    Data,
}

/// Trim like a switch that knows nothing of DCP. Which frames are trimmed, and when, stays as it is (S-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TrimTo {
    /// Bytes of the frame that are kept, from the Ethernet header on; a shorter frame is only remarked. SAI and SONiC
    /// 128, NVIDIA 256. Range 64 ..= 1024.
    pub trim_bytes: u32,
    /// DSCP of trimmed frames. SONiC 48, NVIDIA 11. Range 0 ..= 63.
    pub trim_dscp: u8,
    /// Their queue.
    pub trim_queue: TrimQueue,
}

impl TrimTo {
    /// SONiC's example: 128 bytes, DSCP 48.
    pub const SONIC: Self = Self { trim_bytes: 128, trim_dscp: 48, trim_queue: TrimQueue::Control };
    /// NVIDIA Spectrum's defaults: 256 bytes, DSCP 11.
    pub const NVIDIA: Self = Self { trim_bytes: 256, trim_dscp: 11, trim_queue: TrimQueue::Control };

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        in_range(Parameter::TrimBytes, self.trim_bytes, 64..=1024)?;
        in_range(Parameter::TrimDscp, self.trim_dscp.into(), 0..=63)
    }
}

/// Cuts an IPv4 frame of `frame_len` bytes to `keep` and gives it a DSCP, in place; returns its new length.
///
/// `head` is the beginning of the frame, at least its IP header. IP total length and checksum follow; the ECN field, the
/// UDP length and what is behind it stay, as Ultra Ethernet asks. The caller cuts the frame, and must be its only owner.
///
/// # Errors
/// [`NotDcp`] if it is no IPv4 frame, or its IP header is not all there.
pub fn trim_to(head: &mut [u8], frame_len: usize, keep: usize, dscp: u8) -> Result<usize, NotDcp> {
    let ip_at = match head.get(12..).ok_or(NotDcp)? {
        [0x08, 0x00, ..] => 14,
        [0x81, 0x00, _, _, 0x08, 0x00, ..] => 18,
        _ => return Err(NotDcp),
    };
    let ip = head.get_mut(ip_at..).and_then(|ip| ip.first_chunk_mut::<20>()).ok_or(NotDcp)?;
    if ip[0] != 0x45 || keep < ip_at + ip.len() {
        return Err(NotDcp);
    }
    let (version, tos) = (ip[0], dscp << 2 | ip[1] & 0b11);
    set(ip, 0, u16::from_be_bytes([version, tos]));
    let ip_kept = u16::try_from(keep - ip_at).unwrap_or(u16::MAX);
    if u16::from_be_bytes([ip[2], ip[3]]) > ip_kept {
        set(ip, 2, ip_kept);
    }
    Ok(frame_len.min(keep))
}

/// Changes a word of the header, and its checksum.
fn set(ip: &mut [u8; 20], offset: usize, new: u16) {
    let old = u16::from_be_bytes([ip[offset], ip[offset + 1]]);
    let sum = update_checksum(u16::from_be_bytes([ip[10], ip[11]]), old, new);
    ip[offset..offset + 2].copy_from_slice(&new.to_be_bytes());
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}
