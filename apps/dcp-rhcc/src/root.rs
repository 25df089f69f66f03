//! Where the machine's files lie: under `/`, or under a made-up tree in tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The top of a file tree with `dev`, `proc` and `sys` in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    top: PathBuf,
    register_distance: u64,
}

impl Root {
    /// The machine's own.
    pub fn machine() -> Self {
        Self { top: PathBuf::from("/"), register_distance: 1 }
    }

    /// A made-up one. Registers of processors lie 8 bytes apart in it, because a plain file has no registers.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { top: path.into(), register_distance: 8 }
    }

    /// Where register `number` lies in a file of registers.
    pub const fn register_offset(&self, number: u64) -> u64 {
        number * self.register_distance
    }

    /// A path in it: `inside` with or without a leading slash.
    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.top.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// The text of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, inside: impl AsRef<Path>) -> io::Result<String> {
        fs::read_to_string(self.path(inside))
    }
}

/// What to tell about a file that fails: its path and why.
pub(crate) fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Writes a file of the kernel's in one piece; the error names it. In a made-up tree it may be a new one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| about(path, &error))
}

/// Names in a directory, sorted; none where it cannot be read.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
