//! What each driver carries. Every one of them claims frames of 65535 bytes, so sizes come from measurements.

use dcp_wire::{ETHERNET_LEN, ICRC_LEN, VLAN_LEN};

use super::uri::DeviceUri;

/// Smallest payload of a full packet, in bytes.
pub const MTU_MIN: u32 = 256;
/// Largest payload of a full packet, in bytes.
pub const MTU_MAX: u32 = 8192;
/// What a device is opened with when nothing else is asked for and it carries that much.
pub const MTU_DEFAULT_MAX: u32 = 4096;

/// A data packet's longest headers from IP on (WRITE LAST with immediate: 80 bytes with Ethernet), and the ICRC.
#[expect(clippy::cast_possible_truncation, reason = "70")]
pub const IP_OVERHEAD: u32 = (80 - ETHERNET_LEN + ICRC_LEN) as u32;
/// Ethernet header and one VLAN tag.
#[expect(clippy::cast_possible_truncation, reason = "18")]
pub const LINK_OVERHEAD: u32 = (ETHERNET_LEN + VLAN_LEN) as u32;

/// The longest frame of a connection with this MTU, without FCS.
pub const fn frame_bytes(mtu: u32) -> u32 {
    mtu + IP_OVERHEAD + LINK_OVERHEAD
}

/// The largest MTU whose frames fit a link with IP packets of `ip_bytes`; `None` below 256.
pub fn mtu_of_link(ip_bytes: u32) -> Option<u32> {
    let mtu = ip_bytes.saturating_sub(IP_OVERHEAD).min(MTU_MAX);
    (mtu >= MTU_MIN).then_some(mtu)
}

/// How payload gets into frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transmit {
    /// Without a copy of ours: a header and segments that point into registered memory.
    External,
    /// Copied behind the header, into one mbuf: for drivers that send one segment, or read memory by DMA.
    Linear,
}

/// A driver's limits, measured with DPDK 22.11 or read in its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverLimits {
    /// Largest IP packet, whatever the interface below allows.
    pub ip_bytes_max: u32,
    /// How it takes payload.
    pub transmit: Transmit,
    /// Queue pairs that can be used.
    pub queues_max: u16,
    /// Whether the MTU is to be set through DPDK. net_memif refuses 9000 but carries it; net_ring has no such call.
    pub sets_mtu: bool,
}

impl DriverLimits {
    /// The limits behind a URI.
    pub fn of(uri: &DeviceUri) -> Self {
        let one = Self { ip_bytes_max: 1500, transmit: Transmit::External, queues_max: 1, sets_mtu: false };
        match uri {
            // net_ring hands over mbufs: no limit of its own.
            DeviceUri::Loop => Self { ip_bytes_max: JUMBO, queues_max: 16, ..one },
            // Frames up to `bsize`, which follows the MTU: multi-segment receive is broken upstream.
            DeviceUri::Memif { .. } => Self { ip_bytes_max: JUMBO, ..one },
            // 4 KiB frames are transmit errors there, and an MTU above 1500 is refused.
            DeviceUri::Tap { .. } => Self { sets_mtu: true, ..one },
            // Up to `framesz`, which follows the MTU.
            DeviceUri::AfPacket { .. } => Self { ip_bytes_max: JUMBO, ..one },
            // One frame per 2 KiB of its memory, of which 256 are the kernel's; one segment per frame.
            DeviceUri::AfXdp { .. } => Self { transmit: Transmit::Linear, ..one },
            DeviceUri::Null => Self { ip_bytes_max: JUMBO, ..one },
            // Segments where the driver offers them and memory can be mapped for its DMA. Without rules that steer, all
            // frames come to one queue.
            DeviceUri::Pci { .. } => Self { ip_bytes_max: JUMBO, sets_mtu: true, ..one },
            // Unknown: what every Ethernet carries, in one piece.
            DeviceUri::Vdev { .. } => Self { transmit: Transmit::Linear, ..one },
        }
    }
}

/// An IP packet with the largest MTU.
const JUMBO: u32 = MTU_MAX + IP_OVERHEAD;

/// net_af_packet: of a ring slot, this much is the kernel's header on receive. A longer frame is silently cut.
const AF_PACKET_SLOT_OVERHEAD: u32 = 66;

/// The ring slot (`framesz`) whose frames of `frame_bytes` arrive whole: a power of two, at least the default.
pub(super) fn af_packet_slot(frame_bytes: u32) -> u32 {
    (frame_bytes + AF_PACKET_SLOT_OVERHEAD).next_power_of_two().max(2048)
}

/// The buffer (`bsize`) that holds a frame: whole cache lines, and never below the 2048 that were measured.
pub(super) fn memif_buffer(frame_bytes: u32) -> u32 {
    frame_bytes.next_multiple_of(64).max(2048)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_carries_1024_and_more() {
        assert_eq!(mtu_of_link(1500), Some(1430));
        assert_eq!(mtu_of_link(9000), Some(8192));
        assert_eq!(mtu_of_link(MTU_MIN + IP_OVERHEAD), Some(MTU_MIN));
        assert_eq!(mtu_of_link(MTU_MIN + IP_OVERHEAD - 1), None);
        assert_eq!(mtu_of_link(0), None);
    }

    #[test]
    fn buffers_hold_the_frame_and_what_the_driver_adds() {
        for mtu in MTU_MIN..=MTU_MAX {
            let frame = frame_bytes(mtu);
            assert!(af_packet_slot(frame) - AF_PACKET_SLOT_OVERHEAD >= frame);
            assert!(memif_buffer(frame) >= frame && memif_buffer(frame) <= u32::from(u16::MAX));
        }
        assert_eq!(af_packet_slot(frame_bytes(1024)), 2048);
        assert_eq!(af_packet_slot(frame_bytes(4096)), 8192);
        assert_eq!(af_packet_slot(frame_bytes(8192)), 16384);
    }
}
