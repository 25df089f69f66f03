//! Twin of tracking: the window's slots and maps beside a plain set of packet numbers.

use dcp_wire::{Generation, Msn, PacketName, Psn};

use super::Shared;
use super::answer::{give_map_back, track};
use super::recv_window::{Admission, RecvWindow};
use crate::maps::MapPool;
use crate::memory::Memory;
use crate::slot::Counted;
use crate::{Counters, EndpointConfig, Mixer};

/// What one packet did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Dropped,
    Taken,
    Complete,
    Torn,
}

/// Everything that arrived, in the plainest form.
struct Naive {
    packets: u32,
    generation: u16,
    arrived: Vec<u32>,
    has_maps: bool,
    exact: bool,
    poisoned: bool,
    complete: bool,
}

impl Naive {
    fn take(&mut self, psn: u32, generation: u16) -> Outcome {
        let ahead = (i32::from(generation) - i32::from(self.generation)).rem_euclid(4096);
        if self.complete {
            return Outcome::Dropped;
        }
        if !self.exact && (1..=15).contains(&ahead) {
            self.generation = generation;
            self.arrived.clear();
            self.poisoned = false;
            self.exact = self.has_maps;
        } else if !self.exact && (ahead != 0 || self.poisoned) || self.exact && self.arrived.contains(&psn) {
            return Outcome::Dropped;
        }
        self.arrived.push(psn);
        let mut different = self.arrived.clone();
        different.sort_unstable();
        different.dedup();
        self.complete = different.len() == self.packets as usize && self.arrived.len() == different.len();
        self.poisoned = !self.complete && !self.exact && self.arrived.len() >= self.packets as usize;
        match (self.complete, self.poisoned) {
            (true, _) => Outcome::Complete,
            (_, true) => Outcome::Torn,
            _ => Outcome::Taken,
        }
    }
}

fn shared(map_words_max: usize) -> Shared {
    Shared {
        config: EndpointConfig::new(dcp_wire::MacAddr::default(), dcp_wire::Ipv4Addr::UNSPECIFIED),
        memory: Memory::new(),
        maps: MapPool::new(map_words_max),
        cqs: Vec::new(),
        srqs: Vec::new(),
        draining: false,
        counters: Counters::default(),
        by_qp: Vec::new(),
    }
}

/// The receiver's own steps, in its own order.
fn take(window: &mut RecvWindow, name: PacketName, packets: u32, shared: &mut Shared) -> Outcome {
    let restart = match window.admit(name) {
        Admission::Take => None,
        Admission::Restart(generation) => Some(generation),
        Admission::Drop(_) => return Outcome::Dropped,
    };
    let slot = window.slot_mut(name.msn);
    slot.set_expected(packets);
    match track(slot, &name, restart, packets, shared) {
        Err(_) => Outcome::Dropped,
        Ok(Counted::More) => Outcome::Taken,
        Ok(Counted::Torn) => {
            slot.poison();
            Outcome::Torn
        }
        Ok(Counted::Complete) => {
            give_map_back(slot, &mut shared.maps);
            slot.complete();
            Outcome::Complete
        }
    }
}

#[test]
fn r7_slot_and_map_take_and_complete_what_a_set_does_under_any_faults() {
    let mut outcomes = [0u32; 4];
    for seed in 0..4000u64 {
        let mut draws = 0;
        let mut below = |bound: u64| {
            draws += 1;
            u32::try_from(Mixer::mix(seed << 20 | draws) % bound).expect("bounds are small")
        };
        let packets = 1 + below(if seed % 3 == 0 { 150 } else { 6 });
        let has_maps = seed % 4 != 0;
        let mut shared = shared(if has_maps { 8 } else { 0 });
        let mut window = RecvWindow::new(1);
        let mut naive = Naive {
            packets,
            generation: 0,
            arrived: Vec::new(),
            has_maps,
            exact: false,
            poisoned: false,
            complete: false,
        };
        let disorder = [0, 20, 60][below(3) as usize];
        let mut sender = 0u16;
        for step in 0..6 * packets {
            // Mostly the next packet in its turn; else any, of a generation that may be any.
            let astray = below(100) < disorder;
            let psn = if astray { below(packets.into()) } else { step % packets };
            let restarts = step % packets == 0 && step > 0 && below(2) == 0;
            // One ahead, as senders do; and the borders of what counts as newer.
            let ahead = if restarts { [1, 1, 1, 2, 15, 16][below(6) as usize] } else { 0 };
            sender = (sender + ahead) % 4096;
            let behind = if astray { [0, 1, 2][below(3) as usize] } else { 0 };
            let generation = Generation::from_low_bits(sender.wrapping_sub(behind));
            let name = PacketName { msn: Msn::ZERO, psn: Psn::from_low_bits(psn), generation };
            let outcome = take(&mut window, name, packets, &mut shared);
            assert_eq!(outcome, naive.take(psn, generation.get()), "seed {seed} step {step}");
            outcomes[outcome as usize] += 1;
        }
        window.clear(&mut shared.maps);
        assert_eq!(shared.maps.words_left(), if has_maps { 8 } else { 0 }, "seed {seed} keeps a map");
    }
    assert!(outcomes.iter().all(|&count| count > 500), "a path is hardly taken: {outcomes:?}");
}
