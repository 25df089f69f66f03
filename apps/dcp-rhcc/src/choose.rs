//! Which signal and which actuator: the best that this machine has, and why not the better ones.

use std::path::PathBuf;

use clap::ValueEnum;
use dcp_core::TrafficClass;

use crate::actuator::Actuator;
use crate::actuator::cgroup::Cgroups;
use crate::actuator::duty::Duty;
use crate::actuator::mba::Delays;
use crate::actuator::resctrl::Bandwidths;
use crate::failure::Failure;
use crate::root::Root;
use crate::signal::iio::Iio;
use crate::signal::resctrl::Bandwidth;
use crate::signal::{Signal, telemetry};

/// What to ask for the occupancy.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum SignalChoice {
    /// The first of the others that works
    Auto,
    /// Entries of the I/O write buffer, by the processor's registers (Cascade Lake, Ice Lake)
    Msr,
    /// Memory bandwidth, by resctrl
    Resctrl,
    /// Age of a DCP program's receive bursts, by DPDK's telemetry
    Software,
}

/// What to hold programs back with.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum ActuatorChoice {
    /// The first of the others that works
    Auto,
    /// Memory bandwidth, by resctrl
    Resctrl,
    /// Memory bandwidth of cores, by the processor's registers (Intel)
    Msr,
    /// Processor time, by cgroup
    Cgroup,
    /// Turns of running and standing still, by SIGSTOP and SIGCONT
    Sigstop,
}

/// What the choice depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// The machine's files.
    pub root: Root,
    /// Bandwidth of a domain's memory at best, in GB/s.
    pub memory_gbs: Option<u32>,
    /// Telemetry socket of the DCP program; otherwise the first that answers.
    pub telemetry: Option<PathBuf>,
    /// Classes with programs.
    pub classes: Vec<TrafficClass>,
    /// Those among them with programs that are not in a cgroup of their own.
    pub ungrouped: Vec<TrafficClass>,
}

/// What was found, and what was passed over for which reason.
pub struct Found<T> {
    /// The best.
    pub chosen: T,
    /// Better ones: name and reason.
    pub passed_over: Vec<(String, String)>,
}

type Way<'a, T> = (&'static str, Box<dyn FnOnce() -> Result<T, String> + 'a>);

/// The first way that works.
fn first<T>(what: &str, ways: Vec<Way<'_, T>>) -> Result<Found<T>, Failure> {
    let mut passed_over = Vec::new();
    for (name, open) in ways {
        match open() {
            Ok(chosen) => return Ok(Found { chosen, passed_over }),
            Err(reason) => passed_over.push((name.to_owned(), reason)),
        }
    }
    let reasons: Vec<String> = passed_over.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    Err(Failure::environment(format!("no {what} here; {}", reasons.join("; "))))
}

fn boxed<'a, T: Signal + 'a>(signal: Result<T, String>) -> Result<Box<dyn Signal + 'a>, String> {
    signal.map(|it| Box::new(it) as Box<dyn Signal>)
}

/// The signal.
///
/// # Errors
/// What was asked for does not work here, or nothing does.
pub fn signal(choice: SignalChoice, on: &Conditions) -> Result<Found<Box<dyn Signal>>, Failure> {
    let root = &on.root;
    let ways: Vec<(SignalChoice, Way<'_, Box<dyn Signal>>)> = vec![
        (SignalChoice::Msr, ("msr", Box::new(|| boxed(Iio::open(root))))),
        (SignalChoice::Resctrl, ("resctrl", Box::new(|| boxed(Bandwidth::open(root, on.memory_gbs))))),
        (
            SignalChoice::Software,
            ("software", Box::new(|| boxed(telemetry::software(root, on.telemetry.as_deref())))),
        ),
    ];
    let is_meant = |it: SignalChoice| choice == SignalChoice::Auto || choice == it;
    first("signal", ways.into_iter().filter(|(it, _)| is_meant(*it)).map(|(_, way)| way).collect())
}

fn boxed_actuator<'a, T: Actuator + 'a>(it: Result<T, String>) -> Result<Box<dyn Actuator + 'a>, String> {
    it.map(|it| Box::new(it) as Box<dyn Actuator>)
}

/// The actuator.
///
/// # Errors
/// What was asked for does not work here, or nothing does.
pub fn actuator(choice: ActuatorChoice, on: &Conditions) -> Result<Found<Box<dyn Actuator>>, Failure> {
    let (root, classes) = (&on.root, on.classes.as_slice());
    let ways: Vec<(ActuatorChoice, Way<'_, Box<dyn Actuator>>)> = vec![
        (
            ActuatorChoice::Resctrl,
            ("resctrl", Box::new(|| boxed_actuator(Bandwidths::open(root, classes, on.memory_gbs)))),
        ),
        (ActuatorChoice::Msr, ("msr", Box::new(|| boxed_actuator(Delays::open(root))))),
        (ActuatorChoice::Cgroup, ("cgroup", Box::new(|| boxed_actuator(Cgroups::open(root, &on.ungrouped))))),
        (ActuatorChoice::Sigstop, ("sigstop", Box::new(|| boxed_actuator(Duty::open(root))))),
    ];
    let is_meant = |it: ActuatorChoice| choice == ActuatorChoice::Auto || choice == it;
    first("actuator", ways.into_iter().filter(|(it, _)| is_meant(*it)).map(|(_, way)| way).collect())
}
