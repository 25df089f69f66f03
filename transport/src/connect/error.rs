//! Why two sides do not get together.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;

/// Why an offer is refused: one sentence, which the other side is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another version of the protocol.
    Version {
        /// Ours.
        ours: u32,
        /// Theirs.
        theirs: u64,
    },
    /// No offer at all.
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// A value that no connection can have.
    Unusable {
        /// Its name.
        name: &'static str,
        /// The value.
        value: String,
        /// What it may be.
        legal: &'static str,
    },
    /// The connecting side sent no key.
    NoKey,
    /// Two hosts claim one address.
    SameAddress {
        /// The address.
        ip: Ipv4Addr,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { ours, theirs } => write!(
                f,
                "protocol version {theirs} meets version {ours}: install the same release on both sides"
            ),
            Self::Malformed { reason } => {
                write!(f, "this is no offer of a DCP connection ({reason}): check host and port")
            }
            Self::Unusable { name, value, legal } => {
                write!(f, "{name} of {value} cannot be used: it must be {legal}")
            }
            Self::NoKey => f.write_str("pkey is missing: the side that connects must send one"),
            Self::SameAddress { ip } => {
                write!(f, "both sides have the address {ip}: give them different ones with --ip")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a connection was not set up, or its control channel ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// Nobody could be reached there.
    Unreachable {
        /// Whom we tried to reach.
        address: String,
        /// The system's reason.
        reason: String,
    },
    /// The address cannot be listened on.
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        reason: String,
        /// The same for programs.
        kind: io::ErrorKind,
    },
    /// We refused.
    Refused(Refusal),
    /// The other side refused.
    RefusedByPeer {
        /// Its sentence.
        sentence: String,
    },
    /// The other side said something that does not belong there.
    OutOfTurn {
        /// What was expected.
        expected: &'static str,
    },
    /// A line too long to be one of ours.
    LineTooLong,
    /// Nothing came in time.
    Timeout {
        /// What was waited for.
        expected: &'static str,
    },
    /// The caller asked to stop waiting.
    Stopped,
    /// Something on this side is in the way.
    Local {
        /// A sentence.
        sentence: String,
    },
    /// The other side's process is gone, or the way to it.
    PeerLost {
        /// What the system said.
        reason: String,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { address, reason } => write!(
                f,
                "no server could be reached at {address} ({reason}): start it there first, and check host and port"
            ),
            Self::Listen { address, reason, kind } => {
                let instead = match kind {
                    io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
                    io::ErrorKind::PermissionDenied => "choose a port above 1023",
                    _ => "choose another port",
                };
                write!(f, "{address} cannot be listened on ({reason}): {instead}")
            }
            Self::Refused(refusal) => refusal.fmt(f),
            Self::RefusedByPeer { sentence } => write!(f, "the other side refused: {sentence}"),
            Self::OutOfTurn { expected } => write!(
                f,
                "the other side did not send {expected} when it was due: check that the same release runs there"
            ),
            Self::LineTooLong => f.write_str(
                "the other side sent a line without end: check host and port, this is no DCP server",
            ),
            Self::Timeout { expected } => {
                write!(f, "the other side sent no {expected} in time: check that it still runs")
            }
            Self::Stopped => f.write_str("the wait for the other side was stopped"),
            Self::Local { sentence } => f.write_str(sentence),
            Self::PeerLost { reason } => {
                write!(f, "the other side is gone ({reason}): see there why it ended, and connect anew")
            }
        }
    }
}

impl std::error::Error for ConnectError {}
