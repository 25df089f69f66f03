//! Runs a seed: draws everything, drives the pair, and lets the model judge.

use dcp_core::{
    CongestionControl, CqId, DcqcnConfig, EndpointConfig, Instant, PdId, QpConfig, QpState, Rate, RhccConfig,
    RhccThreshold, Status, SwiftConfig,
};
use dcp_pair::{Pair, PairConfig, Random, Rates, Rng, Side, Step, WriteRange};
use dcp_wire::{Msn, RnrTimer};

use super::draw::{MEMORY, SHARED_CELL, Shape, TARGETS};
use super::model::{Account, check};
use super::outcome::Verdict;
use super::program::Program;
use super::watch::Watch;

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Virtual time that a program may take: 1000 s.
const LONG: u64 = 1_000_000_000_000;
/// Events that a program may take.
const STEPS_MAX: u64 = 1_000_000;

/// Everything that a seed decides, but the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) rates: Rates,
    pub(crate) pair: PairConfig,
    pub(crate) shape: Shape,
    /// After so long, this side is destroyed and comes back.
    pub(crate) restart: Option<(u64, Side)>,
}

impl Setting {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let qps = rng.pick(&[1, 1, 2, 4]);
        let shared = rng.below(5) == 0;
        let icrc = rng.below(4) == 0;
        let mut template = template(&mut rng, icrc);
        let plenty: fn(&mut EndpointConfig) = |_| {};
        let scarce: fn(&mut EndpointConfig) = |config| config.map_words_max = 3;
        let mut pair = PairConfig {
            memory: MEMORY,
            qps,
            template,
            start_msn: Msn::from_low_bits(rng.pick(&[0, 0xFF_FFFE, 0x7F_FFF8, 12345])),
            endpoint: rng.pick(&[plenty, plenty, plenty, scarce]),
            link_gbps: rng.pick(&[1, 10, 100]),
            srq_depth: if shared { 512 } else { 0 },
            ..PairConfig::default()
        };
        let shape = Shape { mtu: template.mtu, qps, shared, phase: 0, free: [TARGETS; 2] };
        let restart = (rng.below(6) == 0).then(|| (rng.pick(&[1000, 50_000, 2_000_000]), rng.pick(&SIDES)));
        let restart = restart.map(|(within, side)| (rng.below(within), side));
        let mut rates = rates(&mut rng, icrc);
        congestion(seed, &mut template, &mut rates);
        pair.template = template;
        Self { seed, rates, pair, shape, restart }
    }

    /// Whether the faults may use up the tries of a message.
    fn loses(&self) -> bool {
        let rates = self.rates;
        rates.drop + rates.lose_header + rates.lose_control + rates.hold + rates.corrupt > 0
    }
}

fn rates(rng: &mut Rng, icrc: bool) -> Rates {
    Rates {
        drop: rng.pick(&[0, 0, 10_000, 50_000]),
        trim: rng.pick(&[0, 50_000, 300_000]),
        duplicate: rng.pick(&[0, 0, 50_000, 300_000, 1_000_000]),
        lose_header: rng.pick(&[0, 0, 100_000]),
        duplicate_header: rng.pick(&[0, 200_000]),
        lose_control: rng.pick(&[0, 200_000, 500_000]),
        mark: 0,
        corrupt: if icrc { rng.pick(&[0, 10_000, 50_000]) } else { 0 },
        hold: rng.pick(&[0, 0, 10_000, 100_000]),
        held_ns: rng.pick(&[1_000_000, 100_000_000, 3_000_000_000]),
        jitter_ns: rng.pick(&[0, 500, 50_000]),
    }
}

fn template(rng: &mut Rng, icrc: bool) -> QpConfig {
    let mut qp = QpConfig {
        mtu: rng.pick(&[256, 256, 256, 1024]),
        window: rng.pick(&[1, 2, 8, 8, 128]),
        timeout_exponent: rng.pick(&[8, 8, 10]),
        max_rd_atomic: rng.pick(&[1, 2, 16]),
        rnr_retry: rng.pick(&[7, 7, 7, 3]),
        rnr_timer: RnrTimer::new(rng.pick(&[1, 5, 12])).expect("below 32"),
        spray: rng.below(3) == 0,
        icrc,
        ..QpConfig::new(PdId(0), CqId(0))
    };
    match rng.below(3) {
        0 => qp.cc = CongestionControl::Window { bytes: 64 << 10 },
        1 => {
            qp.ack_bytes = 2 * qp.mtu;
            qp.cc = CongestionControl::Window { bytes: 4 * qp.mtu };
        }
        _ => {
            qp.ack_bytes = 0;
            qp.retrans_max = rng.pick(&[2, 8, 64]);
        }
    }
    qp
}

/// Congestion control for half of the seeds, from a stream of its own: what else a seed draws stays as it was.
fn congestion(seed: u64, qp: &mut QpConfig, rates: &mut Rates) {
    let rng = &mut Rng::new(seed ^ 0xCC);
    if rng.below(2) == 0 {
        return;
    }
    rates.mark = rng.pick(&[0, 10_000, 300_000, 1_000_000]);
    let header_cuts = rng.below(3) == 0;
    qp.rate_max = Rate::from_mbps(rng.pick(&[1000, 10_000, 100_000]));
    let line = qp.rate_max;
    match rng.below(5) {
        0 => qp.cc = CongestionControl::Dcqcn(DcqcnConfig { header_cuts, ..DcqcnConfig::hpcc(line) }),
        1 => qp.cc = CongestionControl::Dcqcn(DcqcnConfig::connectx()),
        2 => qp.cc = CongestionControl::Swift(SwiftConfig { header_cuts, ..SwiftConfig::new() }),
        3 => qp.cc = CongestionControl::None,
        _ => {}
    }
    let threshold = rng.pick(&[RhccThreshold::Auto, RhccThreshold::Fixed(200), RhccThreshold::Fixed(50_000)]);
    qp.rhcc = (rng.below(2) == 0).then(|| RhccConfig { threshold, ..RhccConfig::new() });
}

/// How a seed ended, if nothing was wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    /// Work requests done.
    pub(crate) done: usize,
    /// Queue pairs that gave up.
    pub(crate) failed: usize,
}

/// Runs a drawn setting with a drawn program, or with a second one after a restart.
pub(crate) fn run(setting: &Setting) -> Result<Ended, String> {
    let mut rng = Rng::new(setting.seed ^ 0xB0A7);
    let mut pair = Pair::new(setting.pair);
    for side in SIDES {
        fill(&mut pair, side, &mut rng);
    }
    let mut watch = Watch::new(Random::new(setting.seed ^ 0x5EED, setting.rates), &pair);
    let mut program = Program::draw(&mut rng, setting.shape);
    if let Some((after, side)) = setting.restart {
        let before = memories(&pair);
        drive(&mut pair, &mut watch, &mut program, Some(after))?;
        restart(&mut pair, side, &program, &before).map_err(|error| format!("at the restart: {error}"))?;
        watch.restarted();
        fill(&mut pair, side, &mut rng);
        let left = shared_left(&pair, side.peer(), &program);
        let free = if setting.shape.shared { program.free } else { setting.shape.free };
        program = Program::draw(&mut rng, Shape { phase: 1, free, ..setting.shape });
        program.adopt(side.peer(), left);
    }
    let before = memories(&pair);
    drive(&mut pair, &mut watch, &mut program, None)?;
    let accounts = SIDES.map(|side| account(&pair, side, true));
    let verdict = check(&program, &before, &accounts)?;
    check_end(setting, &pair, &verdict)?;
    tell_survivors(&mut pair, &mut watch)?;
    Ok(Ended { done: verdict.done, failed: verdict.failed })
}

/// Does what the timeline says, and then waits until all is quiet, or only until `cut`.
fn drive(pair: &mut Pair, watch: &mut Watch, program: &mut Program, cut: Option<u64>) -> Result<(), String> {
    let start = pair.now;
    for (at, action) in program.timeline.clone() {
        if cut.is_some_and(|cut| at > cut) {
            break;
        }
        advance(pair, watch, program, start.after(at))?;
        program.act(pair, action);
    }
    if let Some(cut) = cut {
        return advance(pair, watch, program, start.after(cut));
    }
    let end = pair.now.after(LONG);
    let mut settled = None;
    for steps in 0.. {
        match pair.step(watch, end) {
            Step::Quiet => break,
            Step::Moved if steps < STEPS_MAX => watch.check(pair)?,
            Step::Moved | Step::Waiting => return Err(stuck(pair)),
        }
        program.replace_flushed(pair);
        let at_work = pair.hosts.iter().any(|host| host.outstanding() > 0) || any_failed(pair);
        if !at_work && settled.is_none() {
            settled = Some(memories(pair));
        }
    }
    match settled {
        Some(settled) if settled != memories(pair) => Err("written after all was done".to_owned()),
        _ => Ok(()),
    }
}

/// What an endless run looks like.
fn stuck(pair: &Pair) -> String {
    let of = |side: Side| {
        let host = pair.host(side);
        let qps: Vec<_> = host
            .qps
            .iter()
            .map(|&qp| {
                (
                    host.endpoint.qp_state(qp),
                    host.endpoint.outstanding(qp),
                    host.endpoint.unacknowledged(qp),
                    host.endpoint.in_flight(qp),
                )
            })
            .collect();
        format!("{side:?} {qps:?} {:?}", host.endpoint.counters())
    };
    format!("does not end after {:?}: {} {}", pair.now, of(Side::Client), of(Side::Server))
}

fn advance(pair: &mut Pair, watch: &mut Watch, program: &mut Program, to: Instant) -> Result<(), String> {
    while pair.now < to {
        match pair.step(watch, to) {
            Step::Quiet | Step::Waiting => pair.now = to,
            Step::Moved => watch.check(pair)?,
        }
        program.replace_flushed(pair);
    }
    Ok(())
}

/// The model judges what there was of the program; then one side is replaced.
fn restart(pair: &mut Pair, side: Side, program: &Program, before: &[Vec<u8>; 2]) -> Result<(), String> {
    pair.hosts.iter_mut().for_each(dcp_pair::Host::collect);
    let gone = account(pair, side, false);
    pair.restart(side);
    let mut survivor = account(pair, side.peer(), true);
    survivor.failed.fill(true);
    let accounts = if side == Side::Client { [gone, survivor] } else { [survivor, gone] };
    check(program, before, &accounts)?;
    pair.host_mut(side.peer()).completions.clear();
    Ok(())
}

/// Shared receives of a program that no message has bound.
fn shared_left(pair: &Pair, side: Side, program: &Program) -> Vec<super::program::Receive> {
    let host = pair.host(side);
    let left = host.srq.map_or(0, |srq| host.endpoint.srq_receives(srq));
    let posted = program.shared_posted[side as usize];
    program.shared[side as usize][posted - left..posted].to_vec()
}

fn account(pair: &Pair, side: Side, ended: bool) -> Account {
    let host = pair.host(side);
    let failed = (0..host.qps.len()).map(|qp| pair.state(side, qp) == QpState::Error).collect();
    Account { completions: host.completions.clone(), memory: host.memory.clone(), failed, ended }
}

fn any_failed(pair: &Pair) -> bool {
    SIDES.iter().any(|&side| (0..pair.host(side).qps.len()).any(|qp| pair.state(side, qp) == QpState::Error))
}

fn memories(pair: &Pair) -> [Vec<u8>; 2] {
    SIDES.map(|side| pair.host(side).memory.clone())
}

fn fill(pair: &mut Pair, side: Side, rng: &mut Rng) {
    let memory = &mut pair.host_mut(side).memory;
    for chunk in memory.chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
    memory[SHARED_CELL as usize - 512..SHARED_CELL as usize + 8].fill(0);
}

/// a queue pair whose peer failed hears of it as soon as it asks for anything.
fn tell_survivors(pair: &mut Pair, watch: &mut Watch) -> Result<(), String> {
    const WR_ID: u64 = u64::MAX;
    let mut asked = [0; 2];
    for side in SIDES {
        for qp in 0..pair.host(side).qps.len() {
            let states = (pair.state(side, qp), pair.state(side.peer(), qp));
            if states == (QpState::Rts, QpState::Error) {
                asked[side as usize] += 1;
                let nothing = WriteRange { from: 0, to: 0, len: 0 };
                pair.write(side, qp, WR_ID, nothing).map_err(|error| error.to_string())?;
            }
        }
    }
    if asked != [0; 2] && !pair.run(watch, LONG) {
        return Err(stuck(pair));
    }
    for side in SIDES {
        let told = pair.statuses(side).into_iter().filter(|&(wr_id, _)| wr_id == WR_ID);
        let told: Vec<_> = told.map(|(_, status)| status).collect();
        let errors = [Status::RemoteOperation, Status::RetryExceeded];
        if told.len() != asked[side as usize] || !told.iter().all(|status| errors.contains(status)) {
            return Err(format!("{side:?} asked failed peers and was told {told:?}"));
        }
    }
    Ok(())
}

/// Failures have a reason, and nothing is left of the work.
fn check_end(setting: &Setting, pair: &Pair, verdict: &Verdict) -> Result<(), String> {
    for &error in &verdict.errors {
        let explained = match error {
            Status::RetryExceeded | Status::RemoteOperation => setting.loses(),
            Status::RnrRetryExceeded => setting.pair.template.rnr_retry < 7,
            _ => false,
        };
        let told = error == Status::RemoteOperation && setting.pair.template.rnr_retry < 7;
        if !explained && !told {
            return Err(format!("{error:?} without a reason"));
        }
    }
    if verdict.failed > 0 && !setting.loses() && setting.pair.template.rnr_retry == 7 {
        return Err("a queue pair failed without a reason".to_owned());
    }
    for side in SIDES {
        let host = pair.host(side);
        let maps = host.endpoint.config().map_words_max - host.endpoint.map_words_left();
        let in_flight: u64 = host.qps.iter().map(|&qp| host.endpoint.in_flight(qp)).sum();
        let lost = host.endpoint.counters().completions_lost;
        if in_flight > 0 || lost > 0 || (maps > 0 && !any_failed(pair)) {
            return Err(format!("{side:?} ends with {in_flight} in flight, {maps} maps, {lost} lost"));
        }
        if host.unparsed > 0 && setting.rates.corrupt == 0 {
            return Err(format!("{} frames did not parse", host.unparsed));
        }
    }
    Ok(())
}
