//! WRITEs of one size under fixed fault rates: the mixes that tell whether a safeguard is there.

use dcp_core::{EndpointConfig, QpConfig, Status};
use dcp_pair::{MR_VA, Pair, PairConfig, Random, Rates, Rng, Side, WriteRange};

use super::drive::Ended;

const MTU: u32 = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteMix {
    pub(crate) messages: u64,
    /// In each.
    pub(crate) packets: u32,
    pub(crate) rates: Rates,
}

/// Every WRITE that completed is byte-exact, and nothing else was touched; or the error says what is torn.
pub(crate) fn run_writes(
    mix: &WriteMix,
    endpoint: fn(&mut EndpointConfig),
    seed: u64,
) -> Result<Ended, String> {
    let len = mix.packets * MTU - 1;
    let qp: fn(&mut QpConfig) = |qp| {
        qp.mtu = MTU;
        qp.window = 8;
        qp.timeout_exponent = 8;
    };
    let memory = (mix.messages * u64::from(len + 1)) as usize;
    let mut pair = Pair::new(PairConfig { memory, qp, endpoint, ..PairConfig::default() });
    let mut rng = Rng::new(seed);
    pair.host_mut(Side::Client).memory.fill_with(|| rng.bits() as u8 | 1);
    for wr_id in 0..mix.messages {
        let at = wr_id * u64::from(len + 1);
        pair.write(Side::Client, 0, wr_id, WriteRange { from: at, to: at, len }).expect("there is room");
    }
    if !pair.run(&mut Random::new(seed ^ 0x5EED, mix.rates), 1_000_000_000_000) {
        return Err("does not end".to_owned());
    }
    let statuses = pair.statuses(Side::Client);
    let done = statuses.iter().take_while(|status| status.1 == Status::Success).count();
    let first_error = statuses.get(done).map(|status| status.1);
    let (source, target) = (&pair.host(Side::Client).memory, &pair.host(Side::Server).memory);
    for (index, (from, to)) in source.chunks(MTU as usize).zip(target.chunks(MTU as usize)).enumerate() {
        let (message, end) = (index / mix.packets as usize, from.len() - 1);
        let last = index % mix.packets as usize == mix.packets as usize - 1;
        let guard_is_whole = !last || to[end] == 0;
        let end = if last { end } else { end + 1 };
        let is_whole = from[..end] == to[..end];
        let is_old = to[..end].iter().all(|&byte| byte == 0);
        if !guard_is_whole || !is_whole && (message < done || !is_old) {
            return Err(format!("torn: packet {index} at {:#x}", MR_VA as usize + index * MTU as usize));
        }
    }
    match first_error {
        None | Some(Status::RetryExceeded) => Ok(Ended { done, failed: usize::from(first_error.is_some()) }),
        Some(error) => Err(format!("{error:?} without a reason")),
    }
}
