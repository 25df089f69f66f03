//! What an endpoint counts. Nothing here influences the protocol.

/// Why a received frame was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// No queue pair of that number.
    UnknownQp,
    /// P_Key of another connection.
    WrongKey,
    /// Source address of another host.
    WrongSource,
    /// The queue pair's state takes no frames.
    WrongState,
    /// Lengths, PSN and MTU do not agree (P-2).
    BadLength,
    /// MSN before `emsn`: an old message.
    OldMessage,
    /// MSN beyond the window.
    BeyondWindow,
    /// The message is complete or failed already.
    Settled,
    /// An older transmission of the message.
    OldGeneration,
    /// The message waits for its restart.
    Poisoned,
    /// The packet is in the message's map already.
    Duplicate,
    /// A check of R-4 failed; the message ends.
    Refused,
    /// An HO that names nothing the sender has under way (T-4).
    StaleHeaderOnly,
    /// RetransQ full (T-5).
    RetransFull,
    /// An ACK that acknowledges what was not sent (T-6).
    BadAck,
    /// A NAK that names nothing under way.
    StaleNak,
    /// A packet of another operation than the message's others (P-2).
    MixedOperations,
    /// An answer to nothing that waits for one.
    StaleAnswer,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = 18;

    /// All of them, in the order of [`Counters::drops`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::UnknownQp,
        Self::WrongKey,
        Self::WrongSource,
        Self::WrongState,
        Self::BadLength,
        Self::OldMessage,
        Self::BeyondWindow,
        Self::Settled,
        Self::OldGeneration,
        Self::Poisoned,
        Self::Duplicate,
        Self::Refused,
        Self::StaleHeaderOnly,
        Self::RetransFull,
        Self::BadAck,
        Self::StaleNak,
        Self::MixedOperations,
        Self::StaleAnswer,
    ];
}

/// Counters of an endpoint, all since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Data packets sent, resent ones included.
    pub data_packets: u64,
    /// Payload bytes in them.
    pub data_bytes: u64,
    /// Data packets that had been sent before.
    pub retransmitted: u64,
    /// Data packets received that belong here, whatever happened to them next.
    pub data_received: u64,
    /// Data packets placed in memory.
    pub placed: u64,
    /// HOs bounced for the peer.
    pub ho_bounced: u64,
    /// Own HOs that came back and were accepted (T-4).
    pub ho_returned: u64,
    /// Coarse timeouts that started a new generation (T-8).
    pub timeouts: u64,
    /// Coarse timeouts while only the window held packets back (T-8).
    pub window_timeouts: u64,
    /// Restarts that the peer asked for (T-9).
    pub resyncs: u64,
    /// ACKs sent.
    pub acks: u64,
    /// NAKs sent.
    pub naks: u64,
    /// RNR NAKs sent.
    pub rnr_naks: u64,
    /// Probes sent (T-14, C-3).
    pub probes: u64,
    /// Frames received that a switch marked with CE.
    pub ce_received: u64,
    /// CNPs sent.
    pub cnps_sent: u64,
    /// CNPs received.
    pub cnps: u64,
    /// Messages that were tracked by counter alone after a restart, because the map pool was empty.
    pub maps_refused: u64,
    /// Completions lost to a full completion queue.
    pub completions_lost: u64,
    /// Gaps between polls that put coarse timers off (T-8).
    pub gaps: u64,
    /// Dropped frames by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
}

/// Counters of one queue pair, all since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QpCounters {
    /// Data packets sent, resent ones included.
    pub data_packets: u64,
    /// Payload bytes in them.
    pub data_bytes: u64,
    /// Data packets that had been sent before.
    pub retransmitted: u64,
    /// Data packets received, whatever happened to them next.
    pub data_received: u64,
    /// Data packets placed in memory.
    pub placed: u64,
    /// Own HOs that came back and were accepted (T-4).
    pub ho_returned: u64,
    /// Coarse timeouts, also while only the window held packets back (T-8).
    pub timeouts: u64,
    /// RNR NAKs sent.
    pub rnr_naks: u64,
}

impl Counters {
    /// Frames dropped for `reason`.
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Frames dropped in all.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Data packets that brought nothing new.
    pub const fn duplicates(&self) -> u64 {
        self.dropped(DropReason::OldMessage)
            + self.dropped(DropReason::Settled)
            + self.dropped(DropReason::Duplicate)
    }
}
