//! The command line of `compare`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::Point;

const MTUS: [u32; 3] = [4096, 1024, 8192];
const SIZES: [u64; 5] = [64, 4 << 10, 64 << 10, 1 << 20, 64 << 20];
/// Of `--quick`.
const QUICK_SIZES: [u64; 2] = [64, 64 << 10];

/// DCP beside memcpy, bare mbufs, kernel TCP and UCX on this machine: Gb/s per core.
#[derive(Parser, Clone, Debug)]
#[command(name = "compare", version, args_override_self = true)]
pub struct Options {
    /// One MTU, two sizes, one round of a tenth of a second: whether it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Rounds; every contender has a turn in each [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Seconds of a turn [default: 1; with --quick: 0.1]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Contenders, with commas between [default: all]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    only: Vec<Name>,
    /// MTUs, with commas between [default: 4096,1024,8192; with --quick: 4096]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_mtu)]
    mtus: Vec<u32>,
    /// Write the results to FILE as JSON; - = stdout, without tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the results to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The program dcp-bench [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    dcp_bench: Option<PathBuf>,
}

/// A contender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Name {
    /// The same blocks copied in the same memory
    Memcpy,
    /// Mbufs over the same two links and a FIFO: attach and copy, no protocol
    Mbufs,
    /// DCP through the switch, everything on one core
    Dcp,
    /// DCP without a switch, everything on one core
    DcpDirect,
    /// DCP through the switch, split over cores
    DcpSplit,
    /// Kernel TCP over the loopback interface, both ends on one core
    TcpLoopback,
    /// Kernel TCP over a veth pair that carries segments of 64 KiB whatever the MTU
    TcpVeth,
    /// Kernel TCP over a veth pair that carries one packet at a time
    TcpVethPackets,
    /// UCX put over TCP, an end on each of two cores
    UcxTcp,
    /// UCX put over shared memory, an end on each of two cores
    UcxShared,
}

impl Name {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Memcpy,
        Self::Mbufs,
        Self::Dcp,
        Self::DcpDirect,
        Self::DcpSplit,
        Self::TcpLoopback,
        Self::TcpVeth,
        Self::TcpVethPackets,
        Self::UcxTcp,
        Self::UcxShared,
    ];

    /// As it is written everywhere.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Mbufs => "mbufs",
            Self::Dcp => "dcp",
            Self::DcpDirect => "dcp-direct",
            Self::DcpSplit => "dcp-split",
            Self::TcpLoopback => "tcp-loopback",
            Self::TcpVeth => "tcp-veth",
            Self::TcpVethPackets => "tcp-veth-packets",
            Self::UcxTcp => "ucx-tcp",
            Self::UcxShared => "ucx-shared",
        }
    }

    /// Whether its packets are its own affair; it has a turn at the first MTU only.
    pub const fn ignores_mtu(self) -> bool {
        matches!(self, Self::TcpLoopback | Self::UcxTcp | Self::UcxShared)
    }

    /// Whether it must run wherever this program does.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Memcpy | Self::Mbufs | Self::Dcp | Self::DcpDirect | Self::DcpSplit)
    }
}

impl Options {
    /// Everything that is measured.
    pub fn points(&self) -> Vec<Point> {
        let mtus = match (&self.mtus[..], self.quick) {
            ([], true) => &MTUS[..1],
            ([], false) => &MTUS,
            (given, _) => given,
        };
        let sizes = if self.quick { &QUICK_SIZES[..] } else { &SIZES };
        mtus.iter().flat_map(|&mtu| sizes.iter().map(move |&size| Point { mtu, size })).collect()
    }

    /// Turns of every contender at every point.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    /// Length of a turn.
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 1.0 })
    }

    /// Turns of `turns` that may be repeated because someone else slowed the core.
    pub fn patience(&self, turns: u64) -> u32 {
        if self.quick { 0 } else { u32::try_from(turns).unwrap_or(u32::MAX) }
    }

    /// Whether a contender takes part.
    pub fn wants(&self, name: Name) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }

    /// Where dcp-bench is.
    pub fn dcp_bench(&self) -> PathBuf {
        self.dcp_bench.clone().unwrap_or_else(super::dcp::beside_this_program)
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=60.0).contains(seconds));
    seconds.ok_or_else(|| "a turn takes 0.01 to 60 seconds".to_owned())
}

fn parse_mtu(text: &str) -> Result<u32, String> {
    let mtu = text.parse().ok().filter(|mtu| [256, 512, 1024, 2048, 4096, 8192].contains(mtu));
    mtu.ok_or_else(|| "an MTU is 256, 512, 1024, 2048, 4096 or 8192".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Options {
        Options::try_parse_from(["compare"].into_iter().chain(words.split_whitespace())).unwrap()
    }

    #[test]
    fn everything_is_measured_unless_less_is_asked_for() {
        assert_eq!(options("").points().len(), 15);
        assert!(Name::ALL.iter().all(|name| options("").wants(*name)));
        let quick = options("--quick --only dcp,mbufs --mtus 1024");
        assert_eq!(quick.points().iter().map(|it| it.size).collect::<Vec<_>>(), [64, 65536]);
        assert!(quick.points().iter().all(|point| point.mtu == 1024));
        assert_eq!(Name::ALL.iter().filter(|name| quick.wants(**name)).count(), 2);
    }

    #[test]
    fn names_are_written_as_the_command_line_takes_them() {
        for name in Name::ALL {
            assert_eq!(Name::from_str(name.word(), false), Ok(name));
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for words in ["--rounds 0", "--seconds 0", "--mtus 100", "--only dpc"] {
            let words = ["compare"].into_iter().chain(words.split_whitespace());
            assert!(Options::try_parse_from(words).is_err());
        }
    }
}
