//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use dcp_core::Occupancy;

use crate::choose::{ActuatorChoice, SignalChoice};
use crate::machine::parse_cpus;

/// RHCC's receiver: holds programs back while this host takes in slower than the network delivers.
///
/// Starts COMMAND, or takes programs that run, and gives them 100, 80, 60, 40 or 20 % of the memory bandwidth or processor
/// time that they would take, by how full the way from the network into memory is. At the end, however it comes, every
/// limit is lifted. COMMAND runs in a process group of its own; signals are handed on, a terminal's input is not.
#[derive(Parser, Debug)]
#[command(
    name = "dcp-rhcc",
    version,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_value_name = "USE",
    subcommand_help_heading = "Other uses",
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 success; 1 COMMAND failed; 2 wrong usage; 3 the machine lacks something; 130 interrupted."
)]
pub struct Cli {
    /// What else it can do.
    #[command(subcommand)]
    pub other: Option<Other>,
    /// Control.
    #[command(flatten)]
    pub control: ControlArgs,
}

/// Other uses.
#[derive(Subcommand, Debug)]
pub enum Other {
    /// Run hogs of processor and memory until Ctrl-C, and tell their speed: something to try the control with
    Hog(HogArgs),
}

/// Options of the control.
#[derive(Args, Debug)]
pub struct ControlArgs {
    /// Where the occupancy comes from
    #[arg(long, value_enum, default_value = "auto")]
    pub signal: SignalChoice,
    /// What holds programs back
    #[arg(long, value_enum, default_value = "auto")]
    pub actuator: ActuatorChoice,
    /// Occupancy above which programs are held back [default: msr 45 entries, resctrl 80 %, software 50 µs]
    #[arg(long, value_name = "N", value_parser = parse_threshold)]
    pub threshold: Option<Occupancy>,
    /// Time between two decisions in milliseconds [default: resctrl and msr 1, cgroup 20, sigstop 40]
    #[arg(long, value_name = "MS", value_parser = parse_period)]
    pub period: Option<Duration>,
    /// Memory bandwidth of a NUMA node at best in GB/s: what the signal resctrl and AMD's limits are a part of
    #[arg(long, value_name = "GB/S", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub memory_gbs: Option<u32>,
    /// Telemetry socket of the DCP program that the signal software asks [default: the first that answers]
    #[arg(long, value_name = "SOCKET")]
    pub telemetry: Option<PathBuf>,
    /// Hold back a running process, with all its threads and its later children; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Hold back a cgroup, by its directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub cgroup: Vec<PathBuf>,
    /// A process or cgroup that uses memory of another NUMA node: it is held back first; may be repeated
    #[arg(long, value_name = "PID|DIR")]
    pub cross_numa: Vec<String>,
    /// Print a line every S seconds
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub stats: Option<Duration>,
    /// Write the same as JSON, an object a line; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No notes, and no live line
    #[arg(long)]
    pub quiet: bool,
    /// The program to start and hold back
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Options of the hogs.
#[derive(Args, Debug)]
pub struct HogArgs {
    /// Cores to run on, such as 0-3,8 [default: anywhere]
    #[arg(long, value_name = "LIST", value_parser = parse_cores)]
    pub cores: Option<Cores>,
    /// Memory of each hog in MiB
    #[arg(long, value_name = "M", default_value_t = crate::antagonist::MIB, value_parser = parse_mib)]
    pub mib: usize,
    /// Number of hogs [default: one a core of the list, or one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub processes: Option<u16>,
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
}

/// Cores, in rising order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Cores(pub Vec<usize>);

fn parse_cores(text: &str) -> Result<Cores, String> {
    match parse_cpus(text) {
        Some(cores) if !cores.is_empty() => Ok(Cores(cores.into_iter().collect())),
        _ => Err("not a list of cores such as 0-3,8".into()),
    }
}

fn parse_mib(text: &str) -> Result<usize, String> {
    let mib = text.parse().ok().filter(|mib| (1..=1 << 20).contains(mib));
    mib.ok_or_else(|| "not a number of MiB, 1 to 1048576".into())
}

/// Thousandths of what a decimal number says, within bounds.
fn parse_milli(text: &str, (least, most): (u64, u64), what: &str) -> Result<u64, String> {
    let number: f64 = text.parse().map_err(|_| format!("not a number of {what}"))?;
    let milli = (number * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared before")]
    if milli >= least as f64 && milli <= most as f64 {
        return Ok(milli as u64);
    }
    Err(format!("not {} to {} {what}", least as f64 / 1000.0, most as f64 / 1000.0))
}

fn parse_threshold(text: &str) -> Result<Occupancy, String> {
    Ok(Occupancy::quotient(parse_milli(text, (1, 10_000_000), "units")?, 1000))
}

fn parse_period(text: &str) -> Result<Duration, String> {
    Ok(Duration::from_micros(parse_milli(text, (50, 10_000_000), "milliseconds")?))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    Ok(Duration::from_millis(parse_milli(text, (10, 1_000_000_000), "seconds")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, String> {
        let words = ["dcp-rhcc"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn command_line_is_read_whole() {
        let line =
            "--signal software --actuator cgroup --threshold 45.5 --period 2.5 --stats 1 --json - -- a --b";
        let cli = parse(line).expect("legal");
        let control = cli.control;
        assert_eq!((control.signal, control.actuator), (SignalChoice::Software, ActuatorChoice::Cgroup));
        assert_eq!(control.threshold.map(Occupancy::milli), Some(45_500));
        assert_eq!(control.period, Some(Duration::from_micros(2500)));
        assert_eq!(control.command, ["a", "--b"]);
        let Some(Other::Hog(hog)) = parse("hog --cores 1,0 --mib 8").expect("legal").other else { panic!() };
        assert_eq!((hog.cores, hog.mib), (Some(Cores(vec![0, 1])), 8));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for line in
            ["--threshold 0", "--threshold x", "--period 0.01", "--period -1", "--stats 0", "hog --cores ,"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
