//! Names for numbers, with the values of libibverbs where it has them.

#![expect(non_camel_case_types, reason = "C's names")]
#![allow(dead_code, reason = "some are only for C")]

use std::ffi::c_char;

use dcp::verbs::{Access, Operation, QpState, Status};

use crate::failure::Failure;

/// Rights to a memory region, or-ed. Reading locally is always allowed.
#[repr(C)]
pub enum dcp_access {
    /// Own receives, READs and atomics may put their bytes here.
    DCP_ACCESS_LOCAL_WRITE = 1,
    /// Peers may WRITE.
    DCP_ACCESS_REMOTE_WRITE = 2,
    /// Peers may READ.
    DCP_ACCESS_REMOTE_READ = 4,
    /// Peers may run atomics.
    DCP_ACCESS_REMOTE_ATOMIC = 8,
}

pub(crate) fn access(bits: u32) -> Result<Access, Failure> {
    use dcp_access::*;
    let all = DCP_ACCESS_LOCAL_WRITE as u32
        | DCP_ACCESS_REMOTE_WRITE as u32
        | DCP_ACCESS_REMOTE_READ as u32
        | DCP_ACCESS_REMOTE_ATOMIC as u32;
    if bits & !all != 0 {
        return Err(Failure::fixed(libc::EINVAL, "unknown access flags"));
    }
    let has = |flag: dcp_access| bits & flag as u32 != 0;
    Ok(Access {
        local_write: has(DCP_ACCESS_LOCAL_WRITE),
        remote_write: has(DCP_ACCESS_REMOTE_WRITE),
        remote_read: has(DCP_ACCESS_REMOTE_READ),
        remote_atomic: has(DCP_ACCESS_REMOTE_ATOMIC),
    })
}

/// Whether DPDK's memory is to be huge pages.
#[repr(C)]
pub enum dcp_huge_pages {
    /// When enough are free.
    DCP_HUGE_AUTO = 0,
    /// Ordinary pages.
    DCP_HUGE_NEVER = 1,
    /// Huge pages, or dcp_open fails.
    DCP_HUGE_REQUIRE = 2,
}

/// For dcp_start_workers, or-ed.
#[repr(C)]
pub enum dcp_workers_flags {
    /// An idle worker keeps polling: for cores that are kept free for it. Otherwise it yields, then sleeps up to 1 ms.
    DCP_WORKERS_SPIN = 1,
}

/// What a send work request does.
#[repr(C)]
pub enum dcp_wr_opcode {
    /// RDMA WRITE.
    DCP_WR_RDMA_WRITE = 0,
    /// RDMA WRITE that consumes a receive of the peer's and hands it `imm_data`.
    DCP_WR_RDMA_WRITE_WITH_IMM = 1,
    /// SEND to a receive of the peer's.
    DCP_WR_SEND = 2,
    /// SEND with `imm_data`.
    DCP_WR_SEND_WITH_IMM = 3,
    /// RDMA READ into `sg_list`.
    DCP_WR_RDMA_READ = 4,
    /// If the 8 bytes at the peer's are `compare_add`, they become `swap`. The value before lands in `sg_list`.
    DCP_WR_ATOMIC_CMP_AND_SWP = 5,
    /// Adds `compare_add` to 8 bytes at the peer's. The value before lands in `sg_list`.
    DCP_WR_ATOMIC_FETCH_AND_ADD = 6,
}

/// Flags of a send work request, or-ed.
#[repr(C)]
pub enum dcp_send_flags {
    /// Waits for everything before it, answers included.
    DCP_SEND_FENCE = 1,
    /// Success makes a completion. Failure always does.
    DCP_SEND_SIGNALED = 2,
    /// Marks the receive's completion at the peer.
    DCP_SEND_SOLICITED = 4,
    /// The bytes, at most 1024, are copied now, from any memory: `lkey` is ignored. Not for READ and atomics.
    DCP_SEND_INLINE = 8,
}

/// Outcome of a work request.
#[repr(C)]
pub enum dcp_wc_status {
    /// Done.
    DCP_WC_SUCCESS = 0,
    /// A local buffer does not fit its message.
    DCP_WC_LOC_LEN_ERR = 1,
    /// A local buffer lies outside its region, or its key is wrong.
    DCP_WC_LOC_PROT_ERR = 4,
    /// Not tried: the queue pair went to the error state before.
    DCP_WC_WR_FLUSH_ERR = 5,
    /// The peer says that the request breaks a rule.
    DCP_WC_REM_INV_REQ_ERR = 9,
    /// The peer refuses the access to its memory.
    DCP_WC_REM_ACCESS_ERR = 10,
    /// The peer failed.
    DCP_WC_REM_OP_ERR = 11,
    /// The peer did not answer after all retries.
    DCP_WC_RETRY_EXC_ERR = 12,
    /// The peer had no receive posted after all retries.
    DCP_WC_RNR_RETRY_EXC_ERR = 13,
}

const _: () = assert!(dcp_wc_status::DCP_WC_RNR_RETRY_EXC_ERR as u8 == Status::RnrRetryExceeded as u8);
const _: () = assert!(dcp_wc_status::DCP_WC_REM_ACCESS_ERR as u8 == Status::RemoteAccess as u8);

/// What a completed work request was.
#[repr(C)]
pub enum dcp_wc_opcode {
    /// SEND, with or without immediate.
    DCP_WC_SEND = 0,
    /// RDMA WRITE, with or without immediate.
    DCP_WC_RDMA_WRITE = 1,
    /// RDMA READ.
    DCP_WC_RDMA_READ = 2,
    /// Atomic compare and swap.
    DCP_WC_COMP_SWAP = 3,
    /// Atomic fetch and add.
    DCP_WC_FETCH_ADD = 4,
    /// A receive that a SEND filled. Receives have this bit.
    DCP_WC_RECV = 128,
    /// A receive that a WRITE with immediate consumed.
    DCP_WC_RECV_RDMA_WITH_IMM = 129,
}

pub(crate) const fn opcode(operation: Operation) -> u32 {
    let opcode = match operation {
        Operation::Send => dcp_wc_opcode::DCP_WC_SEND,
        Operation::Write => dcp_wc_opcode::DCP_WC_RDMA_WRITE,
        Operation::Read => dcp_wc_opcode::DCP_WC_RDMA_READ,
        Operation::CmpSwap => dcp_wc_opcode::DCP_WC_COMP_SWAP,
        Operation::FetchAdd => dcp_wc_opcode::DCP_WC_FETCH_ADD,
        Operation::Receive => dcp_wc_opcode::DCP_WC_RECV,
        Operation::ReceiveWriteImm => dcp_wc_opcode::DCP_WC_RECV_RDMA_WITH_IMM,
    };
    opcode as u32
}

/// Flags of a completion, or-ed.
#[repr(C)]
pub enum dcp_wc_flags {
    /// `imm_data` is valid.
    DCP_WC_WITH_IMM = 2,
    /// The sender asked for a solicited event.
    DCP_WC_SOLICITED = 4,
}

/// State of a queue pair.
#[repr(C)]
pub enum dcp_qp_state {
    /// Takes nothing.
    DCP_QPS_RESET = 0,
    /// Takes receives: a queue pair begins here.
    DCP_QPS_INIT = 1,
    /// Also answers the peer.
    DCP_QPS_RTR = 2,
    /// Connected.
    DCP_QPS_RTS = 3,
    /// Failed or closed: everything completes as flushed.
    DCP_QPS_ERR = 6,
}

pub(crate) const fn state(state: QpState) -> i32 {
    let state = match state {
        QpState::Reset => dcp_qp_state::DCP_QPS_RESET,
        QpState::Init => dcp_qp_state::DCP_QPS_INIT,
        QpState::Rtr => dcp_qp_state::DCP_QPS_RTR,
        QpState::Rts => dcp_qp_state::DCP_QPS_RTS,
        QpState::Error => dcp_qp_state::DCP_QPS_ERR,
    };
    state as i32
}

/// Name of a completion's status, such as "WR_FLUSH_ERR"; "UNKNOWN" for a number that is none. Static, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn dcp_status_str(status: u32) -> *const c_char {
    let name = match status {
        0 => c"SUCCESS",
        1 => c"LOC_LEN_ERR",
        4 => c"LOC_PROT_ERR",
        5 => c"WR_FLUSH_ERR",
        9 => c"REM_INV_REQ_ERR",
        10 => c"REM_ACCESS_ERR",
        11 => c"REM_OP_ERR",
        12 => c"RETRY_EXC_ERR",
        13 => c"RNR_RETRY_EXC_ERR",
        _ => c"UNKNOWN",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn statuses_have_the_same_names_and_numbers_on_both_sides() {
        let all = [
            Status::Success,
            Status::LocalLength,
            Status::LocalProtection,
            Status::Flushed,
            Status::RemoteInvalidRequest,
            Status::RemoteAccess,
            Status::RemoteOperation,
            Status::RetryExceeded,
            Status::RnrRetryExceeded,
        ];
        for status in all {
            // SAFETY: a static string.
            let name = unsafe { CStr::from_ptr(dcp_status_str(status as u32)) };
            assert_eq!(name.to_str(), Ok(status.name()));
        }
    }

    #[test]
    fn unknown_access_is_refused() {
        assert!(access(15).is_ok_and(|access| access == Access::ALL));
        assert!(access(16).is_err());
    }
}
