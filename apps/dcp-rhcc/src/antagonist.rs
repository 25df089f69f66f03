//! Programs that make a host congested: hogs of processor and memory, in a group of their own where that can be had.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::actuator::cgroup::Hierarchy;
use crate::clock::within;
use crate::guardian::Guardian;
use crate::hog::Orders;
use crate::modes::{self, HOG, Program};
use crate::root::Root;
use crate::undo::{self, Undo};

/// Most hogs at a time.
pub const HOGS_MAX: usize = 256;
/// Memory of a hog, in MiB: more than a processor's caches hold of one program.
pub const MIB: usize = 64;
/// How long hogs may take to begin; they may be many on one core.
const BEGINNING: Duration = Duration::from_secs(30);

/// What to start.
#[derive(Clone, Debug)]
pub struct AntagonistConfig {
    /// Number of hogs, 1 … [`HOGS_MAX`].
    pub hogs: usize,
    /// Cores to run on: the first hog on the first, and round; anywhere if there are none.
    pub cores: Vec<usize>,
    /// Memory that each goes through, in MiB.
    pub mib: usize,
    /// The program that plays the hogs: it calls [`modes::play`].
    pub program: Program,
}

/// Hogs at work. Dropping it ends them and removes their group; so does the end of this process.
#[derive(Debug)]
pub struct Antagonist {
    hogs: Vec<Child>,
    counts: File,
    cgroup: Option<PathBuf>,
    why_no_cgroup: Option<String>,
    /// Removes the group when this process is killed.
    guardian: Option<Guardian>,
    undo: Vec<Undo>,
}

impl Antagonist {
    /// Starts hogs on cores, played by this program, which must call [`modes::play`] first thing.
    ///
    /// # Errors
    /// As [`start_with`](Self::start_with).
    pub fn start(hogs: usize, cores: &[usize]) -> io::Result<Self> {
        Self::start_with(AntagonistConfig { hogs, cores: cores.to_vec(), mib: MIB, program: Program::this() })
    }

    /// Starts hogs and returns when each works.
    ///
    /// # Errors
    /// There is no such core, no memory, or no process.
    pub fn start_with(config: AntagonistConfig) -> io::Result<Self> {
        if !(1..=HOGS_MAX).contains(&config.hogs) {
            return Err(io::Error::other(format!("{} hogs, not 1 to {HOGS_MAX}", config.hogs)));
        }
        let counts = File::from(memfd_create("hogs", MemfdFlags::CLOEXEC)?);
        counts.set_len(config.hogs as u64 * 8)?;
        let mut this = Self {
            hogs: Vec::new(),
            counts,
            cgroup: None,
            why_no_cgroup: None,
            guardian: None,
            undo: Vec::new(),
        };
        this.make_group(&config.program)?;
        let list = this.cgroup.as_ref().map(|group| group.join("cgroup.procs").into_os_string());
        for place in 0..config.hogs {
            let core = config.cores.get(place % config.cores.len().max(1)).copied();
            let orders = Orders { place: place as u64, mib: config.mib, core, list: list.clone() };
            let mut command = modes::command(&config.program, HOG);
            command.args(orders.words()).stdin(Stdio::null()).stdout(this.counts.try_clone()?);
            this.hogs.push(command.spawn()?);
        }
        this.await_beginning()?;
        Ok(this)
    }

    /// Without the right to make a group, the hogs stay in this process's.
    fn make_group(&mut self, program: &Program) -> io::Result<()> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let root = Root::machine();
        let name = format!("dcp-hogs-{}-{number}", std::process::id());
        match Hierarchy::find(&root).and_then(|hierarchy| hierarchy.make(&root, &name)) {
            Ok(group) => {
                self.undo = vec![Undo::Remove(group.clone())];
                self.cgroup = Some(group);
                let mut guardian = Guardian::start(program)?;
                guardian.tell(&self.undo)?;
                self.guardian = Some(guardian);
            }
            Err(reason) => self.why_no_cgroup = Some(reason),
        }
        Ok(())
    }

    fn await_beginning(&mut self) -> io::Result<()> {
        let mut ended = None;
        let begun = within(BEGINNING, || {
            ended = self.hogs.iter_mut().find_map(|hog| hog.try_wait().ok().flatten());
            ended.is_some() || self.counts().is_ok_and(|counts| counts.iter().all(|&count| count > 0))
        });
        match ended {
            Some(status) => Err(io::Error::other(format!("a hog ended at once: {status}"))),
            None if !begun => Err(io::Error::other("the hogs do not begin")),
            None => Ok(()),
        }
    }

    fn counts(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; self.hogs.len() * 8];
        self.counts.read_exact_at(&mut bytes, 0)?;
        let words = bytes.as_chunks::<8>().0;
        Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
    }

    /// Their group, if they have one.
    pub fn cgroup(&self) -> Option<&Path> {
        self.cgroup.as_deref()
    }

    /// Why they have none.
    pub fn why_no_cgroup(&self) -> Option<&str> {
        self.why_no_cgroup.as_deref()
    }

    /// Their process ids.
    pub fn pids(&self) -> Vec<u32> {
        self.hogs.iter().map(Child::id).collect()
    }

    /// Bytes of memory that all of them have gone through since they began: the difference of two readings by the time
    /// between them is their speed.
    pub fn work_done(&self) -> u64 {
        self.counts().map_or(0, |counts| counts.iter().sum())
    }
}

impl Drop for Antagonist {
    fn drop(&mut self) {
        for hog in &mut self.hogs {
            let _ = hog.kill();
            let _ = hog.wait();
        }
        undo::run(&Root::machine(), &self.undo);
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}
