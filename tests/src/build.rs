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

/// Path of `dcp-switch`, likewise.
///
/// # Panics
/// When it cannot be built.
pub fn dcp_switch() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("dcp-switch"))
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

/// A directory and a profile of cargo's.
#[derive(Clone, Debug)]
pub struct Output {
    /// Target directory.
    pub target: PathBuf,
    /// Where programs and libraries of the profile lie.
    pub directory: PathBuf,
    /// The profile.
    pub profile: String,
}

/// Those of the running test.
///
/// # Panics
/// When cargo did not build it.
pub fn output() -> Output {
    let test = std::env::current_exe().expect("a program knows its own path");
    // target/<profile>/deps/<test>
    let directory = test.parent().and_then(Path::parent).expect("cargo runs tests from <profile>/deps");
    let target = directory.parent().expect("a profile's directory lies in the target directory");
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    Output { target: target.to_path_buf(), directory: directory.to_path_buf(), profile: profile.to_owned() }
}

fn build(name: &str) -> PathBuf {
    let Output { target, directory, profile } = output();
    // All packages at once select the same features as the whole test run, so that nothing is built twice.
    let output =
        cargo(&["build", "--quiet", "--workspace", "--bin", name, "--profile", &profile, "--target-dir"])
            .arg(target)
            .output()
            .expect("cargo starts");
    assert!(output.status.success(), "{name} cannot be built: {}", String::from_utf8_lossy(&output.stderr));
    directory.join(name)
}
