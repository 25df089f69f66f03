//! Latency of a SEND of 64 bytes: `cargo run --release -p dcp --example ping_pong`.
//!
//! One thread drives both ends, so this is the time that the software takes; there is no network in it.

#![forbid(unsafe_code)]

mod pair;

use dcp::dpdk::Clock;
use dcp::verbs::{Opcode, RecvWorkRequest, SendWorkRequest};
use pair::{Outcome, Pair, Side};

const ROUNDS: usize = 10_000;
const WARM_UP: usize = 1_000;
const BYTES: u64 = 64;

fn main() -> Outcome {
    let Pair { mut client, mut server, registered: _registered } = Pair::new(4096)?;
    let clock = Clock::calibrate();
    let mut half_ns = Vec::with_capacity(ROUNDS);
    for round in 0..WARM_UP + ROUNDS {
        let start = clock.now_ns();
        send(&mut client, &mut server)?;
        send(&mut server, &mut client)?;
        if round >= WARM_UP {
            half_ns.push((clock.now_ns() - start) / 2);
        }
    }
    half_ns.sort_unstable();
    let at = |per_mille: usize| half_ns[(ROUNDS - 1) * per_mille / 1000];
    println!(
        "{ROUNDS} rounds of {BYTES} bytes; half a round trip: {} ns at least, {} ns median, {} ns at 99 %",
        at(0),
        at(500),
        at(990)
    );
    Ok(())
}

/// One message, until both sides have their completion.
fn send(from: &mut Side, to: &mut Side) -> Outcome {
    let into = [to.mr.slice(0..BYTES)?];
    to.qp.post_recv(&RecvWorkRequest { wr_id: 0, sges: &into })?;
    let bytes = [from.mr.slice(0..BYTES)?];
    from.qp.post_send(&SendWorkRequest::new(0, Opcode::Send, &bytes))?;
    from.wait(to)?;
    to.wait(from)?;
    Ok(())
}
