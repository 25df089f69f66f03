//! Memory bandwidth by Intel's registers, for machines without resctrl. Untested on hardware.
//!
//! A class of service has a delay, `0xd50` + its number, in per cent of what is kept back; a core belongs to one by the
//! upper half of register `0xc8f`. So this holds back cores, not programs: it wants programs that are pinned to cores of
//! their own.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use dcp_core::{Level, TrafficClass};

use super::{Actuator, index};
use crate::machine::{Cpu, online};
use crate::msr::Msr;
use crate::root::Root;
use crate::target::{Target, allowed};
use crate::undo::Undo;

/// First register of delays.
const DELAY: u64 = 0xd50;
/// Register that says which class of service a core belongs to.
const ASSOCIATION: u64 = 0xc8f;
/// Classes of service that this uses: cross-NUMA, local. 0 is everyone else's.
const SERVICES: [u64; 2] = [2, 1];
/// Delays come in tens, 90 at most.
const DELAY_STEP: u64 = 10;

/// Cores of both classes.
#[derive(Debug)]
pub struct Delays {
    root: Root,
    /// Cores by class, and what register `0xc8f` of each held.
    cores: [Vec<(Msr, u64)>; 2],
    /// Delay that each class of service had.
    before: [u64; 2],
}

impl Delays {
    /// Takes the cores that a program to be started may use, those of this process.
    ///
    /// # Errors
    /// This machine has no such registers, or they cannot be reached, or resctrl has them; the reason.
    pub fn open(root: &Root) -> Result<Self, String> {
        let cpu = Cpu::read(root);
        if cpu.vendor != "GenuineIntel" || !cpu.flags.contains("mba") {
            return Err("the processor has no Intel memory bandwidth allocation".into());
        }
        if root.path("sys/fs/resctrl/schemata").exists() {
            return Err("resctrl is mounted and owns the registers".into());
        }
        let first = online(root).into_iter().next().unwrap_or(0);
        let msr = Msr::open(root, first).map_err(|error| format!("{error} (as root: modprobe msr)"))?;
        let mut before = [0; 2];
        for (service, before) in SERVICES.into_iter().zip(&mut before) {
            *before = msr.read(DELAY + service).map_err(|error| error.to_string())?;
        }
        Ok(Self { root: root.clone(), cores: [Vec::new(), Vec::new()], before })
    }

    /// Cores on which these programs run, which must not be all there are.
    fn cores_of(&self, target: &Target) -> io::Result<BTreeSet<usize>> {
        let cores = allowed(&self.root, &target.pids(&self.root));
        if cores.is_superset(&online(&self.root)) {
            let why = "this holds back cores, and the program may run on all: pin it (taskset -c LIST)";
            return Err(io::Error::other(why));
        }
        Ok(cores)
    }
}

impl Actuator for Delays {
    fn name(&self) -> String {
        "msr: memory bandwidth of cores by Intel's registers".into()
    }

    fn period_ns(&self) -> u64 {
        1_000_000
    }

    fn entrances(&self, _class: TrafficClass) -> Vec<PathBuf> {
        Vec::new()
    }

    fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()> {
        for core in self.cores_of(target)? {
            let msr = Msr::open(&self.root, core)?;
            let before = msr.read(ASSOCIATION)?;
            // The lower half belongs to monitoring.
            let mine = before & u64::from(u32::MAX) | SERVICES[index(class)] << 32;
            self.cores[index(class)].push((msr, before));
            if let Some((msr, _)) = self.cores[index(class)].last() {
                msr.write(ASSOCIATION, mine)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()> {
        let delay = (100 - u64::from(level.percent())) / DELAY_STEP * DELAY_STEP;
        let cores = &self.cores[index(class)];
        cores.iter().try_for_each(|(msr, _)| msr.write(DELAY + SERVICES[index(class)], delay))
    }

    fn undo(&self) -> Vec<Undo> {
        let restore = |class: usize| {
            let of_core = move |(msr, before): &(Msr, u64)| {
                let file = msr.path().to_owned();
                let (register, value) = (DELAY + SERVICES[class], self.before[class]);
                [
                    Undo::Register { file: file.clone(), register, value },
                    Undo::Register { file, register: ASSOCIATION, value: *before },
                ]
            };
            self.cores[class].iter().flat_map(of_core)
        };
        restore(0).chain(restore(1)).collect()
    }
}
