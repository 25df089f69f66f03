//! The network of a loop run: which switches, which links, how fast, and how frames choose among them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dcp_switch::pipeline::{GROUP_MEMBERS_MAX, GROUP_WEIGHT_MAX, LoadBalance};
use dcp_switch::topology::{Description, Topology};

use crate::failure::Failure;
use crate::units::{self, Probability};

/// Parallel links of two switches when nothing says how many.
const PATHS: u32 = 2;
/// Fastest link, in Gb/s.
const GBPS_MAX: f64 = 10_000.0;

/// Options of the network.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Network (loop only)")]
pub struct NetworkArgs {
    /// Rate of every link in Gb/s, of those between hosts and switch too; 0 = as fast as it goes
    #[arg(long, value_name = "G", default_value = "0", value_parser = parse_gbps)]
    pub link_gbps: f64,
    /// single = one switch; direct = two hosts without any; two-switch = the server behind one, the clients behind another;
    /// or a TOML file
    #[arg(long, value_name = "single|direct|two-switch|FILE.toml", default_value = "single")]
    pub topology: String,
    /// Parallel links between the two switches [default: 2]
    #[arg(long, value_name = "N")]
    pub paths: Option<u32>,
    /// A weight for each of them, such as 1:4; with --link-gbps the heaviest has that rate, the others their part of it
    #[arg(long, value_name = "W:W...", value_parser = parse_weights)]
    pub path_weights: Option<Weights>,
    /// How a switch chooses among parallel links [default: adaptive]
    #[arg(long, value_enum, value_name = "HOW")]
    pub lb: Option<Balance>,
    /// Let packets be overtaken by the next three with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub reorder: Probability,
    /// Change a byte of packets with this probability
    #[arg(long, value_name = "P", default_value = "0", value_parser = units::parse_probability)]
    pub corrupt: Probability,
    /// Write every frame that a host receives to FILE, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

/// Weights of parallel links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights(Vec<u32>);

/// How a switch chooses among parallel links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum Balance {
    /// By the flow: one path for each queue pair
    Ecmp,
    /// By turns, packet by packet
    Spray,
    /// The shortest queue
    #[default]
    Adaptive,
}

impl Balance {
    /// Name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ecmp => "ecmp",
            Self::Spray => "spray",
            Self::Adaptive => "adaptive",
        }
    }

    /// As switches call it.
    pub const fn policy(self) -> LoadBalance {
        match self {
            Self::Ecmp => LoadBalance::Ecmp,
            Self::Spray => LoadBalance::SprayRoundRobin,
            Self::Adaptive => LoadBalance::Adaptive,
        }
    }
}

/// The network of a run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Network {
    /// Switches and links.
    pub shape: Shape,
    /// Rate of links that have none of their own, in Gb/s; 0 = no limit.
    pub link_gbps: f64,
    /// How parallel links are used.
    pub balance: Balance,
    /// Where received frames are captured.
    pub pcap: Option<PathBuf>,
}

/// Switches and links.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Shape {
    /// One switch.
    #[default]
    Single,
    /// None: a client and a server on one link.
    Direct,
    /// Two, with a link for each weight.
    TwoSwitch(Vec<u32>),
    /// As a file says.
    File {
        /// Its name.
        path: PathBuf,
        /// What it says.
        description: Description,
    },
}

impl NetworkArgs {
    /// The network that the options describe.
    ///
    /// # Errors
    /// Options that do not go together, or a file that cannot be used.
    pub fn network(&self) -> Result<Network, Failure> {
        let shape = self.shape()?;
        if matches!(shape, Shape::Single | Shape::Direct) && self.lb.is_some() {
            let whose = if shape == Shape::Single { "a single switch" } else { "--topology direct" };
            return Err(Failure::usage(format!(
                "--lb chooses among parallel links, and {whose} has none: add --topology two-switch"
            )));
        }
        Ok(Network {
            shape,
            link_gbps: self.link_gbps,
            balance: self.lb.unwrap_or_default(),
            pcap: self.pcap.clone(),
        })
    }

    fn shape(&self) -> Result<Shape, Failure> {
        if self.topology == "two-switch" {
            return self.weights().map(Shape::TwoSwitch);
        }
        for (option, given) in
            [("--paths", self.paths.is_some()), ("--path-weights", self.path_weights.is_some())]
        {
            if given {
                return Err(Failure::usage(format!(
                    "{option} is about the links between two switches: it needs --topology two-switch"
                )));
            }
        }
        match self.topology.as_str() {
            "single" => return Ok(Shape::Single),
            "direct" => return Ok(Shape::Direct),
            _ => {}
        }
        if !self.topology.ends_with(".toml") {
            return Err(Failure::usage(format!(
                "--topology is {}, but must be single, direct, two-switch, or a file whose name ends in .toml",
                self.topology
            )));
        }
        let path = PathBuf::from(&self.topology);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::usage(format!("--topology {}: {error}", self.topology)))?;
        let description = Description::from_toml(&text)
            .map_err(|error| Failure::usage(format!("--topology {}: {error}", self.topology)))?;
        Ok(Shape::File { path, description })
    }

    fn weights(&self) -> Result<Vec<u32>, Failure> {
        let paths = match (self.paths, &self.path_weights) {
            (None, Some(Weights(weights))) => return Ok(weights.clone()),
            (Some(paths), Some(Weights(weights))) if paths as usize == weights.len() => {
                return Ok(weights.clone());
            }
            (Some(paths), Some(Weights(weights))) => {
                let count = weights.len();
                let message = format!("--paths is {paths}, but --path-weights has {count} weights");
                return Err(Failure::usage(message));
            }
            (paths, None) => paths.unwrap_or(PATHS),
        };
        if !(1..=GROUP_MEMBERS_MAX).contains(&paths) {
            return Err(Failure::usage(format!("--paths is {paths}, but must be 1 to {GROUP_MEMBERS_MAX}")));
        }
        Ok(vec![1; paths as usize])
    }
}

impl Network {
    /// Hosts that the network has by itself; `None` where `--hosts` says.
    pub fn own_hosts(&self) -> Option<u32> {
        match &self.shape {
            Shape::File { description, .. } => Some(description.hosts()),
            Shape::Single | Shape::Direct | Shape::TwoSwitch(_) => None,
        }
    }

    /// Switches and links, checked.
    ///
    /// # Errors
    /// What cannot work.
    pub fn topology(&self, hosts: u32) -> Result<Topology, Failure> {
        let of = |description: &Description| Topology::new(description, self.link_gbps);
        let (topology, prefix) = match &self.shape {
            Shape::Direct if hosts != 2 => {
                let message =
                    format!("--hosts is {hosts}, but --topology direct joins 2 hosts, without a switch");
                return Err(Failure::usage(message));
            }
            Shape::Direct => (Ok(Topology::none()), String::new()),
            Shape::Single => (of(&Description::single(hosts)), String::new()),
            Shape::TwoSwitch(weights) => {
                (of(&Description::two_switch(hosts, weights, self.link_gbps)), String::new())
            }
            Shape::File { path, description } => {
                let (path, own) = (path.display(), description.hosts());
                if own != hosts {
                    return Err(Failure::usage(format!("--hosts is {hosts}, but {path} has {own} hosts")));
                }
                (of(description), format!("--topology {path}: "))
            }
        };
        topology.map_err(|error| Failure::usage(format!("{prefix}{error}")))
    }
}

fn parse_gbps(text: &str) -> Result<f64, String> {
    let gbps = units::decimal(text).ok_or("a rate is a number of Gb/s such as 10 or 0.5")?;
    if gbps == 0.0 || (0.001..=GBPS_MAX).contains(&gbps) {
        return Ok(gbps);
    }
    Err(format!("a rate is 0.001 to {GBPS_MAX} Gb/s, or 0 for no limit"))
}

fn parse_weights(text: &str) -> Result<Weights, String> {
    let weights = text.split(':').map(|word| word.parse().ok());
    let weights: Option<Vec<u32>> = weights.collect();
    let most = GROUP_MEMBERS_MAX as usize;
    weights
        .filter(|weights| (1..=most).contains(&weights.len()))
        .filter(|weights| weights.iter().all(|weight| (1..=GROUP_WEIGHT_MAX).contains(weight)))
        .map(Weights)
        .ok_or_else(|| {
            format!(
                "weights are up to {most} whole numbers from 1 to {GROUP_WEIGHT_MAX} with colons between, such as 1:4"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(topology: &str) -> NetworkArgs {
        NetworkArgs { topology: topology.to_owned(), ..NetworkArgs::default() }
    }

    fn refusal(args: &NetworkArgs) -> String {
        args.network().map_or_else(|failure| failure.message, |network| panic!("not refused: {network:?}"))
    }

    #[test]
    fn two_switches_have_a_link_for_each_weight() {
        let shape = |paths, weights: Option<&str>| {
            let path_weights = weights.map(|text| parse_weights(text).unwrap());
            let args = NetworkArgs { paths, path_weights, ..args("two-switch") };
            args.network().unwrap().shape
        };
        assert_eq!(shape(None, None), Shape::TwoSwitch(vec![1, 1]));
        assert_eq!(shape(Some(4), None), Shape::TwoSwitch(vec![1; 4]));
        assert_eq!(shape(None, Some("1:4")), Shape::TwoSwitch(vec![1, 4]));
        assert_eq!(shape(Some(3), Some("1:4:10")), Shape::TwoSwitch(vec![1, 4, 10]));
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        let weights = |text: &str| Some(parse_weights(text).unwrap());
        let two = args("two-switch");
        for (args, words) in [
            (NetworkArgs { paths: Some(2), ..args("single") }, "--paths is about"),
            (NetworkArgs { path_weights: weights("1:2"), ..args("single") }, "--path-weights is about"),
            (NetworkArgs { lb: Some(Balance::Spray), ..args("single") }, "a single switch has none"),
            (NetworkArgs { lb: Some(Balance::Spray), ..args("direct") }, "--topology direct has none"),
            (NetworkArgs { paths: Some(3), path_weights: weights("1:2"), ..two.clone() }, "has 2 weights"),
            (NetworkArgs { paths: Some(0), ..two.clone() }, "must be 1 to 64"),
            (NetworkArgs { paths: Some(65), ..two }, "must be 1 to 64"),
            (args("ring"), "must be single, direct, two-switch, or a file"),
            (args("/nowhere/at-all.toml"), "No such file"),
        ] {
            let message = refusal(&args);
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn rates_and_weights_out_of_range_are_refused() {
        for text in ["-1", "nan", "inf", "10001", "0.0001", "1e-9", "ten", ""] {
            assert!(parse_gbps(text).is_err(), "{text}");
        }
        assert_eq!((parse_gbps("0"), parse_gbps("2.5")), (Ok(0.0), Ok(2.5)));
        for text in ["", ":", "1:", "0", "1:0", "1001", "1:-4", "1.5:2", &"1:".repeat(65)] {
            assert!(parse_weights(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_says_how_many_hosts_there_are() {
        let description = Description::two_switch(5, &[1, 1], 0.0);
        let shape = Shape::File { path: "x.toml".into(), description };
        let network = Network { shape, ..Network::default() };
        assert_eq!(network.own_hosts(), Some(5));
        assert_eq!(network.topology(5).unwrap().hosts().len(), 5);
        assert!(network.topology(4).unwrap_err().message.contains("--hosts is 4, but x.toml has 5"));
    }
}
