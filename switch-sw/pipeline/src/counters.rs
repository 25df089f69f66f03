//! What happened to frames, so that none goes missing (S-4).

use crate::fault::FaultCounters;

/// Why a frame was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// An injected fault, in either direction.
    Injected,
    /// Ingress: shorter than an Ethernet header.
    Runt,
    /// Ingress: its destination is behind the port that it came from.
    SamePort,
    /// Ingress: there is no other port to flood it to.
    NoPort,
    /// Egress: no buffer for a flooded or injected copy.
    NoCopy,
    /// Egress: not trimmable, and the data queue is longer than its threshold, or full.
    DataQueueFull,
    /// Egress: header-only, trimmed here or before, and the control queue is full.
    HeaderLost,
    /// Egress: had to be trimmed and could not be.
    TrimRefused,
    /// Was in a queue, on a link or held back when the switch was drained.
    Drained,
    /// Its link was cut, in either direction.
    LinkDown,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::LinkDown as usize + 1;

    /// Every reason, in index order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Injected,
        Self::Runt,
        Self::SamePort,
        Self::NoPort,
        Self::NoCopy,
        Self::DataQueueFull,
        Self::HeaderLost,
        Self::TrimRefused,
        Self::Drained,
        Self::LinkDown,
    ];

    /// Name of the counter, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Runt => "runt",
            Self::SamePort => "same_port",
            Self::NoPort => "no_port",
            Self::NoCopy => "no_copy",
            Self::DataQueueFull => "data_queue_full",
            Self::HeaderLost => "ho_lost",
            Self::TrimRefused => "trim_refused",
            Self::Drained => "drained",
            Self::LinkDown => "link_down",
        }
    }
}

/// Frames lost, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Drops([u64; DropReason::COUNT]);

impl Drops {
    #[inline]
    pub(crate) fn count(&mut self, reason: DropReason, frames: u64) {
        self.0[reason as usize] += frames;
    }

    /// Frames lost for `reason`.
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Frames lost for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Counters of a port's receive side. `received + duplicated + flood_copies = drops.total() + routed + held`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IngressCounters {
    /// Frames that arrived.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Copies that a fault added.
    pub duplicated: u64,
    /// Copies that flooding added.
    pub flood_copies: u64,
    /// Frames offered to egress ports, copies included.
    pub routed: u64,
    /// Source addresses that found no place in the MAC table.
    pub unlearned: u64,
    /// Frames that faults hold back now.
    pub held: u64,
    /// What other faults did.
    pub faults: FaultCounters,
    /// Frames lost before an egress port was chosen.
    pub drops: Drops,
}

/// Counters of a port's transmit side. `offered = forwarded + trimmed_forwarded + drops.total() + frames queued`; queued
/// is also what is on the link and held back ([`crate::Queued::frames`]). Of all ports together, `offered` is `routed` of
/// the ingress side + `duplicated`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EgressCounters {
    /// Frames routed to this port, flooded and injected copies included.
    pub offered: u64,
    /// Copies among them that a fault of this side added.
    pub duplicated: u64,
    /// Frames sent as they came; header-only ones that came as such too.
    pub forwarded: u64,
    /// Frames trimmed here and sent.
    pub trimmed_forwarded: u64,
    /// Bytes of both, without FCS.
    pub forwarded_bytes: u64,
    /// Frames among them that took the control queue; the others took the data queue.
    pub control_forwarded: u64,
    /// Bytes of those, without FCS.
    pub control_forwarded_bytes: u64,
    /// Frames trimmed here, sent or not.
    pub trimmed: u64,
    /// Frames marked "congestion experienced", sent or not (S-6).
    pub marked: u64,
    /// Frames that should have been marked, and could not be.
    pub mark_refused: u64,
    /// Most bytes that the data queue held.
    pub data_bytes_peak: u64,
    /// Most bytes that the control queue held.
    pub control_bytes_peak: u64,
    /// Most frames that were on the link.
    pub link_frames_peak: u64,
    /// What other faults did.
    pub faults: FaultCounters,
    /// Frames lost at this port.
    pub drops: Drops,
}

impl EgressCounters {
    /// Header-only packets lost because the control queue was full (S-4).
    pub const fn ho_lost(&self) -> u64 {
        self.drops.get(DropReason::HeaderLost)
    }

    /// Whether every frame offered is accounted for (S-4).
    pub fn balances(&self, queued_frames: u64) -> bool {
        self.offered == self.forwarded + self.trimmed_forwarded + self.drops.total() + queued_frames
    }
}

impl IngressCounters {
    /// Whether every frame received is accounted for (S-4).
    pub fn balances(&self) -> bool {
        self.received + self.duplicated + self.flood_copies == self.drops.total() + self.routed + self.held
    }
}

/// Counters of one port, or of all.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortCounters {
    /// Receive side.
    pub ingress: IngressCounters,
    /// Transmit side.
    pub egress: EgressCounters,
}

impl PortCounters {
    /// Adds another port's counters; peaks become the larger one.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.ingress, &other.ingress);
        mine.received += theirs.received;
        mine.received_bytes += theirs.received_bytes;
        mine.duplicated += theirs.duplicated;
        mine.flood_copies += theirs.flood_copies;
        mine.routed += theirs.routed;
        mine.unlearned += theirs.unlearned;
        mine.held += theirs.held;
        mine.faults.add(&theirs.faults);
        mine.drops.add(&theirs.drops);
        let (mine, theirs) = (&mut self.egress, &other.egress);
        mine.offered += theirs.offered;
        mine.duplicated += theirs.duplicated;
        mine.forwarded += theirs.forwarded;
        mine.trimmed_forwarded += theirs.trimmed_forwarded;
        mine.forwarded_bytes += theirs.forwarded_bytes;
        mine.control_forwarded += theirs.control_forwarded;
        mine.control_forwarded_bytes += theirs.control_forwarded_bytes;
        mine.trimmed += theirs.trimmed;
        mine.marked += theirs.marked;
        mine.mark_refused += theirs.mark_refused;
        mine.data_bytes_peak = mine.data_bytes_peak.max(theirs.data_bytes_peak);
        mine.control_bytes_peak = mine.control_bytes_peak.max(theirs.control_bytes_peak);
        mine.link_frames_peak = mine.link_frames_peak.max(theirs.link_frames_peak);
        mine.faults.add(&theirs.faults);
        mine.drops.add(&theirs.drops);
    }
}
