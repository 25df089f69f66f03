//! How runs end that do not end well: with a message, the right exit code, and everything released.
//!
//! `dcp-bench` counts its mbufs when a run is over and panics over any that is left; no test here lets it panic.
#![forbid(unsafe_code)]

use dcp_tests::program::End;
use dcp_tests::{Bench, Results};

#[track_caller]
fn assert_gives_up(options: &str) {
    let end = Bench::write(&format!("{options} --json -")).end();
    end.assert_code(1);
    end.assert_clean();
    let json = end.json();
    let error = json.error();
    assert_eq!((&error["kind"], &error["status"]), (&"transfer".into(), &"RETRY_EXC_ERR (12)".into()));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("queue pair")), "{}", json.0);
    assert!(error["hint"].is_string(), "{}", json.0);
    let stderr = end.stderr();
    assert!(stderr.contains("RETRY_EXC_ERR (12)") && stderr.contains("repeat: dcp-bench write"), "{stderr}");
}

// C8
#[test]
fn c8_total_loss_gives_up_with_the_status() {
    assert_gives_up("-n 5 --drop 100% -u 4 --retry-cnt 1");
    assert_gives_up("-s 1M -q 8 -n 50 --drop 100% -u 6 --retry-cnt 0");
    assert_gives_up("-s 0 -n 1 --drop 100% -u 1 --retry-cnt 7");
}

#[test]
fn c8_total_loss_gives_up_also_with_many_hosts_and_threads() {
    assert_gives_up("-n 5 --hosts 33 --drop 100% -u 6 --retry-cnt 1");
    assert_gives_up("-n 5 --threads split --drop 100% -u 6 --retry-cnt 1");
    assert_gives_up("-n 50 --hosts 5 -q 3 --threads split --trim 5% --dup 5% --drop 90% -u 6 --retry-cnt 1");
}

#[test]
fn c8_heavy_loss_in_the_middle_of_a_run_leaks_nothing() {
    for seed in 1..=5 {
        let options =
            format!("-s 64K -q 4 -n 200 --drop 30% --trim 10% -u 6 --retry-cnt 1 --seed {seed} --json -");
        let end = Bench::write(&options).end();
        end.assert_clean();
        if end.code() != Some(0) {
            end.assert_code(1);
            assert_eq!(end.json().error()["status"], "RETRY_EXC_ERR (12)");
        }
    }
}

/// Sends `signal` in the middle of the run, which must then end soon, in order and with results.
#[track_caller]
fn interrupt(signal: &str, options: &str) -> Results {
    let mut running = Bench::write(&format!("{options} --interval 0.2")).start();
    if options.contains("--drop 100%") {
        running.wait_for_cpu();
    } else {
        running.wait_for_messages();
    }
    running.signal(signal);
    let end: End = running.end_soon();
    end.assert_code(130);
    end.assert_clean();
    // The table goes there, since standard output holds the JSON.
    assert!(end.stderr().contains(" network: "), "{options}: {}", end.stderr());
    let results = end.json();
    assert_eq!(results.0["interrupted"], true, "{options}");
    assert_ne!(results.verified(), Some(false), "{options}");
    results
}

#[test]
fn ctrl_c_and_sigterm_end_a_run_with_what_was_done() {
    for signal in ["INT", "TERM"] {
        for options in ["-D 600", "-n 4000000000 -q 3", "-D 600 --threads split", "-D 600 --hosts 9 -s 4K"] {
            interrupt(signal, options);
        }
    }
}

#[test]
fn ctrl_c_does_not_wait_for_large_messages_under_way() {
    interrupt("INT", "-s 4M -t 1000 -q 8 -n 100000");
    interrupt("INT", "-s 4M -t 1000 -q 8 -n 100000 --threads split");
    interrupt("INT", "-s 256K -t 200 -n 100000000 --verify");
}

#[test]
fn ctrl_c_does_not_wait_for_a_network_that_loses_all() {
    for options in
        ["-n 5 --drop 100% -u 0", "-n 5 --drop 100% -u 31", "-n 5 --drop 100% -u 0 --threads split"]
    {
        let results = interrupt("INT", options);
        assert_eq!((results.iterations(), results.verified()), (0, None), "{options}");
    }
    interrupt("TERM", "-s 64K -n 100000 --drop 20% --trim 5% --dup 5%");
}

/// Sends a signal while a run of large buffers sets up, fills, or compares them, and expects it to leave soon.
#[track_caller]
fn interrupt_by_cpu_time(options: &str, ticks: u64) {
    let running = Bench::write(options).start();
    running.wait_for_ticks(ticks);
    running.signal("INT");
    let end = running.end_soon();
    end.assert_code(130);
    end.assert_clean();
    let json = end.json();
    assert!(
        json.0["error"]["kind"] == "interrupted" || json.0["interrupted"] == true,
        "{options}: {}",
        json.0
    );
}

#[test]
fn ctrl_c_does_not_wait_for_the_set_up_or_the_comparison() {
    let options = "-s 128M -q 4 -n 1 --hosts 3";
    for ticks in [0, 20, 50, 80, 110, 140] {
        interrupt_by_cpu_time(options, ticks);
    }
    interrupt_by_cpu_time("-s 128M -q 2 -n 9 --verify", 100);
}

#[test]
fn partial_results_of_a_run_that_checks_each_message_are_right() {
    for options in ["-D 600 --verify -s 100K", "-D 600 --verify -s 8K -q 5 --trim 10%"] {
        let results = interrupt("INT", options);
        assert_ne!(results.verified(), Some(false), "{options}");
    }
}
