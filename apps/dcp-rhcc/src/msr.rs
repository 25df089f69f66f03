//! Model-specific registers, by `/dev/cpu/N/msr`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::root::{Root, about};

/// The registers of one processor. A register is 8 bytes at the offset of its number, and no part of the next one.
#[derive(Debug)]
pub struct Msr {
    path: PathBuf,
    file: File,
    root: Root,
}

impl Msr {
    /// Opens those of a processor, to read and write.
    ///
    /// # Errors
    /// There is no such file, or this user may not open it.
    pub fn open(root: &Root, cpu: usize) -> io::Result<Self> {
        Self::at(root, &root.path(format!("dev/cpu/{cpu}/msr")))
    }

    /// Opens a file of registers.
    ///
    /// # Errors
    /// There is no such file, or this user may not open it.
    pub fn at(root: &Root, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|it| about(path, &it))?;
        Ok(Self { path: path.to_owned(), file, root: root.clone() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a register.
    ///
    /// # Errors
    /// The processor does not have it, or it cannot be read.
    pub fn read(&self, register: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let offset = self.root.register_offset(register);
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| self.about(register, &error))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes a register.
    ///
    /// # Errors
    /// The processor does not have it, or the kernel refuses.
    pub fn write(&self, register: u64, value: u64) -> io::Result<()> {
        let offset = self.root.register_offset(register);
        self.file.write_all_at(&value.to_le_bytes(), offset).map_err(|error| self.about(register, &error))
    }

    fn about(&self, register: u64, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}, register {register:#x}: {error}", self.path.display()))
    }
}
