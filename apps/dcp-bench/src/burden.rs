//! Host congestion at the server: hogs on its core, and RHCC's receiver that holds them back.

use std::sync::Arc;

use clap::Args;
use dcp::Worker;
use dcp::core::{HostControl, HostControlConfig, TrafficClass};
use dcp::dpdk::available_cores;
use dcp_rhcc::actuator::Actuator;
use dcp_rhcc::antagonist::{HOGS_MAX, MIB};
use dcp_rhcc::choose::{self, ActuatorChoice, Conditions, Found};
use dcp_rhcc::clock::now_ns;
use dcp_rhcc::governor::{Running, Tally};
use dcp_rhcc::guardian::Guardian;
use dcp_rhcc::modes::Program;
use dcp_rhcc::root::Root;
use dcp_rhcc::signal::Signal;
use dcp_rhcc::signal::software::{ReceiveTotals, SharedTotals, shared};
use dcp_rhcc::target::Target;
use dcp_rhcc::{Antagonist, AntagonistConfig, Governor};
use serde::Serialize;

use crate::failure::Failure;
use crate::plan::{Device, Link, Plan, Side, Threads};

/// Options of host congestion.
#[derive(Args, Debug)]
#[command(next_help_heading = "Host congestion")]
pub struct BurdenArgs {
    /// Run so many hogs of processor and memory on the server's core, in a control group of their own, up to 256
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_hogs)]
    pub antagonist: usize,
    /// Hold the hogs back while the server takes in slower than the network delivers (RHCC's receiver)
    #[arg(long)]
    pub rhcc_receiver: bool,
}

/// What burdens the server's host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Burden {
    /// Hogs: 0 … [`HOGS_MAX`].
    pub hogs: usize,
    /// Whether RHCC's receiver holds them back.
    pub is_governed: bool,
}

/// How the hogs fared.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Strain {
    /// Their number.
    pub hogs: usize,
    /// Memory that all of them went through, in GB (10^9 bytes) per second.
    pub hogs_gbs: f64,
    /// Whether RHCC's receiver ran.
    pub rhcc_receiver: bool,
    /// What held them back; none without RHCC's receiver, or without hogs.
    pub actuator: Option<String>,
    /// Mean over time of what they were left, in per cent; 100 without RHCC's receiver.
    pub left_percent: f64,
}

impl BurdenArgs {
    /// What the options say.
    pub const fn burden(&self) -> Burden {
        Burden { hogs: self.antagonist, is_governed: self.rhcc_receiver }
    }
}

fn parse_hogs(text: &str) -> Result<usize, String> {
    let hogs = text.parse().ok().filter(|hogs| *hogs <= HOGS_MAX);
    hogs.ok_or_else(|| format!("a number of hogs from 0 to {HOGS_MAX}"))
}

impl Burden {
    /// Without hogs and without control.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what has no server in this process.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self, device: &Device) -> Result<(), Failure> {
        let option = if self.hogs > 0 { "--antagonist" } else { "--rhcc-receiver" };
        match device {
            _ if self.is_none() => Ok(()),
            Device::Loop | Device::Link(Link { side: Side::Server, .. }) => Ok(()),
            Device::Link(_) => {
                Err(Failure::usage(format!("{option} is for the host of the server: give it there")))
            }
            Device::Null => Err(Failure::usage(format!("{option} needs a server, and null has none"))),
        }
    }
}

/// Sees to it that hogs can share the server's core and not the client's; a note about that.
pub(crate) fn place(plan: &mut Plan) -> Option<String> {
    if plan.burden.hogs == 0 {
        return None;
    }
    match plan.device {
        Device::Loop if plan.threads == Threads::Inline => {
            plan.threads = Threads::Split;
            Some("--antagonist is for the server's core alone: --threads split".to_owned())
        }
        Device::Link(_) if plan.cores.is_empty() => {
            let core = available_cores().last().copied()?;
            plan.cores = vec![core];
            Some(format!("--antagonist is for the server's core: --cores {core}"))
        }
        _ => None,
    }
}

/// A burden that is carried. Dropping it lifts every limit and ends the hogs; when this process is killed, guardians
/// do that.
#[derive(Debug)]
pub struct Carried {
    burden: Burden,
    // Limits go before those that they hold.
    governor: Option<Running>,
    antagonist: Option<Antagonist>,
    totals: Arc<SharedTotals>,
    actuator: Option<String>,
    /// When the hogs were asked first, and what they had done.
    start: (u64, u64),
    notes: Vec<String>,
}

fn environment(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::environment(format!("{what}: {error}"))
}

impl Carried {
    /// Starts what `burden` asks for, on `core` or, without one, on the last that there is. Hogs work when this returns.
    ///
    /// # Errors
    /// The system gave no process, no memory, or nothing to hold hogs back with.
    pub fn start(burden: Burden, core: Option<usize>) -> Result<Self, Failure> {
        Self::start_with(burden, core, Program::this())
    }

    /// The same with another program that plays the hogs and the guardians: it calls [`dcp_rhcc::modes::play`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(burden: Burden, core: Option<usize>, program: Program) -> Result<Self, Failure> {
        let mut this = Self {
            burden,
            governor: None,
            antagonist: None,
            totals: Arc::default(),
            actuator: None,
            start: (now_ns(), 0),
            notes: Vec::new(),
        };
        if burden.hogs > 0 {
            let core = core.or_else(|| available_cores().last().copied());
            let hogs = Antagonist::start_with(AntagonistConfig {
                hogs: burden.hogs,
                cores: core.into_iter().collect(),
                mib: MIB,
                program: program.clone(),
            });
            let hogs = hogs.map_err(|error| environment("the hogs of --antagonist do not run", error))?;
            this.notes.extend(hogs.why_no_cgroup().map(|reason| {
                format!("hogs share this program's control group, and its processor time with it: {reason}")
            }));
            this.antagonist = Some(hogs);
        }
        if burden.is_governed {
            this.govern(&program)?;
        }
        this.start = (now_ns(), this.work_done());
        Ok(this)
    }

    fn govern(&mut self, program: &Program) -> Result<(), Failure> {
        let cannot = |error| environment("--rhcc-receiver cannot hold the hogs back", error);
        let root = Root::machine();
        let targets = self.antagonist.as_ref().map_or_else(Vec::new, |hogs| targets(&root, hogs));
        let found = actuator(&root, &targets).map_err(|failure| environment("--rhcc-receiver", failure))?;
        let signal = shared(dcp::ReceiveLoad::BURST_MAX, Arc::clone(&self.totals));
        if !targets.is_empty() {
            self.tell(&found, &signal);
        }
        let config = HostControlConfig { threshold: signal.threshold(), ..HostControlConfig::new() };
        let control = HostControl::new(config).map_err(|error| environment("--rhcc-receiver", error))?;
        let guardian = Guardian::start(program).map_err(cannot)?;
        let period = std::time::Duration::from_nanos(found.chosen.period_ns());
        let mut governor = Governor::new(root, Box::new(signal), control, found.chosen, Some(guardian));
        governor.tell_guardian();
        for target in &targets {
            governor.adopt(TrafficClass::Local, target).map_err(cannot)?;
        }
        self.governor = Some(governor.spawn(period).map_err(cannot)?);
        Ok(())
    }

    /// Notes what was found, and why nothing better.
    fn tell(&mut self, found: &Found<Box<dyn Actuator>>, signal: &impl Signal) {
        let name = found.chosen.name();
        let others: Vec<_> =
            found.passed_over.iter().map(|(name, why)| format!("; no {name}: {why}")).collect();
        self.notes.push(format!(
            "RHCC's receiver: signal {}; actuator {name}{}",
            signal.name(),
            others.concat()
        ));
        self.actuator = Some(name);
    }

    /// Lets the control know of the server's receive queue; for the thread of its worker, every now and then.
    #[inline]
    pub fn publish(&self, worker: &Worker) {
        if self.governor.is_some() {
            let load = worker.receive_load();
            self.totals.publish(ReceiveTotals {
                frames: load.frames,
                burst_frames: load.burst_frames,
                ages: load.ages,
                age_squares: load.age_squares,
            });
        }
    }

    fn work_done(&self) -> u64 {
        self.antagonist.as_ref().map_or(0, Antagonist::work_done)
    }

    /// Lifts every limit and ends the hogs; how they fared, if there was a burden, and what the user should know.
    #[expect(clippy::cast_precision_loss, reason = "a report")]
    pub fn end(mut self) -> (Option<Strain>, Vec<String>) {
        let (start_ns, before) = self.start;
        let elapsed_ns = now_ns().saturating_sub(start_ns).max(1);
        let bytes = self.work_done().saturating_sub(before);
        let mut left_percent = 100.0;
        match self.governor.take().map(Running::stop) {
            Some(Ok(tally)) => left_percent = left(&tally),
            Some(Err(error)) => self.notes.push(format!("RHCC's receiver: {error}")),
            None => {}
        }
        let strain = Strain {
            hogs: self.burden.hogs,
            hogs_gbs: bytes as f64 / elapsed_ns as f64,
            rhcc_receiver: self.burden.is_governed,
            actuator: self.actuator.take(),
            left_percent,
        };
        ((!self.burden.is_none()).then_some(strain), std::mem::take(&mut self.notes))
    }
}

/// All hogs: their group, or each.
fn targets(root: &Root, hogs: &Antagonist) -> Vec<Target> {
    match hogs.cgroup() {
        Some(group) => vec![Target::Cgroup(group.to_owned())],
        None => hogs.pids().into_iter().filter_map(|pid| Target::process(root, pid)).collect(),
    }
}

/// The best actuator here; nothing but a thread if there is nobody to hold back.
fn actuator(root: &Root, targets: &[Target]) -> Result<Found<Box<dyn Actuator>>, dcp_rhcc::failure::Failure> {
    let is_grouped = targets.iter().all(|target| matches!(target, Target::Cgroup(_)));
    let conditions = Conditions {
        root: root.clone(),
        memory_gbs: None,
        telemetry: None,
        classes: vec![TrafficClass::Local],
        ungrouped: if is_grouped { Vec::new() } else { vec![TrafficClass::Local] },
    };
    let choice = if targets.is_empty() { ActuatorChoice::Sigstop } else { ActuatorChoice::Auto };
    choose::actuator(choice, &conditions)
}

/// Mean of what the levels left, in per cent: 100, 80, 60, 40, 20.
#[expect(clippy::cast_precision_loss, reason = "a report")]
fn left(tally: &Tally) -> f64 {
    let weighted: f64 =
        tally.local.iter().zip([100.0, 80.0, 60.0, 40.0, 20.0]).map(|(n, p)| *n as f64 * p).sum();
    if tally.periods == 0 { 100.0 } else { weighted / tally.periods as f64 }
}

impl std::fmt::Display for Strain {
    /// `2 hogs at 1.25 GB/s, held to 35 % (cgroup …)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.hogs == 1 { "" } else { "s" };
        write!(f, "{} hog{plural} at {:.2} GB/s", self.hogs, self.hogs_gbs)?;
        match &self.actuator {
            Some(actuator) => write!(f, ", held to {:.0} % on average ({actuator})", self.left_percent),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_levels_is_what_hogs_were_left() {
        assert!((left(&Tally::default()) - 100.0).abs() < 1e-9);
        let tally = Tally { periods: 4, local: [1, 0, 0, 0, 3], ..Tally::default() };
        assert!((left(&tally) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn hogs_in_the_loop_have_the_server_on_a_core_of_its_own() {
        let mut plan = Plan { burden: Burden { hogs: 1, is_governed: false }, ..Plan::default() };
        assert!(place(&mut plan).is_some_and(|note| note.contains("--threads split")));
        assert_eq!(plan.threads, Threads::Split);
        assert_eq!(place(&mut plan), None, "that was chosen already");
        assert_eq!(place(&mut Plan::default()), None);
    }

    #[test]
    fn burden_is_for_who_has_a_server() {
        let hogs = Burden { hogs: 1, is_governed: false };
        assert!(hogs.check(&Device::Loop).is_ok());
        assert!(hogs.check(&Device::Null).is_err_and(|it| it.message.starts_with("--antagonist")));
        let governed = Burden { hogs: 0, is_governed: true };
        assert!(governed.check(&Device::Null).is_err_and(|it| it.message.starts_with("--rhcc-receiver")));
        assert!(Burden::default().check(&Device::Null).is_ok());
    }
}
