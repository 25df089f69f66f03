//! Mempools of mbufs: one kind for frame heads, one for segments that only carry a reference to outside memory.

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dpdk_sys::{rte_mbuf_ext_shared_info, rte_mempool};

use crate::eal::Eal;
use crate::errno::Errno;

/// A pool of mbufs. Clones share it.
///
/// When the last clone goes while mbufs are still out, the memory stays until they are back (see
/// [`pools_awaiting_mbufs`]); nothing is ever freed under a frame. One thing is the caller's: join a thread that frees
/// frames before dropping the last handle, since DPDK counts an mbuf as back a moment before it has written it back.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<PoolInner>,
}

/// What a pool is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// What the pool is for, at most 10 bytes kept; a number is added, so names need not differ.
    pub name: &'static str,
    /// Number of mbufs. 2^n − 1 wastes least. At least 1.
    pub count: u32,
    /// Bytes of frame that fit into one mbuf, behind the headroom of 128; zero for a payload pool.
    pub data_room: u16,
    /// Mbufs that each registered thread may keep for itself; clamped to 512 and to two thirds of `count`.
    pub cache: u32,
}

impl PoolConfig {
    /// Frame heads of up to 256 bytes: all headers of a DCP frame, and inline data.
    pub const fn header(name: &'static str, count: u32) -> Self {
        Self { name, count, data_room: 256, cache: CACHE_DEFAULT }
    }

    /// Mbufs without room of their own, for [`MbufStash::attach`](crate::MbufStash::attach).
    pub const fn payload(name: &'static str, count: u32) -> Self {
        Self { name, count, data_room: 0, cache: CACHE_DEFAULT }
    }

    /// Whole frames of up to `data_room` bytes, for devices that copy.
    pub const fn frames(name: &'static str, count: u32, data_room: u16) -> Self {
        Self { name, count, data_room, cache: CACHE_DEFAULT }
    }
}

/// Four bursts of 64: with less, a burst of allocations and the frees of the next one miss the cache.
const CACHE_DEFAULT: u32 = 256;
const NAME_BYTES_MAX: usize = 10;
/// Where the shared info of an external buffer lies, right behind the mbuf; DPDK wants multiples of 8. Mbufs with room of
/// their own have none of it, so that a frame's headers begin with a cache line and lie in as few as they can.
#[expect(clippy::cast_possible_truncation, reason = "24")]
pub(crate) const PRIVATE_BYTES: u16 = size_of::<rte_mbuf_ext_shared_info>().next_multiple_of(8) as u16;

impl Pool {
    /// Makes a pool.
    ///
    /// # Errors
    /// [`PoolError`] when the EAL's memory does not hold it, or `count` is zero.
    pub fn new(eal: &Eal, config: PoolConfig) -> Result<Self, PoolError> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        sweep();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let stem: String =
            config.name.chars().filter(char::is_ascii_alphanumeric).take(NAME_BYTES_MAX).collect();
        let name = CString::new(format!("{stem}_{serial}")).unwrap_or_default();
        let cache = config.cache.min(dpdk_sys::RTE_MEMPOOL_CACHE_MAX_SIZE).min(config.count / 3 * 2);
        let headroom = if config.data_room == 0 { 0 } else { dpdk_sys::RTE_PKTMBUF_HEADROOM };
        let room = u16::try_from(headroom + u32::from(config.data_room))
            .map_err(|_| PoolError { config, errno: Errno(libc::EINVAL) })?;
        let private = if config.data_room == 0 { PRIVATE_BYTES } else { 0 };
        // SAFETY: the EAL runs, and `name` lives through the call, which copies it.
        let raw = unsafe {
            dpdk_sys::rte_pktmbuf_pool_create(name.as_ptr(), config.count, cache, private, room, ANY_SOCKET)
        };
        let raw = NonNull::new(raw).ok_or_else(|| PoolError { config, errno: Errno::last_dpdk() })?;
        Ok(Self { inner: Arc::new(PoolInner { raw: RawPool { raw, _eal: eal.clone() }, config }) })
    }

    /// What the pool was made with.
    pub fn config(&self) -> &PoolConfig {
        &self.inner.config
    }

    /// Mbufs that are not in use, including those in the caches of registered threads. Walks the caches: not for the
    /// hot path.
    pub fn available(&self) -> u32 {
        self.inner.raw.available()
    }

    /// Mbufs that someone holds.
    pub fn in_use(&self) -> u32 {
        self.inner.config.count.saturating_sub(self.available())
    }

    /// Whether the pool's mbufs have no room of their own.
    pub fn is_payload(&self) -> bool {
        self.inner.config.data_room == 0
    }

    pub(crate) fn as_ptr(&self) -> *mut rte_mempool {
        self.inner.raw.raw.as_ptr()
    }
}

/// Pools whose last handle is gone while some of their mbufs are not; zero unless something leaks.
pub fn pools_awaiting_mbufs() -> usize {
    sweep();
    GRAVEYARD.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[derive(Debug)]
struct PoolInner {
    raw: RawPool,
    config: PoolConfig,
}

impl Drop for PoolInner {
    fn drop(&mut self) {
        let raw = RawPool { raw: self.raw.raw, _eal: self.raw._eal.clone() };
        GRAVEYARD.lock().unwrap_or_else(PoisonError::into_inner).push((raw, self.config.count));
        sweep();
    }
}

#[derive(Debug)]
struct RawPool {
    raw: NonNull<rte_mempool>,
    _eal: Eal,
}

// SAFETY: a mempool is made for use by many threads: its ring is multi-producer and multi-consumer, its caches are
// per lcore.
unsafe impl Send for RawPool {}
// SAFETY: as above.
unsafe impl Sync for RawPool {}

impl RawPool {
    fn available(&self) -> u32 {
        // SAFETY: the pool lives as long as `self`.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.raw.as_ptr()) }
    }
}

/// Pools to be freed once all their mbufs (second field: how many those are) are back.
static GRAVEYARD: Mutex<Vec<(RawPool, u32)>> = Mutex::new(Vec::new());

/// Frees the pools whose mbufs are all back.
pub(crate) fn sweep() {
    let mut finished = Vec::new();
    {
        let mut waiting = GRAVEYARD.lock().unwrap_or_else(PoisonError::into_inner);
        let mut index = 0;
        while let Some((pool, count)) = waiting.get(index) {
            if pool.available() >= *count {
                finished.push(waiting.swap_remove(index));
            } else {
                index += 1;
            }
        }
    }
    // Outside the lock: the last handle on the EAL may go with them.
    for (pool, _) in finished {
        // SAFETY: no handle is left and no mbuf is out, so nobody can reach the pool any more.
        unsafe { dpdk_sys::rte_mempool_free(pool.raw.as_ptr()) };
    }
}

const ANY_SOCKET: i32 = -1;

/// A pool could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolError {
    /// What was asked for.
    pub config: PoolConfig,
    /// DPDK's reason.
    pub errno: Errno,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolConfig { name, count, data_room, .. } = self.config;
        let errno = self.errno;
        let advice = match errno.0 {
            // DPDK says either when its heap is full.
            libc::ENOMEM | libc::ENOBUFS => "give the EAL more memory or ask for fewer mbufs",
            _ => "ask for at least one mbuf and at most 65407 bytes of data room",
        };
        write!(f, "pool {name} of {count} mbufs with {data_room} bytes each was refused ({errno}): {advice}")
    }
}

impl std::error::Error for PoolError {}
