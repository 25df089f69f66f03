//! What may stand in source files, and where they lie.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use dcp_tests::build::repository;

/// Lines of a file that is wrong.
const LINES_MAX: usize = 800;
/// R1: crates that may say `unsafe`.
const UNSAFE_CRATES: [&str; 3] = ["dpdk-ffi/dpdk-sys/", "dpdk-ffi/", "transport/capi/"];
/// The client's top level, with what tools want there.
const TOP_LEVEL: [&str; 16] = [
    ".ci",
    ".git",
    ".github",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "clippy.toml",
    "docs",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "scripts",
    "target",
    "NOTICE",
];
const TOP_LEVEL_CRATES: [&str; 6] = ["apps", "dpdk-ffi", "perf", "switch-sw", "tests", "transport"];

/// Files that git knows, or would take.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output();
    match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().map(PathBuf::from).filter(|path| repository().join(path).is_file()).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(repository(), &mut found);
            found
        }
    }
}

/// For a source tree without git.
fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("the repository can be read");
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" {
            walk(&path, found);
        } else if path.is_file() {
            found.push(path.strip_prefix(repository()).expect("below it").to_path_buf());
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let is_source = |path: &PathBuf| path.extension().is_some_and(|it| it == "rs" || it == "c" || it == "h");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(repository().join(&path)).ok()?;
        Some((path, text))
    };
    let sources: Vec<_> = files().into_iter().filter(is_source).filter_map(read).collect();
    assert!(sources.len() > 50, "only {} source files found", sources.len());
    sources
}

#[test]
fn no_file_is_too_long() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn nothing_is_left_to_do_later() {
    // Put together here, so that this file does not hold them.
    let words = ["todo", "unimplemented", "dbg"].map(|word| format!("{word}!("));
    for (path, text) in sources() {
        for word in &words {
            assert!(!text.contains(word.as_str()), "{}: {word}", path.display());
        }
    }
}

// R1
/// Minimal systems have no `kill` program, only the shell's own.
#[test]
fn signals_are_sent_without_a_program_for_it() {
    let program = concat!("Command::new(\"", "kill\")");
    for (path, text) in sources() {
        assert!(!text.contains(program), "{}: have a shell send the signal", path.display());
    }
}

#[test]
fn unsafe_is_forbidden_outside_the_dpdk_crates() {
    let mut roots = 0;
    for (path, text) in sources() {
        let path = path.to_string_lossy().into_owned();
        if UNSAFE_CRATES.iter().any(|name| path.starts_with(name)) || !path.ends_with(".rs") {
            continue;
        }
        let is_root =
            path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || path.contains("/src/bin/");
        roots += usize::from(is_root);
        let forbids = text.contains("#![forbid(unsafe_code)]");
        // A crate of a few words about what it will be has nothing to forbid.
        let has_code = text.lines().any(|line| !line.starts_with("//") && !line.trim().is_empty());
        assert!(!is_root || !has_code || forbids, "{path} lacks #![forbid(unsafe_code)]");
        let keyword = text.lines().find(|line| {
            let code = line.split("//").next().unwrap_or_default();
            ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern "]
                .iter()
                .any(|form| code.contains(form))
        });
        assert!(keyword.is_none() || path.ends_with("repository/sources.rs"), "{path}: {keyword:?}");
    }
    assert!(roots >= 7, "only {roots} crate roots found");
}

#[test]
fn top_level_is_fixed() {
    let known: BTreeSet<&str> = TOP_LEVEL.into_iter().chain(TOP_LEVEL_CRATES).collect();
    let found: BTreeSet<String> = files()
        .iter()
        .filter_map(|path| path.components().next())
        .map(|first| first.as_os_str().to_string_lossy().into_owned())
        .collect();
    for name in &found {
        assert!(known.contains(name.as_str()), "{name} does not belong to the top level");
    }
    for name in
        TOP_LEVEL_CRATES.iter().chain(&["Cargo.toml", "LICENSE", "Makefile", "README.md", "docs", "scripts"])
    {
        assert!(found.contains(*name), "{name} is missing");
    }
}
