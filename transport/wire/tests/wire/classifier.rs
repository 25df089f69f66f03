//! S-0 for frames in sequence: a classifier says what `classify` says, whatever came before.

use crate::support::{any_frame, every_kind, frame_of, headers, write};
use dcp_wire::*;
use proptest::prelude::*;
use proptest::sample::Index;

const PORTS: &[u16] = &[9, SERVICE_PORT];

/// A classifier beside `classify`, and the addresses of the frame before.
struct Twins {
    classifier: Classifier,
    addresses: (MacAddr, MacAddr),
    address_changes: u64,
}

impl Twins {
    fn new() -> Self {
        let addresses = (MacAddr([0; 6]), MacAddr([0; 6]));
        Self { classifier: Classifier::new(PORTS), addresses, address_changes: 0 }
    }

    fn see(&mut self, frame: &[u8]) -> Result<(), String> {
        let expected = classify(frame, PORTS);
        let seen = self.classifier.classify(frame).copied();
        if let Some(seen) = expected {
            assert_eq!(*self.classifier.last(), seen);
            let addresses = (seen.dst_mac, seen.src_mac);
            self.address_changes += u64::from(addresses != self.addresses);
            self.addresses = addresses;
        }
        let got = (seen, self.classifier.address_changes());
        let wanted = (expected, self.address_changes);
        (got == wanted).then_some(()).ok_or_else(|| format!("{frame:02x?}: {got:?}, not {wanted:?}"))
    }
}

/// A frame of each shape that a switch tells apart.
fn shapes() -> Vec<Vec<u8>> {
    let dcp = frame_of(&headers(write(Part::Middle)), 64);
    let mut tagged = headers(write(Part::Middle));
    tagged.path.vlan = Some(VlanTag(7));
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = dcp.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let others = [
        changed(12, &[0x86, 0xDD]),
        changed(14, &[0x46]),
        changed(20, &[0x20, 0]),
        changed(20, &[0, 0x10]),
        changed(23, &[6]),
        changed(36, &[0x12, 0xB7]),
    ];
    others.into_iter().chain([dcp.clone(), frame_of(&tagged, 64), vec![0; 64], vec![0xFF; 64]]).collect()
}

#[test]
fn a_frame_that_differs_in_any_bit_is_seen_as_if_it_came_first() {
    for frame in shapes() {
        let mut twins = Twins::new();
        for bit in 0..60 * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            for frame in [&frame, &flipped, &flipped, &frame, &frame] {
                twins.see(frame).unwrap();
            }
        }
    }
}

#[test]
fn frames_of_every_shape_and_length_follow_each_other() {
    let shapes = shapes();
    for before in &shapes {
        for frame in &shapes {
            let mut twins = Twins::new();
            for len in 0..=60 {
                for frame in [&before[..], &frame[..len], &frame[..len], &before[..len], frame] {
                    twins.see(frame).unwrap();
                }
            }
        }
    }
}

#[test]
fn every_kind_of_packet_follows_every_other() {
    let kinds: Vec<_> = every_kind().iter().map(|(headers, len)| frame_of(headers, *len)).collect();
    let mut twins = Twins::new();
    for before in &kinds {
        for frame in &kinds {
            twins.see(before).unwrap();
            twins.see(frame).unwrap();
        }
    }
}

/// What becomes of a frame before it is shown, a byte changed and perhaps its end cut off: nothing for most, so that
/// alike frames follow each other.
fn disturbed() -> impl Strategy<Value = Option<(Index, u8, Option<Index>)>> {
    prop::option::weighted(0.4, (any::<Index>(), any::<u8>(), any::<Option<Index>>()))
}

proptest! {
    #[test]
    fn any_sequence_is_seen_as_frame_by_frame(
        flows in prop::collection::vec(any_frame(), 1..4),
        steps in prop::collection::vec((any::<Index>(), disturbed()), 1..60),
    ) {
        let frames: Vec<_> = flows.iter().map(|(headers, len)| frame_of(headers, *len)).collect();
        let mut twins = Twins::new();
        for (which, disturbance) in steps {
            let mut frame = frames[which.index(frames.len())].clone();
            if let Some((at, flip, cut)) = disturbance {
                let reach = frame.len().min(60);
                frame[at.index(reach)] ^= flip;
                frame.truncate(cut.map_or(frame.len(), |cut| cut.index(60)));
            }
            prop_assert_eq!(twins.see(&frame), Ok(()));
        }
    }
}
