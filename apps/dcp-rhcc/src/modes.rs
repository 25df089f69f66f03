//! Parts that this program plays in processes of its own: the guardian, the way into a group, the hog.
//!
//! A program that uses [`Guardian`](crate::guardian::Guardian) or [`Antagonist`](crate::antagonist::Antagonist) starts
//! itself again for them, so it calls [`play`] first thing in `main`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::{enter, guardian, hog};

/// First word of each part.
pub(crate) const GUARD: &str = "rhcc-guard";
pub(crate) const ENTER: &str = "rhcc-enter";
pub(crate) const HOG: &str = "rhcc-hog";

/// Plays a part if the words, the program's name first, ask for one; answers its exit code.
pub fn play(words: impl IntoIterator<Item = OsString>) -> Option<u8> {
    let mut words = words.into_iter().skip(1);
    match words.next()?.to_str()? {
        GUARD => Some(guardian::play()),
        ENTER => Some(enter::play(words)),
        HOG => Some(hog::play(words)),
        _ => None,
    }
}

/// A command that starts a program in a part.
pub(crate) fn command(program: &Program, part: &str) -> Command {
    let mut command = Command::new(&program.0);
    command.arg(part);
    command
}

/// A program that calls [`play`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(PathBuf);

impl Program {
    /// This one; also when its file has been replaced since it began.
    pub fn this() -> Self {
        Self("/proc/self/exe".into())
    }

    /// Another one.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}
