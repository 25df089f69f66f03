//! Waiting for completions without polling: an event descriptor that `epoll` takes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that becomes readable when something arrives after [`Event::arm`].
#[derive(Debug)]
pub(super) struct Event {
    fd: OwnedFd,
    armed: AtomicBool,
}

impl Event {
    pub(super) fn new() -> Result<Self, String> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(|error| error.to_string())?;
        Ok(Self { fd, armed: AtomicBool::new(false) })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Makes the descriptor quiet, and readable at the next arrival.
    pub(super) fn arm(&self) {
        let mut count = [0; 8];
        // Nothing to read is as good as something read.
        let _ = rustix::io::read(&self.fd, &mut count);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Something arrived: wakes whoever armed.
    #[inline]
    pub(super) fn notify(&self) {
        if self.armed.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            // A counter that is full is readable already.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}
