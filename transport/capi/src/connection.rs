//! Connections over TCP: listening, accepting, connecting, and the channel beside a queue pair.

#![expect(non_camel_case_types, reason = "C's names")]

use std::ffi::{CStr, c_char, c_int};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::slice;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use dcp::connect::{ConnectError, ControlEvent, Listener};
use dcp::verbs::{Connection, RemoteMr};
use serde_json::Value;

use crate::context::dcp_context;
use crate::failure::{BROKEN, Failure, entry, entry_pointer};
use crate::handle::{borrow, give, opaque, take};
use crate::memory::dcp_mr;
use crate::process;
use crate::queue_pair::dcp_qp;
use crate::sized::{self, NULL, Sized32};

/// Waits for connections on a TCP port.
pub struct dcp_listener {
    _private: [u8; 0],
}

/// What a connected queue pair has beside it: the peer's memory, and a channel that tells when the peer ends.
pub struct dcp_conn {
    _private: [u8; 0],
}

opaque! {
    dcp_listener(Listener, b"dcp lst\0");
    dcp_conn(Channel, b"dcp con\0");
}

/// What is behind a dcp_conn.
#[derive(Debug)]
pub(crate) struct Channel {
    connection: Mutex<Connection>,
    remotes: Vec<RemoteMr>,
}

/// Memory of the peer's: for the remote_addr and rkey of work requests.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_remote_mr {
    /// sizeof(struct dcp_remote_mr).
    pub size: u32,
    /// Its key.
    pub rkey: u32,
    /// Address of its first byte.
    pub addr: u64,
    /// Bytes.
    pub length: u64,
}

// SAFETY: its size comes first, numbers take any bytes, and two words and two double words leave no padding.
unsafe impl Sized32 for dcp_remote_mr {
    const ZERO: Self = Self { size: 0, rkey: 0, addr: 0, length: 0 };
}

/// Listens on a TCP port; 0: one that the system chooses, dcp_listener_port says which. `address` is an IPv4 or IPv6
/// address to listen on; NULL: all of them, of both kinds. Needs no device. Fails with EINVAL,
/// EADDRINUSE, EADDRNOTAVAIL (no address of this machine), EACCES.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_listen(address: *const c_char, port: u16) -> *mut dcp_listener {
    entry_pointer(|| {
        let ip = if address.is_null() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            // SAFETY: the caller passes a string.
            let address = unsafe { CStr::from_ptr(address) };
            address.to_str().ok().and_then(|address| address.parse().ok()).ok_or(ADDRESS)?
        };
        Ok(give(Listener::bind(SocketAddr::new(ip, port)).map_err(|error| connect_failure(&error))?))
    })
}

const ADDRESS: Failure = Failure::fixed(libc::EINVAL, "not an IPv4 or IPv6 address to listen on");

/// The port of a listener, or a negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_listener_port(listener: *const dcp_listener) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let listener = unsafe { borrow(listener) }?;
        let address = listener.address().map_err(|error| Failure::of(libc::EIO, &error))?;
        Ok(address.port().into())
    })
}

/// Stops listening. Connections that were accepted stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_close_listener(listener: *mut dcp_listener) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        drop(unsafe { take(listener) }?);
        Ok(0)
    })
}

/// Waits up to `timeout_ms` for a connection, and connects `qp`, fresh, with it: both sides take the smaller of each
/// limit, and may send when this returns. Post receives before. The peer may reach the `mrs_len` regions of `mrs`, of
/// which it learns address and key. Drives the workers of the device of `qp` that have no threads. The connection is the
/// caller's to end with dcp_conn_close; `qp` must be destroyed by itself.
///
/// Fails with EINVAL, EISCONN, ETIMEDOUT (nobody came, or the peer fell silent), ECONNREFUSED, ECONNRESET, EPROTO (who
/// came is no DCP program); the listener can be used again. After a failure make a new queue pair, unless nobody came.
/// Threads: serialised by `qp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_accept(
    listener: *mut dcp_listener,
    context: *mut dcp_context,
    qp: *mut dcp_qp,
    mrs: *const *const dcp_mr,
    mrs_len: usize,
    timeout_ms: u32,
) -> *mut dcp_conn {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let listener = unsafe { borrow(listener) }?;
        // SAFETY: as above.
        let context = unsafe { borrow(context) }?;
        // SAFETY: as above.
        let pair = unsafe { borrow(qp) }?;
        // SAFETY: the caller passes so many live handles.
        let offered = unsafe { regions(mrs, mrs_len) }?;
        let timeout = Duration::from_millis(timeout_ms.into());
        process::know_this_thread();
        let mut qp = pair.lock()?;
        pair.check_fresh(&qp)?;
        let incoming = context.device.accept(listener, timeout).map_err(|error| connect_failure(&error))?;
        let connected = qp.accept(incoming, &offered, timeout);
        connected.map(channel).map_err(|error| connect_failure(&error))
    })
}

/// Connects `qp`, fresh, to a program that listens at `host`: "name:port", "10.0.0.1:port" or "[::1]:port". Everything
/// else as dcp_accept.
///
/// Fails with EINVAL, EISCONN, ECONNREFUSED (nobody there, or refused), ETIMEDOUT, ECONNRESET, EPROTO. Threads:
/// serialised by `qp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_connect(
    qp: *mut dcp_qp,
    host: *const c_char,
    mrs: *const *const dcp_mr,
    mrs_len: usize,
    timeout_ms: u32,
) -> *mut dcp_conn {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        if host.is_null() {
            return Err(NULL);
        }
        // SAFETY: the caller passes a string.
        let host = unsafe { CStr::from_ptr(host) }.to_string_lossy();
        // SAFETY: the caller passes so many live handles.
        let offered = unsafe { regions(mrs, mrs_len) }?;
        process::know_this_thread();
        let mut qp = pair.lock()?;
        pair.check_fresh(&qp)?;
        let connected = qp.connect_to(&*host, &offered, Duration::from_millis(timeout_ms.into()));
        connected.map(channel).map_err(|error| connect_failure(&error))
    })
}

/// Describes the peer's region number `index`, counted from 0 in the order that the peer offered them. Set remote->size
/// first. Returns 0, or -ENOENT when there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_conn_remote(
    conn: *const dcp_conn,
    index: usize,
    remote: *mut dcp_remote_mr,
) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let channel = unsafe { borrow(conn) }?;
        let &RemoteMr { va, len, rkey } = channel.remotes.get(index).ok_or(FEWER)?;
        let described = dcp_remote_mr { rkey, addr: va, length: len, ..Sized32::ZERO };
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        unsafe { sized::write(remote, &described) }?;
        Ok(0)
    })
}

const FEWER: Failure = Failure::fixed(libc::ENOENT, "the peer offered fewer memory regions");

/// Whether the peer is still there; never waits. Returns 1 if so, 0 after it ended the connection in good order, and
/// -ECONNRESET when its process or host is gone. Call it now and then. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_conn_poll(conn: *mut dcp_conn) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let channel = unsafe { borrow(conn) }?;
        loop {
            match channel.lock()?.poll().map_err(|error| connect_failure(&error))? {
                None => return Ok(1),
                Some(ControlEvent::Bye) => return Ok(0),
                // Nobody waits for it.
                Some(ControlEvent::Message(_)) => {}
            }
        }
    })
}

/// Sends a string, in UTF-8 and of at most 4096 bytes, to the peer's program, beside the queue pair.
/// Fails with EINVAL, EMSGSIZE, ECONNRESET, ETIMEDOUT. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_conn_send(conn: *mut dcp_conn, text: *const c_char) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let channel = unsafe { borrow(conn) }?;
        if text.is_null() {
            return Err(NULL);
        }
        // SAFETY: the caller passes a string.
        let text = unsafe { CStr::from_ptr(text) };
        let text = text.to_str().map_err(|error| Failure::of(libc::EINVAL, &error))?;
        if text.len() > TEXT_MAX {
            return Err(Failure::fixed(libc::EMSGSIZE, "a text of more than 4096 bytes: WRITE or SEND it"));
        }
        channel.lock()?.send(&Value::from(text)).map_err(|error| connect_failure(&error))?;
        Ok(0)
    })
}

/// Bytes of a message, which is not the place for data.
const TEXT_MAX: usize = 4096;

/// Waits for a string of the peer's dcp_conn_send, as long as dcp_connect or dcp_accept was told to, driving workers
/// that have no threads. Writes it with a zero behind it to the `text_len` bytes of `text`. Returns its length.
/// Fails with EINVAL, ETIMEDOUT, ECONNRESET, ENOBUFS (too long; it is lost), EPROTO (no string). Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_conn_receive(conn: *mut dcp_conn, text: *mut c_char, text_len: usize) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let channel = unsafe { borrow(conn) }?;
        if text.is_null() {
            return Err(NULL);
        }
        let message = channel.lock()?.wait_message().map_err(|error| connect_failure(&error))?;
        let message = message.as_str().ok_or(Failure::fixed(libc::EPROTO, "the peer sent no string"))?;
        let len = c_int::try_from(message.len()).ok().filter(|_| message.len() < text_len).ok_or(ROOM)?;
        // SAFETY: the caller has `text_len` bytes there, more than the message.
        unsafe { text.cast::<u8>().copy_from_nonoverlapping(message.as_ptr(), message.len()) };
        // SAFETY: as above.
        let end = unsafe { text.add(message.len()) };
        // SAFETY: as above.
        unsafe { end.write(0) };
        Ok(len)
    })
}

const ROOM: Failure = Failure::fixed(libc::ENOBUFS, "the peer's string is longer than the room for it");

/// Tells the peer that the connection ends in good order, acknowledges what it has under way until it ends the connection
/// too, for up to ten seconds, and gives the handle back. Without it the end of the process looks like a death to the
/// peer, and what the peer has sent last may fail there, though it arrived. The queue pair stays: dcp_destroy_qp, and dcp_qp_close before if flushed work is
/// wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_conn_close(conn: *mut dcp_conn) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        let channel = unsafe { take(conn) }?;
        channel.connection.into_inner().map_err(|_| BROKEN)?.close();
        Ok(0)
    })
}

impl Channel {
    fn lock(&self) -> Result<MutexGuard<'_, Connection>, Failure> {
        self.connection.lock().map_err(|_| BROKEN)
    }
}

fn channel(connection: Connection) -> *mut dcp_conn {
    let remotes = connection.remotes().collect();
    give(Channel { connection: Mutex::new(connection), remotes })
}

/// # Safety
/// `mrs` points to `mrs_len` handles, live or NULL.
unsafe fn regions(mrs: *const *const dcp_mr, mrs_len: usize) -> Result<Vec<RemoteMr>, Failure> {
    if mrs_len == 0 {
        return Ok(Vec::new());
    }
    if mrs.is_null() || mrs_len > REGIONS_MAX {
        return Err(Failure::fixed(libc::EINVAL, "mrs is NULL, or has more than 64 regions"));
    }
    // SAFETY: as the caller says.
    let mrs = unsafe { slice::from_raw_parts(mrs, mrs_len) };
    // SAFETY: as the caller says.
    mrs.iter().map(|&mr| unsafe { borrow(mr) }.map(crate::memory::Memory::remote)).collect()
}

/// What an offer holds.
const REGIONS_MAX: usize = 64;

const fn listen_errno(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::PermissionDenied => libc::EACCES,
        _ => libc::EIO,
    }
}

fn connect_failure(error: &ConnectError) -> Failure {
    let errno = match error {
        ConnectError::Listen { kind, .. } => listen_errno(*kind),
        ConnectError::Unreachable { .. } | ConnectError::Refused(_) | ConnectError::RefusedByPeer { .. } => {
            libc::ECONNREFUSED
        }
        ConnectError::OutOfTurn { .. } | ConnectError::LineTooLong => libc::EPROTO,
        ConnectError::Timeout { .. } => libc::ETIMEDOUT,
        ConnectError::Stopped => libc::ECANCELED,
        ConnectError::Local { .. } => libc::EHOSTUNREACH,
        ConnectError::PeerLost { .. } => libc::ECONNRESET,
    };
    Failure::of(errno, error)
}
