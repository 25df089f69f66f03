//! The C interface as a C program has it: installed, found by pkg-config, compiled by the system's compiler.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use dcp_tests::build::{self, repository};

/// Where `make install` put libdcp, once for all tests. Left there until the next run.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch().join("prefix");
        make("install", &prefix);
        prefix
    })
}

fn scratch() -> PathBuf {
    let directory = build::output().target.join("tmp/capi-tests");
    std::fs::create_dir_all(&directory).expect("the target directory is writable");
    directory
}

fn make(goal: &str, prefix: &Path) {
    let build::Output { target, profile, .. } = build::output();
    let mut make = Command::new("make");
    make.arg(goal).arg(format!("PREFIX={}", prefix.display())).arg(format!("PROFILE={profile}"));
    // Set by the cargo that runs this test: they are not for the one that is run now.
    make.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true").env_remove("MAKEFLAGS");
    run(make.current_dir(repository()));
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("dcp").env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compiles a C program of ours; returns its path.
fn compile(source: &str, name: &str, libraries: &[String]) -> PathBuf {
    let program = scratch().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-o"]).arg(&program);
    cc.arg(repository().join("transport/capi").join(source)).args(pkg_config(&["--cflags"]));
    run(cc.args(libraries));
    program
}

fn linked_with_shared_library(source: &str, name: &str) -> String {
    let program = compile(source, name, &pkg_config(&["--libs"]));
    run(Command::new(program).env("LD_LIBRARY_PATH", prefix().join("lib")))
}

#[test]
fn example_writes_with_the_shared_library() {
    let printed = linked_with_shared_library("examples/hello_write.c", "hello_shared");
    assert_eq!(printed, "SUCCESS: the server has \"hello, remote memory\"\n");
}

#[test]
fn example_writes_with_the_static_library() {
    let libraries: Vec<String> = pkg_config(&["--static", "--libs"])
        .into_iter()
        .map(|word| if word == "-ldcp" { "-l:libdcp.a".to_owned() } else { word })
        .collect();
    let program = compile("examples/hello_write.c", "hello_static", &libraries);
    // It needs no libdcp.so any more.
    let printed = run(Command::new(program).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(printed, "SUCCESS: the server has \"hello, remote memory\"\n");
}

#[test]
fn c_test_of_every_function_passes() {
    let printed = linked_with_shared_library("tests/operations.c", "operations");
    assert_eq!(printed, "all operations: passed\n");
}

#[test]
fn two_c_programs_move_a_text_over_memif() {
    let program = compile("examples/two_processes.c", "two_processes", &pkg_config(&["--libs"]));
    let socket = std::env::temp_dir().join(format!("dcp-capi-{}.sock", std::process::id()));
    let _removed = Removed(&socket);
    let start = |role: &str, rest: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(format!("memif:{},role={role}", socket.display())).args(rest);
        command.env("LD_LIBRARY_PATH", prefix().join("lib")).stdout(Stdio::piped());
        Ended(command.spawn().expect("it starts"))
    };
    let mut server = start("server", &["10.9.0.1"]);
    let mut said = BufReader::new(server.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let port = said.next().and_then(|line| line.strip_prefix("listening ").map(str::to_owned));
    let client = start("client", &["10.9.0.2", &format!("localhost:{}", port.expect("a port"))]);
    assert_eq!(client.output(), "answered \"HELLO, OTHER PROCESS\"\n");
    assert_eq!(said.next().as_deref(), Some("served \"HELLO, OTHER PROCESS\""));
    server.output();
}

/// A file that is gone after the test, however that ends.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// A program, ended with the test.
struct Ended(Child);

impl Ended {
    /// What it printed, if it ends well.
    fn output(mut self) -> String {
        let mut printed = String::new();
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_string(&mut printed).expect("it prints text");
        }
        assert!(self.0.wait().expect("it can be waited for").success(), "{printed}");
        printed
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn static_library_has_no_names_of_c_that_the_header_has_not() {
    let header = std::fs::read_to_string(prefix().join("include/dcp.h")).expect("it is installed");
    let library = prefix().join("lib/libdcp.a");
    let mut nm = Command::new("nm");
    nm.args(["--defined-only", "--extern-only", "--format=just-symbols", "--quiet"]).arg(library);
    let Output { stdout, .. } = nm.output().expect("nm is there");
    let listed = String::from_utf8_lossy(&stdout);
    let ours: Vec<&str> = listed.lines().filter(|symbol| symbol.starts_with("dcp_")).collect();
    assert!(ours.len() > 30, "{ours:?}");
    for symbol in ours {
        assert!(header.contains(&format!("{symbol}(")), "{symbol} is in libdcp.a, but not in dcp.h");
    }
}

#[test]
fn header_is_cxx_too() {
    let header = scratch().join("header.cc");
    std::fs::write(&header, "#include <dcp.h>\nint main() { return dcp_version() != DCP_VERSION; }\n")
        .expect("the target directory is writable");
    if Command::new("c++").arg("--version").output().is_err() {
        println!("skipped: there is no C++ compiler");
        return;
    }
    let mut cxx = Command::new("c++");
    run(cxx
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .args(pkg_config(&["--cflags"]))
        .arg(header));
}

#[test]
fn library_exports_the_interface_and_nothing_else() {
    let header = std::fs::read_to_string(prefix().join("include/dcp.h")).expect("it is installed");
    let library = prefix().join("lib/libdcp.so");
    let listed = run(Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library));
    let symbols: Vec<&str> = listed.lines().collect();
    assert!(symbols.len() > 30, "{symbols:?}");
    for symbol in symbols {
        assert!(header.contains(&format!("{symbol}(")), "{symbol} is exported, but not in dcp.h");
    }
}

#[test]
fn bench_is_installed_with_its_man_page_and_completions() {
    let there = |path: &str| std::fs::read_to_string(prefix().join(path)).expect("it is installed");
    assert!(there("share/man/man1/dcp-bench.1").contains("EXIT STATUS"));
    for path in [
        "share/bash-completion/completions/dcp-bench",
        "share/zsh/site-functions/_dcp-bench",
        "share/fish/vendor_completions.d/dcp-bench.fish",
    ] {
        assert!(there(path).contains("retry-cnt"), "{path}");
    }
    let version = run(Command::new(prefix().join("bin/dcp-bench")).arg("--version"));
    assert!(version.starts_with("dcp-bench "), "{version}");
}

#[test]
fn uninstall_leaves_no_file() {
    let own = scratch().join("uninstalled");
    make("install", &own);
    make("uninstall", &own);
    let found = run(Command::new("find").arg(&own).args(["!", "-type", "d"]));
    assert_eq!(found, "");
}
