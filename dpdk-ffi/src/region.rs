//! Memory that peers read and write: registered buffers.

mod backing;
mod counters;

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use backing::Backing;
pub(crate) use counters::AttachSlot;
use counters::Counters;

use crate::dma::{DmaDevice, DmaError, DmaMapping};
use crate::memory::HugePreference;
use crate::streaming::Streaming;

/// A range of memory that frames may point into, and that peers may write at any moment. Clones share it.
///
/// There is never a reference to its bytes: they are copied in and out, with checked offsets. It counts the segments in
/// flight that point into it, and outlives them: when the last handle goes first, the memory stays until they are freed
/// (see [`regions_awaiting_frames`]).
#[derive(Clone, Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    shared: Arc<Shared>,
}

// SAFETY: bytes are only reached by copying through raw pointers, as with any memory that a device writes.
unsafe impl Send for Region {}
// SAFETY: as above; two threads that write the same bytes get one or the other, byte by byte.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of `len` bytes.
    ///
    /// Ordinary pages appear as they are touched, so a sparse region costs what is used of it.
    ///
    /// # Errors
    /// [`RegionError`] for no bytes, too many, or when huge pages are required and too few are free.
    pub fn alloc(len: usize, huge: HugePreference) -> Result<Self, RegionError> {
        sweep();
        let backing = Backing::alloc(len, huge)?;
        Ok(Self::over(backing, len))
    }

    /// Memory of someone else's.
    ///
    /// # Safety
    /// `base` must be readable and writable for `len` bytes until the last clone is gone *and* [`in_flight`] was zero
    /// after that moment or [`regions_awaiting_frames`] is zero. Rust references to the bytes must not be used meanwhile.
    ///
    /// [`in_flight`]: Self::in_flight
    pub unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Self {
        Self::over(Backing::Foreign { base }, len)
    }

    fn over(backing: Backing, len: usize) -> Self {
        let base = backing.base();
        let entombed = Entombed { counters: Counters::new(), mappings: Mutex::default(), backing };
        Self { base, len, shared: Arc::new(Shared { entombed: Some(entombed) }) }
    }

    /// Bytes in it.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty, except over foreign memory of no bytes")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of its first byte, for languages whose programs keep the rules of [`Region`] by themselves.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether nobody else can reach the memory any more: there is no clone, and no frame in flight points into it.
    /// Memory given to [`from_raw`](Self::from_raw) is its owner's again once this handle is dropped, too.
    pub fn is_released(&self) -> bool {
        let alone = Arc::strong_count(&self.shared) == 1;
        // Pairs with the release in the drop of the clones: what they counted is seen.
        fence(Ordering::Acquire);
        alone && self.in_flight() == 0
    }

    /// Whether it lies in huge pages.
    pub fn is_huge(&self) -> bool {
        self.shared.entombed.as_ref().is_some_and(|it| it.backing.is_huge())
    }

    /// Lets a card read it by DMA, as frames that point into it need; until nobody can reach the memory any more. The
    /// device stays open as long. Again for the same device: nothing happens.
    ///
    /// # Errors
    /// [`DmaError`]; then no frame that points into it may go to that card.
    pub fn map_for(&self, device: &DmaDevice) -> Result<(), DmaError> {
        let Some(entombed) = &self.shared.entombed else { unreachable!("only gone while being dropped") };
        let mut mappings = entombed.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        if mappings.iter().any(|mapping| mapping.is_for(device)) {
            return Ok(());
        }
        // SAFETY: the mapping is dropped before the backing; foreign memory stays by the promise of `from_raw`.
        let mapping =
            unsafe { DmaMapping::new(device.clone(), self.base, self.len, entombed.backing.page_bytes()) }?;
        mappings.push(mapping);
        Ok(())
    }

    /// Segments in flight that point into it. Never less than the truth at the moment of the call.
    pub fn in_flight(&self) -> u64 {
        self.shared.counters().in_flight()
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        self.shared.counters()
    }

    /// The address of `len` bytes at `offset`, if they are inside.
    #[inline]
    pub(crate) fn range(&self, offset: u64, len: usize) -> Result<*mut u8, RegionRangeError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if start.checked_add(len).is_some_and(|end| end <= self.len) {
            Ok(self.base.as_ptr().wrapping_add(start))
        } else {
            Err(RegionRangeError { offset, len, region_len: self.len })
        }
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// [`RegionRangeError`] when they do not fit; nothing is written then.
    #[inline]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), RegionRangeError> {
        let to = self.range(offset, bytes.len())?;
        // SAFETY: in range, as just checked; `bytes` is a reference, so it is not in a region.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies from `offset` to `bytes`.
    ///
    /// # Errors
    /// [`RegionRangeError`] when there are not so many.
    #[inline]
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RegionRangeError> {
        let from = self.range(offset, bytes.len())?;
        // SAFETY: as in `write`.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies `len` bytes from another region, or from this one; the two ranges may overlap.
    ///
    /// # Errors
    /// [`RegionRangeError`] of the range that does not fit.
    pub fn copy_from(
        &self,
        offset: u64,
        from: &Self,
        from_offset: u64,
        len: usize,
    ) -> Result<(), RegionRangeError> {
        let to = self.range(offset, len)?;
        let from = from.range(from_offset, len)?;
        // SAFETY: both ranges were just checked, and may overlap.
        unsafe { ptr::copy(from, to, len) };
        Ok(())
    }

    /// The same as [`copy_from`](Self::copy_from) past the caches, for memory that is not in them.
    ///
    /// # Errors
    /// [`RegionRangeError`] of the range that does not fit.
    pub fn stream_from(
        &self,
        offset: u64,
        from: &Self,
        from_offset: u64,
        len: usize,
        streaming: &Streaming,
    ) -> Result<(), RegionRangeError> {
        let to = self.range(offset, len)?;
        let from = from.range(from_offset, len)?;
        // SAFETY: both ranges were just checked, and may overlap.
        unsafe { streaming.copy(from, to, len) };
        Ok(())
    }

    /// Sets `len` bytes at `offset` to `byte`.
    ///
    /// # Errors
    /// [`RegionRangeError`] when there are not so many.
    pub fn fill(&self, offset: u64, len: usize, byte: u8) -> Result<(), RegionRangeError> {
        let to = self.range(offset, len)?;
        // SAFETY: in range, as just checked.
        unsafe { ptr::write_bytes(to, byte, len) };
        Ok(())
    }

    /// Where the bytes at `offset` first differ from `expected`, counted from `offset`.
    ///
    /// # Errors
    /// [`RegionRangeError`] when there are not so many.
    pub fn compare(&self, offset: u64, expected: &[u8]) -> Result<Option<usize>, RegionRangeError> {
        let found = self.range(offset, expected.len())?;
        // SAFETY: both are readable for that many bytes.
        let order = unsafe { libc::memcmp(found.cast(), expected.as_ptr().cast(), expected.len()) };
        if order == 0 {
            return Ok(None);
        }
        // SAFETY: in range, as just checked; volatile, since a peer may be writing.
        let byte = |index: usize| unsafe { found.wrapping_add(index).read_volatile() };
        Ok((0..expected.len()).find(|&index| byte(index) != expected[index]))
    }

    /// The 64-bit word at `offset`, in the machine's byte order, for atomic operations.
    ///
    /// # Errors
    /// [`RegionRangeError`] when it is not inside, or its address is not a multiple of 8.
    #[inline]
    pub fn atomic_u64(&self, offset: u64) -> Result<&AtomicU64, RegionRangeError> {
        let at = self.range(offset, size_of::<u64>())?.cast::<u64>();
        if !at.is_aligned() {
            return Err(RegionRangeError { offset, len: size_of::<u64>(), region_len: self.len });
        }
        // SAFETY: in range and aligned, alive while `self` is; other accesses are copies by raw pointer, not references.
        Ok(unsafe { AtomicU64::from_ptr(at) })
    }
}

/// Regions whose last handle is gone while frames still point into them; zero unless frames leak.
pub fn regions_awaiting_frames() -> usize {
    sweep();
    GRAVEYARD.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// Regions that ever had to outlive their last handle, because frames still pointed into them: a warning sign.
pub fn regions_outlived_handles() -> u64 {
    OUTLIVED.load(Ordering::Relaxed)
}

/// What all clones share; moved to the graveyard when frames outlive them.
#[derive(Debug)]
struct Shared {
    /// `None` only while being dropped.
    entombed: Option<Entombed>,
}

impl Shared {
    #[inline]
    fn counters(&self) -> &Counters {
        match &self.entombed {
            Some(entombed) => &entombed.counters,
            None => unreachable!("only gone while being dropped"),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(entombed) = self.entombed.take() else { return };
        if entombed.counters.in_flight() != 0 {
            OUTLIVED.fetch_add(1, Ordering::Relaxed);
            GRAVEYARD.lock().unwrap_or_else(PoisonError::into_inner).push(entombed);
        }
    }
}

/// The memory and its counters, which must stay where they are while a frame points to them: both are on the heap.
#[derive(Debug)]
struct Entombed {
    counters: Counters,
    /// Dropped before the memory that they are of.
    mappings: Mutex<Vec<DmaMapping>>,
    backing: Backing,
}

static GRAVEYARD: Mutex<Vec<Entombed>> = Mutex::new(Vec::new());
static OUTLIVED: AtomicU64 = AtomicU64::new(0);

/// Frees the regions that no frame points into any more.
pub(crate) fn sweep() {
    GRAVEYARD
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|entombed| entombed.counters.in_flight() != 0);
}

/// A range that the region does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRangeError {
    /// First byte asked for.
    pub offset: u64,
    /// Bytes asked for.
    pub len: usize,
    /// Bytes that the region has.
    pub region_len: usize,
}

impl fmt::Display for RegionRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, len, region_len } = self;
        write!(
            f,
            "{len} bytes at {offset:#x} are not inside a region of {region_len}, or not aligned as needed"
        )
    }
}

impl std::error::Error for RegionRangeError {}

/// A region could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// No bytes were asked for.
    Empty,
    /// Huge pages were required.
    NoHugePages {
        /// Bytes asked for.
        len: usize,
        /// Bytes of free huge pages.
        free: u64,
    },
    /// The kernel has no room for the mapping.
    NoMemory {
        /// Bytes asked for.
        len: usize,
        /// Bytes that the address space of this process is limited to (`ulimit -v`), if it is.
        limit: Option<u64>,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a region needs at least one byte"),
            Self::NoHugePages { len, free } => write!(
                f,
                "a region of {len} bytes needs huge pages and {free} bytes are free: raise /proc/sys/vm/nr_hugepages"
            ),
            Self::NoMemory { len, limit: None } => {
                write!(f, "there is no room to map a region of {len} bytes: make it smaller")
            }
            Self::NoMemory { len, limit: Some(limit) } => write!(
                f,
                "there is no room to map a region of {len} bytes in an address space of {limit}: \
                 raise that with ulimit -v, or make the region smaller"
            ),
        }
    }
}

impl std::error::Error for RegionError {}
