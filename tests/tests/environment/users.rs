//! Other users, and places where nobody can write.

use dcp_tests::machine::{PublicCopy, is_root_or_skip, public_copy};
use dcp_tests::program::{Bench, End, Running};

use crate::{assert_refused, assert_works};

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// As nobody, with nothing in the environment but `environment`, where nobody can write.
fn as_nobody(copy: &PublicCopy, environment: &[(&str, &str)], options: &str) -> Bench {
    let mut bench = Bench::at(&copy.program(), &NOBODY, options);
    bench.command().env_clear().envs(environment.iter().copied()).current_dir(copy.read_only());
    bench
}

fn end_as_nobody(copy: &PublicCopy, environment: &[(&str, &str)]) -> End {
    as_nobody(copy, environment, "-n 20 --json -").end()
}

#[test]
fn g1_user_without_home_in_a_read_only_directory_works() {
    if !is_root_or_skip("running as another user") {
        return;
    }
    let copy = public_copy("nobody");
    assert_works(&end_as_nobody(&copy, &[]));
}

#[test]
fn g1_unusable_runtime_directory_does_not_matter() {
    if !is_root_or_skip("running as another user") {
        return;
    }
    let copy = public_copy("runtime-dir");
    for environment in [
        [("XDG_RUNTIME_DIR", "/proc"), ("TMPDIR", "/tmp")],
        [("XDG_RUNTIME_DIR", "/run"), ("TMPDIR", "/proc")],
        [("XDG_RUNTIME_DIR", "/no/such/directory"), ("TMPDIR", "/dev/null")],
        [("XDG_RUNTIME_DIR", ""), ("TMPDIR", "")],
    ] {
        assert_works(&end_as_nobody(&copy, &environment));
    }
}

#[test]
fn g1_nowhere_to_write_is_one_sentence() {
    if !is_root_or_skip("mounting read-only directories") {
        return;
    }
    let probe =
        std::process::Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "x", "/mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: this container does not let root mount anything");
        return;
    }
    let copy = public_copy("nowhere");
    let script = "mount -t tmpfs -o ro x /dev/shm && mount -t tmpfs -o ro x /var/tmp && \
                  exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", script, "sh"];
    let mut bench = Bench::at(&copy.program(), &wrapper, "-n 20 --json -");
    bench.command().env("TMPDIR", "/proc").env("XDG_RUNTIME_DIR", "/proc").current_dir(copy.read_only());
    assert_refused(&bench.end());
}

fn start_as_nobody(copy: &PublicCopy) -> Running {
    as_nobody(copy, &[], "-D 600 --interval 0.2").start()
}

#[test]
fn g1_instances_of_two_users_run_side_by_side() {
    if !is_root_or_skip("running as another user") {
        return;
    }
    let copy = public_copy("two");
    let mut running = vec![start_as_nobody(&copy), start_as_nobody(&copy)];
    running.extend((0..2).map(|_| Bench::write("-D 600").start()));
    // More come and go beside them.
    assert_works(&end_as_nobody(&copy, &[]));
    assert_works(&Bench::write("-n 20 --json -").end());
    for (one, signal) in running.into_iter().zip(["INT", "TERM", "INT", "TERM"]) {
        one.signal(signal);
        let end = one.end();
        end.assert_code(130);
        end.assert_clean();
    }
}

#[test]
fn g1_killed_instance_leaves_no_file() {
    let mut running = vec![Bench::write("-D 600 --interval 0.2").start()];
    let copy = public_copy("killed");
    if is_root_or_skip("running as another user") {
        running.push(start_as_nobody(&copy));
    }
    for mut one in running {
        // Inside its run, so that its start is over.
        one.wait_for_messages();
        one.signal("KILL");
        let end = one.end();
        assert_eq!(end.code(), None);
        end.assert_clean();
    }
}
