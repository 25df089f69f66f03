//! Draws a program from a seed.
//!
//! Work requests of different lanes never touch the same bytes, but for one cell that all add to. In a lane, a WRITE
//! over an earlier one's place and a message made of READ bytes carry the fence flag, as applications must (T-16).

use dcp_pair::{Rng, Side};

use super::program::{Action, Lane, Op, Piece, Program, Receive, Verb};

pub(crate) const MEMORY: usize = 1 << 18;
/// Bytes that nothing writes: what SEND and WRITE carry and READ fetches.
const SOURCE: u64 = 1 << 14;
/// Two cells for each lane.
const CELLS: u64 = SOURCE;
/// The cell that all lanes add to.
pub(crate) const SHARED_CELL: u64 = CELLS + 512;
pub(crate) const TARGETS: u64 = CELLS + 1024;
/// Last byte that targets may use, so that small messages always find room.
const TARGETS_END: u64 = MEMORY as u64 - 8192;
const SHARED_CAPACITY: u32 = 2048;

/// What a program is drawn for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) mtu: u32,
    pub(crate) qps: usize,
    pub(crate) shared: bool,
    /// Tells work requests of one program from those of the next.
    pub(crate) phase: u64,
    /// First byte that the program may write, by side: shared receives of an earlier one lie before.
    pub(crate) free: [u64; 2],
}

struct Draw<'a> {
    rng: &'a mut Rng,
    shape: Shape,
    /// Next free byte for targets, by side.
    free: [u64; 2],
}

/// What a lane has done so far that later work may build on.
#[derive(Default)]
struct Past {
    writes: Vec<Piece>,
    reads: Vec<Vec<Piece>>,
}

impl Program {
    pub(crate) fn draw(rng: &mut Rng, shape: Shape) -> Self {
        let mut draw = Draw { rng, shape, free: shape.free };
        let mut lanes = Vec::new();
        let both_ways = draw.rng.below(4) > 0;
        for side in [Side::Client, Side::Server] {
            for qp in 0..shape.qps {
                let most = if shape.qps > 2 { 8 } else { 14 };
                let count = if side == Side::Client || both_ways { 1 + draw.rng.below(most) } else { 0 };
                lanes.push(draw.lane(side, qp, lanes.len() as u64, count));
            }
        }
        let shared = [Side::Client, Side::Server].map(|side| draw.shared(side, &lanes));
        let timeline = draw.timeline(&lanes, &shared);
        Self { lanes, shared, shared_posted: [0; 2], timeline, free: draw.free }
    }
}

impl Draw<'_> {
    fn lane(&mut self, side: Side, qp: usize, index: u64, count: u64) -> Lane {
        let mut past = Past::default();
        let id = self.shape.phase << 60 | index << 32;
        let mut ops: Vec<Op> = (0..count).map(|op| self.op(side, index, id | op, &mut past)).collect();
        if self.rng.below(2) == 0 {
            ops.iter_mut().for_each(|op| op.signalled = true);
        }
        let two_sided: Vec<Op> = ops.iter().filter(|op| op.is_two_sided()).cloned().collect();
        let mut receives = Vec::new();
        if !self.shape.shared {
            for op in &two_sided {
                let least = if op.verb == Verb::Send { op.len() } else { 0 };
                let capacity = least + self.rng.pick(&[0, 0, 1, 700]);
                let pieces = self.target(side.peer(), capacity);
                receives.push(Receive { wr_id: id | 1 << 56 | receives.len() as u64, pieces });
            }
        }
        Lane { side, qp, ops, receives, posted: 0, receives_posted: 0 }
    }

    fn op(&mut self, side: Side, lane: u64, wr_id: u64, past: &mut Past) -> Op {
        let mut fence = self.rng.below(12) == 0;
        let len = self.len();
        let pieces = self.source(len);
        let cell = CELLS + 16 * lane + 8 * self.rng.below(2);
        let (verb, pieces) = match self.rng.below(12) {
            0..=2 => (Verb::Send, pieces),
            3..=6 => {
                let rewritten = past.writes.iter().copied().find(|&(_, old)| old >= len && len > 0);
                let place = rewritten.filter(|_| self.rng.below(3) == 0);
                fence |= place.is_some();
                let (at, _) = place.unwrap_or_else(|| (self.room(side.peer(), len), len));
                past.writes.push((at, len));
                (Verb::Write(at), pieces)
            }
            7 | 8 => {
                let written = past.writes.last().copied().filter(|_| self.rng.below(2) == 0);
                let (from, len) = written.unwrap_or_else(|| (self.rng.below(SOURCE - u64::from(len)), len));
                let target = self.target(side, len);
                past.reads.push(target.clone());
                (Verb::Read(from), target)
            }
            9 if !past.reads.is_empty() => {
                fence = true;
                let pieces = past.reads[self.rng.below(past.reads.len() as u64) as usize].clone();
                let len = pieces.iter().map(|piece| piece.1).sum();
                (Verb::Write(self.room(side.peer(), len)), pieces)
            }
            9 => (Verb::FetchAdd { cell: SHARED_CELL, add: 1 }, vec![(self.room(side, 8), 8)]),
            10 => {
                let (compare, swap) = (self.rng.below(2), self.rng.below(2));
                (Verb::CmpSwap { cell, compare, swap }, vec![(self.room(side, 8), 8)])
            }
            _ => (
                Verb::FetchAdd { cell, add: self.rng.pick(&[1, u64::MAX, 1 << 40]) },
                vec![(self.room(side, 8), 8)],
            ),
        };
        let two_sided = verb == Verb::Send || matches!(verb, Verb::Write(_));
        let with_imm = two_sided && self.rng.below(3) == 0;
        let imm = with_imm.then(|| self.rng.bits() as u32);
        let solicited = self.rng.below(3) == 0;
        Op { wr_id, verb, imm, pieces, signalled: self.rng.below(3) > 0, solicited, fence }
    }

    /// Bytes of a message.
    fn len(&mut self) -> u32 {
        let most = if self.shape.shared || self.free.iter().any(|&free| free > TARGETS_END) {
            self.rng.pick(&[0, 1, 1, 2, 3])
        } else {
            self.rng.pick(&[0, 1, 1, 1, 2, 3, 8, 20, 40])
        };
        let len = (most * self.shape.mtu).saturating_sub(self.rng.pick(&[0, 1, 7, 255]));
        len.min(if self.shape.shared { SHARED_CAPACITY } else { 40 * 256 })
    }

    /// `len` bytes in pieces, some empty, that nothing writes.
    fn source(&mut self, len: u32) -> Vec<Piece> {
        let sizes = self.split(len);
        sizes.into_iter().map(|size| (self.rng.below(SOURCE - u64::from(size)), size)).collect()
    }

    /// Room for `len` bytes in pieces, with bytes around each that must not change.
    fn target(&mut self, side: Side, len: u32) -> Vec<Piece> {
        let sizes = self.split(len);
        sizes.into_iter().map(|size| (self.room(side, size), size)).collect()
    }

    fn room(&mut self, side: Side, len: u32) -> u64 {
        let free = &mut self.free[side as usize];
        let at = free.next_multiple_of(8) + self.rng.below(3) * u64::from(len != 8);
        *free = at + u64::from(len) + 1 + self.rng.below(9);
        assert!(*free < MEMORY as u64, "the program does not fit into memory");
        at
    }

    fn split(&mut self, len: u32) -> Vec<u32> {
        let count = self.rng.pick(&[1, 1, 1, 1, 2, 3, 16]);
        if len == 0 && self.rng.below(2) == 0 {
            return Vec::new();
        }
        let mut cuts: Vec<u32> = (1..count).map(|_| self.rng.below(u64::from(len) + 1) as u32).collect();
        cuts.push(len);
        cuts.sort_unstable();
        let mut from = 0;
        cuts.into_iter().map(|to| std::mem::replace(&mut from, to).abs_diff(to)).collect()
    }

    fn shared(&mut self, side: Side, lanes: &[Lane]) -> Vec<Receive> {
        if !self.shape.shared {
            return Vec::new();
        }
        let incoming = lanes.iter().filter(|lane| lane.side == side.peer());
        let needed = incoming.flat_map(|lane| &lane.ops).filter(|op| op.is_two_sided()).count() as u64;
        let id = self.shape.phase << 60 | 1 << 57 | (side as u64) << 32;
        (0..2 * needed)
            .map(|index| Receive { wr_id: id | index, pieces: self.target(side, SHARED_CAPACITY) })
            .collect()
    }

    fn timeline(&mut self, lanes: &[Lane], shared: &[Vec<Receive>; 2]) -> Vec<(u64, Action)> {
        let mut timeline = Vec::new();
        for (index, lane) in lanes.iter().enumerate() {
            let spread = self.rng.pick(&[1, 1, 20_000, 400_000]);
            self.at_times(&mut timeline, lane.ops.len(), spread, Action::Send(index));
            let late = self.rng.pick(&[1, 1, 100_000, 4_000_000]);
            self.at_times(&mut timeline, lane.receives.len(), late, Action::Receive(index));
        }
        for side in [Side::Client, Side::Server] {
            let late = self.rng.pick(&[1, 100_000, 4_000_000]);
            self.at_times(&mut timeline, shared[side as usize].len() / 2, late, Action::Shared(side));
        }
        if self.rng.below(8) == 0 {
            let pause =
                Action::Pause(self.rng.pick(&[Side::Client, Side::Server]), self.rng.below(3_000_000));
            timeline.push((self.rng.below(500_000), pause));
        }
        timeline.sort_by_key(|&(at, _)| at);
        timeline
    }

    fn at_times(&mut self, timeline: &mut Vec<(u64, Action)>, count: usize, within: u64, action: Action) {
        timeline.extend((0..count).map(|_| (self.rng.below(within), action)));
    }
}
