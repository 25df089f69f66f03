//! The program's words: what it says, writes and answers.
#![forbid(unsafe_code)]

mod common;

use std::process::{Command, Output};

use common::{FakeWorker, Scratch, program, rhcc};
use serde_json::Value;

fn output(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn wrong_usage_and_missing_things_have_their_exit_codes_and_sentences() {
    let run = |words: &str| output(Command::new(program()).args(words.split_whitespace()));
    for (words, code, expected) in [
        ("--period 1", 2, "nothing to control"),
        ("--pid 1", 2, "cannot be held back"),
        ("--pid 4 -- true", 2, "not both"),
        ("--signal magic -- true", 2, "magic"),
        ("--pid 4294967294", 3, "there is no process"),
        ("--cgroup /tmp", 3, "is not the directory of a cgroup"),
        ("-- no-such-program-anywhere", 3, "there is no program"),
        ("--signal software --telemetry /nonexistent -- true", 3, "no DCP program answers"),
        ("hog --cores 8000", 3, "cannot run hogs"),
    ] {
        let (is, stderr) = run(words);
        assert_eq!(is, Some(code), "{words}: {stderr}");
        assert!(stderr.contains(expected) && !stderr.contains("panicked"), "{words}: {stderr}");
    }
}

#[test]
fn it_says_what_it_found_and_why_not_the_better_ones() {
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let mut command = Command::new(program());
    command.arg("--telemetry").arg(&worker.socket).args(["--", "true"]);
    let (code, stderr) = output(&mut command);
    assert_eq!(code, Some(0), "{stderr}");
    let lines_with = |start: &str| stderr.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((lines_with("dcp-rhcc: signal "), lines_with("dcp-rhcc: actuator ")), (1, 1), "{stderr}");
    if stderr.contains("signal software") {
        assert_eq!(
            (lines_with("dcp-rhcc: no signal msr: "), lines_with("dcp-rhcc: no signal resctrl: ")),
            (1, 1)
        );
    }
    let (_, quiet) = output(command_with(&worker, "--quiet --actuator sigstop").args(["--", "true"]));
    assert_eq!(quiet, "");
}

fn command_with(worker: &FakeWorker, options: &str) -> Command {
    rhcc(worker, options)
}

#[test]
fn json_has_the_levels_and_an_error_where_there_is_one() {
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let file = scratch.path().join("out.json");
    let mut command = rhcc(&worker, "--actuator sigstop --period 1 --stats 0.1 --json");
    let (code, stderr) = output(command.arg(&file).args(["--", "sleep", "1"]));
    assert_eq!(code, Some(0), "{stderr}");
    let text = std::fs::read_to_string(&file).expect("it was written");
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let last = objects.last().expect("the final one");
    assert_eq!((&last["final"], &last["level"]["local"]), (&Value::Bool(true), &Value::from(5)), "{text}");
    assert_eq!(last["level"]["cross_numa"], Value::Null);
    let periods = last["periods_at_level"]["local"].as_array().expect("a list");
    assert_eq!(
        periods.iter().filter_map(Value::as_u64).sum::<u64>(),
        last["periods"].as_u64().expect("a number")
    );
    assert!(objects.len() > 1 && objects[0]["final"] == Value::Bool(false), "{text}");
    let mut command = rhcc(&worker, "--actuator sigstop --json");
    let (code, _) = output(command.arg(&file).args(["--", "false"]));
    let text = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(code, Some(1));
    assert!(text.lines().last().is_some_and(|line| line.contains(r#""kind":"program""#)), "{text}");
}

#[test]
fn standard_output_is_the_programs_unless_the_json_is_there() {
    let scratch = Scratch::new();
    let worker = FakeWorker::start(&scratch);
    let run = |json: &[&str]| {
        let mut command = rhcc(&worker, "--actuator sigstop");
        command.args(json).args(["--", "echo", "word"]).stdout(std::process::Stdio::piped());
        let output = command.output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&[]), "word\n");
    assert!(serde_json::from_str::<Value>(&run(&["--json", "-"])).is_ok());
}
