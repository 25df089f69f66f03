//! Opens a device by URI and echoes frames, or sends frames to an echo and compares what comes back. For the device tests.
//!
//! `device-probe echo|check|flood URI [mtu=N] [wait=MS]`, `device-probe host URI ip=A/len [peer=IP]`,
//! `device-probe serve URI ip=A/len`, `device-probe transfer|hammer URI ip=A/len to=HOST:PORT` (each of them with
//! `timeout=N` for 4.096 µs × 2^N, and the same `size=BYTES`), `device-probe ping IP`, `tcp-receive PORT`,
//! `tcp-send HOST:PORT BYTES`: prints `ready …` when the device is open, `up` and `down` as the
//! link goes, and `checked N` when all came back. Exit code 3 with one sentence when the device cannot be opened.
#![forbid(unsafe_code)]

mod frames;
mod host;
mod ping;
mod run;
mod tcp;
mod transfer;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use dcp::device::{DeviceConfig, DeviceUri, MtuChoice, NetDevice, eal_config};
use dcp::dpdk::{Clock, Eal, EalConfig};

use run::Station;
use transfer::Load;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match probe(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, sentence)) => {
            eprintln!("{sentence}");
            ExitCode::from(code)
        }
    }
}

type Fault = (u8, String);

fn usage() -> Fault {
    (
        2,
        "device-probe echo|check|flood|host URI [mtu=N] [wait=MS] [ip=A/len] [peer=IP], or ping IP"
            .to_owned(),
    )
}

fn probe(arguments: &[String]) -> Result<(), Fault> {
    let [mode, uri, options @ ..] = arguments else { return Err(usage()) };
    if mode == "ping" {
        return ping::run(uri.parse().map_err(|_| usage())?);
    }
    if mode == "tcp-receive" {
        return tcp::receive(uri.parse().map_err(|_| usage())?);
    }
    if let ("tcp-send", [bytes]) = (mode.as_str(), options) {
        return tcp::send(uri, bytes.parse().map_err(|_| usage())?);
    }
    let uri: DeviceUri = uri.parse().map_err(|error: dcp::device::UriError| (2, error.to_string()))?;
    let mut config = DeviceConfig { mbufs: 2047, ring_frames: 256, ..DeviceConfig::default() };
    let mut wait_ms = 10_000;
    let (mut address, mut peer, mut port, mut to, mut telemetry) = (None, None, 0, None, false);
    let mut load = Load::default();
    for option in options {
        match option.split_once('=') {
            Some(("mtu", mtu)) => config.mtu = MtuChoice::Exactly(mtu.parse().map_err(|_| usage())?),
            Some(("wait", ms)) => wait_ms = ms.parse().map_err(|_| usage())?,
            Some(("ip", ip)) => address = Some(ip.parse().map_err(|_| usage())?),
            Some(("timeout", number)) => load.timeout = number.parse().map_err(|_| usage())?,
            Some(("size", bytes)) => load.size = bytes.parse().map_err(|_| usage())?,
            Some(("port", number)) => port = number.parse().map_err(|_| usage())?,
            Some(("telemetry", "on")) => telemetry = true,
            Some(("to", host)) => to = Some(host),
            Some(("peer", ip)) => peer = Some(ip.parse().map_err(|_| usage())?),
            _ => return Err(usage()),
        }
    }
    let eal = EalConfig { memory_mib: 96, telemetry, ..EalConfig::default() };
    let eal = Eal::start(eal_config(eal, std::slice::from_ref(&uri)));
    let eal = eal.map_err(|error| (3, error.to_string()))?;
    if let Some(socket) = eal.telemetry_socket() {
        println!("telemetry {}", socket.display());
    }
    let clock = Clock::calibrate();
    let mut device = NetDevice::open(&eal, &uri, &config).map_err(|error| (3, error.to_string()))?;
    println!("ready mtu={} most={} transmit={:?}", device.mtu(), device.mtu_most(), device.transmit());
    if mode == "host" {
        let wait = Duration::from_millis(wait_ms);
        return host::run(&eal, device, clock, address.ok_or_else(usage)?, peer, wait);
    }
    if matches!(mode.as_str(), "serve" | "transfer" | "hammer") {
        // Before the link is up: clients that come early wait in the backlog.
        let listener = if mode == "serve" { Some(transfer::listen(port)?) } else { None };
        device
            .wait_for_link(&clock, Duration::from_millis(wait_ms))
            .map_err(|error| (3, error.to_string()))?;
        let side = transfer::Side::new(&Arc::new(eal), device, address.ok_or_else(usage)?, load)?;
        return match (listener, to) {
            (Some(listener), _) => transfer::serve(&side, &listener),
            (None, Some(host)) if mode == "transfer" => transfer::transfer(&side, host),
            (None, Some(host)) => transfer::hammer(&side, host),
            (None, None) => Err(usage()),
        };
    }
    let mut station = Station::new(&eal, device, clock).map_err(|sentence| (3, sentence))?;
    station.wait_for_link(wait_ms).map_err(|sentence| (3, sentence))?;
    match mode.as_str() {
        "echo" => station.echo(),
        "flood" => station.flood(),
        "check" => station.check().map_err(|sentence| (1, sentence)),
        _ => Err(usage()),
    }
}
