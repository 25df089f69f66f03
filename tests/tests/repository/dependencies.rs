//! Who may depend on whom.

use std::collections::BTreeSet;

use dcp_tests::build::cargo;
use serde_json::Value;

/// Crates of the workspace that each may link. Those not listed may link none.
const ALLOWED: &[(&str, &[&str])] = &[
    ("dcp-core", &["dcp-wire"]),
    ("dcp-pipeline", &["dcp-wire"]),
    ("dpdk-ffi", &["dpdk-sys"]),
    ("dcp", &["dcp-core", "dcp-wire", "dpdk-ffi"]),
    ("dcp-capi", &["dcp"]),
    ("dcp-switch", &["dcp-pipeline", "dcp-wire", "dpdk-ffi"]),
    ("fabric-sim", &["dcp-core", "dcp-pipeline", "dcp-wire"]),
    ("dcp-bench", &["dcp", "dcp-rhcc", "dcp-switch"]),
    ("dcp-rhcc", &["dcp-core"]),
    ("dcp-switch-app", &["dcp", "dcp-switch"]),
    ("dcp-pair", &["dcp-core", "dcp-wire"]),
];
/// May use everything: they test and measure it.
const ANYTHING: [&str; 2] = ["dcp-tests", "dcp-perf"];

fn packages() -> Vec<Value> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("everything has a name")
}

#[test]
fn dependencies_point_one_way() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(name).collect();
    for package in &packages {
        let from = name(package);
        if ANYTHING.contains(&from) {
            continue;
        }
        let allowed =
            ALLOWED.iter().find(|(crate_name, _)| *crate_name == from).map_or(&[][..], |(_, to)| to);
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name(dependency);
            let is_linked = dependency["kind"] != "dev";
            assert!(
                !ours.contains(to) || !is_linked || allowed.contains(&to),
                "{from} links {to}; docs/ARCHITECTURE.md allows {allowed:?}"
            );
        }
    }
}

// R0
#[test]
fn core_crates_need_no_dpdk_not_even_for_their_tests() {
    let there: BTreeSet<String> = packages().iter().map(|package| name(package).to_owned()).collect();
    for package in ["dcp-wire", "dcp-core", "dcp-pipeline", "fabric-sim"] {
        if !there.contains(package) {
            assert_eq!(package, "fabric-sim", "{package} is gone");
            continue;
        }
        let output = cargo(&["tree", "--prefix", "none", "--edges", "all", "--package", package]).output();
        let output = output.expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(tree.starts_with(package), "{tree}");
        let dpdk: Vec<&str> = tree.lines().filter(|line| line.contains("dpdk")).collect();
        assert!(dpdk.is_empty(), "{package}: {dpdk:?}");
    }
}

#[test]
fn core_crates_have_no_build_script() {
    for package in packages() {
        let is_core = ["dcp-wire", "dcp-core", "dcp-pipeline", "fabric-sim"].contains(&name(&package));
        let targets = package["targets"].as_array().into_iter().flatten();
        let scripts = targets.filter(|target| target["kind"][0] == "custom-build").count();
        assert!(!is_core || scripts == 0, "{}", name(&package));
    }
}

#[test]
fn nothing_is_published_by_accident_and_all_keep_the_lints() {
    for package in packages() {
        assert_eq!(package["publish"], Value::Array(vec![]), "{}: publish = false", name(&package));
        let manifest = package["manifest_path"].as_str().expect("a path");
        let text = std::fs::read_to_string(manifest).expect("the manifest can be read");
        let opts_out = name(&package) == "dpdk-sys";
        assert!(opts_out || text.contains("[lints]\nworkspace = true"), "{manifest}");
    }
}
