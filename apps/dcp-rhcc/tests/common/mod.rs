//! What the tests share: made-up trees, a DCP program's telemetry, the program under test.
#![expect(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dcp_rhcc::clock::within;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{accept, bind, listen, recv, send, socket_with};

/// Bound against hanging, no measure of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of the test's own, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dcp-rhcc-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the directories on the way.
    pub(crate) fn put(&self, inside: &str, text: &str) {
        let path = self.0.join(inside);
        fs::create_dir_all(path.parent().expect("inside")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    pub(crate) fn text(&self, inside: &str) -> String {
        fs::read_to_string(self.0.join(inside)).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A worker as DPDK's telemetry shows it, congested or not.
pub(crate) struct FakeWorker {
    pub(crate) socket: PathBuf,
    congested: Arc<AtomicBool>,
}

impl FakeWorker {
    /// Serves until the test ends.
    pub(crate) fn start(scratch: &Scratch) -> Self {
        let path = scratch.path().join("dpdk_telemetry.v2");
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        bind(&socket, &SocketAddrUnix::new(&path).expect("short enough")).expect("a fresh path");
        listen(&socket, 4).expect("it can listen");
        let congested = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&congested);
        std::thread::spawn(move || {
            while let Ok(connection) = accept(&socket) {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(&connection, &seen));
            }
        });
        Self { socket: path, congested }
    }

    pub(crate) fn set_congested(&self, congested: bool) {
        self.congested.store(congested, Ordering::Relaxed);
    }
}

fn serve(connection: &OwnedFd, congested: &AtomicBool) {
    let tell = |text: String| send(connection, text.as_bytes(), SendFlags::NOSIGNAL).is_ok();
    let (mut frames, mut burst_frames, mut ages, mut age_squares) = (0u64, 0u64, 0u64, 0u64);
    let mut goes_on = tell(r#"{"version":"DPDK 22.11.0","pid":1,"max_output_len":16384}"#.into());
    let mut question = [0u8; 256];
    while goes_on {
        let Ok((count @ 1.., _)) = recv(connection, question.as_mut_slice(), RecvFlags::empty()) else {
            return;
        };
        goes_on = if question[..count].contains(&b',') {
            let (age, burst) = if congested.load(Ordering::Relaxed) { (500, 64) } else { (1, 2) };
            frames += burst;
            burst_frames += burst * burst;
            ages += age;
            age_squares += age * age;
            let counters = serde_json::json!({
                "worker": 0,
                "frames_received": frames,
                "burst_frames": burst_frames,
                "burst_ages": ages,
                "burst_age_squares": age_squares,
            });
            tell(serde_json::json!({ "/dcp/worker": counters }).to_string())
        } else {
            tell(r#"{"/dcp/worker":["0/0"]}"#.into())
        };
    }
}

/// A process of a test, killed and waited for when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().expect("it starts"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        let ended = within(PATIENCE, || {
            status = self.0.try_wait().expect("it can be waited for");
            status.is_some()
        });
        assert!(ended, "it does not end");
        status.expect("it has ended")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
    assert!(status.expect("there is a shell").success(), "kill -{name} {pid}");
}

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dcp-rhcc"))
}

/// `dcp-rhcc` that listens to a worker, with options separated by spaces.
pub(crate) fn rhcc(worker: &FakeWorker, options: &str) -> Command {
    let mut command = Command::new(program());
    command.args(["--signal", "software", "--telemetry"]).arg(&worker.socket);
    command.args(options.split_whitespace()).stdout(Stdio::null());
    command
}

/// State letter of a process; `None` when it is gone or dead.
pub(crate) fn state(pid: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = text.rsplit_once(") ")?.1.chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn await_that(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(PATIENCE, condition), "not within a minute: {what}");
}
