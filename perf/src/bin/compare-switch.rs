//! Frames that the switch forwards on one core, beside DPDK's own forwarder, in one run.
//!
//! `make compare-switch`, or `compare-switch [SECONDS [ROUNDS]]`. Both forward between two net_ring ports in a circle:
//! every frame that leaves comes back at once, so that nothing but forwarding is measured. dpdk-testpmd runs in io mode,
//! which only passes pointers on, and in 5tswap mode, which reads and rewrites every frame's headers up to the UDP ports,
//! the nearest that it has to what a switch must do. Of each round the three run in turn; the medians are compared.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode, Stdio};

use dcp_perf::measure::median;
use dcp_switch::Switch;
use dcp_switch::pipeline::{PipelineConfig, PortId};
use dcp_wire::{Ecn, Headers, Ipv4Addr, Kind, MacAddr, PKey, Path, Probe, Qpn, Stream, Timestamp};
use dpdk_ffi::{
    Clock, Eal, EalConfig, FabricConfig, Mbuf, MbufBatch, Pool, PoolConfig, available_cores, create_links,
    pin, register_thread,
};

/// Frames in each direction of the circle: what testpmd's `--tx-first` sends.
const FRAMES: usize = 32;
const RING_FRAMES: u32 = 1024;
/// Rounds between two looks at the clock.
const ROUNDS_PER_LOOK: u32 = 1024;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::from(code)
        }
    }
}

type Failure = (u8, String);

fn failed(error: impl std::fmt::Display) -> Failure {
    (3, error.to_string())
}

fn run(words: &[String]) -> Result<(), Failure> {
    let [seconds, rounds] = numbers(words)?;
    let cores = available_cores();
    let [main_core, core, ..] = *cores else {
        return Err((3, "dpdk-testpmd needs two cores, one of them to wait on".to_owned()));
    };
    let mut rates = [const { Vec::new() }; 3];
    let switch = Forwarder::new(core)?;
    for round in 1..=rounds {
        let measured = [
            testpmd("io", [main_core, core], seconds)?,
            testpmd("5tswap", [main_core, core], seconds)?,
            switch.measure(seconds)?,
        ];
        println!(
            "round {round}: io {:.1}, 5tswap {:.1}, switch {:.1} Mpps",
            measured[0], measured[1], measured[2]
        );
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }
    let [io, swap, switch] = rates.map(median);
    println!("median of {rounds}, Mpps on core {core}, 64-byte frames over net_ring:");
    println!("  dpdk-testpmd io      {io:8.1}   switch / io     {:.3}", switch / io);
    println!("  dpdk-testpmd 5tswap  {swap:8.1}   switch / 5tswap {:.3}", switch / swap);
    println!("  switch               {switch:8.1}   {:.1} ns per frame", 1000.0 / switch);
    Ok(())
}

fn numbers(words: &[String]) -> Result<[u32; 2], Failure> {
    let wrong = || (2, "usage: compare-switch [SECONDS [ROUNDS]], both from 1 to 100".to_owned());
    let mut numbers = [2, 3];
    if words.len() > numbers.len() {
        return Err(wrong());
    }
    for (number, word) in numbers.iter_mut().zip(words) {
        *number = word.parse().ok().filter(|given| (1..=100).contains(given)).ok_or_else(wrong)?;
    }
    Ok(numbers)
}

/// What DPDK's forwarder reaches, in Mpps: the median of what it says each second.
fn testpmd(mode: &str, [main_core, core]: [usize; 2], seconds: u32) -> Result<f64, Failure> {
    // The first second is a start.
    let time = (seconds + 2).to_string();
    let eal = format!("-l {main_core},{core} --no-huge -m 256 --no-shconf --no-pci --no-telemetry");
    let prefix = format!("dcp_compare_{}", std::process::id());
    let options = "--no-mlockall --total-num-mbufs=4096 --tx-first --stats-period=1 --burst=32";
    let output = Command::new("timeout")
        .args(["--signal=INT", &time, "dpdk-testpmd", "--file-prefix", &prefix])
        .args(eal.split(' '))
        .args(["--vdev=net_ring0", "--vdev=net_ring1", "--", &format!("--forward-mode={mode}")])
        .args(options.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| (3, format!("timeout of coreutils does not start: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rates = text.lines().filter_map(|line| line.trim().strip_prefix("Tx-pps:"));
    let rates: Vec<f64> = rates.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect();
    if output.status.code() == Some(127) || output.status.code() == Some(126) {
        return Err((
            3,
            "dpdk-testpmd is not installed: on Debian and Ubuntu it is in the package dpdk-dev".to_owned(),
        ));
    }
    // A pair of ports each second.
    let seconds: Vec<f64> = rates.chunks_exact(2).skip(1).map(|pair| (pair[0] + pair[1]) / 1e6).collect();
    let best = seconds.iter().any(|&rate| rate > 0.0);
    if !best {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or("it printed no rates").to_owned();
        return Err((3, format!("dpdk-testpmd --forward-mode={mode} did not run: {last}")));
    }
    Ok(median(seconds))
}

/// The switch, and DPDK for it.
struct Forwarder {
    eal: Eal,
    clock: Clock,
    pool: Pool,
    core: usize,
}

impl Forwarder {
    fn new(core: usize) -> Result<Self, Failure> {
        let eal = Eal::start(EalConfig { telemetry: false, ..EalConfig::default() }).map_err(failed)?;
        let pool = Pool::new(&eal, PoolConfig::frames("frames", 4095, 2048)).map_err(failed)?;
        Ok(Self { eal, clock: Clock::calibrate(), pool, core })
    }

    /// What the switch reaches, in Mpps.
    fn measure(&self, seconds: u32) -> Result<f64, Failure> {
        // On a thread of its own, because pinning lasts.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.measure_here(seconds));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn measure_here(&self, seconds: u32) -> Result<f64, Failure> {
        pin(self.core).map_err(failed)?;
        let _registered = register_thread(&self.eal).map_err(failed)?;
        // Both ends of one link are ports of the switch, so what leaves by one port arrives at the other.
        let mut links =
            create_links(&self.eal, FabricConfig { links: 1, ring_size: RING_FRAMES }).map_err(failed)?;
        let Some((mut first, mut second)) = links.pop() else {
            return Err((3, "no link was made".to_owned()));
        };
        let hosts = [1, 2].map(|number| MacAddr([2, 0, 0, 0, 0, number]));
        for (port, from, to) in [(&mut first, hosts[1], hosts[0]), (&mut second, hosts[0], hosts[1])] {
            let mut batch = MbufBatch::new();
            for _ in 0..FRAMES {
                let frame = Mbuf::from_bytes(&self.pool, &frame(from, to));
                batch
                    .push(frame.ok_or_else(|| failed("the pool is empty"))?)
                    .map_err(|_| failed("no room"))?;
            }
            port.tx.burst(&mut batch);
        }
        let config = PipelineConfig {
            static_macs: vec![(hosts[0], PortId(0)), (hosts[1], PortId(1))],
            ..PipelineConfig::new(2)
        };
        let mut switch = Switch::new(config, vec![first, second], self.clock).map_err(failed)?;
        let start = self.clock.now_ns();
        let end = start + u64::from(seconds) * 1_000_000_000;
        loop {
            for _ in 0..ROUNDS_PER_LOOK {
                switch.poll();
            }
            let now = self.clock.now_ns();
            if now >= end {
                return Ok(switch.counters().sent as f64 * 1e3 / (now - start) as f64);
            }
        }
    }
}

/// A frame of 64 bytes that goes round: what is sent to the first host leaves by the first port, and comes in at the
/// second one.
fn frame(src_mac: MacAddr, dst_mac: MacAddr) -> [u8; 64] {
    let path = Path {
        src_mac,
        dst_mac,
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC000,
        dst_port: 17791,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let kind = Kind::Probe(Probe { stream: Stream::Requests, t1: Timestamp(0) });
    let mut bytes = [0; 64];
    dcp_wire::emit(&Headers { path, dest_qpn: Qpn::from_low_bits(1), pkey: PKey(1), kind }, 0, &mut bytes);
    bytes
}
