//! Completions: each work request once, in order, with what it must say.

use dcp_core::{Completion, Status};

use super::model::Account;
use super::program::{Lane, Op, Program, Receive, is_receive};

/// What the completions of a lane tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Leading work requests that the sender knows to be done.
    pub(crate) done: usize,
    /// Leading work requests that the receiver must have whole.
    pub(crate) delivered: usize,
    /// Receives that two-sided messages filled, in their order.
    pub(crate) filled: Vec<Receive>,
}

/// How the lanes ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Statuses that say why a queue pair failed.
    pub(crate) errors: Vec<Status>,
    /// Work requests done.
    pub(crate) done: usize,
    /// Queue pairs in Error.
    pub(crate) failed: usize,
}

/// What the completions of both ends of a lane tell, or what is wrong with them. `used`: shared receives completed.
pub(crate) fn told(
    program: &Program,
    lane: &Lane,
    accounts: &[Account; 2],
    used: &mut Vec<u64>,
    verdict: &mut Verdict,
) -> Result<Told, String> {
    let (sender, receiver) = (&accounts[lane.side as usize], &accounts[lane.side.peer() as usize]);
    let done = check_sent(lane, sender, verdict)?;
    let filled = check_received(program, lane, receiver, used)?;
    let two_sided = |ops: &[Op]| ops.iter().filter(|op| op.is_two_sided()).count();
    if two_sided(&lane.ops[..done]) > filled.len() {
        return Err(format!("{done} are done, but only {} receives completed", filled.len()));
    }
    // a receive completes after all bytes of every earlier message are placed.
    let ends = lane.ops.iter().enumerate().filter(|(_, op)| op.is_two_sided());
    let last = ends.take(filled.len()).last().map_or(0, |(index, _)| index + 1);
    verdict.done += done;
    verdict.failed += usize::from(sender.failed[lane.qp]);
    Ok(Told { done, delivered: done.max(last), filled })
}

fn of_qp(account: &Account, qp: usize, receives: bool) -> impl Iterator<Item = &Completion> {
    account.completions.iter().filter(move |c| c.qp.index() == qp && is_receive(c) == receives)
}

/// How many leading work requests the sender knows to be done.
fn check_sent(lane: &Lane, sender: &Account, verdict: &mut Verdict) -> Result<usize, String> {
    let ops = &lane.ops[..lane.posted];
    let mut next = 0;
    let mut completions = of_qp(sender, lane.qp, false).peekable();
    while let Some(completion) = completions.next_if(|c| c.status == Status::Success) {
        next += ops[next..].iter().take_while(|op| !op.signalled).count();
        let op = ops.get(next).ok_or_else(|| format!("one too many: {completion:?}"))?;
        let wanted = (op.wr_id, op.operation(), op.len());
        if wanted != (completion.wr_id, completion.operation, completion.byte_len) {
            return Err(format!("{completion:?} instead of {wanted:?}"));
        }
        next += 1;
    }
    let silent = ops[next..].iter().take_while(|op| !op.signalled).count();
    let Some(first) = completions.peek() else {
        return match next + silent == ops.len() {
            true if sender.ended => Ok(ops.len()),
            false if sender.ended => Err(format!("no completion of {:#x}", ops[next + silent].wr_id)),
            _ => Ok(next),
        };
    };
    if !sender.failed[lane.qp] {
        return Err(format!("{first:?}, but the queue pair has not failed"));
    }
    let silent = ops[next..].iter().take_while(|op| op.wr_id != first.wr_id).count();
    if let Some(op) = ops[next..next + silent].iter().find(|op| op.signalled) {
        return Err(format!("{first:?} instead of {:#x}", op.wr_id));
    }
    let done = next + silent;
    let rest: Vec<_> = completions.collect();
    if !rest.iter().map(|c| c.wr_id).eq(ops[done..].iter().map(|op| op.wr_id)) {
        return Err(format!("flushed out of order, twice or not at all: {rest:?}"));
    }
    let errors: Vec<_> = rest.iter().map(|c| c.status).filter(|&s| s != Status::Flushed).collect();
    if errors.len() > 1 || errors.contains(&Status::Success) {
        return Err(format!("{errors:?} of one queue pair"));
    }
    verdict.errors.extend(errors);
    Ok(done)
}

/// The receives that the lane's messages filled, in order.
fn check_received(
    program: &Program,
    lane: &Lane,
    receiver: &Account,
    used: &mut Vec<u64>,
) -> Result<Vec<Receive>, String> {
    let shared = &program.shared[lane.side.peer() as usize];
    let posted = &lane.receives[..lane.receives_posted];
    let mut ops = lane.ops[..lane.posted].iter().filter(|op| op.is_two_sided());
    let mut filled = Vec::new();
    let mut flushed = 0;
    for completion in of_qp(receiver, lane.qp, true) {
        let receive = if shared.is_empty() {
            posted.get(filled.len() + flushed)
        } else {
            shared.iter().find(|receive| receive.wr_id == completion.wr_id)
        };
        let receive =
            receive.filter(|receive| receive.wr_id == completion.wr_id && !used.contains(&receive.wr_id));
        let receive = receive.ok_or_else(|| format!("{completion:?} of no receive that waits"))?;
        used.push(receive.wr_id);
        if completion.status != Status::Success {
            if completion.status != Status::Flushed || !receiver.failed[lane.qp] {
                return Err(format!("{completion:?}"));
            }
            flushed += 1;
            continue;
        }
        let op =
            ops.next().filter(|_| flushed == 0).ok_or_else(|| format!("{completion:?} of no message"))?;
        let wanted = (op.receive_operation(), op.len(), op.imm, op.solicited);
        let imm = completion.imm.map(|imm| imm.0);
        if wanted != (completion.operation, completion.byte_len, imm, completion.solicited) {
            return Err(format!("{completion:?} instead of {wanted:?}"));
        }
        filled.push(receive.clone());
    }
    let all = filled.len() + flushed == posted.len();
    if receiver.failed[lane.qp] && receiver.ended && shared.is_empty() && !all {
        return Err(format!("{} of {} receives completed", filled.len() + flushed, posted.len()));
    }
    Ok(filled)
}
