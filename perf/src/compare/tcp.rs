//! Kernel TCP, by iperf3. Both ends and what the kernel does for them share one core.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::link::{ADDRESSES, VethPair};
use super::{Contender, Name, Point, Sample, core};
use crate::child::{Child, free_port};

/// Largest write of iperf3.
const WRITE_MAX: u64 = 1 << 20;
/// IP and TCP headers with a timestamp.
const HEADERS: u32 = 52;

/// Over one interface.
pub(super) struct Tcp {
    name: Name,
    /// That of the last MTU.
    pair: Option<(u32, VethPair)>,
}

impl Tcp {
    pub(super) fn new(name: Name) -> Result<Self, String> {
        for program in ["iperf3", "taskset"] {
            Command::new(program).arg("--version").output().map_err(|_| {
                format!("{program} is not installed: on Debian and Ubuntu, apt-get install iperf3")
            })?;
        }
        let mut tcp = Self { name, pair: None };
        tcp.join(4096)?;
        Ok(tcp)
    }

    /// Makes the interface, if it is not there.
    fn join(&mut self, mtu: u32) -> Result<(), String> {
        if self.name == Name::TcpLoopback || self.pair.as_ref().is_some_and(|(made, _)| *made == mtu) {
            return Ok(());
        }
        // Its names are free only when it is gone.
        self.pair = None;
        let pair = VethPair::new(mtu + HEADERS, self.name == Name::TcpVeth)?;
        self.pair = Some((mtu, pair));
        Ok(())
    }

    /// A program at an end, on the core.
    fn command(&self, end: usize, program: &[&str]) -> Command {
        let mut words = self.pair.as_ref().map_or_else(Vec::new, |(_, pair)| pair.at(end));
        words.extend(["taskset", "-c", &core().to_string()].map(str::to_owned));
        words.extend(program.iter().map(|word| (*word).to_owned()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }
}

impl Contender for Tcp {
    fn name(&self) -> Name {
        self.name
    }

    fn measure(&mut self, point: Point, seconds: f64) -> Result<Option<Sample>, String> {
        if point.size > WRITE_MAX {
            return Ok(None);
        }
        self.join(point.mtu)?;
        let address = if self.pair.is_some() { ADDRESSES[1] } else { "127.0.0.1" };
        let port = free_port()?.to_string();
        let server = ["iperf3", "--server", "--one-off", "--bind", address, "--port", &port, "--forceflush"];
        let _server = Child::start_until(self.command(1, &server), "listening")?;
        let (size, time) = (point.size.to_string(), seconds.ceil().max(1.0).to_string());
        let client =
            ["iperf3", "--client", address, "--port", &port, "--length", &size, "--time", &time, "--json"];
        let output =
            self.command(0, &client).output().map_err(|error| format!("iperf3 does not start: {error}"))?;
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("iperf3 printed no JSON: {error}"))?;
        if let Some(error) = json["error"].as_str() {
            return Err(format!("iperf3 says: {error}"));
        }
        let bits = json["end"]["sum_received"]["bits_per_second"].as_f64();
        let bits = bits.ok_or("iperf3 printed no rate")?;
        Ok(Some(Sample { gbps: bits / 1e9, cores: 1.0 }))
    }
}
