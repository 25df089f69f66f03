//! Memory of the application that a card may read by itself: known to DPDK, and mapped for the card.
//!
//! Written from DPDK's documentation and tested on devices without DMA: no card was at hand. IO addresses are virtual
//! addresses (`--iova-mode=va`, what DPDK chooses with an IOMMU); without that nothing is mapped, and payload is copied.

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::errno::Errno;
use crate::queue::Keep;

/// The bus device behind a port, as far as DMA goes. The port stays open while there is one.
#[derive(Clone, Debug)]
pub struct DmaDevice {
    bus: NonNull<dpdk_sys::rte_device>,
    _keep: Arc<dyn Keep>,
}

// SAFETY: a pointer that is only handed to DPDK, which keeps the bus device while its port is open.
unsafe impl Send for DmaDevice {}
// SAFETY: as above.
unsafe impl Sync for DmaDevice {}

impl DmaDevice {
    /// That of a port; `None` where IO addresses are not virtual ones, or there is no bus device.
    pub(crate) fn of(bus: *mut dpdk_sys::rte_device, keep: &Arc<dyn Keep>) -> Option<Self> {
        // SAFETY: needs nothing.
        let mode = unsafe { dpdk_sys::rte_eal_iova_mode() };
        let virtual_addresses = mode == dpdk_sys::RTE_IOVA_VA;
        let bus = NonNull::new(bus).filter(|_| virtual_addresses)?;
        Some(Self { bus, _keep: Arc::clone(keep) })
    }
}

/// Why memory was not mapped for a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmaError {
    /// It does not begin on a page of its own, so that others' bytes would be mapped too.
    Unaligned {
        /// Bytes of a page.
        page: usize,
    },
    /// DPDK does not take it as memory.
    Unknown(Errno),
    /// The card's bus does not map it.
    Refused(Errno),
}

impl fmt::Display for DmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaligned { page } => {
                write!(f, "memory for a card begins on a page of its own, so at a multiple of {page}")
            }
            Self::Unknown(errno) => write!(f, "DPDK does not take the memory: {errno}"),
            Self::Refused(errno) => write!(
                f,
                "the card's bus does not map the memory ({errno}): check the IOMMU and the limit of locked memory \
                 (ulimit -l)"
            ),
        }
    }
}

impl std::error::Error for DmaError {}

/// A mapped range; dropping it ends the card's access.
#[derive(Debug)]
pub(crate) struct DmaMapping {
    device: DmaDevice,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: describes memory that nothing here reads or writes.
unsafe impl Send for DmaMapping {}
// SAFETY: as above.
unsafe impl Sync for DmaMapping {}

impl DmaMapping {
    pub(crate) fn is_for(&self, device: &DmaDevice) -> bool {
        self.device.bus == device.bus
    }

    /// Maps whole pages of `page` bytes from `base` on that hold `len` bytes.
    ///
    /// # Safety
    /// The memory must stay mapped in this process until the mapping is dropped.
    pub(crate) unsafe fn new(
        device: DmaDevice,
        base: NonNull<u8>,
        len: usize,
        page: usize,
    ) -> Result<Self, DmaError> {
        if !base.as_ptr().addr().is_multiple_of(page) {
            return Err(DmaError::Unaligned { page });
        }
        let len = len.next_multiple_of(page);
        let at = base.as_ptr().cast();
        // SAFETY: the caller keeps the memory; no table of addresses is given, as they are virtual ones.
        let code = unsafe { dpdk_sys::rte_extmem_register(at, len, ptr::null_mut(), 0, page) };
        if code != 0 {
            return Err(DmaError::Unknown(Errno::last_dpdk()));
        }
        // SAFETY: as above; the device is open.
        let code = unsafe { dpdk_sys::rte_dev_dma_map(device.bus.as_ptr(), at, at.addr() as u64, len) };
        if code != 0 {
            let errno = Errno::last_dpdk();
            // SAFETY: registered just now.
            unsafe { dpdk_sys::rte_extmem_unregister(at, len) };
            return Err(DmaError::Refused(errno));
        }
        Ok(Self { device, base, len })
    }
}

impl Drop for DmaMapping {
    fn drop(&mut self) {
        let at = self.base.as_ptr().cast();
        // SAFETY: mapped with these very values; the device is open, and whoever made it kept the memory until now.
        unsafe { dpdk_sys::rte_dev_dma_unmap(self.device.bus.as_ptr(), at, at.addr() as u64, self.len) };
        // SAFETY: as above.
        unsafe { dpdk_sys::rte_extmem_unregister(at, self.len) };
    }
}
