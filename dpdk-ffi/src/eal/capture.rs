//! Keeps what DPDK prints away from the user, and for the translation of failures.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::OnceLock;

use dpdk_sys::FILE;

/// Runs `start` with DPDK's log in memory, and with standard output and error in a file of its own; returns its result and
/// all that was printed.
pub(super) fn quietly<R>(start: impl FnOnce() -> R) -> (R, String) {
    let log = log_stream();
    // SAFETY: the stream lives forever.
    unsafe { dpdk_sys::rte_openlog_stream(log) };
    let aside = Aside::begin();
    let result = start();
    let mut printed = log_tail();
    if let Some(aside) = aside {
        printed.push_str(&aside.end());
    }
    // From here on only what a device could not do is worth keeping.
    // SAFETY: sets a number.
    unsafe { dpdk_sys::rte_log_set_global_level(LOG_LEVEL_WARNING) };
    (result, printed)
}

/// `RTE_LOG_WARNING`.
const LOG_LEVEL_WARNING: u32 = 5;
const LOG_BYTES_MAX: usize = 64 * 1024;

/// What DPDK logged since the last call.
pub(crate) fn log_tail() -> String {
    let mut text = vec![0u8; LOG_BYTES_MAX];
    // SAFETY: the stream lives forever, and `text` has the room that is passed.
    let len = unsafe { dpdk_sys::dcpshim_log_take(log_stream(), text.as_mut_ptr().cast(), text.len()) };
    text.truncate(len);
    String::from_utf8_lossy(&text).into_owned()
}

struct Stream(*mut FILE);
// SAFETY: the C library locks a stream on every use.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// The one stream that DPDK logs to, ever: bounded, so a talkative driver costs nothing.
fn log_stream() -> *mut FILE {
    static STREAM: OnceLock<Stream> = OnceLock::new();
    STREAM
        .get_or_init(|| {
            // SAFETY: makes a stream over a static buffer.
            let stream = unsafe { dpdk_sys::dcpshim_log_open() };
            assert!(!stream.is_null(), "the C library has no memory for a stream");
            Stream(stream)
        })
        .0
}

/// Standard output and error, redirected.
struct Aside {
    file: File,
    saved: [RawFd; 2],
}

impl Aside {
    /// `None` when there is no file to redirect to: better noise than no start.
    fn begin() -> Option<Self> {
        // SAFETY: the name is a C string, the flag a valid one.
        let fd = unsafe { libc::memfd_create(c"dcp-eal-output".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return None;
        }
        // SAFETY: fresh, and nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        flush();
        let saved = [libc::STDOUT_FILENO, libc::STDERR_FILENO].map(duplicate);
        if saved.contains(&NO_DESCRIPTOR_LEFT) {
            saved.into_iter().filter(|&copy| copy >= 0).for_each(close);
            return None;
        }
        replace(file.as_raw_fd(), libc::STDOUT_FILENO);
        replace(file.as_raw_fd(), libc::STDERR_FILENO);
        Some(Self { file, saved })
    }

    fn end(mut self) -> String {
        flush();
        for (saved, standard) in self.saved.into_iter().zip([libc::STDOUT_FILENO, libc::STDERR_FILENO]) {
            if saved >= 0 {
                replace(saved, standard);
                close(saved);
            } else {
                // It was closed before, so it is closed again.
                close(standard);
            }
        }
        let mut bytes = Vec::new();
        // What cannot be read is not translated.
        let _ = self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn flush() {
    // SAFETY: flushes the C library's own streams.
    unsafe { dpdk_sys::dcpshim_flush_stdio() };
}

/// A copy; -1 when `fd` is closed, [`NO_DESCRIPTOR_LEFT`] when it could not be got back later.
fn duplicate(fd: RawFd) -> RawFd {
    // SAFETY: makes a new descriptor, or fails.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    let closed = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EBADF);
    if copy >= 0 || closed() { copy } else { NO_DESCRIPTOR_LEFT }
}

const NO_DESCRIPTOR_LEFT: RawFd = -2;

fn replace(from: RawFd, to: RawFd) {
    // SAFETY: `to` is a standard stream, which no Rust type owns.
    unsafe { libc::dup2(from, to) };
}

fn close(fd: RawFd) {
    // SAFETY: either our own copy, or a standard stream that was closed before.
    unsafe { libc::close(fd) };
}
