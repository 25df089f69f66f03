//! A small process that lifts every limit when the controller dies without doing it: killed, or aborted.
//!
//! It holds the reading end of a pipe. Whatever ends the controller closes the pipe; unless "done" came first, the
//! guardian then does what it was told last. It is in a process group of its own and heeds neither Ctrl-C nor SIGTERM.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::modes::{self, GUARD, Program};
use crate::root::Root;
use crate::undo::{self, Undo};

/// The controller's end.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(program: &Program) -> io::Result<Self> {
        let mut command = modes::command(program, GUARD);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// From now on these steps are what lifts every limit.
    ///
    /// # Errors
    /// It is gone.
    pub fn tell(&mut self, steps: &[Undo]) -> io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(pipe, "{}", serde_json::to_string(steps)?)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Nothing is left to lift: it ends.
    pub fn dismiss(mut self) {
        let _ = self.tell(&[]);
    }
}

impl Drop for Guardian {
    /// Without [`dismiss`](Self::dismiss), it lifts what is left.
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}

pub(crate) fn play() -> u8 {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&ignored));
    }
    let mut steps = Vec::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        // A line that was cut short is no order.
        if let Ok(told) = serde_json::from_str::<Vec<Undo>>(&line) {
            steps = told;
        }
    }
    for problem in undo::run(&Root::machine(), &steps) {
        eprintln!("dcp-rhcc: {problem}");
    }
    0
}
