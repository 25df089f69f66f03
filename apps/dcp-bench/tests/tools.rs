//! What the program does besides measuring, seen from outside.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use common::{Running, assert_code, assert_refused, command, file, json, json_in, object, output, run, text};

#[test]
fn check_says_what_there_is_and_what_to_run() {
    let output = run("check");
    assert_code(&output, 0, "check");
    let words = text(&output.stdout);
    for section in
        ["DPDK", "huge pages", "cores", "permissions", "kernel", "container", "runtime dir", "loop"]
    {
        assert!(words.lines().any(|line| line.starts_with(section)), "{section}: {words}");
    }
    assert!(words.contains("best here     dcp-bench write --size 1M"), "{words}");
}

#[test]
fn check_is_one_json_object_on_stdout_or_in_a_file() {
    let json = object(&run("check --json"), 0, "check --json");
    assert_eq!((&json["tool"], &json["mode"]), (&"dcp-bench".into(), &"check".into()));
    assert_eq!(json["loop"]["starts"], true);
    let drivers = json["dpdk"]["drivers"].as_array().expect("a list");
    assert!(drivers.iter().any(|it| it["name"] == "net_ring" && it["present"] == true), "{json}");
    let path = file("check.json");
    let output = output(command("check --json").arg(&path));
    assert!(text(&output.stdout).contains("best here"));
    let json = json_in(&path);
    assert!(json["cores"]["available"].as_array().is_some_and(|cores| !cores.is_empty()), "{json}");
}

/// Points of a sweep by value: result, and a counter.
fn points<'a>(json: &'a Value, counter: &str) -> Vec<(&'a str, &'a str, Option<u64>)> {
    let points = json["points"].as_array().expect("a list").iter();
    let word = |value: &'a Value| value.as_str().expect("a word");
    let net = |point: &Value| point["run"]["results"][0]["net"][counter].as_u64();
    points.map(|point| (word(&point["value"]), word(&point["result"]), net(point))).collect()
}

#[test]
fn sweep_of_trimming_has_every_point_in_table_csv_json_and_plot() {
    let [json, csv, svg] = ["trims.json", "trims.csv", "trims.svg"].map(file);
    let line = "sweep write --size 256K -n 40 --trim 0,1%,5% --report_gbits";
    let mut sweep = command(line);
    let output = output(sweep.arg("--json").arg(&json).arg("--csv").arg(&csv).arg("--svg").arg(&svg));
    assert_code(&output, 0, line);
    let table = text(&output.stdout);
    let json = json_in(&json);
    let trimmed = points(&json, "trimmed");
    assert_eq!(trimmed, [("0", "ok", Some(0)), ("1%", "ok", trimmed[1].2), ("5%", "ok", trimmed[2].2)]);
    assert!(trimmed[1].2 > Some(0) && trimmed[2].2 > trimmed[1].2, "{trimmed:?}");
    assert_eq!(points(&json, "retransmitted"), trimmed);
    assert!(
        json["points"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|it| it["run"]["results"][0]["verified"] == true)
    );
    let csv = std::fs::read_to_string(csv).expect("it is there");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    for value in ["0", "1%", "5%"] {
        assert!(
            table.lines().any(|line| line.split_whitespace().take(4).eq([value, "ok", "262144", "40"])),
            "{table}"
        );
        assert!(csv.lines().any(|line| line.starts_with(&format!("{value},ok,,262144,40,"))), "{csv}");
    }
    let svg = std::fs::read_to_string(svg).expect("it is there");
    assert!(svg.starts_with("<svg") && svg.matches("<circle").count() == 3, "{svg}");
}

#[test]
fn point_without_retries_left_is_a_failed_row_and_the_sweep_goes_on() {
    let line = "sweep write -n 20 -u 4 --retry-cnt 1 --drop 0,100%,0.0 --quiet --json -";
    let output = run(line);
    let json = object(&output, 1, line);
    let results: Vec<_> = points(&json, "dropped").iter().map(|(_, result, _)| *result).collect();
    assert_eq!(results, ["ok", "failed", "ok"]);
    assert_eq!(json["points"][1]["error"]["status"], "RETRY_EXC_ERR (12)");
    assert_eq!((&json["points"][1]["exit_code"], &json["interrupted"]), (&1.into(), &false.into()));
    let table = text(&output.stderr);
    assert!(table.contains(" 100%       failed   RETRY_EXC_ERR (12)"), "{table}");
}

#[test]
fn sizes_queue_pairs_mtus_and_hosts_can_be_swept() {
    for (list, sum) in [("--size 1,64K", 40), ("--qp 1,3", 80), ("-m 256,4096", 40), ("--hosts 2,5", 100)] {
        let json = json(&format!("sweep send -n 20 {list} --quiet"), 0);
        let points = json["points"].as_array().expect("a list").iter();
        let messages: Option<u64> = points.map(|it| it["run"]["results"][0]["iterations"].as_u64()).sum();
        assert_eq!(messages, Some(sum), "{list}");
    }
}

#[test]
fn sweep_that_makes_no_sense_is_refused_before_it_runs() {
    for (line, sentence) in [
        ("sweep write --trim 1%", "one option of a sweep has a list"),
        ("sweep write --trim 0,1% --size 1,2", "one option of a sweep has a list"),
        ("sweep write --trim 0,200%", "a probability is 0 to 1"),
        ("sweep write --qp 1,16385", "--qp is 16385, but must be 1 to 16384"),
        ("sweep write --mtu 256,1500", "--mtu is 1500"),
        ("sweep write --server --size 1,2", "--server means nothing in a sweep"),
    ] {
        let output = assert_refused(&format!("{line} --json -"), sentence);
        let stderr = text(&output.stderr);
        assert!(!stderr.contains("Usage:") && !stderr.contains("\n\n"), "{line}: {stderr}");
        assert_eq!(object(&output, 2, line)["error"]["kind"], "usage", "{line}");
    }
}

#[test]
fn help_of_sweep_names_where_results_go() {
    let help = text(&run("sweep --help").stdout);
    assert!(["--csv", "--svg", "--json"].iter().all(|option| help.contains(option)), "{help}");
}

#[test]
fn one_file_for_two_results_is_refused() {
    let path = file("twice");
    for (line, options) in [
        ("sweep write -n 1 --size 1,2 --csv FILE --svg FILE", "--csv and --svg"),
        ("write -n 1 --csv FILE --pcap FILE", "--csv and --pcap"),
        ("report FILE -o FILE", "FILE and --output"),
    ] {
        std::fs::write(&path, "precious").expect("it can be written");
        let line = line.replace("FILE", &path.display().to_string());
        assert_refused(&line, &format!("{options} are the same file"));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "precious", "{line}");
    }
}

#[test]
fn hint_for_what_cannot_be_written_names_its_option() {
    for (line, option) in [
        ("sweep write -n 1 --size 1,2 --svg /nonexistent/a", "--svg"),
        ("write -n 1 --csv /nonexistent/a", "--csv"),
    ] {
        let output = run(line);
        assert_code(&output, 3, line);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(&format!("give {option} a file")), "{line}: {stderr}");
    }
}

#[test]
fn stopped_sweep_keeps_what_it_has_and_leaves_no_run_behind() {
    let path = file("stopped.json");
    let mut sweep = command("sweep write -D 60 --size 1K,2K --json");
    let sweep = Running::start(sweep.arg(&path).stdout(Stdio::piped()).stderr(Stdio::null()));
    let pid = sweep.id();
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    while children().trim().is_empty() {
        std::thread::yield_now();
    }
    let run = children().trim().to_owned();
    sweep.signal("INT");
    assert_code(&sweep.end(), 130, "INT");
    assert!(!Path::new(&format!("/proc/{run}")).exists(), "{run} is still there");
    let json = json_in(&path);
    assert_eq!(json["interrupted"], true, "{json}");
    assert_eq!(json["points"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["points"][0]["result"], "stopped", "{json}");
}

#[test]
fn report_is_one_page_of_runs_sweeps_and_failures() {
    let [single, sweep, failed, page] = ["run.json", "sweep.json", "failed.json", "page.html"].map(file);
    for (line, path, code) in [
        ("write -n 10", &single, 0),
        ("sweep write -n 10 --size 64,4K", &sweep, 0),
        ("write --mtu 1500", &failed, 2),
    ] {
        assert_code(&output(command(line).arg("--json").arg(path)), code, line);
    }
    let mut report = command("report");
    let output = output(report.args([&single, &sweep, &failed]).arg("-o").arg(&page));
    assert_code(&output, 0, "report");
    let page = std::fs::read_to_string(page).expect("it is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert_eq!((page.matches("<section>").count(), page.matches("<svg").count()), (3, 1));
    assert!(page.contains("<td>65536</td><td>10</td>") && page.contains("failed: --mtu is 1500"), "{page}");
    assert!(!page.contains("<script") && !page.contains("src="));
}

#[test]
fn report_of_what_is_no_result_names_the_file() {
    let broken = file("broken.json");
    std::fs::write(&broken, "{\"tool\": \"dcp-bench\", ").expect("it can be written");
    let other = file("other.json");
    std::fs::write(&other, "{\"tool\": \"dcp-switch\"}").expect("it can be written");
    let missing = file("missing.json");
    for (path, sentence) in
        [(&broken, "is not JSON"), (&other, "is not from dcp-bench's --json"), (&missing, "cannot read")]
    {
        let page = file("never.html");
        let output = output(command("report").arg(path).arg("-o").arg(&page));
        assert_code(&output, 2, sentence);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(path.to_str().expect("plain")) && stderr.contains(sentence), "{stderr}");
        assert!(!page.exists());
    }
}

#[test]
fn report_of_a_file_without_end_is_refused() {
    let page = file("endless.html");
    assert_refused(&format!("report /dev/zero -o {}", page.display()), "/dev/zero is longer than 64 MiB");
    assert!(!page.exists());
}

#[test]
fn completions_and_man_page_are_printed() {
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef dcp-bench"), ("fish", "complete -c dcp-bench")]
    {
        let output = run(&format!("completions {shell}"));
        assert_code(&output, 0, shell);
        let script = text(&output.stdout);
        assert!(script.contains(word) && script.contains("retry-cnt"), "{shell}");
    }
    let output = run("man");
    assert_code(&output, 0, "man");
    assert!(text(&output.stdout).contains(".TH dcp-bench 1"));
    assert_code(&run("completions tcsh"), 2, "completions tcsh");
}

/// What bash offers for the last of some words, with our script.
fn bash_offers(words: &str) -> Option<String> {
    let script = text(&run("completions bash").stdout);
    let count = words.split(' ').count() - 1;
    let last = words.split(' ').next_back().unwrap_or_default();
    let ask = format!(
        "COMP_WORDS=({words}); COMP_CWORD={count}; $(complete -p dcp-bench | grep -o '_dcp[^ ]*') dcp-bench {last} x; \
         echo \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output().ok()?;
    Some(text(&output.stdout))
}

#[test]
fn bash_completes_subcommands_and_options() {
    for (words, offer) in [
        ("dcp-bench swe", "sweep"),
        ("dcp-bench write --tri", "--trim"),
        ("dcp-bench send-imm --retry-c", "--retry-cnt"),
        ("dcp-bench sweep read --sv", "--svg"),
        ("dcp-bench check --js", "--json"),
    ] {
        let Some(offered) = bash_offers(words) else { return println!("skipped: there is no bash") };
        assert_eq!(offered.trim(), offer, "{words}");
    }
}
