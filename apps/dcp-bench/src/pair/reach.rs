//! The way to a server's TCP port: tried for a while, since it may be just starting.

use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use dcp::dpdk::Clock;

use crate::failure::Failure;

/// How long a server may take to start, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Time for one attempt, and between two.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
/// Between looks at the attempts.
const LOOK: Duration = Duration::from_millis(1);

/// Connects. Names are looked up and attempts are made on a thread, because the system lets neither be interrupted.
///
/// # Errors
/// An environment failure: nobody was there; or `idle` wants to stop.
pub(super) fn reach(
    host: &str,
    port: u16,
    clock: &Clock,
    idle: &mut dyn FnMut() -> bool,
) -> Result<TcpStream, Failure> {
    let (name, clock) = (bare(host).to_owned(), *clock);
    let attempts = thread::Builder::new()
        .name("reach".into())
        .spawn(move || attempt(&name, port, &clock))
        .map_err(|error| Failure::environment(format!("a thread could not be started: {error}")))?;
    while !attempts.is_finished() {
        if !idle() {
            return Err(Failure::interrupted());
        }
        dcp::dpdk::clock::pause(LOOK);
    }
    let connected = attempts.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    connected.map_err(|reason| {
        Failure::environment(format!("no server could be reached at {host}, port {port} ({reason})"))
            .with_hint("start dcp-bench with --server there first, and check HOST and --port")
    })
}

fn attempt(host: &str, port: u16, clock: &Clock) -> Result<TcpStream, String> {
    let start = clock.now_ns();
    loop {
        let reason = match once(host, port) {
            Ok(stream) => return Ok(stream),
            Err(reason) => reason,
        };
        if clock.now_ns() - start > PATIENCE_NS {
            return Err(reason);
        }
        dcp::dpdk::clock::pause(PAUSE);
    }
}

fn once(host: &str, port: u16) -> Result<TcpStream, String> {
    let mut reason = "the name has no address".to_owned();
    for address in (host, port).to_socket_addrs().map_err(|error| error.to_string())? {
        match TcpStream::connect_timeout(&address, ATTEMPT) {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

/// An IPv6 address may stand in brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}
