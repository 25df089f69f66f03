//! What a device counts.

/// Counters of a device since it was last started, over all its queues. Drivers count what they can: net_ring and
/// net_null no bytes, and net_memif forgets when its peer leaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortStats {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes in them.
    pub rx_bytes: u64,
    /// Frames that found no room in the receive ring.
    pub rx_missed: u64,
    /// Frames that arrived broken.
    pub rx_errors: u64,
    /// Times that no mbuf was left for a frame.
    pub rx_no_mbuf: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes in them.
    pub tx_bytes: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
}

impl PortStats {
    pub(crate) fn read(port: u16) -> Option<Self> {
        let mut read = dpdk_sys::rte_eth_stats::default();
        // SAFETY: DPDK checks the number; `read` is ours.
        let code = unsafe { dpdk_sys::rte_eth_stats_get(port, &raw mut read) };
        (code == 0).then_some(Self {
            rx_frames: read.ipackets,
            rx_bytes: read.ibytes,
            rx_missed: read.imissed,
            rx_errors: read.ierrors,
            rx_no_mbuf: read.rx_nombuf,
            tx_frames: read.opackets,
            tx_bytes: read.obytes,
            tx_errors: read.oerrors,
        })
    }
}
