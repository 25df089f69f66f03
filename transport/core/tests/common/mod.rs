//! Checks that all stories share. They look at completions, counters and bytes, never into an endpoint.
#![expect(clippy::cast_possible_truncation, reason = "test sizes are small")]
#![allow(dead_code, reason = "each test binary uses its part")]

use dcp_core::{QpState, Status};
use dcp_pair::{Pair, PairConfig, Rng, Script, Side, WriteRange};

/// Virtual time that any of these stories may take: 1000 s.
pub(crate) const LONG: u64 = 1_000_000_000_000;

/// Fills the client's memory from a seed and the server's with another pattern.
pub(crate) fn fill(pair: &mut Pair, seed: u64) {
    let mut rng = Rng::new(seed);
    for chunk in pair.host_mut(Side::Client).memory.chunks_mut(8) {
        let bytes = rng.bits().to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
    pair.host_mut(Side::Server).memory.fill(0xA5);
}

/// A pair whose client memory is random.
pub(crate) fn pair(config: PairConfig) -> Pair {
    let mut pair = Pair::new(config);
    fill(&mut pair, 42);
    pair
}

/// One WRITE of `len` bytes to the same offset plus 64, run to the end; every byte and the guard around checked.
pub(crate) fn write_and_check(pair: &mut Pair, len: u32, script: &mut impl Script) {
    let range = WriteRange { from: 0, to: 64, len };
    pair.write(Side::Client, 0, 7, range).expect("room in the queue");
    assert!(pair.run(script, LONG), "ends");
    assert_eq!(pair.statuses(Side::Client), [(7, Status::Success)]);
    assert_landed(pair, range);
    assert_guard(pair, range);
}

/// The bytes of a WRITE are at the server.
pub(crate) fn assert_landed(pair: &Pair, range: WriteRange) {
    let source = &pair.host(Side::Client).memory[range.from as usize..][..range.len as usize];
    let target = &pair.host(Side::Server).memory[range.to as usize..][..range.len as usize];
    assert!(source == target, "bytes of {range:?} differ");
}

/// Nothing but `range` was written at the server.
pub(crate) fn assert_guard(pair: &Pair, range: WriteRange) {
    let memory = &pair.host(Side::Server).memory;
    let (before, rest) = memory.split_at(range.to as usize);
    let after = &rest[range.len as usize..];
    assert!(before.iter().chain(after).all(|&byte| byte == 0xA5), "bytes outside {range:?} changed");
}

/// Nothing is left of the work: no bytes in flight, no maps, both queue pairs usable.
pub(crate) fn assert_at_rest(pair: &Pair) {
    for side in [Side::Client, Side::Server] {
        let host = pair.host(side);
        for (index, &qp) in host.qps.iter().enumerate() {
            assert_eq!(pair.state(side, index), QpState::Rts);
            assert_eq!(host.endpoint.in_flight(qp), 0);
            assert_eq!(host.endpoint.outstanding(qp), 0);
        }
        assert_eq!(host.endpoint.map_words_left(), 1 << 17);
        assert_eq!(host.unparsed, 0);
    }
}
