//! `device-probe`, run and watched.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use dcp_tests::namespace::Namespace;

/// Killed when dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    child: Child,
    lines: BufReader<ChildStdout>,
    said: Vec<String>,
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_device-probe");

impl Probe {
    /// Words separated by spaces.
    pub(crate) fn start(namespace: Option<&Namespace>, words: &str) -> Self {
        let mut command = namespace.map_or_else(|| Command::new(PROGRAM), |it| it.command(PROGRAM));
        command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the probe starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines, said: Vec::new() }
    }

    /// Reads until a line that begins with `word`, and returns it.
    pub(crate) fn wait_for(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            let len = self.lines.read_line(&mut line).expect("the probe prints text");
            if len == 0 {
                let (status, errors) = self.end();
                panic!("no {word:?}: {status}, {errors}, after {:?}", self.said);
            }
            self.said.push(line.trim().to_owned());
            if line.starts_with(word) {
                return line.trim().to_owned();
            }
        }
    }

    /// Whether its device opens.
    pub(crate) fn opens(&mut self) -> bool {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the probe prints text");
        line.starts_with("ready")
    }

    /// Its process. Not of one in a namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How it ended, and what it wrote to standard error.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().expect("piped");
        stderr.read_to_string(&mut errors).expect("it prints text");
        (self.child.wait().expect("it can be waited for"), errors)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
