//! `dcp-switch`, run and watched.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use dcp_tests::{Results, build};

use crate::probe::Probe;
use dcp_tests::namespace::Namespace;

/// A running switch, killed when dropped.
#[derive(Debug)]
pub(crate) struct Switch {
    child: Child,
    lines: BufReader<ChildStderr>,
    said: Vec<String>,
}

/// What a switch left behind.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Switch {
    /// Words separated by spaces. Returns when it forwards, with its JSON on standard output.
    pub(crate) fn start(namespace: Option<&Namespace>, words: &str) -> Self {
        let mut switch = Self::launch(namespace, &format!("{words} --json"));
        switch.wait_for("control queue weight");
        switch
    }

    /// The same without waiting.
    pub(crate) fn launch(namespace: Option<&Namespace>, words: &str) -> Self {
        let program = build::dcp_switch();
        let path = program.to_str().expect("a path of text");
        let mut command = namespace.map_or_else(|| Command::new(program), |it| it.command(path));
        command.args(words.split_whitespace()).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the switch starts");
        let lines = BufReader::new(child.stderr.take().expect("piped"));
        Self { child, lines, said: Vec::new() }
    }

    /// Reads until a line that has those words, and returns it.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let len = self.lines.read_line(&mut line).expect("the switch prints text");
            assert_ne!(len, 0, "no {words:?} after {:?}", self.said);
            let line = line.trim().to_owned();
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// A signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().expect("there is a shell");
        assert!(status.success(), "{command}");
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor time it has taken, in ticks of 10 ms.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        // Behind the name in parentheses: the state is field 3, user time 14, system time 15.
        let (_, rest) = stat.rsplit_once(") ").expect("a name in parentheses");
        rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Stops it with SIGTERM; its last report.
    pub(crate) fn stop(self) -> Results {
        self.signal("TERM");
        let end = self.end();
        assert_eq!(end.status.code(), Some(0), "{end:?}");
        let report = end.report();
        assert_eq!(report.0["balances"], true, "{report:?}");
        report
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> End {
        let mut stderr = self.said.join("\n");
        self.lines.read_to_string(&mut stderr).expect("it prints text");
        let mut stdout = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("it prints text");
        End { status: self.child.wait().expect("it can be waited for"), stdout, stderr }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl End {
    /// The last line of JSON on standard output.
    pub(crate) fn report(&self) -> Results {
        let line = self.stdout.lines().last().unwrap_or_else(|| panic!("no report: {}", self.stderr));
        Results(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }
}

/// A number in a report, such as `/ports/1/egress/trimmed`.
pub(crate) fn count(report: &Results, pointer: &str) -> u64 {
    let value = report.0.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {report:?}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
}

/// A directory for the sockets of a switch.
pub(crate) struct Sockets(PathBuf);

impl Sockets {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dcp-sw-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    /// `--port` for links 0 … of a switch.
    pub(crate) fn ports(&self, links: u32) -> String {
        (0..links).map(|id| format!("--port memif:{},id={id} ", self.socket().display())).collect()
    }

    /// What a host opens.
    pub(crate) fn host(&self, id: u32) -> String {
        format!("memif:{},id={id},role=client", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("s")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A TCP port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("[::]:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

/// 16 MiB with each operation. 0.5 s, eight times, is longer than a switch takes to start, or a busy machine to give a
/// process its turn.
const LOAD: &str = "timeout=17 size=16777216";

/// A server host behind the switch, number `n`, and the port it serves on.
pub(crate) fn serve(namespace: Option<&Namespace>, device: &str, n: u8) -> (Probe, u16) {
    let port = free_port();
    let words = format!("serve {device} ip=10.9.0.{n}/24 port={port} {LOAD}");
    let mut serve = Probe::start(namespace, &words);
    serve.wait_for("listening");
    (serve, port)
}

/// A client host, number `n`, about to move bytes to that port.
pub(crate) fn transfer(namespace: Option<&Namespace>, device: &str, n: u8, port: u16) -> Probe {
    Probe::start(namespace, &format!("transfer {device} ip=10.9.0.{n}/24 to=localhost:{port} {LOAD}"))
}
