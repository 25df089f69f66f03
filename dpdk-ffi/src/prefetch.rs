//! Asking for memory before it is needed.

/// Asks for the cache lines of `it` to be brought near, and does not wait. Does nothing where there is no such instruction.
#[inline]
pub fn prefetch<T: ?Sized>(it: &T) {
    let base = std::ptr::from_ref(it).cast::<u8>();
    for at in (0..size_of_val(it)).step_by(LINE) {
        line(base.wrapping_add(at));
    }
}

const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint: it reads nothing that the program could see, and cannot fault.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_: *const u8) {}
