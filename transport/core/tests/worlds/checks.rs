//! What must hold in every state of a world. Looks at completions, memory, timers and frames, never into an endpoint.

use dcp_core::{Operation, QpState, Status};
use dcp_pair::Side;
use dcp_wire::{Kind, Msn, ParseOptions, Stream};

use crate::plan::{ADD, Plan, Verb};
use crate::world::{SIDES, World};

/// What an application writes over a buffer that it got back.
const REUSED: u8 = 0xFD;

/// What the checkers remember of a world's past.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ledger {
    /// Completions seen, by side.
    seen: [usize; 2],
    /// Messages whose buffer the application has back.
    reused: [bool; 2],
    /// eMSN of the newest frame, by side and stream.
    emsn: [[Option<Msn>; 2]; 2],
    stepped_back: bool,
}

impl Ledger {
    /// what a side says it has never becomes less.
    pub(crate) fn note_frame(&mut self, from: Side, frame: &[u8]) {
        let packet =
            dcp_wire::parse_frame(ParseOptions::default(), frame).expect("endpoints emit legal frames");
        let (stream, emsn) = match packet.headers.kind {
            Kind::Ack(ack) => (ack.stream, ack.emsn),
            Kind::ProbeAck(ack) => (ack.stream, ack.emsn),
            _ => return,
        };
        let last = &mut self.emsn[from as usize][usize::from(stream == Stream::Answers)];
        self.stepped_back |= last.is_some_and(|last| emsn.is_before(last));
        *last = Some(emsn);
    }

    pub(crate) fn hash(&self) -> u64 {
        let emsn = |side: usize, stream: usize| self.emsn[side][stream].map_or(9, |emsn| emsn.get() & 7);
        u64::from(emsn(0, 0) << 12 | emsn(0, 1) << 8 | emsn(1, 0) << 4 | emsn(1, 1))
    }
}

/// Checks a state; takes note of new completions, and reuses the buffers that they give back.
pub(crate) fn check(world: &mut World, plan: &Plan) -> Result<(), String> {
    if world.ledger.stepped_back {
        return Err("eMSN stepped back".to_owned());
    }
    check_timers(world)?;
    for side in [Side::Server, Side::Client] {
        while world.ledger.seen[side as usize] < world.hosts[side as usize].completions.len() {
            let position = world.ledger.seen[side as usize];
            world.ledger.seen[side as usize] += 1;
            check_completion(world, plan, side, position)?;
        }
    }
    check_memory(world, plan)
}

/// C11: in flight > 0 always implies an armed timer; so does whatever waits for an acknowledgement (T-8).
fn check_timers(world: &World) -> Result<(), String> {
    for side in SIDES {
        let host = &world.hosts[side as usize];
        let (endpoint, qp) = (&host.endpoint, host.qps[0]);
        if endpoint.qp_state(qp) != QpState::Rts {
            return Err(format!("{side:?} is in {:?}", endpoint.qp_state(qp)));
        }
        let under_way = endpoint.in_flight(qp) > 0 || endpoint.unacknowledged(qp) > 0;
        let waits = side == Side::Client && endpoint.outstanding(qp) > 0;
        if (under_way || waits) && !endpoint.has_timer(qp) {
            return Err(format!("{side:?} has {} B in flight and no timer", endpoint.in_flight(qp)));
        }
    }
    Ok(())
}

/// Each completion once, in posting order, successful, and not before all its bytes (R-15, T-6).
fn check_completion(world: &mut World, plan: &Plan, side: Side, position: usize) -> Result<(), String> {
    let completion = world.hosts[side as usize].completions[position];
    let (index, operation) = match side {
        Side::Client => (Some(position), plan.verbs.get(position).map(|verb| verb.operation())),
        Side::Server => {
            let index = plan.two_sided().nth(position);
            (
                index,
                index.map(|index| match plan.verbs[index] {
                    Verb::WriteImm(_) => Operation::ReceiveWriteImm,
                    _ => Operation::Receive,
                }),
            )
        }
    };
    let Some((index, operation)) = index.zip(operation) else {
        return Err(format!("{side:?} completes too much: {completion:?}"));
    };
    let verb = plan.verbs[index];
    let got = (completion.wr_id, completion.status, completion.operation, completion.byte_len as usize);
    let expected = (index as u64, Status::Success, operation, verb.len());
    if got != expected {
        return Err(format!("{side:?} completes {got:?} instead of {expected:?}"));
    }
    let delivered = plan.two_sided().position(|other| other == index);
    if side == Side::Client && delivered.is_some_and(|nth| world.ledger.seen[Side::Server as usize] <= nth) {
        return Err(format!("message {index} completes at the sender before its receive"));
    }
    give_buffer_back(world, plan, index)
}

/// The bytes of a completed message are all there; then the application uses its buffer for something else.
fn give_buffer_back(world: &mut World, plan: &Plan, index: usize) -> Result<(), String> {
    if std::mem::replace(&mut world.ledger.reused[index], true) {
        return Ok(());
    }
    let verb = plan.verbs[index];
    let span = Plan::at(index)..Plan::at(index) + verb.len();
    let to = verb.lands_at();
    let whole = match verb {
        Verb::FetchAdd => {
            word(world, Side::Server, index) == original(Side::Server, index) + ADD
                && word(world, Side::Client, index) == original(Side::Server, index)
        }
        _ => span.clone().all(|at| world.hosts[to as usize].memory[at] == fresh_byte(to.peer(), at)),
    };
    if !whole {
        return Err(format!("message {index} is complete, its bytes are not"));
    }
    world.hosts[to as usize].memory[span].fill(REUSED);
    Ok(())
}

/// Bytes change only inside a message's buffer, to its own bytes, and not after its completion.
fn check_memory(world: &World, plan: &Plan) -> Result<(), String> {
    for side in SIDES {
        let memory = &world.hosts[side as usize].memory;
        let mut from = 0;
        for (index, verb) in plan.verbs.iter().enumerate() {
            let span = Plan::at(index)..Plan::at(index) + verb.len();
            untouched(memory, side, from..span.start)?;
            from = span.end;
            if *verb == Verb::FetchAdd {
                check_word(world, side, index)?;
            } else if verb.lands_at() != side {
                untouched(memory, side, span)?;
            } else if world.ledger.reused[index] {
                if memory[span].iter().any(|&byte| byte != REUSED) {
                    return Err(format!("message {index} was written after its completion"));
                }
            } else if let Some(at) = span
                .clone()
                .find(|&at| memory[at] != fresh_byte(side, at) && memory[at] != fresh_byte(side.peer(), at))
            {
                return Err(format!("byte {} of message {index} is not its own", at - span.start));
            }
        }
        untouched(memory, side, from..memory.len())?;
    }
    Ok(())
}

/// an atomic runs once at most.
fn check_word(world: &World, side: Side, index: usize) -> Result<(), String> {
    let (now, before) = (word(world, side, index), original(side, index));
    let reused = u64::from_ne_bytes([REUSED; 8]);
    let legal = match (side, world.ledger.reused[index]) {
        (Side::Server, false) => now == before || now == before + ADD,
        (Side::Server, true) => now == before + ADD,
        (Side::Client, false) => now == before || now == original(Side::Server, index),
        (Side::Client, true) => now == reused,
    };
    if legal { Ok(()) } else { Err(format!("the word of message {index} at {side:?} is {now:#x}")) }
}

fn untouched(memory: &[u8], side: Side, mut span: std::ops::Range<usize>) -> Result<(), String> {
    match span.find(|&at| memory[at] != fresh_byte(side, at)) {
        Some(at) => Err(format!("byte {at} of {side:?} belongs to nobody and was written")),
        None => Ok(()),
    }
}

/// A byte of a host's memory at the beginning. No host has the byte of the other in that place.
pub(crate) const fn fresh_byte(side: Side, at: usize) -> u8 {
    let salt = if matches!(side, Side::Client) { 1 } else { 64 };
    2 * ((at * 7 + at / 256 + salt) % 120) as u8 + side as u8
}

fn word(world: &World, side: Side, index: usize) -> u64 {
    let bytes = &world.hosts[side as usize].memory[Plan::at(index)..][..8];
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

fn original(side: Side, index: usize) -> u64 {
    let bytes = std::array::from_fn(|offset| fresh_byte(side, Plan::at(index) + offset));
    u64::from_ne_bytes(bytes)
}

/// The end: everything is complete and nothing is left behind.
pub(crate) fn check_end(world: &World, plan: &Plan) -> Result<(), String> {
    let expected = [plan.verbs.len(), plan.two_sided().count()];
    if world.ledger.seen != expected || !world.is_done() {
        return Err(format!("stops with completions {:?} instead of {expected:?}", world.ledger.seen));
    }
    for (side, host) in SIDES.into_iter().zip(&world.hosts) {
        let words = if plan.maps { 1 << 17 } else { 0 };
        if host.endpoint.in_flight(host.qps[0]) > 0 || host.endpoint.map_words_left() != words {
            return Err(format!("{side:?} keeps bytes in flight or a map at the end"));
        }
    }
    Ok(())
}
