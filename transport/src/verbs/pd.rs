//! Protection domains: what memory the queue pairs in them, and their peers, may touch.

use std::sync::Arc;

use dcp_core::{Access, MrAttr, PdId, SrqId};
use dpdk_ffi::{HugePreference, Region};

use super::cq::Cq;
use super::device::DeviceInner;
use super::error::{PostError, ResourceError};
use super::mr::Mr;
use super::qp::{Qp, QpOptions};
use super::request::RecvWorkRequest;

/// A protection domain. Clones are the same domain.
#[derive(Clone, Debug)]
pub struct Pd {
    pub(super) device: Arc<DeviceInner>,
    pub(super) id: PdId,
}

impl Pd {
    /// Zeroed memory of `len` bytes, in huge pages where there are any, registered.
    ///
    /// # Errors
    /// The machine has not that much, or there are too many regions.
    pub fn allocate(&self, len: usize, access: Access) -> Result<Mr, ResourceError> {
        let region = Region::alloc(len, HugePreference::Auto).map_err(ResourceError::Memory)?;
        self.register(region, access)
    }

    /// Registers memory: all of a region, under the address of its own that every peer sees.
    ///
    /// # Errors
    /// There are too many regions; or peers' atomics are allowed on memory that does not start at a multiple of 8.
    pub fn register(&self, region: Region, access: Access) -> Result<Mr, ResourceError> {
        // Alike modulo 8, so that what is aligned by its address is aligned in memory.
        let va = self.device.next_va(region.len() as u64) + (region.as_ptr().addr() as u64 & 7);
        self.register_at(region, va, access)
    }

    /// The same under an address of choice, such as its own in this process.
    ///
    /// # Errors
    /// As [`Pd::register`]; or the address space ends before the region does.
    pub fn register_at(&self, region: Region, va: u64, access: Access) -> Result<Mr, ResourceError> {
        let attr = MrAttr {
            pd: self.id,
            region: dcp_core::RegionId(0),
            offset: 0,
            va,
            len: region.len() as u64,
            access,
        };
        let (id, keys) = self.device.register(&region, attr)?;
        Ok(Mr { device: Arc::clone(&self.device), region, keys, id, va })
    }

    /// A queue pair on worker 0, with one completion queue for both directions.
    ///
    /// # Errors
    /// An option is out of range, or there are too many.
    pub fn create_qp(&self, cq: &Cq, options: QpOptions) -> Result<Qp, ResourceError> {
        Qp::create(self, cq, cq, 0, options)
    }

    /// A queue pair on a worker of choice, with a completion queue for each direction.
    ///
    /// # Errors
    /// As [`Pd::create_qp`]; or no such worker.
    pub fn create_qp_on(
        &self,
        worker: usize,
        send_cq: &Cq,
        recv_cq: &Cq,
        options: QpOptions,
    ) -> Result<Qp, ResourceError> {
        Qp::create(self, send_cq, recv_cq, worker, options)
    }

    /// Receives that several queue pairs of one worker share.
    ///
    /// # Errors
    /// The depth is out of range, or no such worker.
    pub fn create_shared_receives(
        &self,
        worker: usize,
        depth: usize,
    ) -> Result<SharedReceives, ResourceError> {
        let pd = self.id;
        let id = self.device.with_engine(worker, move |engine| engine.endpoint().create_srq(pd, depth))??;
        Ok(SharedReceives { device: Arc::clone(&self.device), worker, id })
    }
}

/// A shared receive queue.
#[derive(Clone, Debug)]
pub struct SharedReceives {
    device: Arc<DeviceInner>,
    pub(super) worker: usize,
    pub(super) id: SrqId,
}

impl SharedReceives {
    /// Posts a receive. Slower than posting to a queue pair: it waits for the worker.
    ///
    /// # Errors
    /// It was not taken.
    pub fn post(&self, request: &RecvWorkRequest<'_>) -> Result<(), PostError> {
        let (srq, wr_id, sges) = (self.id, request.wr_id, request.sges.to_vec());
        let posted = self.device.with_engine(self.worker, move |engine| {
            engine.endpoint().post_srq_recv(srq, &dcp_core::RecvRequest { wr_id, sges: &sges })
        });
        match posted {
            Ok(result) => result.map_err(super::qp::post_error),
            Err(_) => Err(PostError::WorkerBusy),
        }
    }
}
