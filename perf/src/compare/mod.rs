//! DCP beside what limits it and what it competes with, all in one run on one machine.
//!
//! Contenders take turns, round by round, so that a machine that is slow for a while is slow for all of them; ratios are
//! made inside a round, and the medians over the rounds are told. A turn in which the core was not one's own is repeated.
//! Every rate is per core in use.

mod bare;
mod blocks;
mod dcp;
mod link;
mod options;
mod report;
mod tcp;
mod ucx;

use std::sync::atomic::{AtomicBool, Ordering};

use dpdk_ffi::available_cores;
use indicatif::{ProgressBar, ProgressStyle};

use crate::calm::Calm;
use crate::output::Failure;
pub use options::{Name, Options};
pub use report::{Report, Row};

pub(crate) use blocks::{Blocks, QueuePairs, Span, on_core, timed};
pub(crate) use dcp::{DcpBench, Row as DcpRow, RunError, beside_this_program};

/// What is moved, and in which pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Payload of a packet in bytes.
    pub mtu: u32,
    /// Bytes of a message.
    pub size: u64,
}

/// What one turn measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Payload, in Gb/s.
    pub gbps: f64,
    /// Cores that this took.
    pub cores: f64,
}

/// Someone who moves bytes.
trait Contender {
    /// Who.
    fn name(&self) -> Name;

    /// One turn of about so many seconds. `None`: it cannot do this point.
    ///
    /// # Errors
    /// A sentence.
    fn measure(&mut self, point: Point, seconds: f64) -> Result<Option<Sample>, String>;
}

/// The core that everything with one thread runs on: the last, since the system likes the first.
pub(crate) fn core() -> usize {
    available_cores().last().copied().unwrap_or(0)
}

/// Measures what the options ask for.
///
/// # Errors
/// It was interrupted, or DCP or DPDK does not run. Others that do not run are skipped.
pub fn run(options: &Options, interrupted: &AtomicBool) -> Result<Report, Failure> {
    let (mut contenders, skipped) = contenders(options)?;
    let mut report = Report::new(options, skipped);
    let rounds = u64::from(options.rounds());
    let turns = rounds * (options.points().len() * contenders.len()) as u64;
    let bar = progress_bar(turns);
    let mut calm = Calm::new(options.patience(turns));
    for point in options.points() {
        for _ in 0..rounds {
            for slot in &mut contenders {
                bar.set_message(slot.as_ref().map_or("skipped", |it| it.name().word()));
                let mut measure = |contender: &mut dyn Contender| {
                    calm.turn(|| unless(interrupted, || contender.measure(point, options.seconds())))
                };
                if let Err(failure) = turn(slot, point, options, &mut measure, &mut report) {
                    bar.finish_and_clear();
                    return Err(failure);
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    report.set_calm(&calm);
    Ok(report)
}

/// One turn of one contender, who is skipped from then on if it is not ours and does not run.
fn turn(
    slot: &mut Option<Box<dyn Contender>>,
    point: Point,
    options: &Options,
    measure: &mut impl FnMut(&mut dyn Contender) -> Result<Option<Sample>, Ended>,
    report: &mut Report,
) -> Result<(), Failure> {
    let Some(contender) = slot else { return Ok(()) };
    let name = contender.name();
    if name.ignores_mtu() && point.mtu != options.points()[0].mtu {
        return Ok(());
    }
    match measure(&mut **contender) {
        Ok(Some(sample)) => report.add(name, point, sample),
        Ok(None) => {}
        Err(Ended::ByUser) => return Err(Failure::Interrupted),
        Err(Ended::Failed(sentence)) if name.is_ours() => return Err(Failure::Broken(sentence)),
        Err(Ended::Failed(sentence)) => {
            report.skip(name, sentence);
            *slot = None;
        }
    }
    Ok(())
}

/// Why a turn has no result.
enum Ended {
    ByUser,
    Failed(String),
}

/// Measures, unless the user has had enough before or meanwhile: Ctrl-C reaches the programs that are measured, too, and
/// what they then say is no failure.
fn unless<T>(interrupted: &AtomicBool, mut measure: impl FnMut() -> Result<T, String>) -> Result<T, Ended> {
    let ended = || interrupted.load(Ordering::Relaxed);
    if ended() {
        return Err(Ended::ByUser);
    }
    let measured = measure();
    if ended() { Err(Ended::ByUser) } else { measured.map_err(Ended::Failed) }
}

type Contenders = Vec<Option<Box<dyn Contender>>>;

/// Those that can run here, and why the others cannot.
fn contenders(options: &Options) -> Result<(Contenders, Vec<(Name, String)>), Failure> {
    let (mut there, mut skipped) = (Vec::new(), Vec::new());
    for name in Name::ALL.into_iter().filter(|name| options.wants(*name)) {
        let made: Result<Box<dyn Contender>, String> = match name {
            Name::Memcpy => Ok(Box::new(bare::Memcpy)),
            Name::Mbufs => bare::Mbufs::new().map(|it| Box::new(it) as _),
            Name::Dcp | Name::DcpDirect | Name::DcpSplit => {
                dcp::Dcp::new(name, options.dcp_bench()).map(|it| Box::new(it) as _)
            }
            Name::TcpLoopback | Name::TcpVeth | Name::TcpVethPackets => {
                tcp::Tcp::new(name).map(|it| Box::new(it) as _)
            }
            Name::UcxTcp | Name::UcxShared => ucx::Ucx::new(name).map(|it| Box::new(it) as _),
        };
        match made {
            Ok(contender) => there.push(Some(contender)),
            Err(sentence) if name.is_ours() && name != Name::DcpSplit => {
                return Err(Failure::Broken(sentence));
            }
            Err(sentence) => skipped.push((name, sentence)),
        }
    }
    Ok((there, skipped))
}

fn progress_bar(turns: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(" {wide_bar} {pos}/{len} turns, {msg}, {eta} left");
    ProgressBar::new(turns).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_that_the_user_ends_is_no_failure() {
        let interrupted = AtomicBool::new(false);
        assert!(matches!(unless(&interrupted, || Ok(1)), Ok(1)));
        let failed = unless::<()>(&interrupted, || Err("it broke".to_owned()));
        assert!(matches!(failed, Err(Ended::Failed(sentence)) if sentence == "it broke"));
        // What is measured says what it likes when it is interrupted.
        let meanwhile = unless::<()>(&interrupted, || {
            interrupted.store(true, Ordering::Relaxed);
            Err("I was interrupted".to_owned())
        });
        assert!(matches!(meanwhile, Err(Ended::ByUser)));
        assert!(matches!(
            unless(&interrupted, || -> Result<(), String> { panic!("not begun") }),
            Err(Ended::ByUser)
        ));
    }
}
