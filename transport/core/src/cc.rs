//! Congestion control: how many bytes a queue pair may have in flight now.

/// The scheme of one queue pair. It decides the rate and never what is resent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CongestionControl {
    /// Unlimited (C-1).
    None,
    /// A static limit on the bytes in flight (C-1).
    Window {
        /// Bytes, IP length counted; ≥ 2 packets and ≥ 2 × the peer's `ack_bytes`.
        bytes: u32,
    },
}

impl CongestionControl {
    /// Bytes that may leave now, with `in_flight` bytes on their way: `awin` (T-3).
    #[inline]
    pub(crate) const fn allowance(self, in_flight: u64) -> u64 {
        match self {
            Self::None => u64::MAX,
            Self::Window { bytes } => (bytes as u64).saturating_sub(in_flight),
        }
    }
}
