//! What is held back: programs, by process group, process or cgroup.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::machine::parse_cpus;
use crate::root::{Root, names};

/// Programs that share a level.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Target {
    /// A process group: a program that was started for this, with all its children.
    Group(u32),
    /// A process, by its id and the time of its start, so that a later one with the same id is not meant.
    Process(u32, u64),
    /// Every process of a cgroup, by the cgroup's directory.
    Cgroup(PathBuf),
}

impl Target {
    /// A running process.
    pub fn process(root: &Root, pid: u32) -> Option<Self> {
        Some(Self::Process(pid, start_time(root, pid)?))
    }

    /// Its processes that live now.
    pub fn pids(&self, root: &Root) -> Vec<u32> {
        match self {
            Self::Group(group) => all_pids(root).filter(|&pid| group_of(root, pid) == Some(*group)).collect(),
            Self::Process(pid, start) if start_time(root, *pid) == Some(*start) => vec![*pid],
            Self::Process(..) => Vec::new(),
            Self::Cgroup(directory) => members(directory),
        }
    }

    /// Whether nothing of it lives.
    pub fn is_gone(&self, root: &Root) -> bool {
        self.pids(root).is_empty()
    }

    /// Sends a signal to all of it. Processes that end meanwhile are no error.
    ///
    /// # Errors
    /// The first one that the system refused.
    pub fn signal(&self, root: &Root, signal: Signal) -> Result<(), Errno> {
        let ignore_gone = |result| if result == Err(Errno::SRCH) { Ok(()) } else { result };
        match self {
            Self::Group(group) => {
                raw(*group).map_or(Ok(()), |group| ignore_gone(kill_process_group(group, signal)))
            }
            _ => self
                .pids(root)
                .into_iter()
                .filter_map(raw)
                .map(|pid| ignore_gone(kill_process(pid, signal)))
                .fold(Ok(()), Result::and),
        }
    }
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Numbers in a file, one a line.
pub(crate) fn ids(file: &Path) -> Vec<u32> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Processes of a cgroup and of those below it.
pub(crate) fn members(directory: &Path) -> Vec<u32> {
    let mut pids = ids(&directory.join("cgroup.procs"));
    let inside = names(directory).into_iter().map(|name| directory.join(name));
    for below in inside.filter(|path| path.join("cgroup.procs").exists()) {
        pids.extend(members(&below));
    }
    pids
}

/// Threads of a process.
pub(crate) fn threads(root: &Root, pid: u32) -> Vec<u32> {
    let tasks = names(&root.path(format!("proc/{pid}/task")));
    tasks.iter().filter_map(|name| name.parse().ok()).collect()
}

fn all_pids(root: &Root) -> impl Iterator<Item = u32> {
    names(&root.path("proc")).into_iter().filter_map(|name| name.parse().ok())
}

/// Fields of `/proc/PID/stat` behind the name, which may hold anything; the first is the state. Nothing for the dead.
fn stat(root: &Root, pid: u32) -> Option<Vec<String>> {
    fields(&root.read(format!("proc/{pid}/stat")).ok()?)
}

fn fields(text: &str) -> Option<Vec<String>> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    if matches!(fields.first()?.as_str(), "Z" | "X") { None } else { Some(fields) }
}

fn group_of(root: &Root, pid: u32) -> Option<u32> {
    stat(root, pid)?.get(2)?.parse().ok()
}

/// When a process began, in ticks since the machine did.
pub(crate) fn start_time(root: &Root, pid: u32) -> Option<u64> {
    stat(root, pid)?.get(19)?.parse().ok()
}

/// Threads that are looked at; more than that fill any machine.
const THREADS_MAX: usize = 1024;

/// Processors on which some thread of these may run.
pub(crate) fn allowed(root: &Root, pids: &[u32]) -> BTreeSet<usize> {
    let every = pids.iter().flat_map(|&pid| threads(root, pid).into_iter().map(move |thread| (pid, thread)));
    every.take(THREADS_MAX).flat_map(|(pid, thread)| processors(root, pid, thread)).collect()
}

fn processors(root: &Root, pid: u32, thread: u32) -> BTreeSet<usize> {
    let text = root.read(format!("proc/{pid}/task/{thread}/status")).unwrap_or_default();
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(parse_cpus).unwrap_or_default()
}

/// What programs can use: looks at which of their threads are busy.
#[derive(Clone, Default, Debug)]
pub(crate) struct Capacity {
    /// Processor time that each thread had taken at the last look, in ticks.
    ticks: BTreeMap<u32, u64>,
}

impl Capacity {
    /// Processors that these keep busy: the smaller of their busy threads and of the processors that these may run on;
    /// at least 1. Busy is who runs, wants to run, or has run since the last look.
    pub(crate) fn look(&mut self, root: &Root, pids: &[u32]) -> usize {
        let before = std::mem::take(&mut self.ticks);
        let (mut busy, mut allowed) = (0, BTreeSet::new());
        let every =
            pids.iter().flat_map(|&pid| threads(root, pid).into_iter().map(move |thread| (pid, thread)));
        for (pid, thread) in every.take(THREADS_MAX) {
            let text = root.read(format!("proc/{pid}/task/{thread}/stat")).unwrap_or_default();
            let Some(fields) = fields(&text) else { continue };
            let number = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
            let ticks = number(11) + number(12);
            let has_run = before.get(&thread).is_some_and(|&before| before < ticks);
            if has_run || fields.first().is_some_and(|state| state == "R") {
                busy += 1;
                allowed.extend(processors(root, pid, thread));
            }
            self.ticks.insert(thread, ticks);
        }
        busy.min(allowed.len()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_known_by_their_start_too() {
        let root = Root::machine();
        let me = std::process::id();
        let here = Target::process(&root, me).expect("this runs");
        assert_eq!(here.pids(&root), [me]);
        let Target::Process(_, start) = here else { panic!("{here:?}") };
        assert!(Target::Process(me, start + 1).is_gone(&root));
        assert!(Target::process(&root, u32::MAX).is_none());
        // Signal 0 would do; nobody is there to get this one.
        assert_eq!(Target::Process(me, start + 1).signal(&root, Signal::TERM), Ok(()));
    }

    #[test]
    fn capacity_counts_busy_threads_and_no_more_than_their_processors() {
        let root = Root::machine();
        let me = [std::process::id()];
        let mut capacity = Capacity::default();
        // This thread runs.
        assert!(capacity.look(&root, &me) <= allowed(&root, &me).len());
        assert!(!capacity.ticks.is_empty());
        assert_eq!(capacity.look(&root, &[]), 1);
    }
}
