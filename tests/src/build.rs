//! The programs under test, built once per test program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Path of `dcp-bench`, of the same profile and target directory as the running test.
///
/// # Panics
/// When it cannot be built.
pub fn dcp_bench() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("dcp-bench"))
}

/// Top of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// A `cargo` command in the repository that asks nobody and fetches nothing.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.arg("--offline").args(arguments).current_dir(repository());
    command
}

fn build(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a program knows its own path");
    // target/<profile>/deps/<test>
    let profile_dir = test.parent().and_then(Path::parent).expect("cargo runs tests from <profile>/deps");
    let target_dir = profile_dir.parent().expect("a profile's directory lies in the target directory");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    // All packages at once select the same features as the whole test run, so that nothing is built twice.
    let output =
        cargo(&["build", "--quiet", "--workspace", "--bin", name, "--profile", profile, "--target-dir"])
            .arg(target_dir)
            .output()
            .expect("cargo starts");
    assert!(output.status.success(), "{name} cannot be built: {}", String::from_utf8_lossy(&output.stderr));
    profile_dir.join(name)
}
