//! What the program refuses before anything runs: exit code, sentence, JSON.

mod common;

use common::{assert_code, command, file, json_in, object, output, run, text};

/// Ends the test unless `write` with these options is refused with a sentence, and nothing else is said.
#[track_caller]
fn assert_refused(options: &str, sentence: &str) {
    let output = common::assert_refused(&format!("write {options}"), sentence);
    assert!(output.stdout.is_empty(), "{options}");
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    for (options, sentence) in [
        ("-s 1073741825", "--size is 1073741825, but must be 0 to 1073741824"),
        ("--size 2G", "--size is 2147483648, but must be 0 to 1073741824"),
        ("-q 0", "--qp is 0, but must be 1 to 16384"),
        ("-q 16385", "--qp is 16385, but must be 1 to 16384"),
        ("-t 0", "--tx-depth is 0, but must be 1 to 16384"),
        ("-t 16385", "--tx-depth is 16385, but must be 1 to 16384"),
        ("-r 0", "--rx-depth is 0, but must be 1 to 32768"),
        ("-r 32769", "--rx-depth is 32769, but must be 1 to 32768"),
        ("--rnr-retry 8", "--rnr-retry is 8, but must be 0 to 7"),
        ("-Q 0", "--cq-mod is 0, but must be 1 to 16384"),
        ("-Q 16385", "--cq-mod is 16385, but must be 1 to 16384"),
        ("--hosts 1", "--hosts is 1, but must be 2 to 33"),
        ("--hosts 34", "--hosts is 34, but must be 2 to 33"),
        ("-u 32", "--qp-timeout is 32, but must be 0 to 31"),
        ("--retry-cnt 8", "--retry-cnt is 8, but must be 0 to 7"),
        ("--threshold 2G", "--threshold is 2147483648, but must be 0 to 1073741824"),
        ("--control-bytes 2G", "--control-bytes is 2147483648, but must be 0 to 1073741824"),
        ("--window 2G", "--window is 2147483648, but must be 65536 to 1073741824"),
    ] {
        assert_refused(options, sentence);
    }
}

#[test]
fn mtu_other_than_a_power_of_two_is_refused() {
    for options in ["-m 0", "-m 255", "--mtu 1500", "--mtu 9000", "--mtu 16384"] {
        assert_refused(options, "but must be 256, 512, 1024, 2048, 4096 or 8192");
    }
}

#[test]
fn window_that_would_stall_is_refused() {
    for options in ["--window 65535", "--window 0", "--window 1K"] {
        assert_refused(options, "but must be at least 65536: two packets, and twice the 32768 bytes");
    }
}

#[test]
fn more_data_than_counters_hold_is_refused() {
    assert_refused("-s 1G -n 17179869184", "more than 2^64 bytes in all");
    assert_refused("-s 0 -q 2 -n 18446744073709551615", "more than 2^64 bytes in all");
}

#[test]
fn values_that_are_not_numbers_are_refused() {
    for (options, sentence) in [
        ("-s abc", "a size is a whole number of bytes"),
        ("-s -1", "a size is a whole number of bytes"),
        ("-s 1.5M", "a size is a whole number of bytes"),
        ("-s 99999999999999999999", "does not fit in 64 bits"),
        ("-s 17179869184G", "does not fit in 64 bits"),
        ("-n 0", "a whole number from 1 up"),
        ("-n -5", "a whole number from 1 up"),
        ("-D 0", "the time must be above 0"),
        ("-D -1", "a time is a number of seconds"),
        ("-D 1e9", "the longest run is 1000000 seconds"),
        ("-s 64KB", "write 64K"),
        ("-D 1000001", "the longest run is 1000000 seconds"),
        ("-q many", "invalid value 'many' for '--qp <N>'"),
        ("-q -1", "invalid value '-1' for '--qp <N>'"),
        ("-u 300", "invalid value '300' for '--qp-timeout <N>'"),
        ("--seed -1", "a seed is a whole number from 0 to 18446744073709551615"),
        ("--threads both", "[possible values: inline, split]"),
    ] {
        assert_refused(options, sentence);
    }
}

#[test]
fn probabilities_outside_zero_and_one_are_refused() {
    for option in ["--trim", "--drop", "--dup"] {
        for value in ["101%", "1.5", "5"] {
            assert_refused(&format!("{option} {value}"), "a probability is 0 to 1, or 0% to 100%");
        }
        for value in ["-1%", "nan", "1e", "often"] {
            assert_refused(&format!("{option}={value}"), "a probability is a number such as 0.01 or 1%");
        }
    }
}

#[test]
fn duration_and_iterations_exclude_each_other() {
    assert_refused("-n 5 -D 1", "--iters and --duration cannot be used together");
}

#[test]
fn trimming_that_lets_nothing_through_is_refused() {
    for options in ["--trim 100%", "--trim 1", "--trim 1e0"] {
        assert_refused(options, "--trim is 100%, but must be below");
    }
}

#[test]
fn json_without_a_name_is_refused() {
    let output = output(command("write --json").arg(""));
    assert_code(&output, 2, "write --json ''");
    let text = text(&output.stderr);
    assert!(
        text.contains("a value is required for '--json <FILE>'") && !text.contains("cannot write"),
        "{text}"
    );
}

#[test]
fn options_that_do_not_exist_are_refused() {
    assert_refused("--use-srq", "unexpected argument");
}

#[test]
fn ways_between_processes_that_do_not_fit_together_are_refused() {
    for (options, sentence) in [
        ("--server", "loop is no way to another process"),
        ("localhost", "loop is no way to another process"),
        ("--server --device null --ip 10.0.0.1/24", "null is no way to another process"),
        ("localhost --device null --ip 10.0.0.1/24", "null is no way to another process"),
        ("--device null --verify", "null delivers nothing that --verify could compare"),
        ("--device null --trim 1%", "--trim is for the loop"),
        ("--device memif:/tmp/s", "memif:/tmp/s,id=0 leads to another process"),
        ("--server localhost --device memif:/tmp/s", "--server waits for a client"),
        ("--server --device memif:/tmp/s", "memif:/tmp/s,id=0 needs an address"),
        ("--server --device memfi:/tmp/s", "invalid value 'memfi:/tmp/s' for '--device <URI>'"),
        ("--server --device memif:/tmp/s --ip 10.0.0.1", "invalid value '10.0.0.1' for '--ip <A/LEN>'"),
        ("--server --device memif:/tmp/s --ip 10.0.0.1/24 --gateway 10.1.0.1", "10.1.0.1"),
        (
            "--server --device memif:/tmp/s --ip 10.0.0.1/24 --mac 01:00:00:00:00:01",
            "no host's Ethernet address",
        ),
        ("--server --device memif:/tmp/s --ip 10.0.0.1/24 --trim 1%", "--trim is for the loop"),
        ("--server --device memif:/tmp/s --ip 10.0.0.1/24 --hosts 3", "--hosts is for the loop"),
        (
            "--server --device memif:/tmp/s --ip 10.0.0.1/24 --threads split",
            "--threads split is for the loop",
        ),
        (
            "--server --device memif:/tmp/s --ip 10.0.0.1/24 --link-gbps 10",
            "--link-gbps, --topology or --pcap is for",
        ),
        ("--server --device memif:/tmp/s --ip 10.0.0.1/24 --corrupt 1%", "--corrupt is for the loop"),
        ("--ip 10.0.0.1/24", "--ip means nothing within one process"),
        ("-p 18515", "--port means nothing within one process"),
        ("-p 65536 --server", "invalid value '65536' for '--port <PORT>'"),
    ] {
        assert_refused(options, sentence);
    }
}

#[test]
fn words_that_are_no_operation_are_refused() {
    common::assert_refused("wriet", "there is no operation `wriet`");
}

#[test]
fn atomics_of_another_size_are_refused() {
    for op in ["cas", "faa"] {
        let sentence = format!("--size is 64, but {op} works on 8 bytes");
        common::assert_refused(&format!("{op} --size 64"), &sentence);
    }
}

#[test]
fn null_device_answers_nothing() {
    for op in ["read", "cas", "faa"] {
        let sentence = format!("null answers nothing, and {op} waits for an answer");
        common::assert_refused(&format!("{op} --device null"), &sentence);
    }
}

#[test]
fn cores_that_cannot_be_used_are_refused() {
    for (options, sentence) in [
        ("--cores x", "cores are numbers and ranges"),
        ("--cores 0,0", "core 0 is listed twice"),
        ("--cores 0,1", "--cores lists 2 cores, but --threads inline uses 1 at most"),
        ("--cores 0-3 --threads split", "--cores lists 4 cores, but --threads split uses 3 at most"),
    ] {
        assert_refused(options, sentence);
    }
    let output = run("write --cores 9999 -n 1");
    assert_code(&output, 3, "--cores 9999");
    assert!(text(&output.stderr).contains("core 9999 cannot be used"));
}

#[test]
fn no_operation_shows_the_usage() {
    common::assert_refused("", "Usage: dcp-bench");
}

#[test]
fn version_is_told_with_and_without_an_operation() {
    for line in ["-V", "write -V"] {
        let output = run(line);
        assert_code(&output, 0, line);
        let version = String::from_utf8(output.stdout).unwrap();
        assert_eq!(version, concat!("dcp-bench ", env!("CARGO_PKG_VERSION"), "\n"), "{line}");
    }
}

#[test]
fn refusal_is_told_in_json_on_stdout() {
    for line in ["write --mtu 1500 --json -", "write --json=- --nonsense"] {
        let json = object(&run(line), 2, line);
        assert_eq!(json["tool"], "dcp-bench");
        assert_eq!(json["error"]["kind"], "usage");
        assert!(json["error"]["message"].as_str().is_some_and(|m| !m.is_empty() && !m.starts_with("error")));
    }
}

#[test]
fn refusal_is_told_in_the_json_file() {
    let path = file("refusal.json");
    let output = output(command("wriet --json").arg(&path));
    assert_code(&output, 2, "wriet");
    let json = json_in(&path);
    assert_eq!(json["error"]["message"], "there is no operation `wriet`");
}

#[test]
fn json_file_that_cannot_be_written_stops_the_run_before_it_starts() {
    let output = run("write --json /nonexistent/out.json");
    assert_code(&output, 3, "--json");
    let text = text(&output.stderr);
    assert!(
        text.contains("cannot write /nonexistent/out.json") && text.contains("`dcp-bench check` tells"),
        "{text}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn reader_that_left_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command("write --mtu 1500 --json -");
    let status = command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn networks_that_cannot_be_are_refused() {
    let broken = file("broken.toml");
    std::fs::write(&broken, "[[switch]]\nname = \"a\"\nhost = 2\n").expect("the directory is there");
    let broken = format!("--topology {}", broken.display());
    for (options, sentence) in [
        ("--link-gbps -1", "a rate is a number of Gb/s such as 10 or 0.5"),
        ("--link-gbps 20000", "a rate is 0.001 to 10000 Gb/s, or 0 for no limit"),
        ("--reorder 101%", "a probability is 0 to 1"),
        ("--corrupt -1", "a probability is a number"),
        ("--topology direct --hosts 3", "--hosts is 3, but --topology direct joins 2 hosts"),
        ("--topology direct --trim 1%", "--trim is about a switch"),
        ("--topology ring", "--topology is ring, but must be single, direct, two-switch, or a file"),
        ("--topology nowhere.toml", "--topology nowhere.toml: No such file"),
        (&broken, "unknown field `host`"),
        ("--paths 2", "--paths is about the links between two switches"),
        ("--path-weights 1:4", "--path-weights is about the links between two switches"),
        ("--topology two-switch --paths 0", "--paths is 0, but must be 1 to 64"),
        ("--topology two-switch --paths 3 --path-weights 1:4", "--path-weights has 2 weights"),
        ("--topology two-switch --path-weights 1:0", "weights are up to 64 whole numbers from 1 to 1000"),
        ("--topology two-switch --path-weights 1:1000 --link-gbps 0.1", "the rate in Gb/s"),
        ("--lb spray", "--lb chooses among parallel links"),
        ("--topology two-switch --lb best", "invalid value 'best'"),
    ] {
        assert_refused(options, sentence);
    }
}

#[test]
fn a_capture_that_cannot_be_written_is_an_error_of_the_environment() {
    let output = run("write --iters 1 --pcap /nowhere/at-all.pcap");
    assert_code(&output, 3, "--pcap");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("--pcap /nowhere/at-all.pcap: No such file"), "{stderr}");
}
