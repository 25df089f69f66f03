//! `docs/FIRST-PROGRAM.md` is true: what it says to type works, in a crate outside the workspace.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use dcp_tests::build::{self, repository};

/// The first block of a language in a page of the manual.
fn block(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(repository().join("docs").join(page)).expect("the page is there");
    let (_, rest) = text.split_once(&format!("```{language}\n")).expect("the page has such a block");
    let (block, _) = rest.split_once("```").expect("the block ends");
    block.to_owned()
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the target directory is writable");
}

#[test]
fn crate_outside_the_workspace_runs_the_first_program() {
    let build::Output { target, profile, .. } = build::output();
    // Outside: the workspace takes no crate that it does not list.
    let directory = std::env::temp_dir().join(format!("dcp-first-program-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("src")).expect("the temporary directory is writable");
    let manifest = block("FIRST-PROGRAM.md", "toml");
    let library = repository().join("transport");
    write(
        &directory.join("Cargo.toml"),
        &manifest.replace("/path/to/dcp/transport", &library.to_string_lossy()),
    );
    write(&directory.join("src/main.rs"), &block("FIRST-PROGRAM.md", "rust"));
    // The versions that are here already: nothing is fetched.
    std::fs::copy(repository().join("Cargo.lock"), directory.join("Cargo.lock")).expect("it is committed");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--profile", &profile, "--target-dir"]).arg(target);
    // As the workspace builds it, so that the library is not built twice.
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").current_dir(&directory);
    let output = cargo.output().expect("cargo starts");
    let _ = std::fs::remove_dir_all(&directory);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed, block("FIRST-PROGRAM.md", "text"));
}

#[test]
fn first_program_is_the_example() {
    let example = repository().join("transport/examples/hello_write.rs");
    assert_eq!(block("FIRST-PROGRAM.md", "rust"), std::fs::read_to_string(example).expect("it is there"));
}

#[test]
fn program_in_the_c_manual_is_the_example() {
    let example = repository().join("transport/capi/examples/hello_write.c");
    assert_eq!(block("C-API.md", "c"), std::fs::read_to_string(example).expect("it is there"));
}
