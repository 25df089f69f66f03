//! Errors on their way to C: a number, and a sentence for each thread.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use dcp::verbs::{PostError, ResourceError};

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    errno: c_int,
    cause: Cause,
}

/// Made into a sentence only when it is asked for: a full queue is an everyday answer.
#[derive(Clone, Debug)]
enum Cause {
    Text(Cow<'static, str>),
    Post(PostError),
}

impl Failure {
    pub(crate) const fn fixed(errno: c_int, sentence: &'static str) -> Self {
        Self { errno, cause: Cause::Text(Cow::Borrowed(sentence)) }
    }

    #[cold]
    pub(crate) fn of(errno: c_int, error: &impl Display) -> Self {
        Self { errno, cause: Cause::Text(Cow::Owned(error.to_string())) }
    }

    fn sentence(&self) -> String {
        match &self.cause {
            Cause::Text(text) => text.to_string(),
            Cause::Post(error) => error.to_string(),
        }
    }
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        let errno = match error {
            PostError::QueueFull { .. } => libc::ENOMEM,
            PostError::WorkerBusy => libc::EAGAIN,
            PostError::NotReady { .. } => libc::ENOTCONN,
            PostError::NoReads => libc::EOPNOTSUPP,
            PostError::MessageTooLong { .. } => libc::EMSGSIZE,
            PostError::InlineTooLong { .. } | PostError::TooManySges { .. } => libc::EINVAL,
        };
        Self { errno, cause: Cause::Post(error) }
    }
}

impl From<ResourceError> for Failure {
    fn from(error: ResourceError) -> Self {
        let errno = match error {
            ResourceError::Memory(_) | ResourceError::Pool(_) => libc::ENOMEM,
            ResourceError::WorkerGone { .. } => libc::EIO,
            ResourceError::OtherDevice => libc::EXDEV,
            ResourceError::Event(_) => libc::EMFILE,
            _ => libc::EINVAL,
        };
        Self::of(errno, &error)
    }
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
    static SENTENCE: RefCell<CString> = RefCell::default();
}

/// Runs the body of an entry point that answers with a number.
pub(crate) fn entry(body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    match guarded(body) {
        Ok(value) => value,
        Err(failure) => -remember(failure),
    }
}

/// Runs the body of an entry point that answers with a pointer.
pub(crate) fn entry_pointer<T>(body: impl FnOnce() -> Result<*mut T, Failure>) -> *mut T {
    entry_or(ptr::null_mut(), body)
}

/// Runs the body of an entry point that answers with `none` when it fails.
pub(crate) fn entry_or<T>(none: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    match guarded(body) {
        Ok(value) => value,
        Err(failure) => {
            remember(failure);
            none
        }
    }
}

/// No panic crosses the boundary. What was locked when it came is poisoned, so later calls fail too.
fn guarded<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(BROKEN))
}

/// After a panic of ours.
pub(crate) const BROKEN: Failure =
    Failure::fixed(libc::ENOTRECOVERABLE, "an error inside DCP: close the object, and report it");

#[cold]
fn remember(failure: Failure) -> c_int {
    let errno = failure.errno;
    // A thread that is ending has no memory left, and no further questions.
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
    // SAFETY: the C library's own function, without a precondition.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it points to the calling thread's error number.
    unsafe { place.write(errno) };
    errno
}

/// What went wrong in the calling thread's last call that failed: one sentence, in UTF-8; empty if none did. Never NULL.
///
/// The text stays until the thread asks again or ends. Threads: each has its own.
#[unsafe(no_mangle)]
pub extern "C" fn dcp_last_error() -> *const c_char {
    let make = || {
        let sentence = LAST.try_with(|last| last.borrow().as_ref().map(Failure::sentence)).ok()??;
        let text = CString::new(sentence.replace('\0', " ")).ok()?;
        SENTENCE
            .try_with(|place| {
                place.replace(text);
                place.borrow().as_ptr()
            })
            .ok()
    };
    catch_unwind(make).ok().flatten().unwrap_or(c"".as_ptr())
}
