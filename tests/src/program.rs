//! A run of `dcp-bench`, from its command line to its end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::build;
use crate::machine::eventually;
use crate::results::Results;

/// `dcp-bench write` about to be started.
#[derive(Debug)]
pub struct Bench {
    command: Command,
    options: String,
}

impl Bench {
    /// `dcp-bench write` with `options`, separated by spaces.
    pub fn write(options: &str) -> Self {
        Self::under(&[], options)
    }

    /// The same, started by another command that takes it as its last arguments.
    pub fn under(wrapper: &[&str], options: &str) -> Self {
        Self::at(build::dcp_bench(), wrapper, options)
    }

    /// The same with the program at `path`.
    pub fn at(path: &Path, wrapper: &[&str], options: &str) -> Self {
        Self::make(path, wrapper, "write", options)
    }

    /// `dcp-bench` with any operation, started by another command that takes it as its last arguments.
    pub fn op(wrapper: &[&str], op: &str, options: &str) -> Self {
        Self::make(build::dcp_bench(), wrapper, op, options)
    }

    fn make(path: &Path, wrapper: &[&str], op: &str, options: &str) -> Self {
        let mut command = match wrapper {
            [] => Command::new(path),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(path);
                command
            }
        };
        command.arg(op).args(options.split_whitespace()).stdin(Stdio::null());
        Self { command, options: format!("{op} {options}") }
    }

    /// The command, to change its environment.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not start.
    pub fn end(mut self) -> End {
        let child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the program starts");
        let pid = child.id();
        let output = child.wait_with_output().expect("the program can be waited for");
        End { pid, options: self.options, output }
    }

    /// Starts it and returns when it has printed a line that contains `word` on standard error, where the table goes
    /// with `--json -`.
    ///
    /// # Panics
    /// When it does not get that far.
    pub fn start_until(mut self, word: &str) -> Running {
        self.command.args(["--json", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        while !said.contains(word) {
            let count = stderr.read_line(&mut said).expect("it prints text");
            assert_ne!(count, 0, "{}: it ended before its run: {said}", self.options);
        }
        Running { pid: child.id(), child: Some(child), stderr: Some(stderr), options: self.options }
    }

    /// Starts it and returns when its signal handlers are in place and its run is about to begin.
    ///
    /// # Panics
    /// When it does not get that far.
    pub fn start(self) -> Running {
        self.start_until("#iterations")
    }
}

/// A run that has begun.
#[derive(Debug)]
pub struct Running {
    /// `None` once waited for.
    child: Option<Child>,
    pid: u32,
    /// `None` once waited for.
    stderr: Option<BufReader<ChildStderr>>,
    options: String,
}

impl Running {
    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal by its name: `INT`, `TERM`, `KILL`.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.pid());
        let status = Command::new("sh").args(["-c", &command]).status().expect("there is a shell");
        assert!(status.success(), "{command}");
    }

    /// Waits until its table, with `--interval`, has a row of messages that are done: for certain inside its run.
    ///
    /// # Panics
    /// When it ends before.
    pub fn wait_for_messages(&mut self) {
        let mut said = String::new();
        while !said.lines().any(is_row_of_messages) {
            let stderr = self.stderr.as_mut().expect("it was not waited for");
            let count = stderr.read_line(&mut said).expect("it prints text");
            assert_ne!(count, 0, "{}: it ended without a row: {said}", self.options);
        }
    }

    /// Waits until it has computed for a while: likely inside its run.
    ///
    /// # Panics
    /// When it computes nothing.
    pub fn wait_for_cpu(&self) {
        self.wait_for_ticks(RUNNING_TICKS);
    }

    /// Waits until it has computed for so many ticks of 10 ms.
    ///
    /// # Panics
    /// When it computes nothing.
    pub fn wait_for_ticks(&self, least: u64) {
        let begun = || cpu_ticks(self.pid()).is_none_or(|ticks| ticks >= least);
        assert!(eventually(HANG_NS, begun), "{}: it stands still", self.options);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn end(mut self) -> End {
        let pid = self.pid();
        let options = std::mem::take(&mut self.options);
        let mut child = self.child.take().expect("only this takes it");
        // Both outputs are read at once: a program whose pipe is full does not end.
        let stderr = self.stderr.take().expect("only this takes it");
        let mut said = stderr.buffer().to_vec();
        child.stderr = Some(stderr.into_inner());
        let mut output = child.wait_with_output().expect("the program can be waited for");
        said.append(&mut output.stderr);
        output.stderr = said;
        End { pid, options, output }
    }

    /// The same, but ends it by force when it has not ended in ten times what a user has to wait at most.
    ///
    /// # Panics
    /// When it had to.
    #[track_caller]
    pub fn end_soon(self) -> End {
        let (pid, options) = (self.pid(), self.options.clone());
        let (tell, told) = mpsc::channel();
        let waiter = thread::spawn(move || tell.send(self.end()));
        let end = told.recv_timeout(END_SOON);
        if end.is_err() {
            // Nobody has waited for it: the id is still its own.
            let _ = Command::new("sh").args(["-c", &format!("kill -KILL {pid}")]).status();
        }
        let _ = waiter.join();
        end.unwrap_or_else(|_| panic!("{options}: still there after {END_SOON:?}"))
    }
}

impl Drop for Running {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// ` 0.00-0.20s 25800 ...`, with any count but 0.
fn is_row_of_messages(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|when| {
        when.contains('-') && when.ends_with('s') && when.starts_with(|c: char| c.is_ascii_digit())
    }) && words.next().and_then(|count| count.parse().ok()).is_some_and(|count: u64| count > 0)
}

/// Twice the ticks of 10 ms that a start takes.
const RUNNING_TICKS: u64 = 60;
const HANG_NS: u64 = 60_000_000_000;
const END_SOON: Duration = Duration::from_secs(20);

/// Processor time that a process has taken, in ticks of 10 ms; `None` when it has ended.
pub fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name in parentheses: the state is field 3, user time 14, system time 15.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    if fields.first() == Some(&"Z") {
        return None;
    }
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// A run that has ended.
#[derive(Debug)]
pub struct End {
    /// Process id that it had.
    pub pid: u32,
    /// Its options.
    pub options: String,
    /// Exit status and what it printed.
    pub output: Output,
}

impl End {
    /// Exit code; `None` when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// What it printed on standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// What it printed on standard output, as JSON.
    ///
    /// # Panics
    /// When that is not one JSON object.
    #[track_caller]
    pub fn json(&self) -> Results {
        let text = String::from_utf8_lossy(&self.output.stdout);
        match serde_json::from_str(&text) {
            Ok(value) => Results(value),
            Err(error) => panic!("{}: {error}: {text}{}", self.options, self.stderr()),
        }
    }

    /// Panics unless it ended with this code, and without a panic of its own.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        let stderr = self.stderr();
        assert_eq!(self.code(), Some(code), "{}: {}\n{stderr}", self.options, self.output.status);
        assert!(!stderr.contains("panicked"), "{}: {stderr}", self.options);
    }

    /// The files that a DPDK process with this id would have left behind.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let mark = format!("dcp_{}_", self.pid);
        let places = ["/tmp", "/tmp/dpdk", "/var/tmp", "/dev/shm", "/run", "/run/dpdk", "/dev/hugepages"];
        let entries = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
        let is_its = |path: &PathBuf| path.to_string_lossy().contains(&mark);
        entries.map(|entry| entry.path()).filter(is_its).collect()
    }

    /// Panics when it left files behind.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "{}", self.options);
    }
}

/// The results of a run that must succeed, with its data verified and no file left behind.
///
/// # Panics
/// When it does not.
#[track_caller]
pub fn verified(options: &str) -> Results {
    let end = Bench::write(&format!("{options} --json -")).end();
    end.assert_code(0);
    end.assert_clean();
    let results = end.json();
    assert_eq!(results.verified(), Some(true), "{options}: {}", results.0);
    results
}
