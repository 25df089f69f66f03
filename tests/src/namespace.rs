//! A network namespace that lives as long as a test.

use std::fmt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::machine::is_root_or_skip;

/// Removed, with all interfaces in it, when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Pairs of joined interfaces that it has.
    pairs: AtomicU32,
}

impl Namespace {
    /// `None`, with the reason printed, where this machine does not let the test make one.
    pub fn new_or_skip(what: &str) -> Option<Self> {
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
        let namespace = Self { name, pairs: AtomicU32::new(0) };
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Runs `ip` with words separated by spaces.
    ///
    /// # Panics
    /// When it fails.
    pub fn ip(&self, words: &str) {
        self.try_ip(words).unwrap_or_else(|reason| panic!("ip {words}: {reason}"));
    }

    /// The same, when it may fail.
    ///
    /// # Errors
    /// What `ip` said.
    pub fn try_ip(&self, words: &str) -> Result<(), String> {
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

    /// What to put in front of a program's words, so that it runs inside.
    pub fn wrapper(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// A program inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Two interfaces `v0` and `v1`, joined and up.
    pub fn add_veth(&self, ip_bytes: u32) {
        self.add_joined("v0", "v1", ip_bytes);
    }

    /// Two interfaces of these names, joined and up. Numbers of all interfaces made so, in one namespace, differ by more
    /// than those of two processes do: net_af_packet makes a fanout group of both, which must not be the same at two ends.
    ///
    /// # Panics
    /// After two pairs.
    pub fn add_joined(&self, near: &str, far: &str, ip_bytes: u32) {
        let pair = self.pairs.fetch_add(1, Ordering::Relaxed);
        assert!(pair < 2, "a fanout group has 16 bits");
        let [near_index, far_index] = [100 + (pair << 15), 100 + (pair << 15) + (1 << 14)];
        self.ip(&format!(
            "link add {near} index {near_index} mtu {ip_bytes} type veth peer name {far} index {far_index} mtu {ip_bytes}"
        ));
        self.ip(&format!("link set {near} up"));
        self.ip(&format!("link set {far} up"));
    }
}

/// Its name, as `ip` knows it.
impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}
