//! What is to be done, checked: programs that exist, each in its class.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dcp_core::TrafficClass;

use crate::choose::Conditions;
use crate::failure::Failure;
use crate::machine::nodes;
use crate::root::Root;
use crate::settings::ControlArgs;
use crate::target::Target;

/// A control that can begin.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) args: ControlArgs,
    pub(crate) conditions: Conditions,
    /// Programs that run already.
    pub(crate) targets: Vec<(TrafficClass, Target)>,
    /// The program to start, its path resolved.
    pub(crate) command: Option<Vec<OsString>>,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    pub(crate) fn new(mut args: ControlArgs) -> Result<Self, Failure> {
        let root = Root::machine();
        let command = std::mem::take(&mut args.command);
        let runs_already = !args.pid.is_empty() || !args.cgroup.is_empty();
        match (command.is_empty(), runs_already) {
            (true, false) => {
                return Err(Failure::usage("nothing to control: give -- COMMAND, --pid or --cgroup"));
            }
            (false, true) => return Err(Failure::usage("give -- COMMAND or --pid and --cgroup, not both")),
            _ => {}
        }
        let mut notes = Vec::new();
        let mut targets = Vec::new();
        for &pid in &args.pid {
            targets.push((TrafficClass::Local, process(&root, pid)?));
        }
        for directory in &args.cgroup {
            targets.push((TrafficClass::Local, cgroup(directory)?));
        }
        let crossing = if nodes(&root) > 1 { TrafficClass::CrossNuma } else { TrafficClass::Local };
        if crossing == TrafficClass::Local && !args.cross_numa.is_empty() {
            notes
                .push("this machine has one NUMA node: what --cross-numa names is held back as local".into());
        }
        for text in &args.cross_numa {
            let target = match text.parse() {
                Ok(pid) => process(&root, pid)?,
                Err(_) => cgroup(Path::new(text))?,
            };
            targets.push((crossing, target));
        }
        let command = if command.is_empty() { None } else { Some(resolve(command)?) };
        let conditions = Conditions {
            root,
            memory_gbs: args.memory_gbs,
            telemetry: args.telemetry.clone(),
            classes: classes(command.is_some(), &targets, |_| true),
            ungrouped: classes(command.is_some(), &targets, |it| !matches!(it, Target::Cgroup(_))),
        };
        Ok(Self { args, conditions, targets, command, notes })
    }
}

fn classes(
    has_command: bool,
    targets: &[(TrafficClass, Target)],
    counts: fn(&Target) -> bool,
) -> Vec<TrafficClass> {
    let has = |class| targets.iter().any(|(it, target)| *it == class && counts(target));
    let wanted = |class| (class == TrafficClass::Local && has_command) || has(class);
    [TrafficClass::CrossNuma, TrafficClass::Local].into_iter().filter(|&class| wanted(class)).collect()
}

fn process(root: &Root, pid: u32) -> Result<Target, Failure> {
    if pid <= 1 || pid == std::process::id() {
        return Err(Failure::usage(format!("process {pid} cannot be held back")));
    }
    Target::process(root, pid).ok_or_else(|| Failure::environment(format!("there is no process {pid}")))
}

fn cgroup(directory: &Path) -> Result<Target, Failure> {
    let resolved = fs::canonicalize(directory).ok().filter(|it| it.join("cgroup.procs").exists());
    resolved.map(Target::Cgroup).ok_or_else(|| {
        let what = "is not the directory of a cgroup, such as /sys/fs/cgroup/NAME, nor a process id";
        Failure::environment(format!("{} {what}", directory.display()))
    })
}

/// The program by its path, so that it is known to exist before anything is set up.
fn resolve(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let name = PathBuf::from(&words[0]);
    let found = if name.components().count() > 1 {
        Some(name.clone())
    } else {
        let places = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&places).map(|place| place.join(&name)).find(|path| is_program(path))
    };
    let found = found.filter(|path| is_program(path));
    let found =
        found.ok_or_else(|| Failure::environment(format!("there is no program {}", name.display())))?;
    words[0] = found.into_os_string();
    Ok(words)
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
