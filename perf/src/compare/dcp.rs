//! DCP, by dcp-bench and the JSON that it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dpdk_ffi::available_cores;
use serde::Deserialize;

use super::{Contender, Name, Point, Sample, core};

/// dcp-bench beside this program.
pub(crate) fn beside_this_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or_else(|| Path::new(".")).join("dcp-bench")
}

/// The program.
pub(crate) struct DcpBench(PathBuf);

#[derive(Deserialize)]
struct Printed {
    results: Vec<Row>,
}

/// What it measured.
#[derive(Clone, Copy, Deserialize, Debug)]
pub(crate) struct Row {
    pub(crate) bw_average_gbps: f64,
    pub(crate) cpu: Cpu,
    verified: Option<bool>,
}

/// What that took.
#[derive(Clone, Copy, Deserialize, Debug)]
pub(crate) struct Cpu {
    pub(crate) cores: u32,
    pub(crate) ns_per_packet: Option<f64>,
}

/// Why a run has no results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RunError {
    /// Whether dcp-bench does not take these options: it did not run.
    pub(crate) is_refused: bool,
    /// What it said.
    pub(crate) sentence: String,
}

impl From<String> for RunError {
    fn from(sentence: String) -> Self {
        Self { is_refused: false, sentence }
    }
}

impl DcpBench {
    /// The program at `path`.
    ///
    /// # Errors
    /// A sentence: it is not there.
    pub(crate) fn new(path: PathBuf) -> Result<Self, String> {
        if path.is_file() {
            return Ok(Self(path));
        }
        Err(format!("there is no {}: build it with `cargo build --release -p dcp-bench`", path.display()))
    }

    /// Runs it with options separated by spaces; the only row of its results.
    ///
    /// # Errors
    /// A sentence: it failed, or the data was wrong.
    pub(crate) fn run(&self, options: &str) -> Result<Row, RunError> {
        let output = Command::new(&self.0)
            .args(options.split_whitespace())
            .args(["--json", "-", "--quiet"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said =
                said.lines().find(|line| line.starts_with("error")).unwrap_or("it said nothing").to_owned();
            let sentence = format!("`dcp-bench {options}` failed: {said}");
            return Err(RunError { is_refused: output.status.code() == Some(2), sentence });
        }
        let printed: Printed = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`dcp-bench {options}` printed no results: {error}"))?;
        match printed.results[..] {
            [row] if row.verified != Some(false) => Ok(row),
            _ => Err(format!("`dcp-bench {options}` printed no single row of verified data").into()),
        }
    }
}

/// DCP in one of its set-ups.
pub(super) struct Dcp {
    name: Name,
    program: DcpBench,
    options: String,
}

impl Dcp {
    pub(super) fn new(name: Name, path: PathBuf) -> Result<Self, String> {
        let options = match name {
            Name::DcpSplit if available_cores().len() < 2 => return Err("it needs two cores".to_owned()),
            Name::DcpSplit => "--threads split".to_owned(),
            Name::DcpDirect => format!("--cores {} --topology direct", core()),
            _ => format!("--cores {}", core()),
        };
        Ok(Self { name, program: DcpBench::new(path)?, options })
    }
}

impl Contender for Dcp {
    fn name(&self) -> Name {
        self.name
    }

    fn measure(&mut self, Point { mtu, size }: Point, seconds: f64) -> Result<Option<Sample>, String> {
        // What is under way at the end is waited for: no more than a little of a large message.
        let depth = if size >= 16 << 20 { 4 } else { 128 };
        let options = &self.options;
        let row = self
            .program
            .run(&format!("write -s {size} -m {mtu} -t {depth} -D {seconds} {options}"))
            .map_err(|error| error.sentence)?;
        Ok(Some(Sample { gbps: row.bw_average_gbps, cores: row.cpu.cores.into() }))
    }
}
