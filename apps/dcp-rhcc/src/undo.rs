//! How a limit is lifted, as data: so that another process can do it when this one no longer can.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::clock::within;
use crate::msr::Msr;
use crate::root::{Root, about, write};
use crate::target::{Target, ids, start_time, threads};

/// One step.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Undo {
    /// Write a file.
    Write {
        /// Which.
        file: PathBuf,
        /// What it held before.
        text: String,
    },
    /// Write a register.
    Register {
        /// The processor's file.
        file: PathBuf,
        /// Its number.
        register: u64,
        /// What it held before.
        value: u64,
    },
    /// Let a process with all its threads go back where it was, if it still lives.
    Join {
        /// The list to join.
        list: PathBuf,
        /// The process and its start.
        process: (u32, u64),
        /// Thread by thread: lists of resctrl take no processes.
        by_thread: bool,
    },
    /// Let everything that is in one list go to another.
    Move {
        /// From here.
        from: PathBuf,
        /// To there.
        to: PathBuf,
    },
    /// Let stopped processes go on.
    Continue(Target),
    /// Remove a group that was made.
    Remove(PathBuf),
}

impl Undo {
    fn run(&self, root: &Root) -> io::Result<()> {
        match self {
            Self::Write { file, text } => match write(file, text) {
                // A group that is gone limits nobody.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            },
            Self::Register { file, register, value } => Msr::at(root, file)?.write(*register, *value),
            Self::Join { list, process: (pid, start), by_thread } => {
                if start_time(root, *pid) != Some(*start) {
                    return Ok(());
                }
                let ids = if *by_thread { threads(root, *pid) } else { vec![*pid] };
                join(list, &ids)
            }
            Self::Move { from, to } => join(to, &ids(from)),
            Self::Continue(target) => target.signal(root, Signal::CONT).map_err(io::Error::from),
            Self::Remove(directory) => remove(directory),
        }
    }
}

/// Puts processes or threads on a list; those that have ended meanwhile are no error.
pub(crate) fn join(list: &Path, ids: &[u32]) -> io::Result<()> {
    for id in ids {
        match std::fs::write(list, id.to_string()) {
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
            result => result.map_err(|error| about(list, &error))?,
        }
    }
    Ok(())
}

/// How long processes that were killed may keep their group.
const LEAVING: Duration = Duration::from_secs(2);

fn remove(directory: &Path) -> io::Result<()> {
    let mut last = Ok(());
    within(LEAVING, || {
        last = match std::fs::remove_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        !last.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
    });
    last.map_err(|error| about(directory, &error))
}

/// Does every step, whatever becomes of the others; returns what went wrong.
pub fn run(root: &Root, steps: &[Undo]) -> Vec<String> {
    steps.iter().filter_map(|step| step.run(root).err()).map(|error| error.to_string()).collect()
}
