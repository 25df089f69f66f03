//! Memory regions: memory that the library owns, peers write, and the application copies in and out of.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use dcp_core::{MrKeys, RegionId, Remote, Sge};
use dpdk_ffi::Region;

use super::device::DeviceInner;

/// A registered memory region. It owns its memory: there is no reference to its bytes, which peers may write at any
/// moment, and no way to reallocate them.
///
/// B12: there is nothing to borrow from it, so nothing that a peer writes can be aliased or moved:
/// ```compile_fail
/// fn alias(mr: &mut dcp::verbs::Mr) -> &mut [u8] {
///     &mut mr[..]
/// }
/// ```
/// ```compile_fail
/// fn copy(mr: &dcp::verbs::Mr) -> dcp::verbs::Mr {
///     mr.clone()
/// }
/// ```
///
/// Dropping it ends every access to it at once; the memory itself is given back when no work and no frame refers to it.
#[derive(Debug)]
pub struct Mr {
    pub(super) device: Arc<DeviceInner>,
    pub(super) region: Region,
    pub(super) keys: MrKeys,
    pub(super) id: RegionId,
    pub(super) va: u64,
}

/// A range outside a memory region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MrRangeError {
    /// Asked for.
    pub range: Range<u64>,
    /// Bytes of the region.
    pub len: u64,
}

impl fmt::Display for MrRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {} to {} of a memory region of {}", self.range.start, self.range.end, self.len)
    }
}

impl std::error::Error for MrRangeError {}

/// What a peer must know to reach a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMr {
    /// Address of its first byte.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    /// Its key.
    pub rkey: u32,
}

impl RemoteMr {
    /// The place `offset` bytes into the region.
    pub const fn at(&self, offset: u64) -> Remote {
        Remote { va: self.va.wrapping_add(offset), rkey: dcp_wire::RegionKey(self.rkey) }
    }
}

impl Mr {
    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u64 {
        self.region.len() as u64
    }

    /// What to tell a peer that may reach it.
    pub fn remote(&self) -> RemoteMr {
        RemoteMr { va: self.va, len: self.len(), rkey: self.keys.rkey.0 }
    }

    /// A gather or scatter element.
    ///
    /// # Errors
    /// The range is not in the region, or longer than 4 GiB.
    pub fn slice(&self, range: Range<u64>) -> Result<Sge, MrRangeError> {
        let len = range.end.checked_sub(range.start).and_then(|len| u32::try_from(len).ok());
        match len {
            Some(len) if range.end <= self.len() => {
                Ok(Sge { va: self.va + range.start, len, lkey: self.keys.lkey })
            }
            _ => Err(MrRangeError { range, len: self.len() }),
        }
    }

    /// Copies bytes into the region.
    ///
    /// # Errors
    /// They do not fit.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MrRangeError> {
        self.region.write(offset, bytes).map_err(|_| self.outside(offset, bytes.len()))
    }

    /// Copies bytes out of the region.
    ///
    /// # Errors
    /// There are not so many.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), MrRangeError> {
        let len = bytes.len();
        self.region.read(offset, bytes).map_err(|_| self.outside(offset, len))
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// The range is not in the region.
    pub fn to_vec(&self, range: Range<u64>) -> Result<Vec<u8>, MrRangeError> {
        let sge = self.slice(range.clone())?;
        let mut bytes = vec![0; sge.len as usize];
        self.read(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// The region below it, for pollers of single words and the like.
    pub fn region(&self) -> &Region {
        &self.region
    }

    fn outside(&self, offset: u64, len: usize) -> MrRangeError {
        MrRangeError { range: offset..offset.saturating_add(len as u64), len: self.len() }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        self.device.deregister(self.keys, self.id);
    }
}
