//! `dcp-bench report`: results in JSON become one HTML page that needs nothing else, not even a network.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::plot::{self, Chart};
use super::run::{Row, Run};
use super::series::Sweep;
use crate::failure::Failure;
use crate::sink::{self, JsonSink};

/// Options of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// JSON of runs and sweeps, as --json writes it
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the page goes; - = stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The longest file that is read; what --json writes is far shorter.
const FILE_MAX: u64 = 64 << 20;

/// Counters in the tables, with their heads.
const COUNTERS: [(&str, &str); 8] = [
    ("data_packets", "packets"),
    ("retransmitted", "retransmitted"),
    ("trimmed", "trimmed"),
    ("ho_lost", "HO lost"),
    ("dropped", "dropped"),
    ("duplicates", "duplicates"),
    ("timeouts", "timeouts"),
    ("cnps", "CNPs"),
];

const STYLE: &str = "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}\
    h1,h2{font-weight:600}h2{margin-top:2em;border-bottom:1px solid #ccc}\
    .wide{overflow-x:auto}table{border-collapse:collapse;margin:1em 0}\
    th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}\
    th:first-child,td:first-child{text-align:left}.failed{color:#b00020}\
    dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em}dt{color:#666}dd{margin:0}svg{max-width:100%}";

/// Reads the files and writes the page.
///
/// # Errors
/// A usage failure that names the file with nothing to report, an environment failure when the page cannot be written.
pub(super) fn run(args: &ReportArgs) -> Result<u8, Failure> {
    for path in &args.files {
        sink::refuse_one_file_twice(&[("FILE", Some(path)), ("--output", Some(&args.output))])?;
    }
    let documents: Vec<Document> =
        args.files.iter().map(|path| Document::read(path)).collect::<Result<_, _>>()?;
    JsonSink::open("--output", Some(&args.output))?.write(&page(&documents))?;
    Ok(0)
}

/// One file.
#[derive(Debug)]
struct Document {
    name: String,
    json: Value,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Run(Run),
    Sweep(Sweep),
    /// A run that failed, and why.
    Failed(String),
}

impl Document {
    fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let bytes = read(path).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(Failure::usage(format!(
                "{name} is longer than 64 MiB, which no result of dcp-bench is"
            )));
        }
        let json: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::usage(format!("{name} is not JSON: {error}")))?;
        let content = Content::read(&json).map_err(|why| {
            Failure::usage(format!("{name} is not from dcp-bench's --json: {why}"))
                .with_hint("give it files that an operation or a sweep wrote with --json")
        })?;
        Ok(Self { name, json, content })
    }
}

/// A file, or what shows that it is too long.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Content {
    fn read(json: &Value) -> Result<Self, String> {
        if json["tool"] != "dcp-bench" {
            return Err("its tool is another, or none".to_owned());
        }
        if let Some(message) = json["error"]["message"].as_str() {
            return Ok(Self::Failed(message.to_owned()));
        }
        if json["mode"] == "sweep" {
            Sweep::read(json).map(Self::Sweep)
        } else {
            Run::read(json).map(Self::Run)
        }
    }
}

fn page(documents: &[Document]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "dcp-bench report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "dcp-bench report" }
                @for document in documents { (section(document)) }
            }
        }
    };
    format!("{}\n", page.into_string())
}

fn section(document: &Document) -> Markup {
    html! {
        section {
            h2 { (document.name) }
            @match &document.content {
                Content::Run(run) => { (run_section(run)) }
                Content::Sweep(sweep) => { (sweep_section(sweep)) }
                Content::Failed(message) => { p.failed { "failed: " (message) } }
            }
            (settings(&document.json))
        }
    }
}

fn run_section(run: &Run) -> Markup {
    html! {
        @if run.interrupted { p.failed { "stopped before its end" } }
        @if let Some(chart) = run.chart() { (drawing(&chart)) }
        .wide { table {
            thead { tr { th { "bytes" } (heads(run.is_latency())) } }
            tbody { @for row in &run.results { tr { td { (row.size_bytes) } (cells(row, run.is_latency())) } } }
        } }
    }
}

fn sweep_section(sweep: &Sweep) -> Markup {
    let is_latency = sweep.points.iter().filter_map(|point| point.run.as_ref()).any(Run::is_latency);
    html! {
        @if sweep.interrupted { p.failed { "stopped before its end" } }
        (drawing(&sweep.chart()))
        .wide { table {
            thead { tr { th { "--" (sweep.option) } th { "result" } th { "bytes" } (heads(is_latency)) } }
            tbody { @for point in &sweep.points {
                @if let Some(run) = &point.run {
                    @for row in &run.results {
                        tr { td { (point.value) } td { (point.result) } td { (row.size_bytes) } (cells(row, is_latency)) }
                    }
                } @else {
                    tr.failed { td { (point.value) } td { (point.result) } td colspan="20" { (why(point.error.as_ref())) } }
                }
            } }
        } }
    }
}

fn why(error: Option<&super::series::SweepError>) -> String {
    match error {
        Some(error) => match &error.status {
            Some(status) => format!("{status}: {}", error.message),
            None => error.message.clone(),
        },
        None => "it does not say why".to_owned(),
    }
}

/// A plot, or why there is none. It escapes what it is given.
fn drawing(chart: &Chart) -> Markup {
    match plot::svg(chart) {
        Ok(svg) => html! { figure { (PreEscaped(svg)) } },
        Err(why) => html! { p { (why) } },
    }
}

/// The rate is that of an open loop; a ping-pong has none.
const LATENCY_HEADS: [&str; 9] =
    ["average Gb/s", "min us", "p50 us", "avg us", "p90 us", "p99 us", "p99.9 us", "max us", "stdev us"];
const BANDWIDTH_HEADS: [&str; 3] = ["average Gb/s", "peak Gb/s", "Mmsg/s"];

/// Heads of the columns after the size.
fn heads(is_latency: bool) -> Markup {
    let rates: &[&str] = if is_latency { &LATENCY_HEADS } else { &BANDWIDTH_HEADS };
    html! {
        th { "iterations" } th { "seconds" }
        @for head in rates { th { (head) } }
        th { "verified" }
        @for (_, head) in COUNTERS { th { (head) } }
    }
}

/// The cells under [`heads`].
fn cells(row: &Row, is_latency: bool) -> Markup {
    let rates: Vec<Option<f64>> = if is_latency {
        let columns = row.lat_us.as_ref().map(super::run::Latency::columns);
        let latencies =
            columns.map_or([None; LATENCY_HEADS.len() - 1], |columns| columns.map(|(_, value)| value));
        std::iter::once(row.bw_average_gbps).chain(latencies).collect()
    } else {
        vec![row.bw_average_gbps, row.bw_peak_gbps, row.msg_rate_mpps]
    };
    let verified = row.verified.map_or("not checked", |verified| if verified { "yes" } else { "no" });
    html! {
        td { (row.iterations) } td { (number(Some(row.seconds))) }
        @for rate in rates { td { (number(rate)) } }
        td { (verified) }
        @for (name, _) in COUNTERS { td { (row.counter(name)) } }
    }
}

/// With four digits that matter, also for what is far below one.
fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) if value.abs() < 1.0 => format!("{value:.5}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// Everything at the top of the JSON that is one value, and the notes.
fn settings(json: &Value) -> Markup {
    let all = json.as_object().into_iter().flatten();
    let simple = all.filter(|(_, value)| !value.is_object() && !value.is_array() && !value.is_null());
    let lists = ["options", "notes"].map(|key| json[key].as_array());
    let words = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
    html! {
        details {
            summary { "settings and notes" }
            dl { @for (key, value) in simple { dt { (key) } dd { (plain(value)) } } }
            ul { @for word in words { li { (word) } } }
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(json: Value) -> Document {
        Document { name: "a.json".to_owned(), content: Content::read(&json).unwrap(), json }
    }

    fn run(mode: &str, sizes: &[u64]) -> Value {
        let lat = json!({"min": 1.0, "p50": 2.0, "avg": 2.5, "p90": 3.0, "p99": 4.0, "p999": 5.0, "max": 6.0, "stdev": null});
        let rows: Vec<Value> = sizes
            .iter()
            .map(|size| {
                json!({"size_bytes": size, "iterations": 77, "seconds": 0.5,
                "bw_average_gbps": 12.3456, "bw_peak_gbps": null, "msg_rate_mpps": 0.012, "verified": true,
                "lat_us": if mode == "lat" { lat.clone() } else { Value::Null }, "net": {"trimmed": 987}})
            })
            .collect();
        json!({"tool": "dcp-bench", "op": "write", "mode": mode, "seed": 42, "notes": ["a remark"], "results": rows})
    }

    fn sweep() -> Value {
        let error = json!({"kind": "transfer", "status": "RETRY_EXC_ERR (12)", "message": "it is lost", "hint": null});
        json!({"tool": "dcp-bench", "op": "write", "mode": "sweep", "option": "trim", "options": ["--size=1M"], "points": [
            {"value": "0", "result": "ok", "run": run("bw", &[64]), "error": null},
            {"value": "5%", "result": "failed", "run": null, "error": error}]})
    }

    #[test]
    fn page_has_a_section_with_table_and_plot_for_each_file() {
        let error = json!({"tool": "dcp-bench", "error": {"message": "no memory"}});
        let all = [run("bw", &[64, 128]), run("lat", &[2]), sweep(), error].map(document);
        let text = page(&all);
        assert_eq!((text.matches("<section>").count(), text.matches("<svg").count()), (4, 3));
        for words in [
            "<td>12.35</td>",
            "<td>987</td>",
            "<td>5.00</td>",
            "RETRY_EXC_ERR (12): it is lost",
            "failed: no memory",
            "<dd>42</dd>",
            "<li>a remark</li>",
            "<li>--size=1M</li>",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn page_asks_for_nothing_from_elsewhere() {
        let text = page(&[document(run("bw", &[64, 128])), document(sweep())]);
        let without_names = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for word in ["http", "<script", "<link", "<img", "src=", "@import", "url("] {
            assert!(!without_names.contains(word), "{word}");
        }
    }

    #[test]
    fn nothing_from_a_file_becomes_markup() {
        let evil = "<script>alert(1)</script>\"'&";
        let mut run = run("bw", &[64, 128]);
        for key in ["op", "seed"] {
            run[key] = evil.into();
        }
        run[evil] = evil.into();
        run["notes"] = json!([evil]);
        let mut sweep = sweep();
        for key in ["option", "op"] {
            sweep[key] = evil.into();
        }
        sweep["options"] = json!([evil]);
        for (point, key) in [(0, "value"), (0, "result"), (1, "value"), (1, "result")] {
            sweep["points"][point][key] = evil.into();
        }
        sweep["points"][1]["error"] = json!({"status": evil, "message": evil});
        let failed = json!({"tool": "dcp-bench", "error": {"message": evil}});
        let mut all = [run, sweep, failed].map(document);
        all[0].name = evil.to_owned();
        let text = page(&all);
        assert!(!text.contains("<script") && text.matches("&lt;script&gt;").count() >= 15, "{text}");
    }

    #[test]
    fn other_json_is_told_from_results() {
        for (json, words) in [
            (json!([1]), "its tool is another"),
            (json!({"tool": "dcp-switch"}), "its tool is another"),
            (json!({"tool": "dcp-bench", "mode": "check"}), "no results of a run"),
            (json!({"tool": "dcp-bench", "mode": "sweep"}), "no results of a sweep"),
            (json!({"tool": "dcp-bench", "op": "write", "mode": "bw", "results": []}), "is empty"),
        ] {
            let why = Content::read(&json).unwrap_err();
            assert!(why.contains(words), "{json}: {why}");
        }
    }
}
