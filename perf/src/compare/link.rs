//! A veth pair with each end in a network namespace of its own.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Both ends.
pub(super) struct VethPair([Namespace; 2]);

/// A namespace by its name; removed, with all that is in it, when dropped.
struct Namespace(String);

/// Addresses of the ends. The namespaces reach nothing but each other.
pub(super) const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

impl VethPair {
    /// Two ends that carry IP packets of up to `ip_bytes`. Unless `segments`, the sender hands over one packet at a time,
    /// not segments of up to 64 KiB.
    ///
    /// # Errors
    /// A sentence: this machine does not let it.
    pub(super) fn new(ip_bytes: u32, segments: bool) -> Result<Self, String> {
        let [near, far] = [Namespace::new()?, Namespace::new()?];
        let (a, b) = (&near.0, &far.0);
        ip(&format!("-netns {a} link add v0 mtu {ip_bytes} type veth peer name v1 mtu {ip_bytes}"))?;
        ip(&format!("-netns {a} link set v1 netns {b}"))?;
        for ((name, end), address) in [a, b].into_iter().zip(["v0", "v1"]).zip(ADDRESSES) {
            ip(&format!("-netns {name} address add {address}/24 dev {end}"))?;
            if !segments {
                ip(&format!("-netns {name} link set {end} gso_max_segs 1"))?;
            }
            ip(&format!("-netns {name} link set {end} up"))?;
        }
        Ok(Self([near, far]))
    }

    /// What to put in front of a program's words, so that it runs at an end: 0 or 1.
    pub(super) fn at(&self, end: usize) -> Vec<String> {
        ["ip", "netns", "exec", &self.0[end].0].map(str::to_owned).to_vec()
    }
}

impl Namespace {
    fn new() -> Result<Self, String> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let name = format!("dcp-compare-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        ip(&format!("netns add {name}"))?;
        Ok(Self(name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // There is nothing more to do about one that cannot be deleted.
        let _ = ip(&format!("netns delete {}", self.0));
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("the program ip does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`ip {words}` is refused here: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
