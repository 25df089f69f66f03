//! What the program does besides measuring, seen from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dcp-bench"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path of its own for each test.
fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn check_says_what_there_is_and_what_to_run() {
    let output = bench(&["check"]);
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{words}{}", text(&output.stderr));
    for section in
        ["DPDK", "huge pages", "cores", "permissions", "kernel", "container", "runtime dir", "loop"]
    {
        assert!(words.lines().any(|line| line.starts_with(section)), "{section}: {words}");
    }
    assert!(words.contains("best here     dcp-bench write --size 1M"), "{words}");
}

#[test]
fn check_is_one_json_object_on_stdout_or_in_a_file() {
    let output = bench(&["check", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object");
    assert_eq!((&json["tool"], &json["mode"]), (&"dcp-bench".into(), &"check".into()));
    assert_eq!((output.status.code(), &json["loop"]["starts"]), (Some(0), &true.into()));
    let drivers = json["dpdk"]["drivers"].as_array().expect("a list");
    assert!(drivers.iter().any(|it| it["name"] == "net_ring" && it["present"] == true), "{json}");
    let path = file("check.json");
    let output = bench(&["check", "--json", path.to_str().expect("plain")]);
    assert!(text(&output.stdout).contains("best here"));
    let json: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    assert!(json["cores"]["available"].as_array().is_some_and(|cores| !cores.is_empty()), "{json}");
}

/// The JSON in a file that a run wrote.
#[track_caller]
fn json_in(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("it is JSON")
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
    let names = [&json, &csv, &svg].map(|path| path.to_str().expect("plain"));
    let line = ["sweep", "write", "--size", "256K", "-n", "40", "--trim", "0,1%,5%", "--report_gbits"];
    let output = bench(&[&line[..], &["--json", names[0], "--csv", names[1], "--svg", names[2]]].concat());
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}{}", text(&output.stderr));
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
    let output = bench(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object");
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
        let line = format!("sweep send -n 20 {list} --json - --quiet");
        let output = bench(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{list}: {}", text(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object");
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
        let output = bench(&line.split(' ').chain(["--json", "-"]).collect::<Vec<_>>());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(sentence), "{line}: {stderr}");
        assert!(!stderr.contains("Usage:") && !stderr.contains("\n\n"), "{line}: {stderr}");
        let json: Value = serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object");
        assert_eq!(json["error"]["kind"], "usage", "{line}");
    }
}

#[test]
fn help_of_sweep_names_where_results_go() {
    let help = text(&bench(&["sweep", "--help"]).stdout);
    assert!(["--csv", "--svg", "--json"].iter().all(|option| help.contains(option)), "{help}");
}

#[test]
fn one_file_for_two_results_is_refused() {
    let path = file("twice");
    let name = path.to_str().expect("plain");
    for (line, options) in [
        ("sweep write -n 1 --size 1,2 --csv FILE --svg FILE", "--csv and --svg"),
        ("write -n 1 --csv FILE --pcap FILE", "--csv and --pcap"),
        ("report FILE -o FILE", "FILE and --output"),
    ] {
        std::fs::write(&path, "precious").expect("it can be written");
        let words: Vec<&str> = line.split(' ').map(|word| if word == "FILE" { name } else { word }).collect();
        let output = bench(&words);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(&format!("{options} are the same file")), "{line}: {stderr}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "precious", "{line}");
    }
}

#[test]
fn hint_for_what_cannot_be_written_names_its_option() {
    for (line, option) in [
        ("sweep write -n 1 --size 1,2 --svg /nonexistent/a", "--svg"),
        ("write -n 1 --csv /nonexistent/a", "--csv"),
    ] {
        let output = bench(&line.split(' ').collect::<Vec<_>>());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{line}: {stderr}");
        assert!(stderr.contains(&format!("give {option} a file")), "{line}: {stderr}");
    }
}

#[test]
fn stopped_sweep_keeps_what_it_has_and_leaves_no_run_behind() {
    let path = file("stopped.json");
    let line = format!("sweep write -D 60 --size 1K,2K --json {}", path.display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_dcp-bench"))
        .args(line.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let pid = child.id().to_string();
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    while children().trim().is_empty() {
        std::thread::yield_now();
    }
    let run = children().trim().to_owned();
    // By the shell's own `kill`: minimal systems have no such program.
    let stop = format!("kill -s INT {pid}");
    let status = Command::new("sh").args(["-c", &stop]).status().expect("there is a shell");
    assert!(status.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(!Path::new(&format!("/proc/{run}")).exists(), "{run} is still there");
    let json = json_in(&path);
    assert_eq!(json["interrupted"], true, "{json}");
    assert_eq!(json["points"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["points"][0]["result"], "stopped", "{json}");
}

#[test]
fn report_is_one_page_of_runs_sweeps_and_failures() {
    let [run, sweep, failed, page] = ["run.json", "sweep.json", "failed.json", "page.html"].map(file);
    let name = |path: &PathBuf| path.to_str().expect("plain").to_owned();
    for (line, path, code) in [
        ("write -n 10", &run, 0),
        ("sweep write -n 10 --size 64,4K", &sweep, 0),
        ("write --mtu 1500", &failed, 2),
    ] {
        let words = line.split(' ').map(str::to_owned).chain(["--json".to_owned(), name(path)]);
        let words: Vec<String> = words.collect();
        let output = bench(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
    }
    let output = bench(&["report", &name(&run), &name(&sweep), &name(&failed), "-o", &name(&page)]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
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
        let name = path.to_str().expect("plain");
        let output = bench(&["report", name, "-o", page.to_str().expect("plain")]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains(sentence), "{stderr}");
        assert!(!page.exists());
    }
}

#[test]
fn report_of_a_file_without_end_is_refused() {
    let page = file("endless.html");
    let output = bench(&["report", "/dev/zero", "-o", page.to_str().expect("plain")]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("/dev/zero is longer than 64 MiB") && !page.exists(), "{stderr}");
}

#[test]
fn completions_and_man_page_are_printed() {
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef dcp-bench"), ("fish", "complete -c dcp-bench")]
    {
        let output = bench(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        assert!(script.contains(word) && script.contains("retry-cnt"), "{shell}");
    }
    let output = bench(&["man"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains(".TH dcp-bench 1"));
    assert_eq!(bench(&["completions", "tcsh"]).status.code(), Some(2));
}

/// What bash offers for the last of some words, with our script.
fn bash_offers(words: &str) -> Option<String> {
    let script = text(&bench(&["completions", "bash"]).stdout);
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
