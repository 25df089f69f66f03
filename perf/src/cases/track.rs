//! A tracking slot: one message, its packets in order and out of order.

use std::hint::black_box;

use super::{Case, Entry};
use crate::slot::{Counted, Slot};

/// Packets of the message, about.
const PACKETS: u32 = 4096;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry { name: "track/slot/0", elements: 4096, make: || Box::new(Track::new(0)) },
        Entry { name: "track/slot/63", elements: 4096, make: || Box::new(Track::new(63)) },
    ]
}

/// In every block of `degree + 1` packets the first one comes last.
fn order(degree: u32) -> Vec<u32> {
    let block = degree + 1;
    let starts = (0..PACKETS.div_ceil(block)).map(|index| index * block);
    starts.flat_map(|start| (start + 1..start + block).chain([start])).collect()
}

struct Track(Vec<u32>);

impl Track {
    fn new(degree: u32) -> Self {
        Self(order(degree))
    }
}

impl Case for Track {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        let mut slot = Slot::default();
        slot.set_expected(PACKETS);
        let complete = self.0.iter().filter(|&&psn| slot.count(black_box(psn)) == Counted::Complete).count();
        assert_eq!(complete, 1, "one message");
    }
}
