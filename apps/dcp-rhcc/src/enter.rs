//! The way into a group: joins, and becomes the program. So no child of it is ever outside.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::modes::{self, ENTER, Program};
use crate::root::write;

/// Between lists and the program.
const END: &str = "--";
/// Exit code when it did not become the program, as of a shell.
const FAILED: u8 = 126;

/// A command that joins lists and becomes `words`.
pub fn command(program: &Program, lists: &[PathBuf], words: &[OsString]) -> Command {
    let mut command = modes::command(program, ENTER);
    command.args(lists).arg(END).args(words);
    command
}

pub(crate) fn play(words: impl Iterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.collect();
    let mut parts = words.splitn(2, |word| word == END);
    let lists = parts.next().unwrap_or_default();
    let [program, arguments @ ..] = parts.next().unwrap_or_default() else { return FAILED };
    for list in lists {
        if let Err(error) = write(Path::new(list), &std::process::id().to_string()) {
            eprintln!("dcp-rhcc: {error}");
            return FAILED;
        }
    }
    let error = Command::new(program).args(arguments).exec();
    eprintln!("dcp-rhcc: cannot start {}: {error}", program.to_string_lossy());
    FAILED
}
