//! One hog: a process that keeps a core and the memory behind it busy, and counts what it gets done.

use std::ffi::OsString;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::process::getppid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::root::write;

/// Bytes between two counts: some ten microseconds of work.
pub const UNIT_BYTES: u64 = 256 << 10;
/// Words of a unit.
const UNIT_WORDS: usize = (UNIT_BYTES / 8) as usize;

/// What a hog is told, as words in this order: place of its count, memory in MiB, core or `-`, list to join or `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Orders {
    pub(crate) place: u64,
    pub(crate) mib: usize,
    pub(crate) core: Option<usize>,
    pub(crate) list: Option<OsString>,
}

impl Orders {
    pub(crate) fn words(&self) -> [OsString; 4] {
        let none = || OsString::from("-");
        [
            self.place.to_string().into(),
            self.mib.to_string().into(),
            self.core.map_or_else(none, |core| core.to_string().into()),
            self.list.clone().unwrap_or_else(none),
        ]
    }

    fn parse(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Vec<OsString> = words.collect();
        let [place, mib, core, list] = words.as_slice() else { return None };
        let core = core.to_str()?;
        Some(Self {
            place: place.to_str()?.parse().ok()?,
            mib: mib.to_str()?.parse().ok()?,
            core: if core == "-" { None } else { Some(core.parse().ok()?) },
            list: (list != "-").then(|| list.clone()),
        })
    }
}

pub(crate) fn play(words: impl Iterator<Item = OsString>) -> u8 {
    let Some(orders) = Orders::parse(words) else { return 2 };
    match run(&orders) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("hog: {error}");
            3
        }
    }
}

/// Works until its parent is gone. Standard output is a file of counts.
fn run(orders: &Orders) -> io::Result<()> {
    let parent = getppid();
    let counts = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if let Some(core) = orders.core {
        let mut cores = CpuSet::new();
        if core >= CpuSet::MAX_CPU {
            return Err(io::Error::other(format!("there is no core {core}")));
        }
        cores.set(core);
        sched_setaffinity(None, &cores)
            .map_err(|error| io::Error::other(format!("cannot run on core {core}: {error}")))?;
    }
    if let Some(list) = &orders.list {
        write(Path::new(list), &std::process::id().to_string())?;
    }
    // At least one unit.
    let mut memory = vec![1u64; ((orders.mib << 20) / 8).max(UNIT_WORDS)];
    let mut done: u64 = 0;
    loop {
        for unit in memory.chunks_exact_mut(UNIT_WORDS) {
            if getppid() != parent {
                return Ok(());
            }
            for word in &mut *unit {
                *word = word.wrapping_add(done | 1);
            }
            black_box(&*unit);
            done += UNIT_BYTES;
            counts.write_all_at(&done.to_le_bytes(), orders.place * 8)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_command_line() {
        for orders in [
            Orders { place: 3, mib: 64, core: Some(1), list: Some("/a b/cgroup.procs".into()) },
            Orders { place: 0, mib: 1, core: None, list: None },
        ] {
            assert_eq!(Orders::parse(orders.words().into_iter()), Some(orders));
        }
        assert_eq!(Orders::parse(["1".into()].into_iter()), None);
    }
}
