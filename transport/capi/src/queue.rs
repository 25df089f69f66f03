//! Completion queues.

#![expect(non_camel_case_types, reason = "C's names")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::slice;

use dcp::verbs::{Completion, Cq, CqOverflow};

use crate::context::dcp_context;
use crate::failure::{Failure, entry, entry_pointer};
use crate::handle::{borrow, give, opaque, take};
use crate::process;
use crate::sized::NULL;
use crate::words::{self, dcp_wc_flags};

/// A completion queue.
pub struct dcp_cq {
    _private: [u8; 0],
}

opaque! {
    dcp_cq(Cq, b"dcp cq\0\0");
}

/// A completion.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_wc {
    /// As posted.
    pub wr_id: u64,
    /// Outcome, a dcp_wc_status.
    pub status: u32,
    /// What it was, a dcp_wc_opcode.
    pub opcode: u32,
    /// Bytes of the message.
    pub byte_len: u32,
    /// Immediate data if wc_flags says so, in the machine's byte order.
    pub imm_data: u32,
    /// Number of the queue pair it was posted to.
    pub qp_num: u32,
    /// Of dcp_wc_flags, or-ed.
    pub wc_flags: u32,
    /// Zero.
    pub reserved: [u32; 4],
}

const _: () = assert!(size_of::<dcp_wc>() == 48);

/// Makes a completion queue for `depth` completions of each worker: at least as many as can be outstanding.
/// Fails with EINVAL, EMFILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_create_cq(context: *mut dcp_context, depth: u32) -> *mut dcp_cq {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        Ok(give(context.device.create_cq(depth as usize)?))
    })
}

/// Gives a completion queue back. Its descriptor is closed with the last queue pair that completes to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_destroy_cq(cq: *mut dcp_cq) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        drop(unsafe { take(cq) }?);
        Ok(0)
    })
}

/// Takes up to `num_entries` completions and returns how many; drives the workers that have no threads. Fails with
/// EOVERFLOW once completions were lost because the queue was too short: its queue pairs are of no use any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_poll_cq(cq: *mut dcp_cq, num_entries: c_int, wc: *mut dcp_wc) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let cq = unsafe { borrow(cq) }?;
        let count = usize::try_from(num_entries).map_err(|_| NEGATIVE)?;
        if wc.is_null() {
            return Err(NULL);
        }
        process::know_this_thread();
        // SAFETY: the caller has room for so many; they need not hold anything yet.
        let out = unsafe { slice::from_raw_parts_mut(wc.cast::<MaybeUninit<dcp_wc>>(), count) };
        let taken = poll(cq, out)?;
        Ok(c_int::try_from(taken).unwrap_or(c_int::MAX))
    })
}

const NEGATIVE: Failure = Failure::fixed(libc::EINVAL, "a negative number of completions");

/// A descriptor for epoll and poll: readable when completions came after dcp_req_notify_cq. For workers with threads.
/// It stays the library's: neither read nor close it. Returns it, or a negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_cq_fd(cq: *mut dcp_cq) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let cq = unsafe { borrow(cq) }?;
        Ok(cq.event_fd().as_raw_fd())
    })
}

/// Makes the descriptor quiet, and readable at the next completion. What came before it makes no event: poll once more
/// after it, then wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_req_notify_cq(cq: *mut dcp_cq) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let cq = unsafe { borrow(cq) }?;
        cq.arm();
        Ok(0)
    })
}

/// Taken from the library at a time.
const BATCH: usize = 32;

fn poll(cq: &Cq, out: &mut [MaybeUninit<dcp_wc>]) -> Result<usize, Failure> {
    let mut batch = [Completion::BLANK; BATCH];
    let mut taken = 0;
    loop {
        let room = (out.len() - taken).min(BATCH);
        let count = match cq.poll(&mut batch[..room]) {
            Ok(count) => count,
            Err(_) if taken > 0 => return Ok(taken),
            Err(overflow) => return Err(overflowed(overflow)),
        };
        for (to, from) in out[taken..].iter_mut().zip(&batch[..count]) {
            to.write(completion(from));
        }
        taken += count;
        if count < BATCH || taken == out.len() {
            return Ok(taken);
        }
    }
}

#[cold]
fn overflowed(overflow: CqOverflow) -> Failure {
    Failure::of(libc::EOVERFLOW, &overflow)
}

fn completion(from: &Completion) -> dcp_wc {
    let mut wc_flags = 0;
    if from.imm.is_some() {
        wc_flags |= dcp_wc_flags::DCP_WC_WITH_IMM as u32;
    }
    if from.solicited {
        wc_flags |= dcp_wc_flags::DCP_WC_SOLICITED as u32;
    }
    dcp_wc {
        wr_id: from.wr_id,
        status: from.status as u32,
        opcode: words::opcode(from.operation),
        byte_len: from.byte_len,
        imm_data: from.imm.unwrap_or(0),
        qp_num: from.qpn,
        wc_flags,
        reserved: [0; 4],
    }
}
