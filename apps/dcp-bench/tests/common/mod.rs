//! What the tests share: the program under test, what it says, and runs that end with their test.
#![expect(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// `dcp-bench` with words separated by spaces, about to be started.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dcp-bench"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

/// How it ended, and what it said.
pub(crate) fn run(line: &str) -> Output {
    output(&mut command(line))
}

/// The same of a command that has more to it than words.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ends the test unless the program ended with this code.
#[track_caller]
pub(crate) fn assert_code(output: &Output, code: i32, line: &str) {
    assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
}

/// The JSON on stdout of a program that must have ended with this code.
#[track_caller]
pub(crate) fn object(output: &Output, code: i32, line: &str) -> Value {
    assert_code(output, code, line);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The JSON of a run that must end with this code.
#[track_caller]
pub(crate) fn json(line: &str, code: i32) -> Value {
    object(&run(&format!("{line} --json -")), code, line)
}

/// The JSON of a run that must succeed, with all of its data verified.
#[track_caller]
pub(crate) fn results(line: &str) -> Value {
    let json = json(line, 0);
    let rows = json["results"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["verified"] == true), "{line}: {json}");
    json
}

/// Ends the test unless these words are refused as bad usage, with this in the sentence.
#[track_caller]
pub(crate) fn assert_refused(line: &str, sentence: &str) -> Output {
    let output = run(line);
    assert_code(&output, 2, line);
    let stderr = text(&output.stderr);
    assert!(stderr.contains(sentence), "{line}: {stderr}");
    output
}

/// Ends the test unless these words are refused as bad usage, with a message in JSON that begins so.
#[track_caller]
pub(crate) fn assert_refused_in_json(line: &str, sentence: &str) {
    let json = json(line, 2);
    let message = json["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(sentence), "{line}: {message}");
}

/// Path of a file that is not there yet, by a name of the test's own.
pub(crate) fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// The JSON in a file that a run wrote.
#[track_caller]
pub(crate) fn json_in(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("it is JSON")
}

/// A run that goes on, and ends with its test however that ends.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("the program starts")))
    }

    /// The process.
    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it was not waited for")
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().expect("it was not waited for").id()
    }

    /// Sends a signal by its name, by the shell's own `kill`: minimal systems have no such program.
    pub(crate) fn signal(&self, name: &str) {
        let line = format!("kill -s {name} {}", self.id());
        let status = Command::new("sh").args(["-c", &line]).status().expect("there is a shell");
        assert!(status.success(), "{line}");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Output {
        let child = self.0.take().expect("it was not waited for");
        child.wait_with_output().expect("it can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
