//! The committed counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Instructions of each case per packet or timer, and what compiled them.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Baselines {
    /// The compiler: another one makes other instructions of the same source.
    pub rustc: String,
    /// By name of the case, in hundredths of an instruction.
    pub hundredths: BTreeMap<String, u64>,
}

impl Baselines {
    /// Where they are kept.
    pub fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baselines.json")
    }

    /// The committed ones.
    ///
    /// # Errors
    /// A sentence: the file is missing or is not one of ours.
    pub fn read() -> Result<Self, String> {
        let path = Self::path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Replaces the committed ones.
    ///
    /// # Errors
    /// A sentence: the file cannot be written.
    pub fn write(&self) -> Result<(), String> {
        let path = Self::path();
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The compiler in use, as its `--version` names it.
///
/// # Errors
/// A sentence: it does not run.
pub(super) fn rustc() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.map_err(|error| format!("rustc --version: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
