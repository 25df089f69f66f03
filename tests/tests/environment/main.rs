//! G1: machines that lack something. It works, or says in one sentence what to do and exits with 3.
#![forbid(unsafe_code)]

mod limits;
mod users;

use dcp_tests::program::End;

/// Panics unless the run worked.
#[track_caller]
fn assert_works(end: &End) {
    end.assert_code(0);
    end.assert_clean();
    assert_eq!(end.json().verified(), Some(true), "{}", end.options);
    assert_no_dpdk_noise(end);
}

/// Panics unless the run was refused for want of something, in one sentence.
#[track_caller]
fn assert_refused(end: &End) {
    end.assert_code(3);
    end.assert_clean();
    let json = end.json();
    let error = json.error();
    assert_eq!(error["kind"], "environment", "{}", json.0);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    let stderr = end.stderr();
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert_no_dpdk_noise(end);
}

/// Panics on a usage page or log lines of the EAL.
#[track_caller]
fn assert_no_dpdk_noise(end: &End) {
    for text in [end.stderr(), String::from_utf8_lossy(&end.output.stdout).into_owned()] {
        for noise in ["Usage:", "EAL common options", "EAL: ", "TELEMETRY", "panicked"] {
            assert!(!text.contains(noise), "{}: {text}", end.options);
        }
    }
}
