//! What a sweep came to, as table, CSV, JSON and plot.

use std::fmt::Write;

use serde_json::{Value, json};

use super::args::SweepArgs;
use super::point::Point;
use crate::csv::{self, DIRECTIONS};
use crate::failure::Failure;
use crate::tools::plot;
use crate::tools::run::{Latency, Row};
use crate::tools::series;

const WIDTH: usize = 118;
/// Counters in the table.
const COUNTERS: [&str; 4] = ["retransmitted", "trimmed", "dropped", "timeouts"];
/// Columns of the CSV that come from a row, after those of the point.
const FIELDS: [&str; 14] = [
    "size_bytes",
    "iterations",
    "seconds",
    "bw_average_gbps",
    "bw_peak_gbps",
    "msg_rate_mpps",
    "lat_min_us",
    "lat_p50_us",
    "lat_avg_us",
    "lat_p90_us",
    "lat_p99_us",
    "lat_p999_us",
    "lat_max_us",
    "verified",
];
const NET: [&str; 11] = [
    "data_packets",
    "retransmitted",
    "trimmed",
    "ho_returned",
    "ho_lost",
    "dropped",
    "duplicates",
    "timeouts",
    "cnps",
    "ecn_marked",
    "rnr_naks",
];

/// What is swept, and the heads of the columns.
pub(super) fn head(args: &SweepArgs) -> String {
    let rule = "-".repeat(WIDTH);
    let title = format!("{} sweep of --{}", args.op.title(), args.option);
    let rates = if args.is_latency() {
        format!("{:<12} {:<12} {:<12}", "p50[us]", "p99[us]", "p99.9[us]")
    } else if args.gigabits {
        format!("{:<21} {:<16}", "BW average[Gb/sec]", "MsgRate[Mpps]")
    } else {
        format!("{:<21} {:<16}", "BW average[MiB/sec]", "MsgRate[Mpps]")
    };
    let mut text = format!("{rule}\n{:>1$}\n{rule}\n", title, (WIDTH + title.len()) / 2);
    let heads = format!(
        " {:<10} {:<8} {:<10} {:<12} {rates} {}",
        args.option,
        "result",
        "#bytes",
        "#iterations",
        COUNTERS.join("  ")
    );
    writeln!(text, "{}", heads.trim_end()).expect("a String takes any text");
    text
}

/// The rows of one point: one of each of its sizes, or the status that it failed with.
pub(super) fn rows(args: &SweepArgs, point: &Point) -> String {
    let start = format!(" {:<10} {:<8}", point.value, point.result());
    match &point.run {
        Some(run) => run.results.iter().map(|row| format!("{start} {}\n", numbers(args, row))).collect(),
        None => format!("{start} {}\n", point.status().unwrap_or("-")),
    }
}

/// Closes the table.
pub(super) fn footer() -> String {
    format!("{}\n", "-".repeat(WIDTH))
}

fn numbers(args: &SweepArgs, row: &Row) -> String {
    let rates = if args.is_latency() {
        let cell = |of: fn(&Latency) -> Option<f64>| {
            row.lat_us.as_ref().and_then(of).map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
        };
        format!("{:<12} {:<12} {:<12}", cell(|it| it.p50), cell(|it| it.p99), cell(|it| it.p999))
    } else {
        let gbps = row.bw_average_gbps.unwrap_or(0.0);
        let average = if args.gigabits { gbps } else { gbps * 1e9 / 8.0 / f64::from(1 << 20) };
        format!("{average:<21.2} {:<16.6}", row.msg_rate_mpps.unwrap_or(0.0))
    };
    let mut text = format!("{:<10} {:<12} {rates}", row.size_bytes, row.iterations);
    for name in COUNTERS {
        let width = name.len() + 1;
        write!(text, " {:<width$}", row.counter(name)).expect("a String takes any text");
    }
    text.trim_end().to_owned()
}

/// A line of heads, then one for each row; a failed point has its status and nothing else.
pub(super) fn csv(args: &SweepArgs, points: &[Point]) -> String {
    let mut text = format!("{},result,status", args.option);
    for name in FIELDS.iter().chain(&NET).chain(&DIRECTIONS) {
        write!(text, ",{name}").expect("a String takes any text");
    }
    text.push('\n');
    for point in points {
        // Neither has commas or quotes in it: values came from a list, and kinds and statuses are ours.
        let start = format!("{},{},{}", point.value, point.result(), point.status().unwrap_or_default());
        match &point.run {
            Some(run) => run.results.iter().for_each(|row| {
                let cells = fields(row).into_iter().chain(NET.map(|name| row.counter(name).to_string()));
                let cells = cells.chain(csv::directions(row.directions));
                let cells: String = cells.map(|cell| format!(",{cell}")).collect();
                writeln!(text, "{start}{cells}").expect("a String takes any text");
            }),
            None => {
                let empty = ",".repeat(FIELDS.len() + NET.len() + DIRECTIONS.len());
                writeln!(text, "{start}{empty}").expect("a String takes any text");
            }
        }
    }
    text
}

/// In the order of [`FIELDS`]; empty where nothing was measured.
fn fields(row: &Row) -> [String; FIELDS.len()] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let latency = |of: fn(&Latency) -> Option<f64>| number(row.lat_us.as_ref().and_then(of));
    [
        row.size_bytes.to_string(),
        row.iterations.to_string(),
        row.seconds.to_string(),
        number(row.bw_average_gbps),
        number(row.bw_peak_gbps),
        number(row.msg_rate_mpps),
        latency(|it| it.min),
        latency(|it| it.p50),
        latency(|it| it.avg),
        latency(|it| it.p90),
        latency(|it| it.p99),
        latency(|it| it.p999),
        latency(|it| it.max),
        row.verified.map(|verified| verified.to_string()).unwrap_or_default(),
    ]
}

/// A sweep's JSON, as text and as a value.
pub(super) struct Json {
    pub(super) value: Value,
    pub(super) text: String,
}

/// One object: what was swept, and for each value the whole JSON of its run.
pub(super) fn json(args: &SweepArgs, points: &[Point]) -> Json {
    let points: Vec<Value> = points.iter().map(point_json).collect();
    let options: Vec<String> = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let value = json!({
        "tool": "dcp-bench",
        "version": env!("CARGO_PKG_VERSION"),
        "op": args.op.name(),
        "mode": "sweep",
        "option": args.option,
        "values": args.values,
        "options": options,
        "rounds": args.rounds,
        "interrupted": points.len() < args.values.len() || points.iter().any(|it| it["result"] == "stopped"),
        "points": points,
    });
    let text = format!("{value:#}\n");
    Json { value, text }
}

fn point_json(point: &Point) -> Value {
    let (run, error) = match &point.run {
        Some(_) => (&point.json, &Value::Null),
        None => (&Value::Null, &point.json["error"]),
    };
    json!({
        "value": point.value,
        "result": point.result(),
        "exit_code": point.exit_code,
        "run": run,
        "error": error,
    })
}

/// The plot of a sweep from its JSON.
pub(super) fn svg(json: &Value) -> Result<String, Failure> {
    let sweep = series::Sweep::read(json).map_err(Failure::transfer)?;
    plot::svg(&sweep.chart()).map_err(Failure::transfer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Op;
    use crate::tools::run::Run;

    fn args() -> SweepArgs {
        SweepArgs {
            op: Op::Write,
            option: "trim".to_owned(),
            values: vec!["0".to_owned(), "5%".to_owned()],
            rounds: 1,
            words: vec!["--size=64K".into()],
            json: None,
            csv: None,
            svg: None,
            quiet: false,
            gigabits: true,
        }
    }

    fn points() -> [Point; 2] {
        let directions = json!({"from_client": {"iterations": 6, "bytes": 7}, "from_server": {"iterations": 4, "bytes": 8}});
        let run = json!({"op": "write", "mode": "bw", "results": [{"size_bytes": 65536, "iterations": 10, "seconds": 0.5,
            "bw_average_gbps": 25.5, "bw_peak_gbps": null, "msg_rate_mpps": 0.25, "lat_us": null, "verified": true, "directions": directions,
            "net": {"data_packets": 160, "retransmitted": 3, "trimmed": 4, "dropped": 5, "timeouts": 6}}]});
        let error = json!({"tool": "dcp-bench", "error": {"kind": "transfer", "status": "RETRY_EXC_ERR (12)", "message": "it is lost"}});
        let read = Run::read(&run).ok();
        [
            Point { value: "0".to_owned(), exit_code: 0, json: run, run: read },
            Point { value: "5%".to_owned(), exit_code: 1, json: error, run: None },
        ]
    }

    #[test]
    fn table_has_a_row_of_each_point_under_its_heads() {
        let [whole, failed] = points();
        let row = rows(&args(), &whole);
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["0", "ok", "65536", "10", "25.50", "0.250000", "3", "4", "5", "6"]);
        assert_eq!(rows(&args(), &failed).trim(), "5%         failed   RETRY_EXC_ERR (12)");
        let heads = head(&args());
        let heads = heads.lines().last().unwrap();
        for (name, value) in [("#bytes", "65536"), ("BW average[Gb/sec]", "25.50"), ("timeouts", "6\n")] {
            assert_eq!(heads.find(name), row.rfind(value), "{name}\n{heads}\n{row}");
        }
    }

    #[test]
    fn csv_has_as_many_cells_in_every_line() {
        let text = csv(&args(), &points());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|cells| cells.len() == 3 + FIELDS.len() + NET.len() + DIRECTIONS.len()),
            "{text}"
        );
        let cell = |line: usize, name: &str| lines[line][lines[0].iter().position(|it| *it == name).unwrap()];
        assert_eq!((cell(1, "trim"), cell(1, "bw_average_gbps"), cell(1, "bw_peak_gbps")), ("0", "25.5", ""));
        assert_eq!((cell(1, "verified"), cell(1, "timeouts")), ("true", "6"));
        let parts = |line: usize| DIRECTIONS.map(|name| cell(line, name));
        assert_eq!((parts(1), parts(2)), (["6", "7", "4", "8"], [""; 4]));
        assert_eq!((cell(2, "result"), cell(2, "status")), ("failed", "RETRY_EXC_ERR (12)"));
    }

    #[test]
    fn json_keeps_runs_and_errors_whole() {
        let json = json(&args(), &points()).value;
        assert_eq!(
            (&json["mode"], &json["option"], &json["interrupted"]),
            (&"sweep".into(), &"trim".into(), &false.into())
        );
        let [whole, failed] = points();
        assert_eq!(json["points"][0]["run"], whole.json);
        assert_eq!(json["points"][1]["error"], failed.json["error"]);
        assert!(json["points"][1]["run"].is_null() && json["points"][0]["error"].is_null());
        assert_eq!(super::json(&args(), &points()[..1]).value["interrupted"], true);
    }

    #[test]
    fn failed_point_stands_in_the_plot() {
        let svg = svg(&json(&args(), &points()).value).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("failed") && svg.contains("5%"), "{svg}");
    }
}
