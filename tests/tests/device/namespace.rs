//! A network namespace that lives as long as a test.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use dcp_tests::machine::is_root_or_skip;

/// Removed, with all interfaces in it, when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// `None`, with the reason printed, where this machine does not let the test make one.
    pub(crate) fn new_or_skip(what: &str) -> Option<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        if !is_root_or_skip(what) {
            return None;
        }
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("dcp{}-{serial}", std::process::id());
        match Command::new("ip").args(["netns", "add", &name]).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                println!("skipped: {what} needs a network namespace ({reason})");
                return None;
            }
            Err(error) => {
                println!("skipped: {what} needs the program ip ({error})");
                return None;
            }
        }
        let namespace = Self { name };
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Runs `ip` with words separated by spaces.
    pub(crate) fn ip(&self, words: &str) {
        self.try_ip(words).unwrap_or_else(|reason| panic!("ip {words}: {reason}"));
    }

    pub(crate) fn try_ip(&self, words: &str) -> Result<(), String> {
        let output = Command::new("ip")
            .args(["-netns", &self.name])
            .args(words.split(' '))
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// A program inside.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Two interfaces `v0` and `v1`, joined and up.
    pub(crate) fn add_veth(&self, ip_bytes: u32) {
        self.ip(&format!("link add v0 mtu {ip_bytes} type veth peer name v1 mtu {ip_bytes}"));
        self.ip("link set v0 up");
        self.ip("link set v1 up");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}
