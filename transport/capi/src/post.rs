//! Posting work requests.

use std::ffi::c_int;
use std::ptr;
use std::slice;

use dcp::verbs::{Opcode, PostError, Qp, RecvWorkRequest, Remote, SendWorkRequest, Sge};
use dcp::wire::RegionKey;

use crate::failure::{Failure, entry};
use crate::handle::borrow;
use crate::queue_pair::dcp_qp;
use crate::sized::NULL;
use crate::words::dcp_send_flags;

/// A piece of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_sge {
    /// Where it begins.
    pub addr: u64,
    /// Its bytes.
    pub length: u32,
    /// dcp_mr_lkey of the region that it lies in.
    pub lkey: u32,
}

/// A send work request. Set all of it to zero before anything else.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_send_wr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The next one of a list, or NULL.
    pub next: *mut dcp_send_wr,
    /// Where the bytes are, or where an answer goes.
    pub sg_list: *const dcp_sge,
    /// So many pieces, at most 16.
    pub num_sge: u32,
    /// What to do, a dcp_wr_opcode.
    pub opcode: u32,
    /// Of dcp_send_flags, or-ed.
    pub send_flags: u32,
    /// Immediate data, in the machine's byte order; the peer gets the same number.
    pub imm_data: u32,
    /// Where in the peer's memory.
    pub remote_addr: u64,
    /// dcp_mr_rkey of the peer's region.
    pub rkey: u32,
    /// Zero.
    pub reserved: u32,
    /// What is added, or compared.
    pub compare_add: u64,
    /// What is put in its place.
    pub swap: u64,
}

/// A receive work request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_recv_wr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The next one of a list, or NULL.
    pub next: *mut dcp_recv_wr,
    /// Where the bytes go.
    pub sg_list: *const dcp_sge,
    /// So many pieces, at most 16.
    pub num_sge: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<dcp_sge>() == 16);
const _: () = assert!(size_of::<dcp_send_wr>() == 56 + 2 * size_of::<*mut dcp_send_wr>());

/// Posts a list of send work requests, in order, until one is not taken; `bad_wr`, unless NULL, is set to that one. They
/// leave when the worker next runs. Requests and lists are the caller's again on return; the memory they name, with the
/// completion.
///
/// Fails with ENOMEM (the queue is full: poll), EAGAIN (the worker is busy: poll), ENOTCONN, EMSGSIZE (over 2 GiB),
/// EOPNOTSUPP (max_rd_atomic is 0), EINVAL. Wrong keys are found later and make a completion. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_post_send(
    qp: *mut dcp_qp,
    wr: *mut dcp_send_wr,
    bad_wr: *mut *mut dcp_send_wr,
) -> c_int {
    let mut at = wr;
    let code = entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        let mut qp = pair.lock()?;
        // SAFETY: the caller passes NULL or a request.
        let mut request = unsafe { at.as_ref() }.ok_or(NULL)?;
        loop {
            // SAFETY: the caller's list of pieces is as long as it says.
            unsafe { post_send(&mut qp, request, pair.signals_all) }?;
            at = request.next;
            // SAFETY: the caller ends its list with NULL.
            let Some(next) = (unsafe { at.as_ref() }) else { return Ok(0) };
            request = next;
        }
    });
    if code < 0 && !bad_wr.is_null() {
        // SAFETY: not NULL, and the caller's to write.
        unsafe { bad_wr.write(at) };
    }
    code
}

/// Posts a list of receive work requests; all else is as with dcp_post_send. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_post_recv(
    qp: *mut dcp_qp,
    wr: *mut dcp_recv_wr,
    bad_wr: *mut *mut dcp_recv_wr,
) -> c_int {
    let mut at = wr;
    let code = entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        let mut qp = pair.lock()?;
        // SAFETY: the caller passes NULL or a request.
        let mut request = unsafe { at.as_ref() }.ok_or(NULL)?;
        loop {
            let mut sges = [NO_SGE; SGES_MAX];
            // SAFETY: the caller's list of pieces is as long as it says.
            let sges = unsafe { gather(request.sg_list, request.num_sge, &mut sges) }?;
            qp.post_recv(&RecvWorkRequest { wr_id: request.wr_id, sges })?;
            at = request.next;
            // SAFETY: the caller ends its list with NULL.
            let Some(next) = (unsafe { at.as_ref() }) else { return Ok(0) };
            request = next;
        }
    });
    if code < 0 && !bad_wr.is_null() {
        // SAFETY: not NULL, and the caller's to write.
        unsafe { bad_wr.write(at) };
    }
    code
}

const SGES_MAX: usize = 16;
const INLINE_MAX: usize = 1024;
const NO_SGE: Sge = Sge { va: 0, len: 0, lkey: RegionKey(0) };

const FENCE: u32 = dcp_send_flags::DCP_SEND_FENCE as u32;
const SIGNALED: u32 = dcp_send_flags::DCP_SEND_SIGNALED as u32;
const SOLICITED: u32 = dcp_send_flags::DCP_SEND_SOLICITED as u32;
const INLINE: u32 = dcp_send_flags::DCP_SEND_INLINE as u32;

/// # Safety
/// `sg_list` has `num_sge` pieces, and with `INLINE` they are readable.
unsafe fn post_send(qp: &mut Qp, wr: &dcp_send_wr, signals_all: bool) -> Result<(), Failure> {
    let opcode = opcode(wr)?;
    let flags = wr.send_flags;
    if flags & !(FENCE | SIGNALED | SOLICITED | INLINE) != 0 || wr.reserved != 0 {
        return Err(FLAGS);
    }
    let mut sges = [NO_SGE; SGES_MAX];
    // SAFETY: as the caller says.
    let sges = unsafe { gather(wr.sg_list, wr.num_sge, &mut sges) }?;
    let mut request = SendWorkRequest {
        signalled: signals_all || flags & SIGNALED != 0,
        solicited: flags & SOLICITED != 0,
        fence: flags & FENCE != 0,
        ..SendWorkRequest::new(wr.wr_id, opcode, sges)
    };
    if flags & INLINE == 0 {
        return Ok(qp.post_send(&request)?);
    }
    let mut bytes = [0; INLINE_MAX];
    // SAFETY: as the caller says.
    let bytes = unsafe { copy(sges, &mut bytes) }?;
    request.inline = Some(bytes);
    request.sges = &[];
    Ok(qp.post_send(&request)?)
}

const FLAGS: Failure = Failure::fixed(libc::EINVAL, "unknown send_flags, or reserved is not 0");

fn opcode(wr: &dcp_send_wr) -> Result<Opcode, Failure> {
    let remote = Remote { va: wr.remote_addr, rkey: RegionKey(wr.rkey) };
    Ok(match wr.opcode {
        0 => Opcode::Write(remote),
        1 => Opcode::WriteImm(remote, wr.imm_data),
        2 => Opcode::Send,
        3 => Opcode::SendImm(wr.imm_data),
        4 => Opcode::Read(remote),
        5 => Opcode::CmpSwap { remote, compare: wr.compare_add, swap: wr.swap },
        6 => Opcode::FetchAdd { remote, add: wr.compare_add },
        _ => return Err(Failure::fixed(libc::EINVAL, "opcode is no dcp_wr_opcode")),
    })
}

/// # Safety
/// There are `count` pieces at `list`.
unsafe fn gather(list: *const dcp_sge, count: u32, out: &mut [Sge; SGES_MAX]) -> Result<&[Sge], Failure> {
    let count = count as usize;
    if count == 0 {
        return Ok(&[]);
    }
    if list.is_null() {
        return Err(NULL);
    }
    let Some(out) = out.get_mut(..count) else {
        return Err(PostError::TooManySges { count, limit: SGES_MAX }.into());
    };
    // SAFETY: as the caller says.
    let list = unsafe { slice::from_raw_parts(list, count) };
    for (to, from) in out.iter_mut().zip(list) {
        *to = Sge { va: from.addr, len: from.length, lkey: RegionKey(from.lkey) };
    }
    Ok(out)
}

/// The bytes of pieces of this process's memory.
///
/// # Safety
/// They are readable.
unsafe fn copy<'a>(pieces: &[Sge], out: &'a mut [u8; INLINE_MAX]) -> Result<&'a [u8], Failure> {
    let mut len = 0;
    for piece in pieces {
        let end = len + piece.len as usize;
        let Some(to) = out.get_mut(len..end) else {
            return Err(PostError::InlineTooLong { len: end, limit: INLINE_MAX }.into());
        };
        let from = ptr::with_exposed_provenance::<u8>(usize::try_from(piece.va).unwrap_or(0));
        if from.is_null() && piece.len > 0 {
            return Err(NULL);
        }
        // SAFETY: readable, as the caller says, and `to` is a place of our own.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        len = end;
    }
    Ok(&out[..len])
}
