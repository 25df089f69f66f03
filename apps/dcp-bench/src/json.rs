//! The results as one JSON object.

use serde::Serialize;

use crate::burden::Strain;
use crate::failure::Failure;
use crate::fairness::Fairness;
use crate::load::Arrivals;
use crate::measure;
use crate::net::NetCounters;
use crate::network::{Network, Shape};
use crate::outcome::{Directions, Interval, Outcome};
use crate::plan::{Device, Mode, Plan, Trigger};
use crate::sizes::SizeDist;
use crate::stats::LatencySummary;

pub(crate) const TOOL: &str = "dcp-bench";

#[derive(Serialize)]
struct Report<'a> {
    tool: &'a str,
    version: &'a str,
    op: &'a str,
    mode: &'a str,
    /// What the latencies are, with `mode` "lat".
    #[serde(skip_serializing_if = "Option::is_none")]
    lat_is: Option<&'a str>,
    device: String,
    /// Which of two processes this is; only there when there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    threads: &'a str,
    mtu: u32,
    /// Only there when both sides send; the rates are then sums.
    #[serde(skip_serializing_if = "is_false")]
    bidirectional: bool,
    /// Messages up to this many bytes were copied when they were posted; only there if some could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_bytes: Option<u64>,
    qps: u32,
    tx_depth: u32,
    rx_depth: u32,
    cc: &'a str,
    /// Only there with RHCC.
    #[serde(skip_serializing_if = "is_false")]
    rhcc: bool,
    seed: u64,
    /// Like everything about the switch, only there when that is in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<u32>,
    #[serde(flatten)]
    network: NetworkReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_gbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrivals: Option<&'a str>,
    /// Sizes are drawn from it; `size_bytes` is then the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    size_dist: Option<&'a str>,
    /// Bytes.
    window: u64,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_bytes: Option<u64>,
    cq_mod: u32,
    qp_timeout: u8,
    retry_cnt: u8,
    rnr_retry: u8,
    icrc: bool,
    verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultsReport>,
    notes: &'a [String],
    /// Only there when the user stopped the run.
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    results: Vec<Row<'a>>,
}

/// What is other than one switch and links of any speed.
#[derive(Serialize)]
struct NetworkReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_weights: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lb: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_gbps: Option<f64>,
}

impl<'a> NetworkReport<'a> {
    fn of(network: &'a Network) -> Self {
        let Network { shape, link_gbps, balance, .. } = network;
        let (topology, path_weights) = match shape {
            Shape::Single => (None, None),
            Shape::Direct => (Some("direct".to_owned()), None),
            Shape::TwoSwitch(weights) => (Some("two-switch".to_owned()), Some(&weights[..])),
            Shape::File { path, .. } => (Some(path.display().to_string()), None),
        };
        let has_choice = !matches!(shape, Shape::Single | Shape::Direct);
        let link_gbps = (*link_gbps > 0.0).then_some(*link_gbps);
        Self { topology, path_weights, lb: has_choice.then(|| balance.name()), link_gbps }
    }
}

/// Probabilities from 0 to 1.
#[derive(Serialize)]
struct FaultsReport {
    trim: f64,
    drop: f64,
    dup: f64,
    reorder: f64,
    corrupt: f64,
}

#[derive(Serialize)]
struct Row<'a> {
    size_bytes: u64,
    iterations: u64,
    seconds: f64,
    bw_average_gbps: Option<f64>,
    bw_peak_gbps: Option<f64>,
    msg_rate_mpps: Option<f64>,
    lat_us: Option<LatencySummary>,
    /// How a side sees that a message has come, with `mode` "lat".
    #[serde(skip_serializing_if = "Option::is_none")]
    lat_trigger: Option<&'static str>,
    /// Messages whose time came too late to be sent, with `mode` "load".
    #[serde(skip_serializing_if = "Option::is_none")]
    overdue: Option<u64>,
    /// Only there with several queue pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness: Option<Fairness>,
    /// Only there when both sides send.
    #[serde(skip_serializing_if = "Option::is_none")]
    directions: Option<Directions>,
    /// Only there with `--interval`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<Interval>,
    verified: Option<bool>,
    net: NetCounters,
    cpu: Cpu,
    /// Only there with --antagonist or --rhcc-receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a Strain>,
}

#[derive(Serialize)]
struct Cpu {
    cores: u32,
    ns_per_packet: Option<f64>,
    gbps_per_core: Option<f64>,
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    tool: &'a str,
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    kind: &'a str,
    status: Option<String>,
    message: &'a str,
    hint: Option<String>,
}

/// The object of a run that has results, with all that the user was told.
pub fn results(plan: &Plan, rows: &[(Plan, Outcome)], notes: &[String]) -> String {
    let has_switch = plan.has_switch();
    render(&Report {
        tool: TOOL,
        version: env!("CARGO_PKG_VERSION"),
        op: plan.op.name(),
        mode: plan.mode_name(),
        lat_is: plan.trigger().map(|it| if it.is_halved() { "half_round_trip" } else { "round_trip" }),
        device: plan.device.name(),
        role: plan.device.role(),
        threads: plan.threads.name(),
        mtu: rows.first().map_or(plan.mtu, |(_, outcome)| outcome.mtu),
        bidirectional: plan.bidirectional,
        inline_bytes: (plan.inline_bytes > 0).then_some(plan.inline_bytes),
        qps: plan.qps,
        tx_depth: plan.tx_depth,
        rx_depth: plan.rx_depth,
        cc: plan.congestion.scheme.name(),
        rhcc: plan.congestion.rhcc.is_some(),
        seed: plan.seed,
        hosts: (plan.device == Device::Loop).then_some(plan.hosts),
        network: NetworkReport::of(&plan.network),
        rate_gbps: plan.load.rate_gbps,
        arrivals: plan.load.arrivals.map(Arrivals::name),
        size_dist: plan.load.size_dist.map(SizeDist::name),
        window: plan.window_bytes,
        threshold: has_switch.then_some(plan.threshold_bytes),
        control_bytes: has_switch.then_some(plan.control_bytes),
        cq_mod: plan.cq_mod,
        qp_timeout: plan.qp_timeout,
        retry_cnt: plan.retry_cnt,
        rnr_retry: plan.rnr_retry,
        icrc: plan.icrc,
        verify: plan.verify_each,
        faults: has_switch.then(|| FaultsReport {
            trim: plan.faults.trim.get(),
            drop: plan.faults.drop.get(),
            dup: plan.faults.duplicate.get(),
            reorder: plan.faults.reorder.get(),
            corrupt: plan.faults.corrupt.get(),
        }),
        notes,
        interrupted: rows.iter().any(|(_, outcome)| outcome.interrupted),
        results: rows.iter().map(|(plan, outcome)| row(plan, outcome)).collect(),
    })
}

/// The object of a run that failed.
pub fn error(failure: &Failure) -> String {
    render(&ErrorReport {
        tool: TOOL,
        error: ErrorBody {
            kind: failure.kind.name(),
            status: failure.status.map(|status| status.to_string()),
            message: &failure.message,
            hint: failure.advice(),
        },
    })
}

fn row<'a>(plan: &Plan, outcome: &'a Outcome) -> Row<'a> {
    let throughput = outcome.throughput();
    let rated = plan.mode == Mode::Bandwidth;
    Row {
        size_bytes: plan.size,
        iterations: outcome.iterations,
        seconds: throughput.seconds(),
        bw_average_gbps: rated.then(|| throughput.gbps()),
        bw_peak_gbps: outcome.peak_bytes_per_second.filter(|_| rated).map(measure::gbps),
        msg_rate_mpps: rated.then(|| throughput.mpps()),
        lat_us: outcome.details.latency,
        // The MTU may have been found out only when the two were connected.
        lat_trigger: Plan { mtu: outcome.mtu, ..plan.clone() }.trigger().map(Trigger::name),
        overdue: plan.load.arrivals.map(|_| outcome.details.overdue),
        fairness: outcome.details.fairness,
        directions: outcome.details.directions,
        intervals: outcome.details.intervals.clone(),
        verified: outcome.verification.verified(),
        net: outcome.net,
        cpu: Cpu {
            cores: outcome.cores,
            ns_per_packet: outcome.ns_per_packet(),
            gbps_per_core: outcome.gbps_per_core(),
        },
        host: outcome.details.burden.as_ref(),
    }
}

pub(crate) fn render(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain structs always serialise");
    text.push('\n');
    text
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::failure::Status;
    use crate::outcome::{Details, Verification};

    /// The object that the contract of the program shows, with this run's values, and what it takes to repeat the run.
    const GOLDEN: &str = r#"{"tool":"dcp-bench","version":"VERSION","op":"write","mode":"bw","device":"loop",
        "threads":"inline","mtu":4096,"qps":1,"tx_depth":128,"rx_depth":512,"cc":"window","seed":1,
        "hosts":2,"window":262144,"threshold":524288,"control_bytes":65536,"cq_mod":100,"qp_timeout":14,
        "retry_cnt":7,"rnr_retry":7,"icrc":false,"verify":false,"faults":{"trim":0.01,"drop":0.0,"dup":0.0,
        "reorder":0.0,"corrupt":0.0},"notes":["a remark"],
        "results":[{"size_bytes":65536,"iterations":5000,"seconds":0.1,"bw_average_gbps":26.2144,
        "bw_peak_gbps":32.0,"msg_rate_mpps":0.05,"lat_us":null,"verified":true,
        "net":{"data_packets":80000,"retransmitted":3,"trimmed":3,"ho_returned":3,"ho_lost":0,"dropped":0,
        "duplicates":0,"timeouts":0,"cnps":0,"ecn_marked":0,"rnr_naks":0},
        "cpu":{"cores":1,"ns_per_packet":1250.0,"gbps_per_core":26.2144}}]}"#;

    fn outcome() -> Outcome {
        let net = NetCounters {
            data_packets: 80_000,
            retransmitted: 3,
            trimmed: 3,
            ho_returned: 3,
            ..Default::default()
        };
        Outcome {
            iterations: 5000,
            bytes: 5000 * 65536,
            elapsed_ns: 100_000_000,
            peak_bytes_per_second: Some(4e9),
            verification: Verification::Passed,
            net,
            cores: 1,
            mtu: 4096,
            interrupted: false,
            notes: Vec::new(),
            details: Details::default(),
        }
    }

    fn notes() -> [String; 1] {
        ["a remark".to_owned()]
    }

    fn plan() -> Plan {
        let trim = crate::units::Probability::new(0.01).unwrap();
        Plan { faults: crate::plan::Faults { trim, ..Default::default() }, ..Plan::default() }
    }

    fn golden() -> String {
        GOLDEN.replace("VERSION", env!("CARGO_PKG_VERSION"))
    }

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn results_have_the_shape_of_the_contract() {
        assert_eq!(parse(&results(&plan(), &[(plan(), outcome())], &notes())), parse(&golden()));
    }

    #[test]
    fn network_is_told_where_it_is_not_the_usual_one() {
        let network = Network { shape: Shape::TwoSwitch(vec![1, 4]), link_gbps: 2.5, ..Network::default() };
        let plan = Plan { network, ..plan() };
        let json = parse(&results(&plan, &[(plan.clone(), outcome())], &notes()));
        assert_eq!((&json["topology"], &json["lb"]), (&"two-switch".into(), &"adaptive".into()));
        assert_eq!((&json["path_weights"], &json["link_gbps"]), (&serde_json::json!([1, 4]), &2.5.into()));
    }

    #[test]
    fn keys_come_in_the_order_of_the_contract() {
        let keys =
            |text: &str| -> Vec<String> { text.split('"').skip(1).step_by(2).map(str::to_owned).collect() };
        assert_eq!(keys(&results(&plan(), &[(plan(), outcome())], &notes())), keys(&golden()));
    }

    #[test]
    fn latencies_come_without_rates() {
        let mut latencies = crate::stats::Latencies::default();
        (1..=1000).for_each(|micros| latencies.record(micros * 1000));
        let details = Details { latency: latencies.summary(), ..Details::default() };
        let plan = Plan { mode: Mode::Latency, size: 2, ..plan() };
        let json = parse(&results(&plan, &[(plan.clone(), Outcome { details, ..outcome() })], &notes()));
        assert_eq!(
            (&json["mode"], &json["lat_is"], &json["results"][0]["lat_trigger"]),
            (&"lat".into(), &"half_round_trip".into(), &"last_byte".into())
        );
        let row = &json["results"][0];
        for rate in ["bw_average_gbps", "bw_peak_gbps", "msg_rate_mpps"] {
            assert!(row[rate].is_null(), "{rate}");
        }
        let lat = &row["lat_us"];
        for (key, value) in [("min", 1.0), ("p50", 500.0), ("avg", 500.5), ("p90", 900.0), ("max", 1000.0)] {
            let found = lat[key].as_f64().unwrap();
            assert!((found - value).abs() < value / 1000.0, "{key} is {found}");
        }
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let none = Outcome {
            peak_bytes_per_second: None,
            verification: Verification::NotChecked,
            net: NetCounters::default(),
            elapsed_ns: 0,
            ..outcome()
        };
        let row = &parse(&results(&plan(), &[(plan(), none)], &notes()))["results"][0];
        for key in ["bw_peak_gbps", "lat_us", "verified"] {
            assert!(row[key].is_null(), "{key}");
        }
        assert!(row["cpu"]["ns_per_packet"].is_null());
        assert_eq!(row["bw_average_gbps"], 0.0);
    }

    #[test]
    fn stopped_run_says_so() {
        let stopped = Outcome { interrupted: true, ..outcome() };
        assert_eq!(parse(&results(&plan(), &[(plan(), stopped)], &notes()))["interrupted"], true);
    }

    #[test]
    fn error_has_kind_status_message_and_hint() {
        let failure = Failure::transfer("queue pair 1 failed")
            .with_status(Status { name: "RETRY_EXC_ERR", number: 12 })
            .with_hint("look");
        assert_eq!(
            parse(&error(&failure)),
            parse(
                r#"{"tool":"dcp-bench","error":{"kind":"transfer","status":"RETRY_EXC_ERR (12)",
                "message":"queue pair 1 failed","hint":"look"}}"#
            )
        );
        let bare = parse(&error(&Failure::usage("no such thing")));
        assert!(bare["error"]["status"].is_null() && bare["error"]["hint"].is_null());
    }
}
