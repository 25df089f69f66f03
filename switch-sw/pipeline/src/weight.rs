//! The weight of the control queue against the data queue (S-3).

use core::fmt;

use dcp_wire::HO_LEN;

use crate::frame::wire_len;
use crate::note::Note;

/// Share of link time of the control queue, in units of the data queue's, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weight(u32);

impl Weight {
    /// Largest weight: the data queue keeps 1/65 of the link, so it never starves.
    pub const MAX: Self = Self(64_000);
    /// Smallest weight: the control queue keeps about 1/64 of the link.
    pub const MIN: Self = Self(16);

    /// The weight of that many thousandths, or `None` outside [`Self::MIN`] ..= [`Self::MAX`].
    pub const fn from_milli(milli: u32) -> Option<Self> {
        if milli >= Self::MIN.0 && milli <= Self::MAX.0 { Some(Self(milli)) } else { None }
    }

    /// The weight in thousandths.
    pub const fn milli(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// How the weight is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightConfig {
    /// Enough for every header-only packet of an N-to-1 incast, by the paper's formula in wire bytes.
    Derived(Incast),
    /// As given, in thousandths; refused outside [`Weight::MIN`] ..= [`Weight::MAX`].
    ExplicitMilli(u32),
}

/// The incast that a derived weight is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incast {
    /// Ports that may send to one port at line rate, plus one: the paper's N. Range 1 ..= [`crate::PORTS_MAX`].
    pub ports: u16,
    /// Smallest frame that is worth trimming, in bytes without FCS. Default 1097: a WRITE of MTU 1024.
    pub trimmable_frame_len: u32,
    /// Share of the link that the ACK class needs in the control queue, in millionths. Default 50 000; 0 where
    /// ACKs use the data queue.
    pub ack_share_ppm: u32,
}

impl Incast {
    /// Default of [`Self::trimmable_frame_len`].
    pub const TRIMMABLE_FRAME_LEN: u32 = 1097;
    /// Default of [`Self::ack_share_ppm`].
    pub const ACK_SHARE_PPM: u32 = 50_000;

    /// The largest N that the formula is good for, with frames of [`Self::TRIMMABLE_FRAME_LEN`] trimmed to `header_len`
    /// bytes and no ACKs in their queue: the largest below r + 1.
    pub(crate) fn ports_max(header_len: u32) -> u32 {
        wire_len(Self::TRIMMABLE_FRAME_LEN).div_ceil(wire_len(header_len))
    }

    /// The weight, or the nearest legal one and a note.
    pub(crate) fn weight(&self, header_len: u32) -> (Weight, Option<Note>) {
        let header = u128::from(wire_len(header_len));
        let data = u128::from(wire_len(self.trimmable_frame_len));
        let senders = u128::from(self.ports.max(1) - 1);
        // S-3: x = (N − 1)/r + a, with r = data/header; both sides times `data` and a million.
        let one = data * 1_000_000;
        let x = senders * header * 1_000_000 + u128::from(self.ack_share_ppm) * data;
        let wanted = (x < one).then(|| x * 1000 / (one - x));
        let milli = wanted.map_or(u32::MAX, |milli| u32::try_from(milli).unwrap_or(u32::MAX));
        let weight = Weight(milli.clamp(Weight::MIN.0, Weight::MAX.0));
        let note = (weight.0 != milli).then_some(Note::WeightClamped { incast: *self, weight });
        (weight, note)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "57")]
pub(crate) const HO_FRAME_LEN: u32 = HO_LEN as u32;

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(ports: u16, trimmable_frame_len: u32, ack_share_ppm: u32) -> (u32, bool) {
        let (weight, note) = Incast { ports, trimmable_frame_len, ack_share_ppm }.weight(HO_FRAME_LEN);
        (weight.milli(), note.is_some())
    }

    // S-3, golden: header 84 wire bytes, data frame_len + 24.
    #[test]
    fn derived_weight_follows_the_formula() {
        // r = 1680/84 = 20: w = 15/(20 − 15) = 3; 7/13; 1/19.
        assert_eq!(derived(16, 1656, 0), (3_000, false));
        assert_eq!(derived(8, 1656, 0), (538, false));
        assert_eq!(derived(2, 1656, 0), (52, false));
        // The same with a = 0.05: x = 0.8, w = 4; x = 0.1, w = 1/9.
        assert_eq!(derived(16, 1656, 50_000), (4_000, false));
        assert_eq!(derived(2, 1656, 50_000), (111, false));
    }

    // S-3: r = 1121/84 = 13.3 with DCP's headers, 1121/152 = 7.4 with SONiC's 128 bytes, 1121/280 = 4.0 with 256.
    #[test]
    fn larger_headers_shorten_the_range_of_the_formula() {
        for (header_len, ports_max) in [(57, 14), (128, 8), (256, 5)] {
            assert_eq!(Incast::ports_max(header_len), ports_max);
            let clamped = |ports| {
                let incast = Incast { ports, trimmable_frame_len: 1097, ack_share_ppm: 0 };
                incast.weight(header_len).1.is_some()
            };
            let ports_max = u16::try_from(ports_max).unwrap();
            assert!(!clamped(ports_max - 1) && clamped(ports_max + 1), "{header_len}");
        }
        // The paper's formula with N = 5 and r = 1121/152: 4/(7.375 − 4) = 1.185.
        let incast = Incast { ports: 5, trimmable_frame_len: 1097, ack_share_ppm: 0 };
        assert_eq!(incast.weight(128).0.milli(), 1185);
    }

    #[test]
    fn derived_weight_outside_its_range_is_clamped_and_said() {
        // x = 1 exactly, beyond 1, and just below it.
        assert_eq!(derived(21, 1656, 0), (64_000, true));
        assert_eq!(derived(200, 1656, 0), (64_000, true));
        assert_eq!(derived(20, 1656, 49_999), (64_000, true));
        // One port sends nothing: the control queue still gets its minimum.
        assert_eq!(derived(1, 1656, 0), (16, true));
        let (_, note) =
            Incast { ports: 200, trimmable_frame_len: 1656, ack_share_ppm: 0 }.weight(HO_FRAME_LEN);
        let note = note.unwrap().to_string();
        assert!(note.contains("199-to-1") && note.contains("64.000"), "{note}");
    }
}
