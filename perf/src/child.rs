//! A process that waits for another one, and is gone with its owner.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{self, Command, Stdio};

/// Killed and waited for when dropped.
pub(crate) struct Child(process::Child);

impl Child {
    /// Starts a program.
    ///
    /// # Errors
    /// A sentence: it does not start.
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|error| format!("{name} does not start: {error}"))
    }

    /// Starts a program, and returns when it has printed a line that contains `word`.
    ///
    /// # Errors
    /// A sentence: it ended before.
    pub(crate) fn start_until(command: Command, word: &str) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = Self::start(command)?;
        let mut stdout = BufReader::new(child.0.stdout.take().ok_or("its output is not piped")?);
        let mut said = String::new();
        while !said.contains(word) {
            let count = stdout.read_line(&mut said).map_err(|error| error.to_string())?;
            if count == 0 {
                return Err(format!("{name} ended before it was ready: {}", said.trim()));
            }
        }
        // What it prints later goes to the pipe until it is full, and is little.
        child.0.stdout = Some(stdout.into_inner());
        Ok(child)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A TCP port that nobody has now.
///
/// # Errors
/// A sentence: there is no loopback interface, or no port left.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no port is free: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
