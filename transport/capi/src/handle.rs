//! Handles: what C holds a pointer to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;

/// A type that C knows by name only; behind a pointer to it lies a [`Handle`] of `Inner`.
pub(crate) trait Opaque {
    /// What there is. It is borrowed by several threads at once.
    type Inner: Send + Sync;
    /// Marks its handles.
    const MAGIC: u64;
    /// For messages.
    const REFUSAL: Failure;
}

/// Declares the opaque types.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident($inner:ty, $magic:literal);)*) => {$(
        impl $crate::handle::Opaque for $name {
            type Inner = $inner;
            const MAGIC: u64 = u64::from_ne_bytes(*$magic);
            const REFUSAL: $crate::failure::Failure = $crate::failure::Failure::fixed(
                libc::EINVAL,
                concat!("not a ", stringify!($name), ": NULL, given back already, or a handle of another kind"),
            );
        }
    )*};
}
pub(crate) use opaque;

/// The mark comes first in every kind of handle, so that one kind is told from another.
#[repr(C)]
struct Handle<T> {
    magic: AtomicU64,
    inner: T,
}

const DEAD: u64 = 0;

/// Hands something to C.
pub(crate) fn give<O: Opaque>(inner: O::Inner) -> *mut O {
    Box::into_raw(Box::new(Handle { magic: AtomicU64::new(O::MAGIC), inner })).cast()
}

/// Looks behind a handle.
///
/// # Safety
/// `pointer` is null or came from [`give`], of any kind, and nobody takes it back meanwhile.
pub(crate) unsafe fn borrow<'a, O: Opaque>(pointer: *const O) -> Result<&'a O::Inner, Failure> {
    let handle = pointer.cast::<Handle<O::Inner>>();
    if handle.is_null() || !handle.is_aligned() {
        return Err(O::REFUSAL);
    }
    // SAFETY: whatever its kind, an eight-byte mark lies there first.
    let magic = unsafe { &*handle.cast::<AtomicU64>() };
    if magic.load(Ordering::Acquire) != O::MAGIC {
        return Err(O::REFUSAL);
    }
    // SAFETY: the mark says that it is a live handle of this kind.
    let handle = unsafe { &*handle };
    Ok(&handle.inner)
}

/// Takes a handle back.
///
/// # Safety
/// As [`borrow`]; and nobody uses it any more.
pub(crate) unsafe fn take<O: Opaque>(pointer: *mut O) -> Result<O::Inner, Failure> {
    // SAFETY: as the caller says.
    unsafe { borrow::<O>(pointer) }?;
    let handle = pointer.cast::<Handle<O::Inner>>();
    // SAFETY: it came from `give` as a box of just this type, and is taken once: its mark was there.
    let handle = unsafe { Box::from_raw(handle) };
    handle.magic.store(DEAD, Ordering::Release);
    Ok(handle.inner)
}
