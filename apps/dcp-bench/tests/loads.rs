//! Sizes, loads and what is told of them, on the loop device. Nothing here depends on how fast it is.

mod common;

use serde_json::Value;

use common::{assert_code, assert_refused, file, json, json_in, results, run, text};

#[test]
fn all_sizes_have_a_row_each() {
    for (op, options) in [("write", "-a -n 3"), ("send", "-a -n 2 -q 2"), ("write", "-a -n 3 --lat")] {
        let json = results(&format!("{op} {options}"));
        let rows = json["results"].as_array().unwrap();
        let sizes: Vec<u64> = rows.iter().map(|row| row["size_bytes"].as_u64().unwrap()).collect();
        assert_eq!(sizes, (1..=23).map(|exponent| 1u64 << exponent).collect::<Vec<_>>(), "{op} {options}");
        let qps = if options.contains("-q 2") { 2 } else { 1 };
        let n = if options.contains("-n 2") { 2 } else { 3 };
        assert!(rows.iter().all(|row| row["iterations"] == n * qps), "{json}");
        if options.contains("--lat") {
            assert_eq!(rows[0]["lat_trigger"], "last_byte");
            assert_eq!(rows[22]["lat_trigger"], "immediate");
        }
    }
}

#[test]
fn table_of_all_sizes_has_one_head_and_one_footer() {
    let output = run("write -a -n 2");
    let table = text(&output.stdout);
    assert_eq!(table.matches("#iterations").count(), 1, "{table}");
    assert_eq!(table.matches(" network: ").count(), 1, "{table}");
    assert!(table.trim_end().ends_with("data verified"), "{table}");
}

#[test]
fn rows_are_written_as_csv() {
    let path = file("rows.csv");
    let json = results(&format!("write -a -n 3 --csv {}", path.display()));
    let csv = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 24);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let column = |name: &str| lines[0].iter().position(|head| *head == name).expect("a head");
    for (line, row) in lines[1..].iter().zip(json["results"].as_array().unwrap()) {
        assert_eq!(line[column("size_bytes")], row["size_bytes"].to_string());
        assert_eq!(line[column("data_packets")], row["net"]["data_packets"].to_string());
        assert_eq!((line[column("lat_min_us")], line[column("verified")]), ("", "true"));
    }
    let output = run("send --lat -n 5 --csv -");
    let (csv, table) = (text(&output.stdout), text(&output.stderr));
    assert!(csv.starts_with("op,mode,") && csv.contains("send,lat,\"loop\",2,5,"), "{csv}");
    assert!(table.contains("#iterations"), "{table}");
}

#[test]
fn intervals_add_up_to_the_run() {
    for options in ["-D 0.5", "-D 0.5 --threads split -q 4", "-n 3000 -s 1M"] {
        let json = results(&format!("write {options} --interval 0.1"));
        let row = &json["results"][0];
        let intervals = row["intervals"].as_array().expect("intervals");
        let messages: u64 = intervals.iter().map(|it| it["messages"].as_u64().unwrap()).sum();
        let bytes: u64 = intervals.iter().map(|it| it["bytes"].as_u64().unwrap()).sum();
        assert_eq!(Some(messages), row["iterations"].as_u64(), "{options}");
        assert_eq!(bytes, messages * row["size_bytes"].as_u64().unwrap(), "{options}");
    }
    let output = run("write -D 0.5 --interval 0.1 --quiet");
    let table = text(&output.stdout);
    let rows = table.lines().filter(|line| line.split_whitespace().next().is_some_and(is_span)).count();
    assert!(rows >= 2, "{table}");
}

/// Whether it is a stretch of time such as `0.00-0.10s`.
fn is_span(word: &str) -> bool {
    word.strip_suffix('s')
        .and_then(|word| word.split_once('-'))
        .is_some_and(|(from, to)| from.parse::<f64>().is_ok() && to.parse::<f64>().is_ok())
}

#[test]
fn perftests_way_to_ask_for_json_works() {
    let path = file("perftest.json");
    let output = run(&format!("write -n 5 --out_json --out_json_file={}", path.display()));
    assert_code(&output, 0, "--out_json_file");
    let json = json_in(&path);
    assert_eq!(json["results"][0]["iterations"], 5);
    let output = run(&format!("write -n 0 --out_json_file {}", path.display()));
    assert_eq!(output.status.code(), Some(2));
    let json = json_in(&path);
    assert_eq!(json["error"]["kind"], "usage");
}

#[test]
fn options_without_meaning_here_are_accepted_with_a_note() {
    let json = results("write -n 5 -F -x 3 -i 1 -R");
    let notes = json["notes"].to_string();
    for option in ["-F", "-x", "-i", "-R"] {
        assert!(notes.contains(&format!("{option} means nothing here")), "{notes}");
    }
}

#[test]
fn lists_are_posted_and_every_message_completes() {
    for (n, list, depth, cq_mod) in [(1001, 7, 16, 100), (100, 16, 16, 3), (5, 4, 4, 100), (1001, 1, 1, 1)] {
        let json = results(&format!("write -s 64 -n {n} -l {list} -t {depth} -Q {cq_mod} -q 3"));
        assert_eq!(json["results"][0]["iterations"], n * 3, "{n} {list} {depth} {cq_mod}");
    }
}

#[test]
fn bandwidth_below_the_limit_fails_the_run() {
    let json = json("write -n 5 -s 64 -w 1e5", 1);
    assert!(json["error"]["message"].as_str().is_some_and(|text| text.contains("below --limit_bw 100000")));
    results("write -n 50 -w 1e-9");
}

#[test]
fn peak_is_left_out_and_margins_too() {
    assert!(results("write -n 50 -N")["results"][0]["bw_peak_gbps"].is_null());
    let row = results("write -D 0.6 -f 0.2")["results"][0].clone();
    assert!(row["iterations"].as_u64() > Some(0), "{row}");
}

#[test]
fn several_queue_pairs_have_a_fairness() {
    for (options, qps) in [("-q 8 -n 200 -s 4096", 8), ("--hosts 5 -q 2 -n 50", 8)] {
        let fairness = results(&format!("write {options}"))["results"][0]["fairness"].clone();
        assert_eq!(fairness["qps"], qps, "{options}");
        for key in ["min_over_mean", "jain"] {
            let value = fairness[key].as_f64().expect("a number");
            assert!(value > 0.0 && value <= 1.0 + 1e-9, "{options}: {fairness}");
        }
    }
    assert!(results("write -n 50")["results"][0]["fairness"].is_null());
    let output = run("write -q 4 -n 50");
    assert!(text(&output.stdout).contains("fairness of 4 queue pairs: min/mean "));
}

#[test]
fn open_loop_load_sends_every_message_and_times_it() {
    for (op, arrivals) in [("write", "poisson"), ("send", "fixed"), ("read", "poisson"), ("faa", "fixed")] {
        let size = if op == "faa" { "" } else { "-s 4096" };
        let json = results(&format!("{op} {size} -n 200 -q 3 --rate 0.1 --arrivals {arrivals}"));
        let row = &json["results"][0];
        assert_eq!((&json["mode"], &json["arrivals"]), (&"load".into(), &arrivals.into()), "{op}");
        assert_eq!((&row["iterations"], &row["overdue"]), (&600.into(), &0.into()), "{op}");
        assert!(row["lat_us"]["p99"].as_f64() > Some(0.0) && row["bw_average_gbps"].is_number(), "{row}");
    }
}

#[test]
fn load_that_cannot_be_sent_says_what_is_left() {
    let json = results("write -s 1M --rate 100000 --arrivals fixed -D 0.3 -t 2");
    let row = &json["results"][0];
    assert!(row["overdue"].as_u64() > Some(0), "{row}");
    assert!(json["notes"].to_string().contains("were due and not sent"), "{json}");
}

#[test]
fn pace_does_not_exceed_what_was_asked() {
    // Slow enough for any machine: 50 messages of 10^4 bytes are 4 ms of 1 Gb/s.
    let json = results("write -s 10000 -n 50 -q 2 --rate 1");
    let gbps = json["results"][0]["bw_average_gbps"].as_f64().unwrap();
    assert!(gbps <= 1.1, "{gbps}");
    assert_eq!(json["rate_gbps"], 1.0);
}

#[test]
fn sizes_are_drawn_and_arrive_whole() {
    for (op, options) in
        [("write", "-n 40"), ("send", "-n 20 -q 2"), ("read", "-n 20"), ("write-imm", "-n 10 --verify")]
    {
        let json = results(&format!("{op} {options} --size-dist websearch --seed 7"));
        let again = results(&format!("{op} {options} --size-dist websearch --seed 7"));
        assert_eq!(json["size_dist"], "websearch");
        assert_eq!(json["results"][0]["size_bytes"], 30_000_000);
        let packets = |json: &Value| json["results"][0]["net"]["data_packets"].as_u64();
        assert!(packets(&json) > Some(40) && packets(&json) == packets(&again), "{op}: {json}");
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (op, options, sentence) in [
        ("write", "-a -s 64", "cannot be used with"),
        ("cas", "-a", "atomics have 8 bytes"),
        ("write", "--arrivals fixed", "--rate"),
        ("write", "-l 129", "--post_list is 129, but must be 1 to 128"),
        ("write", "-l 0", "--post_list is 0, but must be 1 to 128"),
        ("write", "--rate 0", "a rate is a number of Gb/s"),
        ("write", "--rate 1e-6", "--rate must be at least 0.0001"),
        ("write", "--lat --rate 1", "--rate is for bandwidth"),
        ("write", "--lat --size-dist websearch", "--size-dist is for bandwidth"),
        ("faa", "--size-dist websearch", "atomics have 8 bytes"),
        ("write", "--size-dist websearch -s 64", "cannot be used with"),
        ("write", "-D 1 -f 0.5", "-f leaves nothing of --duration"),
        ("write", "-f 1", "--duration"),
        ("write", "--json - --csv -", "cannot both go to stdout"),
    ] {
        assert_refused(&format!("{op} {options}"), sentence);
    }
}
