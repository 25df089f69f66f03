//! Queue pairs: making, connecting, ending.

#![expect(non_camel_case_types, reason = "C's names")]

use std::ffi::c_int;
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use dcp::verbs::{CongestionControl, Qp, QpAddress, QpOptions, QpState};
use dcp::wire::{Ipv4Addr, MacAddr};

use crate::failure::{BROKEN, Failure, entry, entry_or, entry_pointer};
use crate::handle::{borrow, give, opaque, take};
use crate::memory::dcp_pd;
use crate::queue::dcp_cq;
use crate::sized::{self, NULL, Sized32};
use crate::words;

/// A reliable connection's end.
pub struct dcp_qp {
    _private: [u8; 0],
}

opaque! {
    dcp_qp(Pair, b"dcp qp\0\0");
}

/// What is behind it. Uncontended, the lock costs a few nanoseconds per call, whatever the length of the list posted.
#[derive(Debug)]
pub(crate) struct Pair {
    qp: Mutex<Qp>,
    pub(crate) signals_all: bool,
    qpn: u32,
}

impl Pair {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Qp>, Failure> {
        self.qp.lock().map_err(|_| BROKEN)
    }

    /// Only what was never connected can be.
    pub(crate) fn check_fresh(&self, qp: &Qp) -> Result<(), Failure> {
        let connected = Failure::fixed(libc::EISCONN, "the queue pair was connected or closed before");
        if qp.state() == QpState::Init { Ok(()) } else { Err(connected) }
    }
}

/// Parameters of a queue pair: begin with dcp_qp_init_attr_default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_qp_init_attr {
    /// sizeof(struct dcp_qp_init_attr).
    pub size: u32,
    /// Worker that it lives on, counted from 0.
    pub worker: u32,
    /// Where its sends complete.
    pub send_cq: *mut dcp_cq,
    /// Where its receives complete; NULL: as send_cq.
    pub recv_cq: *mut dcp_cq,
    /// Send work requests, 1 to 32768. Default 128.
    pub max_send_wr: u32,
    /// Receive work requests, 1 to 32768. Default 512.
    pub max_recv_wr: u32,
    /// Payload of a full packet, 256 to 8192; cut to what the device carries. The same on both sides. Default 4096.
    pub mtu: u32,
    /// Messages under way at once, a power of two. Default 128.
    pub window: u32,
    /// READs and atomics unanswered at once; 0: none of either. Default 16.
    pub max_rd_atomic: u32,
    /// Bytes in flight at most; 0: no limit. Default 262144.
    pub window_bytes: u32,
    /// Coarse timeout, 4.096 us times 2 to the power of this; 0: never. Default 14.
    pub timeout: u8,
    /// Resends before it gives up, 0 to 7. Default 7.
    pub retry_cnt: u8,
    /// Waits for a missing receive, 0 to 6; 7: for ever. Default 7.
    pub rnr_retry: u8,
    /// 1: frames carry an ICRC. Default 0.
    pub icrc: u8,
    /// 1: every send work request makes a completion. Default 0.
    pub sq_sig_all: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

// SAFETY: its size comes first, numbers and pointers take any bytes, and there is no padding: checked below.
unsafe impl Sized32 for dcp_qp_init_attr {
    const ZERO: Self = Self {
        size: 0,
        worker: 0,
        send_cq: ptr::null_mut(),
        recv_cq: ptr::null_mut(),
        max_send_wr: 0,
        max_recv_wr: 0,
        mtu: 0,
        window: 0,
        max_rd_atomic: 0,
        window_bytes: 0,
        timeout: 0,
        retry_cnt: 0,
        rnr_retry: 0,
        icrc: 0,
        sq_sig_all: 0,
        reserved: [0; 3],
    };
}

const _: () = assert!(size_of::<dcp_qp_init_attr>() == 40 + 2 * size_of::<*mut dcp_cq>());

/// What the other side must know to connect: exchange it over a channel of the program's own, between machines of one
/// byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_qp_address {
    /// sizeof(struct dcp_qp_address).
    pub size: u32,
    /// Queue pair number.
    pub qpn: u32,
    /// IPv4 address, in reading order.
    pub ip: [u8; 4],
    /// Ethernet address, or a gateway's.
    pub mac: [u8; 6],
    /// UDP port of its worker.
    pub service_port: u16,
    /// First message number it sends.
    pub start_msn: u32,
    /// First send sequence number it sends.
    pub start_ssn: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: its size comes first, numbers take any bytes, and there is no padding: checked below.
unsafe impl Sized32 for dcp_qp_address {
    const ZERO: Self = Self {
        size: 0,
        qpn: 0,
        ip: [0; 4],
        mac: [0; 6],
        service_port: 0,
        start_msn: 0,
        start_ssn: 0,
        reserved: 0,
    };
}

const _: () = assert!(size_of::<dcp_qp_address>() == 32);

/// Sets `attr` to the defaults; `size` is sizeof(struct dcp_qp_init_attr). send_cq is left to be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_init_attr_default(attr: *mut dcp_qp_init_attr, size: usize) -> c_int {
    entry(|| {
        if attr.is_null() {
            return Err(NULL);
        }
        let Ok(size_member @ 4..=4096) = u32::try_from(size) else {
            return Err(Failure::fixed(libc::EINVAL, "size is not that of a structure"));
        };
        // SAFETY: the caller says that it has so many bytes.
        unsafe { attr.cast::<u8>().write_bytes(0, size) };
        // SAFETY: at least four bytes; C's structures are aligned, but that is not relied on.
        unsafe { attr.cast::<u32>().write_unaligned(size_member) };
        // SAFETY: it begins with its size now.
        unsafe { sized::write(attr, &defaults()) }?;
        Ok(0)
    })
}

/// Makes a queue pair, in state INIT: it takes receives. Fails with EINVAL, EXDEV (objects of two devices).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_create_qp(pd: *mut dcp_pd, attr: *const dcp_qp_init_attr) -> *mut dcp_qp {
    entry_pointer(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let domain = unsafe { borrow(pd) }?;
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        let attr = unsafe { sized::read(attr) }?;
        // SAFETY: the caller put NULL or a live handle there.
        let send_cq = unsafe { borrow(attr.send_cq) }?;
        let recv_cq = if attr.recv_cq.is_null() {
            send_cq
        } else {
            // SAFETY: the caller put a live handle there.
            unsafe { borrow(attr.recv_cq) }?
        };
        let qp = domain.pd.create_qp_on(attr.worker as usize, send_cq, recv_cq, options(&attr)?)?;
        let qpn = qp.qpn();
        Ok(give(Pair { qp: Mutex::new(qp), signals_all: attr.sq_sig_all != 0, qpn }))
    })
}

/// Ends a queue pair. What is outstanding makes no completions any more; dcp_qp_close first, if they are wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_destroy_qp(qp: *mut dcp_qp) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        drop(unsafe { take(qp) }?);
        Ok(0)
    })
}

/// Writes what the other side needs for its dcp_qp_connect. Set address->size first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_query_qp_address(qp: *mut dcp_qp, address: *mut dcp_qp_address) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        let QpAddress { qpn, mac, ip, service_port, start_msn, start_ssn } = pair.lock()?.address();
        let address_now = dcp_qp_address {
            qpn,
            mac: mac.0,
            ip: ip.octets(),
            service_port,
            start_msn,
            start_ssn,
            ..Sized32::ZERO
        };
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        unsafe { sized::write(address, &address_now) }?;
        Ok(0)
    })
}

/// Connects to the other side's queue pair, once: it sends and receives from now on. `pkey` is the connection's, the
/// same on both sides, chosen by whoever connects. Post receives before, if the peer may send at once.
///
/// Fails with EINVAL, EISCONN. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_connect(qp: *mut dcp_qp, peer: *const dcp_qp_address, pkey: u16) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        let peer = unsafe { sized::read(peer) }?;
        if peer.qpn == 0 || peer.qpn >= 1 << 24 || peer.reserved != 0 {
            return Err(Failure::fixed(
                libc::EINVAL,
                "the peer's address names no queue pair: was it exchanged?",
            ));
        }
        let peer = QpAddress {
            qpn: peer.qpn,
            mac: MacAddr(peer.mac),
            ip: Ipv4Addr::from(peer.ip),
            service_port: peer.service_port,
            start_msn: peer.start_msn,
            start_ssn: peer.start_ssn,
        };
        let mut qp = pair.lock()?;
        pair.check_fresh(&qp)?;
        qp.connect(&peer, pkey)?;
        Ok(0)
    })
}

/// Moves a queue pair to the error state: everything outstanding completes with WR_FLUSH_ERR. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_close(qp: *mut dcp_qp) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        pair.lock()?.close()?;
        Ok(0)
    })
}

/// Its state, a dcp_qp_state, as its worker last said; or a negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_get_state(qp: *mut dcp_qp) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        Ok(words::state(pair.lock()?.state()))
    })
}

/// Send work requests that can be posted now, or a negative error number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_send_room(qp: *mut dcp_qp) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        Ok(c_int::try_from(pair.lock()?.send_room()).unwrap_or(c_int::MAX))
    })
}

/// Its number, as in completions; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_qp_num(qp: *const dcp_qp) -> u32 {
    entry_or(0, || {
        // SAFETY: the caller passes NULL or a live handle.
        let pair = unsafe { borrow(qp) }?;
        Ok(pair.qpn)
    })
}

fn defaults() -> dcp_qp_init_attr {
    let options = QpOptions::default();
    let window_bytes = match options.congestion_control {
        CongestionControl::Window { bytes } => bytes,
        _ => 0,
    };
    dcp_qp_init_attr {
        max_send_wr: options.send_depth,
        max_recv_wr: options.recv_depth,
        mtu: options.mtu,
        window: options.window,
        max_rd_atomic: options.max_rd_atomic,
        window_bytes,
        timeout: options.timeout,
        retry_cnt: options.retry_cnt,
        rnr_retry: options.rnr_retry,
        icrc: options.icrc.into(),
        ..Sized32::ZERO
    }
}

fn options(attr: &dcp_qp_init_attr) -> Result<QpOptions, Failure> {
    if attr.icrc > 1 || attr.sq_sig_all > 1 || attr.reserved != [0; 3] {
        return Err(Failure::fixed(libc::EINVAL, "icrc and sq_sig_all are 0 or 1, reserved members 0"));
    }
    Ok(QpOptions {
        send_depth: attr.max_send_wr,
        recv_depth: attr.max_recv_wr,
        mtu: attr.mtu,
        window: attr.window,
        max_rd_atomic: attr.max_rd_atomic,
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        icrc: attr.icrc == 1,
        congestion_control: match attr.window_bytes {
            0 => CongestionControl::None,
            bytes => CongestionControl::Window { bytes },
        },
        shared_receives: None,
        ..QpOptions::default()
    })
}
