//! All options of a run, and the plans that come of them.

use std::path::Path;

use clap::Args;

use super::{FabricArgs, LinkArgs, OutputArgs, PerftestArgs, TrafficArgs};
use crate::burden::{self, BurdenArgs};
use crate::congestion::CongestionArgs;
use crate::failure::Failure;
use crate::load::LoadArgs;
use crate::plan::{Op, Plan};
use crate::sink;

/// Options of a bandwidth test.
#[derive(Args, Debug)]
pub struct BandwidthArgs {
    /// Who the other side is, and the way to it.
    #[command(flatten)]
    pub link: LinkArgs,
    /// What to move.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// How fast senders may go.
    #[command(flatten)]
    pub congestion: CongestionArgs,
    /// What else the server's host has to do.
    #[command(flatten)]
    pub burden: BurdenArgs,
    /// How much of it.
    #[command(flatten)]
    pub load: LoadArgs,
    /// What people know from perftest.
    #[command(flatten)]
    pub perftest: PerftestArgs,
    /// The network in between.
    #[command(flatten)]
    pub fabric: FabricArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl BandwidthArgs {
    /// The runs that the options describe, at least one, and what the user should know about it.
    ///
    /// # Errors
    /// A usage failure.
    pub fn plans(&self, op: Op) -> Result<(Vec<Plan>, Vec<String>), Failure> {
        if self.traffic.iters.is_some() && self.traffic.duration.is_some() {
            return Err(Failure::usage(
                "--iters and --duration cannot be used together: a run ends by its messages or by its time",
            ));
        }
        if self.output.csv.as_deref() == Some(Path::new("-"))
            && self.output.json().as_deref() == Some(Path::new("-"))
        {
            return Err(Failure::usage("--json and --csv cannot both go to stdout"));
        }
        sink::refuse_one_file_twice(&[
            (self.output.json_option(), self.output.json().as_deref()),
            ("--csv", self.output.csv.as_deref()),
            ("--pcap", self.fabric.network.pcap.as_deref()),
        ])?;
        let mut plans = self.perftest.plans(&self.unchecked_plan(op, self.link.device()?)?)?;
        let mut notes: Vec<_> = self.perftest.notes().collect();
        // All runs have the same burden, so one is told of it.
        let placed: Vec<_> = plans.iter_mut().filter_map(burden::place).collect();
        notes.extend(placed.into_iter().take(1));
        notes.extend(self.notes(&plans[0], plans.len() == 1));
        Ok((plans, notes))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, not_an_operation};
    use crate::burden::Burden;
    use crate::congestion::Congestion;
    use crate::load::Load;
    use crate::network::{Balance, Network, Shape};
    use crate::plan::{Device, Faults, Length, Mode, Reporting, Threads};
    use crate::units::Probability;

    fn plan(options: &[&str]) -> Result<(Plan, Vec<String>), Failure> {
        let words = ["dcp-bench", "write"].iter().chain(options);
        match Cli::try_parse_from(words).unwrap().command.operation() {
            Ok((op, args)) => args.plans(op).map(|(mut plans, notes)| (plans.remove(0), notes)),
            Err(words) => Err(not_an_operation(&words)),
        }
    }

    #[test]
    fn bare_run_is_the_default_plan() {
        let (plan, notes) = plan(&[]).unwrap();
        assert_eq!(plan, Plan::default().checked().unwrap());
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("loop: ") && notes[0].contains("--server"));
    }

    #[test]
    fn every_option_reaches_the_plan() {
        let line = "-s 1M -n 7 -q 3 -t 5 -r 6 -m 256 -Q 2 -u 10 --retry-cnt 3 --window 128K --threads split --verify \
                    --rnr-retry 2 --icrc -I 100 --cores 0-1 --rate 2.5 -l 2 --use_hugepages -N -w 0.5 \
                    --antagonist 2 --rhcc-receiver \
                    --hosts 9 --topology two-switch --path-weights 1:4 --lb spray --link-gbps 2.5 --pcap out.pcap \
                    --reorder 0.25 --corrupt 1e-3 --threshold 8K --control-bytes 0 --trim 5% --drop 0.001 --dup 1 --seed 42";
        let (plan, notes) = plan(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        let probability = |value| Probability::new(value).unwrap();
        let expected = Plan {
            op: Op::Write,
            mode: Mode::Bandwidth,
            device: Device::Loop,
            size: 1 << 20,
            length: Length::Iterations(NonZeroU64::new(7).unwrap()),
            qps: 3,
            tx_depth: 5,
            rx_depth: 6,
            mtu: 256,
            mtu_asked: true,
            bidirectional: false,
            inline_bytes: 100,
            cq_mod: 2,
            threads: Threads::Split,
            cores: vec![0, 1],
            hosts: 9,
            network: Network {
                shape: Shape::TwoSwitch(vec![1, 4]),
                link_gbps: 2.5,
                balance: Balance::Spray,
                pcap: Some("out.pcap".into()),
            },
            window_bytes: 128 << 10,
            congestion: Congestion::default(),
            burden: Burden { hogs: 2, is_governed: true },
            threshold_bytes: 8 << 10,
            control_bytes: 0,
            faults: Faults {
                trim: probability(0.05),
                drop: probability(0.001),
                duplicate: probability(1.0),
                reorder: probability(0.25),
                corrupt: probability(0.001),
            },
            seed: 42,
            verify_each: true,
            qp_timeout: 10,
            retry_cnt: 3,
            rnr_retry: 2,
            icrc: true,
            load: Load { rate_gbps: Some(2.5), post_list: 2, ..Load::default() },
            use_hugepages: true,
            reporting: Reporting { no_peak: true, limit_gbps: Some(0.5), ..Reporting::default() },
        };
        assert_eq!(plan, expected);
        assert!(notes.iter().any(|note| note.contains("larger than --inline_size 100")), "{notes:?}");
        assert_eq!((plan.clients(), plan.total_qps(), plan.total_iterations()), (8, 24, Some(168)));
    }

    #[test]
    fn defaults_suit_thousands_of_queue_pairs() {
        let of = |options: &[&str]| {
            let plan = plan(options).unwrap().0;
            (plan.tx_depth, plan.rx_depth, plan.cq_mod, plan.qp_timeout)
        };
        assert_eq!(of(&["-q", "200"]), (128, 512, 100, 14));
        assert_eq!(of(&["-q", "671"]), (128, 512, 29, 14));
        assert_eq!(of(&["-q", "10000"]), (128, 419, 2, 18));
        assert_eq!(of(&["-q", "16384", "--hosts", "33"]), (8, 8, 1, 24));
        assert_eq!(of(&["-q", "10000", "-r", "400", "-Q", "50", "-u", "3"]), (128, 400, 50, 3));
    }

    #[test]
    fn duration_replaces_iterations() {
        let (plan, _) = plan(&["-D", "0.5"]).unwrap();
        assert_eq!(plan.length, Length::Duration(Duration::from_millis(500)));
        assert_eq!(plan.total_iterations(), None);
    }

    #[test]
    fn depth_and_moderation_never_exceed_what_a_queue_pair_sends() {
        for n in [1, 2, 7, 1001] {
            for depth in [1, 3, 128] {
                for cq_mod in [1, 100, 1000] {
                    let words = [n, depth, cq_mod].map(|value: u32| value.to_string());
                    let (plan, _) = plan(&["-n", &words[0], "-t", &words[1], "-Q", &words[2]]).unwrap();
                    assert_eq!(plan.tx_depth, depth.min(n));
                    assert_eq!(plan.cq_mod, cq_mod.min(plan.tx_depth));
                }
            }
        }
    }

    #[test]
    fn only_a_value_that_was_asked_for_is_noted_as_cut() {
        assert_eq!(plan(&["-n", "1"]).unwrap().1.len(), 1);
        let notes = plan(&["-n", "10", "-t", "20", "-Q", "1000"]).unwrap().1;
        assert_eq!(notes[1], "--tx-depth is cut to 10, the messages of a queue pair");
        assert_eq!(notes.len(), 3);
        assert_eq!(notes[2], "--cq-mod is cut to 10, the depth of the send queue");
    }
}
