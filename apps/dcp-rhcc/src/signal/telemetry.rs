//! The software signal of another process: a DCP program answers `/dcp/worker` on DPDK's telemetry socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};
use serde_json::Value;

use super::software::{Readings, ReceiveTotals, Software};
use crate::root::{Root, about, names};

/// Command that lists workers, and with one of them behind a comma tells its counters.
const COMMAND: &str = "/dcp/worker";
/// A worker takes 100 ms at most to answer, or says that it does not.
const PATIENCE: Duration = Duration::from_millis(500);
/// Largest answer of DPDK's.
const ANSWER_MAX: usize = 16 << 10;
/// Frames of a full receive burst, `dcp::ReceiveLoad::BURST_MAX`.
const BURST_MAX: u64 = 64;

/// A connection to one process.
#[derive(Debug)]
pub struct Telemetry {
    path: PathBuf,
    socket: OwnedFd,
}

impl Telemetry {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there, or it is not DPDK.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let open = || -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
            connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| about(path, &error))?;
        let this = Self { path: path.to_owned(), socket };
        // DPDK speaks first: its version and process id.
        this.receive()?;
        Ok(this)
    }

    fn receive(&self) -> io::Result<Value> {
        let mut answer = vec![0; ANSWER_MAX];
        let (count, _) = recv(&self.socket, answer.as_mut_slice(), RecvFlags::empty())
            .map_err(|error| about(&self.path, &error.into()))?;
        let odd = |error| io::Error::other(format!("{}: no JSON: {error}", self.path.display()));
        serde_json::from_slice(&answer[..count]).map_err(odd)
    }

    /// What a command answers.
    fn ask(&self, question: &str) -> io::Result<Value> {
        send(&self.socket, question.as_bytes(), SendFlags::NOSIGNAL)
            .map_err(|error| about(&self.path, &error.into()))?;
        let mut answer = self.receive()?;
        let name = question.split(',').next().unwrap_or(question);
        Ok(answer.get_mut(name).map_or(Value::Null, Value::take))
    }

    /// Totals of every worker that speaks.
    ///
    /// # Errors
    /// The process is gone, has no DCP workers, or tells no receive load.
    pub fn totals(&self) -> io::Result<Readings> {
        let lacks = |what| io::Error::other(format!("{}: {what}", self.path.display()));
        let list = self.ask(COMMAND)?;
        let workers: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if workers.is_empty() {
            return Err(lacks("no DCP workers there"));
        }
        let mut readings = Readings::new();
        for worker in workers {
            let answer = self.ask(&format!("{COMMAND},{worker}"))?;
            match totals(&answer) {
                Some(totals) => drop(readings.insert(worker.to_owned(), totals)),
                // Nobody polls it, or it has gone since the list was made.
                None if answer.is_null() || answer.get("answers").is_some() => {}
                None => return Err(lacks("its workers tell no receive load")),
            }
        }
        Ok(readings)
    }
}

fn totals(answer: &Value) -> Option<ReceiveTotals> {
    let number = |name| answer.get(name)?.as_u64();
    Some(ReceiveTotals {
        frames: number("frames_received")?,
        burst_frames: number("burst_frames")?,
        ages: number("burst_ages")?,
        age_squares: number("burst_age_squares")?,
    })
}

/// The telemetry sockets of DPDK programs on this machine that this user may see.
pub fn sockets(root: &Root) -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places =
        [Some(root.path("var/run/dpdk")), own.map(|it| it.join("dpdk")), Some(root.path("tmp/dpdk"))];
    let inside = |place: PathBuf| {
        names(&place).into_iter().map(move |name| place.join(name).join("dpdk_telemetry.v2"))
    };
    places.into_iter().flatten().flat_map(inside).filter(|path| path.exists()).collect()
}

/// The signal of the first program that answers; `only` names its socket. A program that starts again is found again.
///
/// # Errors
/// Nobody answers; the reason.
pub fn software(root: &Root, only: Option<&Path>) -> Result<impl super::Signal + use<>, String> {
    let candidates = |root: &Root, only: Option<&Path>| match only {
        Some(path) => vec![path.to_owned()],
        None => sockets(root),
    };
    let (root, only) = (root.clone(), only.map(Path::to_owned));
    let find = move || {
        let mut last = io::Error::other("no DPDK program has a telemetry socket");
        for path in candidates(&root, only.as_deref()) {
            match Telemetry::connect(&path).and_then(|it| it.totals().map(|_| it)) {
                Ok(found) => return Ok(found),
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    let mut connection = Some(find().map_err(|error| format!("no DCP program answers {COMMAND}: {error}"))?);
    Ok(Software::new(BURST_MAX, move || {
        let telemetry = match connection.take() {
            Some(open) => open,
            None => find()?,
        };
        // A connection that failed is not kept.
        let totals = telemetry.totals()?;
        connection = Some(telemetry);
        Ok(totals)
    }))
}
