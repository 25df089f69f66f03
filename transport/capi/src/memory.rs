//! Protection domains and memory regions.

#![expect(non_camel_case_types, reason = "C's names")]

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::time::Duration;

use dcp::dpdk::{HugePreference, Region, clock};
use dcp::verbs::{Device, Mr, Pd, RemoteMr};

use crate::context::dcp_context;
use crate::failure::{BROKEN, Failure, entry, entry_or, entry_pointer};
use crate::handle::{borrow, give, opaque, take};
use crate::words;

/// A protection domain: what memory the queue pairs in it, and their peers, may touch.
pub struct dcp_pd {
    _private: [u8; 0],
}

/// A registered memory region.
pub struct dcp_mr {
    _private: [u8; 0],
}

opaque! {
    dcp_pd(Domain, b"dcp pd\0\0");
    dcp_mr(Memory, b"dcp mr\0\0");
}

/// What is behind a dcp_pd.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) pd: Pd,
    device: Device,
}

/// What is behind a dcp_mr.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `None` once it is deregistered but still referred to.
    mr: Mutex<Option<Mr>>,
    region: Region,
    device: Device,
    lkey: u32,
    rkey: u32,
    is_foreign: bool,
}

/// Makes a protection domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_alloc_pd(context: *mut dcp_context) -> *mut dcp_pd {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        Ok(give(Domain { pd: context.device.allocate_pd()?, device: context.device.clone() }))
    })
}

/// Gives a protection domain back. It lives on in what was made in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_dealloc_pd(pd: *mut dcp_pd) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        drop(unsafe { take(pd) }?);
        Ok(0)
    })
}

/// Allocates `length` bytes, zeroed, in huge pages where there are any, and registers them. `access` is of dcp_access.
/// The memory is the library's: dcp_mr_addr says where, dcp_dereg_mr frees it. Fails with EINVAL, ENOMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_alloc_mr(pd: *mut dcp_pd, length: usize, access: u32) -> *mut dcp_mr {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let domain = unsafe { borrow(pd) }?;
        if length == 0 {
            return Err(LENGTH);
        }
        let region =
            Region::alloc(length, HugePreference::Auto).map_err(|error| Failure::of(libc::ENOMEM, &error))?;
        domain.register(region, access, false)
    })
}

/// Registers `length` bytes of the caller's memory at `addr`. It must stay mapped, readable and writable until
/// dcp_dereg_mr returned 0; peers and the library change it at any moment as `access`, of dcp_access, allows. With
/// DCP_ACCESS_REMOTE_ATOMIC, `addr` is a multiple of 8. Fails with EINVAL, ENOMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_reg_mr(
    pd: *mut dcp_pd,
    addr: *mut c_void,
    length: usize,
    access: u32,
) -> *mut dcp_mr {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let domain = unsafe { borrow(pd) }?;
        let base = NonNull::new(addr.cast::<u8>()).ok_or(crate::sized::NULL)?;
        if length == 0 || length > isize::MAX as usize {
            return Err(LENGTH);
        }
        // SAFETY: the caller keeps it mapped until the region is released, which dcp_dereg_mr waits for.
        let region = unsafe { Region::from_raw(base, length) };
        domain.register(region, access, true)
    })
}

const LENGTH: Failure =
    Failure::fixed(libc::EINVAL, "a memory region needs at least one byte, and has an end");

/// Ends every access to the region at once. Work requests that name it later fail with LOC_PROT_ERR, peers' with
/// REM_ACCESS_ERR; what is under way is still finished out of it.
///
/// Memory of the library's is freed when nothing refers to it, later if need be. For the caller's memory this waits up
/// to 0.1 s, polling, and fails with EBUSY if work under way still refers to it: the memory is not the caller's yet, the
/// handle stays, and the call is to be made again after polling for completions, or after dcp_qp_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_dereg_mr(mr: *mut dcp_mr) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let memory = unsafe { borrow(mr) }?;
        drop(memory.mr.lock().map_err(|_| BROKEN)?.take());
        if memory.is_foreign && !memory.wait_for_release() {
            return Err(BUSY);
        }
        // SAFETY: the caller uses it nowhere else.
        drop(unsafe { take(mr) }?);
        Ok(0)
    })
}

const BUSY: Failure = Failure::fixed(
    libc::EBUSY,
    "work under way still refers to this memory: poll for completions or close the queue pairs, and call again",
);

/// Where the region begins: for work requests, for the peer's remote_addr, and for the program. NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_mr_addr(mr: *const dcp_mr) -> *mut c_void {
    entry_or(ptr::null_mut(), || {
        // SAFETY: the caller passes NULL or a live handle.
        let memory = unsafe { borrow(mr) }?;
        Ok(memory.region.as_ptr().cast())
    })
}

/// Its length in bytes; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_mr_length(mr: *const dcp_mr) -> usize {
    entry_or(0, || {
        // SAFETY: the caller passes NULL or a live handle.
        let memory = unsafe { borrow(mr) }?;
        Ok(memory.region.len())
    })
}

/// Its key for own work requests; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_mr_lkey(mr: *const dcp_mr) -> u32 {
    entry_or(0, || {
        // SAFETY: the caller passes NULL or a live handle.
        let memory = unsafe { borrow(mr) }?;
        Ok(memory.lkey)
    })
}

/// Its key for peers; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_mr_rkey(mr: *const dcp_mr) -> u32 {
    entry_or(0, || {
        // SAFETY: the caller passes NULL or a live handle.
        let memory = unsafe { borrow(mr) }?;
        Ok(memory.rkey)
    })
}

impl Domain {
    /// Under its own address in this process, as verbs' users know it.
    fn register(&self, region: Region, access: u32, is_foreign: bool) -> Result<*mut dcp_mr, Failure> {
        let va = region.as_ptr().expose_provenance() as u64;
        let mr = self.pd.register_at(region.clone(), va, words::access(access)?)?;
        let own = mr.slice(0..0).map_err(|error| Failure::of(libc::EINVAL, &error))?;
        let (lkey, rkey) = (own.lkey.0, mr.remote().rkey);
        let device = self.device.clone();
        Ok(give(Memory { mr: Mutex::new(Some(mr)), region, device, lkey, rkey, is_foreign }))
    }
}

impl Memory {
    /// What a peer must know to reach it.
    pub(crate) fn remote(&self) -> RemoteMr {
        let va = self.region.as_ptr().expose_provenance() as u64;
        RemoteMr { va, len: self.region.len() as u64, rkey: self.rkey }
    }

    fn wait_for_release(&self) -> bool {
        for round in 0..WAIT_ROUNDS {
            if self.region.is_released() {
                return true;
            }
            self.device.poll();
            if round > SPIN_ROUNDS {
                clock::pause(WAIT_STEP);
            }
        }
        self.region.is_released()
    }
}

const SPIN_ROUNDS: u32 = 256;
const WAIT_ROUNDS: u32 = 1256;
const WAIT_STEP: Duration = Duration::from_micros(100);
