//! COMMAND: started inside its group, handed signals, waited for.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::clock::within;
use crate::enter;
use crate::failure::Failure;
use crate::modes::Program;
use crate::root::Root;
use crate::target::Target;

/// How long COMMAND may take to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The running program.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Starts it, with the lists that it joins first; its output to stderr where stdout is not for it.
    pub(crate) fn start(words: &[OsString], lists: &[PathBuf], to_stderr: bool) -> io::Result<Self> {
        let mut command = enter::command(&Program::this(), lists, words);
        command.process_group(0);
        // A background process group may not read from the terminal.
        if io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        if to_stderr {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let name = words.first().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { child: command.spawn()?, name })
    }

    pub(crate) fn target(&self) -> Target {
        Target::Group(self.child.id())
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Hands a signal on and waits; after [`GRACE`] it is killed. True: it ended by itself.
    pub(crate) fn end(&mut self, root: &Root, signal: Signal) -> bool {
        let target = self.target();
        let _ = target.signal(root, signal);
        let ends = within(GRACE, || !matches!(self.ended(), Ok(None)));
        if !ends {
            let _ = target.signal(root, Signal::KILL);
            let _ = self.child.wait();
        }
        ends
    }

    /// What its end means for this program's.
    pub(crate) fn verdict(&self, status: ExitStatus) -> Result<(), Failure> {
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => Err(Failure::program(format!("{} ended with exit code {code}", self.name))),
            (None, Some(signal)) => {
                Err(Failure::program(format!("{} was ended by signal {signal}", self.name)))
            }
            (None, None) => Err(Failure::program(format!("{} ended: {status}", self.name))),
        }
    }
}
