//! DPDK's telemetry socket, spoken to as `dpdk-telemetry.py` does.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};
use serde_json::Value;

/// The socket: one packet each way per command.
#[derive(Debug)]
pub struct Telemetry(OwnedFd);

impl Telemetry {
    /// Opens the socket of the process `pid`.
    ///
    /// # Panics
    /// When there is none, or it is another process's.
    pub fn open(path: &Path, pid: u32) -> Self {
        let address = SocketAddrUnix::new(path).expect("a path that fits");
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(30))).expect("a timeout");
        connect(&socket, &address).expect("DPDK listens there");
        let this = Self(socket);
        assert_eq!(this.read()["pid"], pid);
        this
    }

    fn read(&self) -> Value {
        let mut bytes = vec![0; 1 << 16];
        let (len, _) = recv(&self.0, &mut bytes[..], RecvFlags::empty()).expect("an answer");
        serde_json::from_slice(&bytes[..len]).expect("valid JSON")
    }

    /// The answer to a command, with a parameter behind a comma or without.
    ///
    /// # Panics
    /// When none comes, or it is no JSON.
    pub fn ask(&self, command: &str) -> Value {
        send(&self.0, command.as_bytes(), SendFlags::empty()).expect("DPDK reads");
        let mut answer = self.read();
        let name = command.split(',').next().unwrap_or_default();
        answer[name].take()
    }
}
