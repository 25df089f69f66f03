//! Where a region's bytes come from.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::RegionError;
use crate::limits::Limits;
use crate::memory::{self, HugePreference, HugeTurn, MemInfo};

/// Memory, given back when dropped unless it is someone else's.
#[derive(Debug)]
pub(super) enum Backing {
    /// Through `hugepage_rs`.
    Huge { base: NonNull<u8>, layout: Layout },
    /// An anonymous mapping.
    Ordinary { base: NonNull<u8>, len: usize },
    /// The caller of `Region::from_raw` owns it.
    Foreign { base: NonNull<u8> },
}

// SAFETY: plain memory that nothing here reads or writes.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    pub(super) fn alloc(len: usize, huge: HugePreference) -> Result<Self, RegionError> {
        if len == 0 {
            return Err(RegionError::Empty);
        }
        match (huge, huge_pages(len)) {
            (HugePreference::Auto | HugePreference::Require, Some(backing)) => Ok(backing),
            (HugePreference::Require, None) => {
                Err(RegionError::NoHugePages { len, free: MemInfo::read().huge_free_bytes() })
            }
            _ => ordinary_pages(len),
        }
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        match *self {
            Self::Huge { base, .. } | Self::Ordinary { base, .. } | Self::Foreign { base } => base,
        }
    }

    /// Bytes of the pages that it lies in, as far as DMA goes.
    pub(super) fn page_bytes(&self) -> usize {
        let huge = || usize::try_from(MemInfo::read().huge_page_bytes).ok();
        if self.is_huge() { huge().unwrap_or(PAGE) } else { PAGE }
    }

    pub(super) fn is_huge(&self) -> bool {
        matches!(self, Self::Huge { .. })
    }
}

/// Huge pages for `len` bytes, all of them present, or `None`: found missing later, they would be a SIGBUS.
fn huge_pages(len: usize) -> Option<Backing> {
    let info = MemInfo::read();
    // hugepage_rs panics on a kernel that does not say the size, so that is asked first.
    let page = usize::try_from(info.huge_page_bytes).ok().filter(|&page| page != 0)?;
    let mapped = len.checked_next_multiple_of(page)?;
    if u64::try_from(mapped).ok()? > info.huge_free_bytes() {
        return None;
    }
    // Not between somebody's look and grasp; and counted again, now that nobody else takes any.
    let _turn = HugeTurn::wait()?;
    let info = MemInfo::read();
    if u64::try_from(mapped).ok()? > info.huge_free_bytes() {
        return None;
    }
    let layout = Layout::from_size_align(mapped, CACHE_LINE).ok()?;
    // SAFETY: the size is not zero.
    let base = NonNull::new(unsafe { hugepage_rs::alloc(layout) })?;
    let backing = Backing::Huge { base, layout };
    // SAFETY: a private mapping of `mapped` bytes that was just made.
    unsafe { memory::populate(base, mapped) }.then_some(backing)
}

fn ordinary_pages(len: usize) -> Result<Backing, RegionError> {
    let base = memory::map_anonymous(len, libc::MAP_NORESERVE)
        .ok_or_else(|| RegionError::NoMemory { len, limit: Limits::read().address_space_bytes })?;
    // Asks for transparent huge pages, fewer TLB misses; a kernel that refuses changes nothing.
    // SAFETY: the mapping was just made; advice changes no byte.
    unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    Ok(Backing::Ordinary { base, len })
}

const CACHE_LINE: usize = 64;
/// An ordinary page.
const PAGE: usize = 4096;

impl Drop for Backing {
    fn drop(&mut self) {
        match *self {
            // SAFETY: allocated with this very layout, and the region saw to it that nothing points here.
            Self::Huge { base, layout } => unsafe { hugepage_rs::dealloc(base.as_ptr(), layout) },
            // SAFETY: mapped with this very length, and as above.
            Self::Ordinary { base, len } => unsafe { memory::unmap(base, len) },
            Self::Foreign { .. } => {}
        }
    }
}
