//! Chooses a port of a group for each frame (S-5).

use crate::port::PortId;
use crate::random::Random;
use crate::route::{GroupConfig, GroupMember, LoadBalance};

/// A group at work.
#[derive(Debug)]
pub(crate) struct Group {
    config: GroupConfig,
    /// Ports that are up, or all where none is.
    active: Vec<GroupMember>,
    /// Index into `active`, as often as the weight says and well mixed: one draw is one weighted choice.
    slots: Vec<u8>,
    next_slot: usize,
    down: Vec<bool>,
    salt: u32,
    random: Random,
}

impl Group {
    /// `salt` keeps switches in a row from making the same choice.
    pub(crate) fn new(config: GroupConfig, mut random: Random) -> Self {
        let down = vec![false; config.members.len()];
        let salt = random.next_u32();
        let mut group =
            Self { config, active: Vec::new(), slots: Vec::new(), next_slot: 0, down, salt, random };
        group.rebuild();
        group
    }

    pub(crate) fn members(&self) -> &[GroupMember] {
        &self.config.members
    }

    /// A link of the group failed, or works again.
    pub(crate) fn set_down(&mut self, port: PortId, down: bool) {
        if !self.config.avoid_down {
            return;
        }
        for (member, state) in self.config.members.iter().zip(&mut self.down) {
            if member.port == port {
                *state = down;
            }
        }
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let members = &self.config.members;
        let up = members.iter().zip(&self.down).filter(|(_, down)| !**down).map(|(member, _)| *member);
        self.active = up.collect();
        if self.active.is_empty() {
            self.active.clone_from(members);
        }
        self.slots = mixed(&self.active);
        self.next_slot = 0;
    }

    /// The port for a frame of this flow; `queue_bytes` tells the length of a port's data queue.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        flow_hash: impl FnOnce() -> u32,
        queue_bytes: impl Fn(PortId) -> u64,
    ) -> PortId {
        match self.config.balance {
            LoadBalance::Ecmp => self.by_hash(flow_hash()),
            LoadBalance::SprayRoundRobin => self.next_in_turn(),
            LoadBalance::SprayRandom => {
                let draw = self.random.next_u32();
                self.active[self.slot(draw)].port
            }
            LoadBalance::Adaptive => self.shortest(queue_bytes),
        }
    }

    /// The same port for all frames of a flow.
    #[inline]
    pub(crate) fn by_hash(&self, flow_hash: u32) -> PortId {
        // Salted and mixed again, or the second switch would see one residue of the first one's choice only.
        let mut mixed = (flow_hash ^ self.salt).wrapping_mul(0x9E37_79B1);
        mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA77);
        self.active[self.slot(mixed ^ (mixed >> 13))].port
    }

    /// Scales a draw of 32 bits to a slot, without a division.
    #[inline]
    fn slot(&self, draw: u32) -> usize {
        let slot = (u64::from(draw) * self.slots.len() as u64) >> 32;
        usize::from(self.slots[slot as usize])
    }

    #[inline]
    fn next_in_turn(&mut self) -> PortId {
        let slot = self.next_slot;
        self.next_slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        self.active[usize::from(self.slots[slot])].port
    }

    /// A drawn port stands, unless another one's queue is really shorter: so ties fall by weight, and by seed.
    #[inline]
    fn shortest(&mut self, queue_bytes: impl Fn(PortId) -> u64) -> PortId {
        let draw = self.random.next_u32();
        let drawn = self.slot(draw);
        let mut best = self.active[drawn];
        let mut best_bytes = queue_bytes(best.port);
        let (before, after) = self.active.split_at(drawn);
        for &member in after.iter().skip(1).chain(before) {
            let bytes = queue_bytes(member.port);
            // bytes / weight < best_bytes / best.weight; both sides stay below 2^41.
            if bytes * u64::from(best.weight) < best_bytes * u64::from(member.weight) {
                (best, best_bytes) = (member, bytes);
            }
        }
        best.port
    }
}

/// Each member as often as its weight in lowest terms says, as evenly spread as can be (smooth weighted round robin).
fn mixed(members: &[GroupMember]) -> Vec<u8> {
    let divisor = members.iter().fold(0, |divisor, member| gcd(divisor, member.weight)).max(1);
    let weights: Vec<i64> = members.iter().map(|member| i64::from(member.weight / divisor)).collect();
    let total: i64 = weights.iter().sum();
    let mut credit = vec![0i64; members.len()];
    let turn = |_| {
        credit.iter_mut().zip(&weights).for_each(|(credit, weight)| *credit += weight);
        let mut best = 0;
        for index in 1..credit.len() {
            if credit[index] > credit[best] {
                best = index;
            }
        }
        credit[best] -= total;
        u8::try_from(best).unwrap_or(0)
    };
    (0..total).map(turn).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

const _: () = assert!(crate::GROUP_MEMBERS_MAX <= u8::MAX as u32);

#[cfg(test)]
mod tests {
    use super::*;

    fn group(weights: &[u32], balance: LoadBalance, seed: u64) -> Group {
        let members = (0..).map(PortId).zip(weights.iter().copied());
        Group::new(GroupConfig::weighted(members, balance), Random::new(seed, 9))
    }

    fn shares(group: &mut Group, frames: u32) -> Vec<u32> {
        let mut counts = vec![0; group.members().len()];
        let mut hashes = Random::new(99, 1);
        for _ in 0..frames {
            counts[group.choose(|| hashes.next_u32(), |_| 0).index()] += 1;
        }
        counts
    }

    // S-5, 1:4 and 1:10.
    #[test]
    fn every_policy_keeps_to_the_weights() {
        for balance in
            [LoadBalance::Ecmp, LoadBalance::SprayRoundRobin, LoadBalance::SprayRandom, LoadBalance::Adaptive]
        {
            for weights in [&[1, 1][..], &[1, 4], &[1, 10], &[3, 1, 2, 2]] {
                let total: u32 = weights.iter().sum();
                let counts = shares(&mut group(weights, balance, 5), 44_000);
                for (&count, weight) in counts.iter().zip(weights) {
                    let expected = 44_000 * weight / total;
                    assert!(count.abs_diff(expected) < 800, "{balance:?} {weights:?}: {counts:?}");
                }
            }
        }
    }

    #[test]
    fn round_robin_mixes_the_ports_evenly() {
        let mut group = group(&[2, 8], LoadBalance::SprayRoundRobin, 1);
        let ports: Vec<u16> = (0..10).map(|_| group.choose(|| 0, |_| 0).0).collect();
        assert_eq!(ports, [1, 1, 0, 1, 1, 1, 1, 0, 1, 1], "1:4 twice");
    }

    // S-5: twin of the plain definition.
    #[test]
    fn adaptive_routing_takes_the_shortest_queue_for_its_weight() {
        let mut random = Random::new(3, 3);
        let weights = [1, 4, 10, 10];
        let mut group = group(&weights, LoadBalance::Adaptive, 8);
        for _ in 0..10_000 {
            let queues: Vec<u64> = weights.map(|_| u64::from(random.next_u32() % 40)).to_vec();
            let chosen = group.choose(|| 0, |port| queues[port.index()]).index();
            let load = |index: usize| queues[index] as f64 / f64::from(weights[index]);
            assert!((0..4).all(|other| load(chosen) <= load(other) + 1e-9), "{queues:?}: {chosen}");
        }
    }

    #[test]
    fn a_seed_decides_ties_and_dice() {
        for balance in [LoadBalance::SprayRandom, LoadBalance::Adaptive] {
            let run = |seed| {
                let mut group = group(&[1, 1, 1], balance, seed);
                [(); 64].map(|()| group.choose(|| 0, |_| 7).0)
            };
            assert_eq!(run(1), run(1));
            assert_ne!(run(1), run(2));
        }
    }

    #[test]
    fn switches_in_a_row_choose_independently() {
        let first = group(&[1, 1], LoadBalance::Ecmp, 1);
        let second = group(&[1, 1], LoadBalance::Ecmp, 2);
        let mut hashes = Random::new(4, 4);
        let mut both = [[0u32; 2]; 2];
        for _ in 0..40_000 {
            let hash = hashes.next_u32();
            both[first.by_hash(hash).index()][second.by_hash(hash).index()] += 1;
        }
        assert!(both.as_flattened().iter().all(|count| count.abs_diff(10_000) < 600), "{both:?}");
    }

    #[test]
    fn a_port_that_is_down_is_left_out_while_others_are_up() {
        let mut config = GroupConfig::equal([PortId(4), PortId(5)], LoadBalance::SprayRoundRobin);
        config.avoid_down = true;
        let mut group = Group::new(config, Random::new(1, 1));
        let ports = |group: &mut Group| [(); 4].map(|()| group.choose(|| 0, |_| 0).0);
        group.set_down(PortId(4), true);
        assert_eq!(ports(&mut group), [5; 4]);
        group.set_down(PortId(5), true);
        assert_eq!(ports(&mut group), [4, 5, 4, 5], "none is up: frames are lost where it shows");
        group.set_down(PortId(4), false);
        assert_eq!(ports(&mut group), [4; 4]);
    }
}
