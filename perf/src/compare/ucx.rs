//! UCX, by ucx_perftest. Its ends poll, so each has a core of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use dpdk_ffi::{available_cores, clock};

use super::{Contender, Name, Point, Sample};
use crate::child::{Child, free_port};

/// Most bytes that a turn moves before anything is known of the rate, per second of it.
const FIRST_BYTES: f64 = 1e8;
/// Most messages likewise.
const FIRST_MESSAGES: f64 = 1e5;
/// What it calls a megabyte.
const MEGABYTE: f64 = 1_048_576.0;

/// Over one of its transports.
pub(super) struct Ucx {
    name: Name,
    cores: [usize; 2],
    /// Messages that fit in a second, by size: what earlier turns found.
    rates: Vec<(u64, f64)>,
}

impl Ucx {
    pub(super) fn new(name: Name) -> Result<Self, String> {
        Command::new("ucx_perftest").arg("-h").output().map_err(|_| {
            "ucx_perftest is not installed: on Debian and Ubuntu, apt-get install ucx-utils".to_owned()
        })?;
        let [first, second, ..] = *available_cores() else {
            return Err("its ends poll, and take a core each: it needs two cores".to_owned());
        };
        Ok(Self { name, cores: [first, second], rates: Vec::new() })
    }

    fn command(&self, end: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ucx_perftest");
        let transports = if self.name == Name::UcxTcp { "tcp" } else { "posix,sysv,self" };
        command.args(["-c", &self.cores[end].to_string()]).args(words).stdin(Stdio::null());
        command.env("UCX_TLS", transports).env("UCX_WARN_UNUSED_ENV_VARS", "n");
        command
    }

    /// Megabytes a second over so many messages.
    fn put(&self, size: u64, messages: u64) -> Result<f64, String> {
        let port = free_port()?;
        let words = port.to_string();
        let _server = Child::start(self.command(1, &["-p", &words]))?;
        wait_for_listener(port)?;
        let (size, messages, warm) = (size.to_string(), messages.to_string(), (messages / 10).to_string());
        let words =
            ["127.0.0.1", "-p", &words, "-t", "ucp_put_bw", "-s", &size, "-n", &messages, "-w", &warm];
        let output = self.command(0, &words).args(["-O", "128", "-f", "-v"]).output();
        let output = output.map_err(|error| format!("ucx_perftest does not start: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        average(&text).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("ucx_perftest printed no rate: {}", said.lines().last().unwrap_or("it said nothing"))
        })
    }
}

impl Contender for Ucx {
    fn name(&self) -> Name {
        self.name
    }

    fn measure(&mut self, Point { size, .. }: Point, seconds: f64) -> Result<Option<Sample>, String> {
        let known = self.rates.iter().find(|(of, _)| *of == size).map(|(_, rate)| *rate);
        let rate = match known {
            Some(rate) => rate,
            None => {
                let first = (FIRST_BYTES / size as f64).clamp(2.0, FIRST_MESSAGES);
                let rate = self.put(size, whole(first))? * MEGABYTE / size as f64;
                self.rates.push((size, rate));
                rate
            }
        };
        let megabytes = self.put(size, whole((rate * seconds).max(2.0)))?;
        Ok(Some(Sample { gbps: megabytes * MEGABYTE * 8.0 / 1e9, cores: 2.0 }))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of messages")]
fn whole(messages: f64) -> u64 {
    messages as u64
}

/// The overall bandwidth in the last row of its comma-separated output: iterations, three times, two bandwidths, two rates.
fn average(text: &str) -> Option<f64> {
    let row = text
        .lines()
        .map(str::trim)
        .rev()
        .find(|line| line.starts_with(|first: char| first.is_ascii_digit()))?;
    row.split(',').nth(5)?.trim().parse().ok()
}

/// Waits until a process listens at a port, a few seconds at most.
fn wait_for_listener(port: u16) -> Result<(), String> {
    // Local address in hexadecimal, then the peer's, then the state: 0A listens.
    let ends = format!(":{port:04X}");
    let listens = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [_, local, _, "0A", ..] if local.ends_with(&ends))
    };
    for _ in 0..1000 {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        if tables.iter().flat_map(|table| table.lines()).any(listens) {
            return Ok(());
        }
        clock::pause(Duration::from_millis(5));
    }
    Err("ucx_perftest does not listen for its peer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_read_from_the_last_row() {
        let text = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n\
                    \x20 200,1.183,4.054,4.054,15415.16,15415.20,246643,246643\n";
        assert_eq!(average(text), Some(15415.20));
        assert_eq!(average("nothing\n"), None);
    }
}
