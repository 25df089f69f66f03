//! What holds programs back.

pub mod cgroup;
pub mod duty;
pub mod mba;
pub mod resctrl;

use std::io;
use std::path::PathBuf;

use dcp_core::{Level, TrafficClass};

use crate::root::Root;
use crate::target::Target;
use crate::undo::{self, Undo};

/// Something that can hold a class of programs to a level.
pub trait Actuator: Send {
    /// What it is, in a few words.
    fn name(&self) -> String;

    /// Shortest period that it can follow, in nanoseconds.
    fn period_ns(&self) -> u64;

    /// Lists that a program of a class writes its id to before it begins, so that it and all its children belong.
    fn entrances(&self, class: TrafficClass) -> Vec<PathBuf>;

    /// Takes programs that run into a class.
    ///
    /// # Errors
    /// They cannot be taken.
    fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()>;

    /// Holds a class to a level.
    ///
    /// # Errors
    /// The kernel refused.
    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()>;

    /// What has to be done now to lift every limit and to remove what was made, in this order.
    fn undo(&self) -> Vec<Undo>;

    /// Lifts every limit, for good; returns what went wrong.
    fn lift(&mut self, root: &Root) -> Vec<String> {
        undo::run(root, &self.undo())
    }
}

/// Name of the group of a class that this process makes.
pub(crate) fn group_name(class: TrafficClass) -> String {
    format!("dcp-rhcc-{}-{}", std::process::id(), class_name(class))
}

/// `local` or `cross-numa`.
pub const fn class_name(class: TrafficClass) -> &'static str {
    match class {
        TrafficClass::CrossNuma => "cross-numa",
        TrafficClass::Local => "local",
    }
}

/// Place of a class in an array of two.
pub(crate) const fn index(class: TrafficClass) -> usize {
    match class {
        TrafficClass::CrossNuma => 0,
        TrafficClass::Local => 1,
    }
}
