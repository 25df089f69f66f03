//! The program tells how the cost grows in all its forms. How much it is is no matter here.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use dcp_tests::build::dcp_bench;
use serde_json::Value;

const AXES: [&str; 5] = ["queue pairs", "queue pairs of 4 KiB", "messages outstanding", "cores", "hosts"];

#[test]
fn quick_run_tells_the_copy_alone_along_queue_pairs_in_every_form() {
    let file = |name: &str| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (json, svg) = (file("scale.json"), file("scale.svg"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_scale"));
    command.arg("--quick").arg("--json").arg(&json).arg("--svg").arg(&svg);
    command.arg("--dcp-bench").arg(dcp_bench()).stdin(Stdio::null());
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));

    let json: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    for axis in AXES {
        let rows: Vec<&Value> =
            json["rows"].as_array().unwrap().iter().filter(|row| row["axis"] == axis).collect();
        assert!(!rows.is_empty(), "{axis}: {json}");
        for row in rows {
            assert!(row["ns_per_packet"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
            let copy = row["copy_ns"].as_f64();
            assert_eq!(copy.is_some_and(|ns| ns > 0.0), axis.starts_with("queue pairs"), "{row}");
            assert!(row.get("beside_copy_of_first").is_some(), "{row}");
            assert!(copy.is_some() || row["beside_copy_of_first"].is_null(), "{row}");
        }
    }

    let tables = String::from_utf8(output.stdout).unwrap();
    for axis in AXES {
        let head = tables.lines().find(|line| line.starts_with(&format!("{axis:<22} "))).expect(axis);
        assert_eq!(head.ends_with("copy alone  rest, of first"), axis.starts_with("queue pairs"), "{head}");
    }
    assert_eq!(fs::read_to_string(svg).unwrap().matches("\ncopy alone\n").count(), 2);
}
