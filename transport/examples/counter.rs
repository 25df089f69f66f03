//! A counter in the server's memory that the client counts up, without the server: FETCH_ADD, READ, CMP_SWAP.
#![forbid(unsafe_code)]

mod pair;

use dcp::verbs::{Opcode, SendWorkRequest};
use pair::{Outcome, Pair};

const COUNTS: u64 = 1000;
/// Where the counter is, in the server's region.
const COUNTER: u64 = 0;

fn main() -> Outcome {
    let Pair { mut client, server, registered: _registered } = Pair::new(4096)?;
    let remote = server.mr.remote().at(COUNTER);
    let answer = [client.mr.slice(0..8)?];
    let mut run = |opcode| -> Outcome<u64> {
        client.qp.post_send(&SendWorkRequest::new(0, opcode, &answer))?;
        client.wait(&server)?;
        let mut value = [0; 8];
        client.mr.read(0, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    };

    for expected in 0..COUNTS {
        let before = run(Opcode::FetchAdd { remote, add: 1 })?;
        assert_eq!(before, expected, "nobody else counts");
    }
    let read = run(Opcode::Read(remote))?;
    println!("counted to {read}");

    let before = run(Opcode::CmpSwap { remote, compare: COUNTS, swap: 0 })?;
    println!("it was {before} when it was set back to {}", run(Opcode::Read(remote))?);
    Ok(())
}
