//! Memory bandwidth by resctrl: `MB:` lines in a group's schemata. Untested on hardware.
//!
//! What a number in such a line means depends on the machine, and the line of the default group tells which it is: with
//! 100 it is per cent (Intel), with 2048 eighths of a GB/s (AMD), and with more MB/s (the kernel's own control, mounted
//! with `mba_MBps`). All but the first need to know what 100 % is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dcp_core::{Level, TrafficClass};

use super::{Actuator, group_name, index};
use crate::root::{Root, about, write};
use crate::signal::resctrl::MOUNT;
use crate::target::{Target, start_time, threads};
use crate::undo::{Undo, join};

/// What a number in an `MB:` line means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Per cent, not below `least`, in steps of `step`.
    Percent {
        /// Smallest.
        least: u32,
        /// Distance of what can be had; the hardware rounds up.
        step: u32,
    },
    /// Eighths of a GB/s.
    Eighths,
    /// MB/s.
    Megabytes,
}

impl Unit {
    /// The number for a level, of a domain with `peak_gbs` GB/s.
    pub fn number(self, level: Level, peak_gbs: u32) -> u32 {
        let percent = u32::from(level.percent());
        let part = |whole: u32| (u64::from(whole) * u64::from(percent) / 100).clamp(1, u32::MAX.into());
        let part = |whole: u32| u32::try_from(part(whole)).unwrap_or(u32::MAX);
        match self {
            Self::Percent { least, step } => percent.next_multiple_of(step.max(1)).clamp(least, 100),
            Self::Eighths => part(peak_gbs.saturating_mul(8)),
            Self::Megabytes => part(peak_gbs.saturating_mul(1000)),
        }
    }
}

/// An `MB:` line: each domain's name and number.
fn parse_line(schemata: &str) -> Option<Vec<(String, u32)>> {
    let line = schemata.lines().find_map(|line| line.trim().strip_prefix("MB:"))?;
    let domain = |part: &str| {
        let (name, number) = part.split_once('=')?;
        Some((name.trim().to_owned(), number.trim().parse().ok()?))
    };
    line.split(';').map(domain).collect()
}

/// Bandwidth of both classes.
#[derive(Debug)]
pub struct Bandwidths {
    root: Root,
    unit: Unit,
    peak_gbs: u32,
    /// What the default group has: no limit.
    free: Vec<(String, u32)>,
    groups: [Option<PathBuf>; 2],
    cgroups: [Vec<Target>; 2],
    homes: Vec<Undo>,
}

impl Bandwidths {
    /// Makes a group for each class.
    ///
    /// # Errors
    /// It cannot be done here; the reason.
    pub fn open(root: &Root, classes: &[TrafficClass], peak_gbs: Option<u32>) -> Result<Self, String> {
        let mount = root.path(MOUNT);
        let schemata = mount.join("schemata");
        let text = fs::read_to_string(&schemata).map_err(|_| {
            format!("{} is not mounted (mount -t resctrl resctrl /sys/fs/resctrl)", mount.display())
        })?;
        let free = parse_line(&text).ok_or("the processor cannot limit memory bandwidth (no MB: line)")?;
        let most = free.iter().map(|(_, number)| *number).max().unwrap_or(0);
        let info = |name: &str| {
            let text = fs::read_to_string(mount.join("info/MB").join(name));
            text.ok().and_then(|text| text.trim().parse().ok())
        };
        let unit = match most {
            0..=100 => Unit::Percent {
                least: info("min_bandwidth").unwrap_or(10),
                step: info("bandwidth_gran").unwrap_or(10),
            },
            2048 => Unit::Eighths,
            _ => Unit::Megabytes,
        };
        if peak_gbs.is_none() && !matches!(unit, Unit::Percent { .. }) {
            return Err("needs --memory-gbs: this machine limits bandwidth in numbers, not per cent".into());
        }
        let mut this = Self {
            root: root.clone(),
            unit,
            peak_gbs: peak_gbs.unwrap_or(0),
            free,
            groups: [None, None],
            cgroups: [Vec::new(), Vec::new()],
            homes: Vec::new(),
        };
        for &class in classes {
            if let Err(error) = this.make(&mount.join(group_name(class)), class) {
                this.lift(root);
                return Err(error.to_string());
            }
        }
        Ok(this)
    }

    fn make(&mut self, group: &Path, class: TrafficClass) -> io::Result<()> {
        fs::create_dir(group).map_err(|error| about(group, &error))?;
        self.groups[index(class)] = Some(group.to_owned());
        write(&group.join("schemata"), &self.line(Level::FREE))
    }

    fn line(&self, level: Level) -> String {
        let number = |free: u32| match level {
            Level::FREE => free,
            _ => self.unit.number(level, self.peak_gbs).min(free),
        };
        let parts: Vec<String> =
            self.free.iter().map(|(domain, free)| format!("{domain}={}", number(*free))).collect();
        format!("MB:{}\n", parts.join(";"))
    }

    fn list(&self, class: TrafficClass) -> Option<PathBuf> {
        self.groups[index(class)].as_ref().map(|group| group.join("tasks"))
    }

    /// The list where a process was before.
    fn home(&self, pid: u32) -> PathBuf {
        let text = self.root.read(format!("proc/{pid}/cpu_resctrl_groups")).unwrap_or_default();
        let group = text.lines().find_map(|line| line.strip_prefix("res:")).unwrap_or("/");
        self.root.path(MOUNT).join(group.trim_start_matches('/')).join("tasks")
    }

    fn take(&mut self, list: &Path, pid: u32) -> io::Result<()> {
        let known = |step: &Undo| matches!(step, Undo::Join { process: (it, _), .. } if *it == pid);
        let Some(start) = start_time(&self.root, pid).filter(|_| !self.homes.iter().any(known)) else {
            return Ok(());
        };
        self.homes.push(Undo::Join { list: self.home(pid), process: (pid, start), by_thread: true });
        join(list, &threads(&self.root, pid))
    }
}

impl Actuator for Bandwidths {
    fn name(&self) -> String {
        let unit = match self.unit {
            Unit::Percent { .. } => "per cent",
            Unit::Eighths => "eighths of a GB/s",
            Unit::Megabytes => "MB/s",
        };
        format!("resctrl: memory bandwidth in {unit}")
    }

    fn period_ns(&self) -> u64 {
        1_000_000
    }

    fn entrances(&self, class: TrafficClass) -> Vec<PathBuf> {
        self.list(class).into_iter().collect()
    }

    fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()> {
        let list = self.list(class).ok_or_else(|| io::Error::other("no group"))?;
        match target {
            Target::Group(_) => return Ok(()),
            Target::Cgroup(_) => self.cgroups[index(class)].push(target.clone()),
            Target::Process(..) => {}
        }
        target.pids(&self.root).into_iter().try_for_each(|pid| self.take(&list, pid))
    }

    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()> {
        let Some(group) = self.groups[index(class)].clone() else { return Ok(()) };
        // What has come into a cgroup since.
        for target in self.cgroups[index(class)].clone() {
            target.pids(&self.root).into_iter().try_for_each(|pid| self.take(&group.join("tasks"), pid))?;
        }
        write(&group.join("schemata"), &self.line(level))
    }

    fn undo(&self) -> Vec<Undo> {
        let groups = || self.groups.iter().flatten();
        let text = self.line(Level::FREE);
        let mut steps: Vec<Undo> =
            groups().map(|it| Undo::Write { file: it.join("schemata"), text: text.clone() }).collect();
        steps.extend(self.homes.iter().cloned());
        // What is still in a group when it is removed goes to the default group.
        steps.extend(groups().cloned().map(Undo::Remove));
        steps
    }
}
