//! One run of a sweep, in a process of its own: DPDK starts once in a process, and one that fails takes no other with it.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::failure::{Failure, FailureKind};
use crate::tools::run::{Row, Run};

/// What a run of a sweep came to.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The value of the option.
    pub(super) value: String,
    /// Exit code of the run.
    pub(super) exit_code: u8,
    /// The run's JSON: its results, or its error.
    pub(super) json: Value,
    /// Its results, read.
    pub(super) run: Option<Run>,
}

impl Point {
    /// From what a run has written, and how it ended; `told` to end, it may not have come to write anything.
    fn new(value: &str, exit_code: Option<i32>, told: bool, stdout: &str, stderr: &str) -> Self {
        let json: Option<Value> = serde_json::from_str(stdout).ok();
        let exit_code = exit_code.and_then(|code| u8::try_from(code).ok());
        let run = json.as_ref().and_then(|json| Run::read(json).ok());
        let is_whole = run.is_some() || json.as_ref().is_some_and(|json| json["error"].is_object());
        match (json, exit_code) {
            (Some(json), Some(exit_code)) if is_whole => {
                Self { value: value.to_owned(), exit_code, json, run }
            }
            _ if told => Self::ended(value, &Failure::interrupted()),
            _ => Self::died(value, stderr),
        }
    }

    /// A run that said nothing.
    fn died(value: &str, stderr: &str) -> Self {
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
        let failure = Failure::transfer(format!("the run ended without results: {last}"));
        Self::ended(value, &failure.with_hint(crate::hint::TRANSPORT))
    }

    /// A run that has `failure` and nothing else to show.
    fn ended(value: &str, failure: &Failure) -> Self {
        let json = serde_json::from_str(&crate::json::error(failure)).unwrap_or(Value::Null);
        Self { value: value.to_owned(), exit_code: failure.exit_code(), json, run: None }
    }

    /// In a word.
    pub(super) fn result(&self) -> &'static str {
        if self.exit_code == 0 {
            "ok"
        } else if self.is_stopped() {
            "stopped"
        } else {
            "failed"
        }
    }

    /// What runs with one value are ordered by.
    fn figure(&self) -> f64 {
        let row = self.run.as_ref().and_then(|run| run.results.first());
        let latency = |row: &Row| row.lat_us.as_ref().and_then(|lat| lat.p50);
        row.and_then(|row| row.bw_average_gbps.or_else(|| latency(row))).unwrap_or(0.0)
    }

    /// Whether the user stopped it.
    pub(super) const fn is_stopped(&self) -> bool {
        self.exit_code == FailureKind::Interrupted.exit_code()
    }

    /// A word or two of why it failed: the completion's status, or else the kind.
    pub(super) fn status(&self) -> Option<&str> {
        let error = self.json.get("error")?;
        error["status"].as_str().or_else(|| error["kind"].as_str())
    }

    /// A sentence of why it failed.
    pub(super) fn message(&self) -> Option<&str> {
        self.json.get("error")?["message"].as_str()
    }
}

/// Of several runs with one value: the first that did not succeed, or the one whose rate, or latency, is the median.
pub(super) fn middle(points: &[Point]) -> Option<&Point> {
    let failed = points.iter().find(|point| point.exit_code != 0);
    failed.or_else(|| {
        let mut order: Vec<&Point> = points.iter().collect();
        order.sort_by(|a, b| a.figure().total_cmp(&b.figure()));
        order.get(order.len() / 2).copied()
    })
}

/// The run that is going on, for who ends the program in the middle of it.
#[derive(Debug, Default)]
pub(super) struct Current(Mutex<Option<Pid>>);

impl Current {
    fn set(&self, pid: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    }

    /// Ends it at once.
    pub(super) fn kill(&self) {
        if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Runs this program with `words`; lets it end in its own way when the user stops the sweep.
pub(super) fn run(
    words: &[OsString],
    value: &str,
    interrupted: &AtomicBool,
    current: &Current,
) -> Result<Point, Failure> {
    let cannot = |error: &std::io::Error| Failure::environment(format!("cannot start a run: {error}"));
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let mut child = Command::new(program)
        .args(words)
        .args(["--json", "-", "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C on a terminal goes to the sweep alone, which passes it on once.
        .process_group(0)
        .spawn()
        .map_err(|error| cannot(&error))?;
    let pid = Pid::from_child(&child);
    current.set(Some(pid));
    let stderr = read(child.stderr.take());
    let (stdout, told) = wait(&read(child.stdout.take()), interrupted, pid);
    let exit_code = reap(&mut child, current).map_err(|error| cannot(&error))?;
    let stderr = stderr.recv().unwrap_or_default();
    Ok(Point::new(value, exit_code, told, &stdout, &stderr))
}

/// What a pipe brings until its end, read by a thread so that it is never full.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a failure stands.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The run's output, when it has ended, and whether it was told to end.
fn wait(stdout: &Receiver<String>, interrupted: &AtomicBool, pid: Pid) -> (String, bool) {
    let mut told = false;
    loop {
        match stdout.recv_timeout(LOOK_EVERY) {
            Ok(text) => return (text, told),
            Err(RecvTimeoutError::Disconnected) => return (String::new(), told),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !told && interrupted.load(Ordering::Relaxed) {
            told = true;
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);

fn reap(child: &mut Child, current: &Current) -> std::io::Result<Option<i32>> {
    let status = child.wait();
    current.set(None);
    Ok(status?.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_run_keeps_its_status_and_sentence() {
        let stdout = r#"{"tool":"dcp-bench","error":{"kind":"transfer","status":"RETRY_EXC_ERR (12)","message":"it is lost","hint":null}}"#;
        let point = Point::new("5%", Some(1), false, stdout, "");
        assert_eq!((point.result(), point.status()), ("failed", Some("RETRY_EXC_ERR (12)")));
        assert_eq!(point.message(), Some("it is lost"));
        assert!(point.run.is_none());
    }

    #[test]
    fn run_that_died_is_a_failed_point_with_its_last_words() {
        for (code, stdout) in [(None, ""), (Some(101), "{"), (Some(0), ""), (Some(0), "{}"), (Some(0), "[]")]
        {
            let point =
                Point::new("5%", code, false, stdout, "thread 'main' panicked:\n  everything broke\n\n");
            assert_eq!((point.result(), point.exit_code, point.status()), ("failed", 1, Some("transfer")));
            assert!(point.message().is_some_and(|it| it.ends_with(": everything broke")), "{stdout}");
        }
    }

    #[test]
    fn median_run_stands_unless_one_failed() {
        let point = |gbps: f64| {
            let json = format!(
                r#"{{"op":"write","mode":"bw","results":[{{"size_bytes":1,"iterations":1,"seconds":1.0,"bw_average_gbps":{gbps}}}]}}"#
            );
            Point::new("1", Some(0), false, &json, "")
        };
        let points = [point(9.0), point(1.0), point(8.0)];
        assert!((middle(&points).unwrap().figure() - 8.0).abs() < 1e-9);
        let failed = Point::new("1", Some(101), false, "", "");
        assert_eq!(middle(&[point(9.0), failed]).map(Point::result), Some("failed"));
        assert!(middle(&[]).is_none());
    }

    #[test]
    fn stopped_run_is_told_from_a_failed_one() {
        let stdout =
            r#"{"tool":"dcp-bench","error":{"kind":"interrupted","status":null,"message":"m","hint":null}}"#;
        let point = Point::new("1", Some(130), true, stdout, "");
        assert!(point.is_stopped() && point.result() == "stopped");
        let early = Point::new("1", None, true, "", "");
        assert_eq!((early.result(), early.status()), ("stopped", Some("interrupted")));
    }
}
