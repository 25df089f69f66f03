//! Processor time by cgroup: `cpu.max` of version 2 or `cpu.cfs_quota_us` of version 1, whichever owns the controller.
//!
//! A program that gets a part of the processor time makes that part of its memory traffic. A level is a part of the
//! processors that the class keeps busy: the smaller of its busy threads and of the processors that these may run on,
//! looked at again while the level holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dcp_core::{Level, TrafficClass};

use super::{Actuator, group_name, index};
use crate::root::{Root, about, write};
use crate::target::{Capacity, Target, members, start_time};
use crate::undo::{Undo, join};

/// Time over which the kernel counts: 10 ms, the shortest in which a fifth of a processor is still well above the
/// kernel's smallest quota of 1 ms.
const PERIOD_US: u64 = 10_000;

/// Version of the hierarchy that has the cpu controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// `cpu.cfs_quota_us`.
    V1,
    /// `cpu.max`.
    V2,
}

/// The hierarchy with the cpu controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    mount: PathBuf,
    /// The part of it that is mounted.
    mounted: String,
}

impl Hierarchy {
    /// Finds it.
    ///
    /// # Errors
    /// There is none; the reason.
    pub fn find(root: &Root) -> Result<Self, String> {
        let text = root.read("proc/self/mountinfo").map_err(|error| error.to_string())?;
        let mut second = None;
        for line in text.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let place: Vec<&str> = place.split(' ').collect();
            let kind: Vec<&str> = kind.split(' ').collect();
            let (Some(&mounted), Some(&mount), Some(&name)) = (place.get(3), place.get(4), kind.first())
            else {
                continue;
            };
            let at = |version| Self { version, mount: root.path(mount), mounted: mounted.to_owned() };
            let options = kind.get(2).copied().unwrap_or_default();
            if name == "cgroup" && options.split(',').any(|it| it == "cpu") {
                return Ok(at(Version::V1));
            }
            if name == "cgroup2" && second.is_none() {
                second = Some(at(Version::V2));
            }
        }
        let second = second.ok_or("no cgroup hierarchy is mounted")?;
        if has_word(&second.mount.join("cgroup.controllers"), "cpu") {
            return Ok(second);
        }
        Err(format!("{} has no cpu controller", second.mount.display()))
    }

    /// The directory of a process's group; `pid` may be `self`.
    pub fn group_of(&self, root: &Root, pid: &str) -> PathBuf {
        let text = root.read(format!("proc/{pid}/cgroup")).unwrap_or_default();
        let path = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_it = match self.version {
                Version::V1 => controllers.split(',').any(|it| it == "cpu"),
                Version::V2 => controllers.is_empty(),
            };
            is_it.then_some(path)
        });
        let inside = path.and_then(|path| Path::new(path).strip_prefix(&self.mounted).ok());
        let group = inside.map_or_else(|| self.mount.clone(), |inside| self.mount.join(inside));
        // A container may see paths of its host.
        if group.is_dir() { group } else { self.mount.clone() }
    }

    /// Makes a group below this process's own, or, where version 2 forbids it, below the nearest that may have one.
    ///
    /// # Errors
    /// This user may not, or the controller is not given on; the reason.
    pub fn make(&self, root: &Root, name: &str) -> Result<PathBuf, String> {
        let mut parent = self.group_of(root, "self");
        loop {
            let lacks = match self.version {
                Version::V2 if !has_word(&parent.join("cgroup.subtree_control"), "cpu") => {
                    let file = parent.join("cgroup.subtree_control");
                    format!("groups have no cpu controller (echo +cpu > {})", file.display())
                }
                _ => match make_directory(&parent.join(name)) {
                    Ok(()) => return Ok(parent.join(name)),
                    Err(error) => format!("cannot make a group: {error}"),
                },
            };
            if parent == self.mount || !parent.pop() {
                return Err(lacks);
            }
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        // Left over by a process of the same id that was killed together with its guardian.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.map_err(|error| about(path, &error)),
    }
}

fn has_word(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|it| it == word))
}

/// A group whose quota is ours for now.
#[derive(Debug)]
struct Group {
    directory: PathBuf,
    version: Version,
    /// The quota file and what it held; for version 1 also the period's.
    before: Vec<(PathBuf, String)>,
    /// Processors that its own quota and those above it leave it.
    had: Option<f64>,
    is_made: bool,
    capacity: Capacity,
}

impl Group {
    fn made(directory: PathBuf, version: Version) -> Self {
        let had = processors_of(&directory);
        Self { directory, version, before: Vec::new(), had, is_made: true, capacity: Capacity::default() }
    }

    /// A group of someone else's.
    fn existing(directory: &Path) -> io::Result<Self> {
        let first = [directory.join("cpu.cfs_period_us"), directory.join("cpu.cfs_quota_us")];
        let (version, files) = if first[1].exists() {
            (Version::V1, first.to_vec())
        } else {
            (Version::V2, vec![directory.join("cpu.max")])
        };
        let read = |file: PathBuf| match fs::read_to_string(&file) {
            Ok(text) => Ok((file, text.trim().to_owned())),
            Err(error) => Err(about(&file, &error)),
        };
        let before = files.into_iter().map(read).collect::<io::Result<Vec<_>>>()?;
        let (had, directory) = (processors_of(directory), directory.to_owned());
        Ok(Self { directory, version, before, had, is_made: false, capacity: Capacity::default() })
    }

    fn list(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    fn apply(&mut self, root: &Root, level: Level) -> io::Result<()> {
        if level == Level::FREE {
            return self.set_free();
        }
        let processors = self.capacity.look(root, &members(&self.directory)) as u64;
        let whole = processors * PERIOD_US;
        // Of a quota that leaves less, the level is a part; version 1 refuses more than the groups above have.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
        let whole = self.had.map_or(whole, |had| whole.min((had * PERIOD_US as f64) as u64));
        let quota = (whole * u64::from(level.percent()) / 100).max(1000);
        match self.version {
            // A quota of another period must never be above 100 % of it for a parent with a quota: period first, free.
            Version::V1 => {
                let quota_file = self.directory.join("cpu.cfs_quota_us");
                let period_file = self.directory.join("cpu.cfs_period_us");
                let is_set =
                    fs::read_to_string(&period_file).is_ok_and(|text| text.trim().parse() == Ok(PERIOD_US));
                if !is_set {
                    write(&quota_file, "-1")?;
                    write(&period_file, &PERIOD_US.to_string())?;
                }
                write(&quota_file, &quota.to_string())
            }
            Version::V2 => write(&self.directory.join("cpu.max"), &format!("{quota} {PERIOD_US}")),
        }
    }

    fn set_free(&self) -> io::Result<()> {
        self.freeing().into_iter().try_for_each(|(file, text)| write(&file, &text))
    }

    /// What to write where for no limit of ours.
    fn freeing(&self) -> Vec<(PathBuf, String)> {
        if !self.is_made {
            // The quota behind the period may not fit the period before: first none.
            let quota = self.directory.join("cpu.cfs_quota_us");
            let first = (self.version == Version::V1).then(|| (quota, "-1".to_owned()));
            return first.into_iter().chain(self.before.clone()).collect();
        }
        match self.version {
            Version::V1 => vec![(self.directory.join("cpu.cfs_quota_us"), "-1".into())],
            Version::V2 => vec![(self.directory.join("cpu.max"), format!("max {PERIOD_US}"))],
        }
    }

    fn undo(&self) -> Vec<Undo> {
        self.freeing().into_iter().map(|(file, text)| Undo::Write { file, text }).collect()
    }
}

/// Processors that the quotas of a group and of those above it leave, if there are any.
fn processors_of(directory: &Path) -> Option<f64> {
    directory.ancestors().filter_map(quota_of).reduce(f64::min)
}

fn quota_of(directory: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(directory.join(name));
    let text = read("cpu.max")
        .or_else(|_| Ok::<_, io::Error>(read("cpu.cfs_quota_us")? + " " + &read("cpu.cfs_period_us")?))
        .ok()?;
    // "max" and -1 are no quota.
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Quotas of both classes.
#[derive(Debug)]
pub struct Cgroups {
    root: Root,
    hierarchy: Hierarchy,
    groups: [Vec<Group>; 2],
    /// Where adopted processes were before.
    homes: Vec<Undo>,
}

impl Cgroups {
    /// Makes a group for each class that needs one: for a program to be started, or for processes by their ids.
    ///
    /// # Errors
    /// It cannot be done here; the reason.
    pub fn open(root: &Root, classes: &[TrafficClass]) -> Result<Self, String> {
        let hierarchy = Hierarchy::find(root)?;
        let mut this =
            Self { root: root.clone(), hierarchy, groups: [Vec::new(), Vec::new()], homes: Vec::new() };
        for &class in classes {
            let made = match this.hierarchy.make(root, &group_name(class)) {
                Ok(made) => made,
                Err(reason) => {
                    this.lift(root);
                    return Err(reason);
                }
            };
            let group = Group::made(made, this.hierarchy.version);
            let can_write = group.set_free();
            this.groups[index(class)].push(group);
            if let Err(error) = can_write {
                this.lift(root);
                return Err(error.to_string());
            }
        }
        Ok(this)
    }

    /// The group that was made for a class.
    fn made(&self, class: TrafficClass) -> Option<&Group> {
        self.groups[index(class)].iter().find(|group| group.is_made)
    }
}

impl Actuator for Cgroups {
    fn name(&self) -> String {
        match self.hierarchy.version {
            Version::V1 => "cgroup: processor time by cpu.cfs_quota_us (version 1)".into(),
            Version::V2 => "cgroup: processor time by cpu.max (version 2)".into(),
        }
    }

    fn period_ns(&self) -> u64 {
        2 * PERIOD_US * 1000
    }

    fn entrances(&self, class: TrafficClass) -> Vec<PathBuf> {
        self.made(class).map(Group::list).into_iter().collect()
    }

    fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()> {
        match target {
            // It came in by itself.
            Target::Group(_) => Ok(()),
            Target::Cgroup(directory) => {
                self.groups[index(class)].push(Group::existing(directory)?);
                Ok(())
            }
            Target::Process(pid, start) => {
                let list = self.made(class).map(Group::list).ok_or_else(|| io::Error::other("no group"))?;
                let home = self.hierarchy.group_of(&self.root, &pid.to_string()).join("cgroup.procs");
                if start_time(&self.root, *pid) != Some(*start) {
                    return Ok(());
                }
                self.homes.push(Undo::Join { list: home, process: (*pid, *start), by_thread: false });
                join(&list, &[*pid])
            }
        }
    }

    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()> {
        let root = &self.root;
        self.groups[index(class)].iter_mut().try_for_each(|group| group.apply(root, level))
    }

    fn undo(&self) -> Vec<Undo> {
        let groups = || self.groups.iter().flatten();
        let mut steps: Vec<Undo> = groups().flat_map(Group::undo).collect();
        steps.extend(self.homes.iter().cloned());
        for group in groups().filter(|group| group.is_made) {
            let parent = group.directory.parent().unwrap_or(&group.directory).join("cgroup.procs");
            steps.push(Undo::Move { from: group.list(), to: parent });
            steps.push(Undo::Remove(group.directory.clone()));
        }
        steps
    }
}
