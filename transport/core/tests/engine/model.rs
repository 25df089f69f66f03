//! The naive reference: what a program must have left behind. It runs the work requests one after the other on copies
//! of both memories and knows nothing of packets.
//!
//! A run that failed leaves work that may or may not have happened, in part or whole. Then every byte of it is
//! the old or the new one, and what was told to be done is done.

use dcp_core::{AtomicOp, Completion};
use dcp_pair::Side;

use super::draw::SHARED_CELL;
use super::outcome::{Told, Verdict, told};
use super::program::{Lane, Op, Piece, Program, Receive, Verb};

/// What a host shows at the end of a program.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) completions: Vec<Completion>,
    pub(crate) memory: Vec<u8>,
    /// Queue pairs that are in Error.
    pub(crate) failed: Vec<bool>,
    /// False: the host was destroyed before it could complete everything.
    pub(crate) ended: bool,
}

/// Bytes that a work request puts somewhere.
struct Effect {
    side: Side,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    /// It was told to be done; otherwise it may be.
    sure: bool,
}

/// Adds to the cell that all lanes share.
#[derive(Default)]
struct Additions {
    /// Values before, as far as told, by lane.
    results: Vec<u64>,
    possible: u64,
}

pub(crate) fn check(
    program: &Program,
    before: &[Vec<u8>; 2],
    accounts: &[Account; 2],
) -> Result<Verdict, String> {
    let mut sim = before.clone();
    let mut effects = Vec::new();
    let mut additions = [Additions::default(), Additions::default()];
    let mut verdict = Verdict::default();
    let mut used = Vec::new();
    for lane in &program.lanes {
        let told = told(program, lane, accounts, &mut used, &mut verdict)
            .map_err(|error| format!("{:?} qp {}: {error}", lane.side, lane.qp))?;
        let added = &mut additions[lane.side.peer() as usize];
        let mut run = Run { program, lane, told: &told, sim: &mut sim, effects: &mut effects };
        run.run(accounts, added)?;
    }
    let mut want = before.clone();
    for side in [Side::Client, Side::Server] {
        let memory = &accounts[side as usize].memory;
        let cell = SHARED_CELL as usize..SHARED_CELL as usize + 8;
        check_additions(&before[side as usize], memory, &mut additions[side as usize])?;
        want[side as usize][cell.clone()].copy_from_slice(&memory[cell]);
    }
    let (sure, unsure): (Vec<_>, Vec<_>) = effects.into_iter().partition(|effect| effect.sure);
    for effect in &sure {
        scatter(&mut want[effect.side as usize], &effect.pieces, &effect.bytes);
    }
    for side in [Side::Client, Side::Server] {
        compare(side, &want[side as usize], &accounts[side as usize].memory, &unsure)?;
    }
    Ok(verdict)
}

/// Where a lane's work is simulated, and what it leaves.
struct Run<'a> {
    program: &'a Program,
    lane: &'a Lane,
    told: &'a Told,
    sim: &'a mut [Vec<u8>; 2],
    effects: &'a mut Vec<Effect>,
}

impl Run<'_> {
    fn note(&mut self, side: Side, pieces: &[Piece], bytes: Vec<u8>, sure: bool) {
        scatter(&mut self.sim[side as usize], pieces, &bytes);
        self.effects.push(Effect { side, pieces: pieces.to_vec(), bytes, sure });
    }

    /// Runs the lane's work requests in order and notes what each leaves.
    fn run(&mut self, accounts: &[Account; 2], added: &mut Additions) -> Result<(), String> {
        let (here, there) = (self.lane.side, self.lane.side.peer());
        let mut two_sided = 0;
        let mut sum = None;
        for (index, op) in self.lane.ops[..self.lane.posted].iter().enumerate() {
            let (delivered, done) = (index < self.told.delivered, index < self.told.done);
            match op.verb {
                Verb::Send => self.send(op, two_sided),
                Verb::Write(to) => {
                    let bytes = gather(&self.sim[here as usize], &op.pieces);
                    self.note(there, &[(to, op.len())], bytes, delivered);
                }
                Verb::Read(from) => {
                    let bytes = gather(&self.sim[there as usize], &[(from, op.len())]);
                    self.note(here, &op.pieces, bytes, done);
                }
                Verb::FetchAdd { cell: SHARED_CELL, .. } => {
                    added.possible += 1;
                    let told = gather(&accounts[here as usize].memory, &op.pieces);
                    if done {
                        let result = word(&told, 0);
                        if sum.is_some_and(|sum| sum >= result) {
                            return Err(format!("{:#x} added before an earlier one", op.wr_id));
                        }
                        sum = Some(result);
                        added.results.push(result);
                    }
                    self.note(here, &op.pieces, told, true);
                }
                Verb::CmpSwap { cell, compare, swap } => {
                    self.atomic(op, cell, AtomicOp::CmpSwap { compare, swap }, (delivered, done));
                }
                Verb::FetchAdd { cell, add } => {
                    self.atomic(op, cell, AtomicOp::FetchAdd(add), (delivered, done));
                }
            }
            two_sided += usize::from(op.is_two_sided());
        }
        Ok(())
    }

    fn atomic(&mut self, op: &Op, cell: u64, atomic: AtomicOp, (delivered, done): (bool, bool)) {
        let (here, there) = (self.lane.side, self.lane.side.peer());
        let before = word(&self.sim[there as usize], cell);
        self.note(there, &[(cell, 8)], atomic.apply(before).to_ne_bytes().to_vec(), delivered);
        self.note(here, &op.pieces, before.to_ne_bytes().to_vec(), done);
    }

    /// The lane's SEND that is its `ordinal`th message with a receive.
    fn send(&mut self, op: &Op, ordinal: usize) {
        let there = self.lane.side.peer();
        let bytes = gather(&self.sim[self.lane.side as usize], &op.pieces);
        if let Some(receive) = self.told.filled.get(ordinal) {
            return self.note(there, &first(&receive.pieces, op.len()), bytes, true);
        }
        // It did not complete; what of it may lie in the receive that it would have had, or in any shared one?
        let own: &[Receive] = &self.lane.receives[..self.lane.receives_posted];
        let shared = &self.program.shared[there as usize];
        for receive in own.get(ordinal).into_iter().chain(shared) {
            let pieces = first(&receive.pieces, op.len());
            self.effects.push(Effect { side: there, pieces, bytes: bytes.clone(), sure: false });
        }
    }
}

/// Each of the values was there once; the cell holds what all that was done adds up to, or something yet untold more.
fn check_additions(before: &[u8], after: &[u8], added: &mut Additions) -> Result<(), String> {
    let (start, end) = (word(before, SHARED_CELL), word(after, SHARED_CELL));
    added.results.sort_unstable();
    let distinct = added.results.windows(2).all(|pair| pair[0] < pair[1]);
    let in_range = added.results.iter().all(|&result| (start..end).contains(&result));
    let count = end.wrapping_sub(start);
    if distinct && in_range && count >= added.results.len() as u64 && count <= added.possible {
        return Ok(());
    }
    let (told, possible) = (&added.results, added.possible);
    Err(format!("of {possible} additions to {start}, giving {end}, these were told: {told:?}"))
}

fn compare(side: Side, want: &[u8], memory: &[u8], unsure: &[Effect]) -> Result<(), String> {
    if want == memory {
        return Ok(());
    }
    let mut allowed = vec![false; memory.len()];
    for effect in unsure.iter().filter(|effect| effect.side == side) {
        let places = effect.pieces.iter().flat_map(|&(at, len)| at as usize..at as usize + len as usize);
        for (at, byte) in places.zip(&effect.bytes) {
            allowed[at] |= memory[at] == *byte;
        }
    }
    match (0..memory.len()).find(|&at| want[at] != memory[at] && !allowed[at]) {
        Some(at) => Err(format!("torn: byte {at} at {side:?} is {:#x}, not {:#x}", memory[at], want[at])),
        None => Ok(()),
    }
}

/// The pieces of the first `len` bytes.
fn first(pieces: &[Piece], len: u32) -> Vec<Piece> {
    let mut left = len;
    let mut cut = |&(at, size): &Piece| {
        let now = size.min(left);
        left -= now;
        (at, now)
    };
    pieces.iter().map(&mut cut).collect()
}

fn gather(memory: &[u8], pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|&(at, len)| &memory[at as usize..at as usize + len as usize]).copied().collect()
}

fn scatter(memory: &mut [u8], pieces: &[Piece], bytes: &[u8]) {
    let mut rest = bytes;
    for &(at, len) in pieces {
        let (now, later) = rest.split_at(len as usize);
        memory[at as usize..at as usize + len as usize].copy_from_slice(now);
        rest = later;
    }
}

fn word(memory: &[u8], at: u64) -> u64 {
    let bytes = memory[at as usize..at as usize + 8].try_into().expect("8 bytes");
    u64::from_ne_bytes(bytes)
}
