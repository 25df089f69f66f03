//! Structures that begin with their size: they may grow without breaking programs that were built before.

use std::ptr;

use crate::failure::Failure;

/// A structure that begins with a `u32`, its size, and for which all zeroes is a value.
///
/// # Safety
/// As just said; and it is `repr(C)` without padding that is not covered by `reserved` members.
pub(crate) unsafe trait Sized32: Copy {
    /// All zero.
    const ZERO: Self;
}

/// Reads what C gives, of this version or an older or a newer one.
///
/// # Safety
/// `pointer` is null or points to as many readable bytes as its first four say.
pub(crate) unsafe fn read<T: Sized32>(pointer: *const T) -> Result<T, Failure> {
    if pointer.is_null() {
        return Err(NULL);
    }
    // SAFETY: readable, as the caller says; alignment is not asked of C here.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if !(size_of::<u32>()..=SIZE_MAX).contains(&size) {
        return Err(SIZE);
    }
    let mut value = T::ZERO;
    let known = size.min(size_of::<T>());
    // SAFETY: `known` bytes are readable there and belong to `value` here; any bytes are a value of it.
    unsafe { ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), known) };
    for offset in known..size {
        // SAFETY: below the size that the caller vouches for.
        let at = unsafe { pointer.cast::<u8>().add(offset) };
        // SAFETY: as above.
        if unsafe { at.read() } != 0 {
            return Err(UNKNOWN);
        }
    }
    Ok(value)
}

/// Writes as much of `value` as C has room for. Its size member keeps what C wrote there.
///
/// # Safety
/// `pointer` is null or points to as many writable bytes as its first four say.
pub(crate) unsafe fn write<T: Sized32>(pointer: *mut T, value: &T) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(NULL);
    }
    // SAFETY: readable, as the caller says.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if !(size_of::<u32>()..=SIZE_MAX).contains(&size) {
        return Err(SIZE);
    }
    let skipped = size_of::<u32>();
    let known = size.min(size_of::<T>()) - skipped;
    // SAFETY: both have at least the four bytes that are skipped.
    let to = unsafe { pointer.cast::<u8>().add(skipped) };
    // SAFETY: as above.
    let from = unsafe { ptr::from_ref(value).cast::<u8>().add(skipped) };
    // SAFETY: `known` bytes are left on both sides, and C's structure is not ours.
    unsafe { ptr::copy_nonoverlapping(from, to, known) };
    Ok(())
}

/// No structure of ours will be as long; what claims to be was not initialised.
const SIZE_MAX: usize = 4096;

pub(crate) const NULL: Failure = Failure::fixed(libc::EINVAL, "a pointer that must not be NULL is NULL");
const SIZE: Failure =
    Failure::fixed(libc::EINVAL, "the size member of a structure is wrong: set it to sizeof the structure");
const UNKNOWN: Failure = Failure::fixed(
    libc::E2BIG,
    "a structure asks for something that this version of libdcp does not know: install a newer one",
);
