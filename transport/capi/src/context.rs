//! Devices: opening, driving, counting.

#![expect(non_camel_case_types, reason = "C's names")]

use std::ffi::{CStr, c_char, c_int};
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dcp::device::{self, DeviceError, DeviceUri, MtuChoice, NetDevice};
use dcp::dpdk::{Clock, Eal, EalConfig, HugePreference};
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::verbs::{Backoff, Device, DeviceConfig, Workers};
use dcp::wire::{Ipv4Addr, MacAddr};

use crate::failure::{BROKEN, Failure, entry, entry_pointer};
use crate::handle::{borrow, give, opaque, take};
use crate::process;
use crate::sized::{self, NULL, Sized32};

/// An open device with its workers.
pub struct dcp_context {
    _private: [u8; 0],
}

opaque! {
    dcp_context(Context, b"dcp ctx\0");
}

/// What is behind it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: Device,
    workers: Mutex<Option<Workers>>,
}

/// How to open a device. Whatever is zero has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_options {
    /// sizeof(struct dcp_options).
    pub size: u32,
    /// Its IPv4 address, in reading order. Default only for dcp_open_pair: 10.0.0.1 and 10.0.0.2.
    pub ip: [u8; 4],
    /// Workers: of a pair each has queues of its own, else the first has the device's and hands frames over to the others
    /// and from them. Default 1.
    pub workers: u32,
    /// Payload of a full packet, 256 to 8192. Default: the largest power of two that it carries, up to 4096.
    pub mtu: u32,
    /// UDP port of the first worker; the others follow. Default 17791.
    pub service_port: u16,
    /// Zero.
    pub reserved: u16,
    /// Mbufs of each kind and worker. Default 8191.
    pub mbufs: u32,
    /// Queue pairs per worker. Default 4096.
    pub qps_max: u32,
    /// Posts that a worker has not looked at yet. Default 4096.
    pub posts_max: u32,
    /// Memory for all of DPDK in MiB, of the first device opened in the process. Default 256.
    pub memory_mib: u32,
    /// Its pages, a dcp_huge_pages; of the first device, too.
    pub huge_pages: u32,
    /// Milliseconds that dcp_open waits for the device's link, for memif: for the peer. Default 10000.
    pub link_wait_ms: u32,
    /// IPv4 address of the router to other networks. Default: none.
    pub gateway: [u8; 4],
    /// Ethernet address to use instead of the device's own. Default: the device's.
    pub mac: [u8; 6],
    /// Bits of `ip` that name its network, 1 to 32. Default 24.
    pub prefix_len: u8,
    /// 1: DPDK's telemetry socket is opened, of the first device in the process; docs/TELEMETRY.md. Default 0.
    pub telemetry: u8,
}

// SAFETY: its size comes first, numbers take any bytes, and there is no padding: checked below.
unsafe impl Sized32 for dcp_options {
    const ZERO: Self = Self {
        size: 0,
        ip: [0; 4],
        workers: 0,
        mtu: 0,
        service_port: 0,
        reserved: 0,
        mbufs: 0,
        qps_max: 0,
        posts_max: 0,
        memory_mib: 0,
        huge_pages: 0,
        link_wait_ms: 0,
        gateway: [0; 4],
        mac: [0; 6],
        prefix_len: 0,
        telemetry: 0,
    };
}

const _: () = assert!(size_of::<dcp_options>() == 56);

/// What a device counted since it was opened, summed over its workers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct dcp_stats {
    /// sizeof(struct dcp_stats).
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Data packets sent, resent ones included.
    pub data_packets: u64,
    /// Payload bytes in them.
    pub data_bytes: u64,
    /// Data packets that had been sent before.
    pub retransmitted: u64,
    /// Data packets received.
    pub data_received: u64,
    /// Header-only packets sent back to the peer.
    pub ho_bounced: u64,
    /// Own header-only packets that came back.
    pub ho_returned: u64,
    /// Coarse timeouts.
    pub timeouts: u64,
    /// Frames dropped as the protocol demands.
    pub dropped: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Frames sent.
    pub frames_sent: u64,
}

// SAFETY: its size comes first, numbers take any bytes, and two words and ten double words leave no padding.
unsafe impl Sized32 for dcp_stats {
    const ZERO: Self = Self {
        size: 0,
        reserved: 0,
        data_packets: 0,
        data_bytes: 0,
        retransmitted: 0,
        data_received: 0,
        ho_bounced: 0,
        ho_returned: 0,
        timeouts: 0,
        dropped: 0,
        frames_received: 0,
        frames_sent: 0,
    };
}

/// Opens a device: "memif:SOCKET[,id=N][,role=server|client]", "af_packet:eth1", "tap:dcp0", "pci:0000:3b:00.0", "null",
/// "vdev:NAME,ARGUMENTS"; for "loop" there is dcp_open_pair. `options` says at least the device's IPv4 address. It answers
/// ARP and ping for it while its workers run. Waits for the link. The first call in a process starts DPDK; memif and pci
/// must be known to it then.
///
/// Fails with EINVAL, ENODEV, ENETDOWN (no link, no peer), EPERM, ENOMEM, EALREADY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_open(uri: *const c_char, options: *const dcp_options) -> *mut dcp_context {
    entry_pointer(|| {
        if uri.is_null() {
            return Err(NULL);
        }
        // SAFETY: the caller passes a string.
        let uri = unsafe { CStr::from_ptr(uri) };
        let uri: DeviceUri =
            uri.to_string_lossy().parse().map_err(|error| Failure::of(libc::EINVAL, &error))?;
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        let options = unsafe { sized::read(options) }?;
        if options.ip == [0; 4] {
            return Err(Failure::fixed(
                libc::EINVAL,
                "options.ip is missing: give the device an IPv4 address",
            ));
        }
        let settings = Settings::of(&options)?;
        let eal = process::eal(settings.eal.clone(), slice::from_ref(&uri))?;
        // With fewer queues, the workers share one.
        let net = device::DeviceConfig { queues: 1, ..settings.net };
        let mut opened = NetDevice::open(&eal, &uri, &net).map_err(|error| device_failure(&error))?;
        let link = opened.wait_for_link(&Clock::calibrate(), settings.link_wait);
        link.map_err(|error| device_failure(&error))?;
        Ok(give(Context::open(&eal, opened, &settings)?))
    })
}

/// Stops the workers' threads and gives the handle back. The device itself closes with the last of what was made on it:
/// handles may be given back in any order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_close(context: *mut dcp_context) -> c_int {
    entry(|| {
        // SAFETY: the caller passes a handle that nobody uses any more.
        drop(unsafe { take(context) }?);
        Ok(0)
    })
}

/// Drives the workers that have no threads of their own; dcp_poll_cq does so, too. Returns how much they moved, 0 when
/// idle. Without threads nothing moves unless somebody polls. Threads: one at a time drives a worker, others skip it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_poll(context: *mut dcp_context) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        process::know_this_thread();
        Ok(c_int::try_from(context.device.poll()).unwrap_or(c_int::MAX))
    })
}

/// Starts a thread for each worker, pinned to `cores` in order; with `cores_len` 0 the system places them. `flags` is
/// zero or of dcp_workers_flags. Fails with EINVAL, EALREADY (they run), EAGAIN (no thread or no such core).
/// Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_start_workers(
    context: *mut dcp_context,
    cores: *const u32,
    cores_len: usize,
    flags: u32,
) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        if (cores.is_null() && cores_len > 0) || cores_len > CORES_MAX || !matches!(flags, 0 | SPIN) {
            return Err(Failure::fixed(libc::EINVAL, "no cores, too many of them, or unknown flags"));
        }
        let cores: Vec<usize> = if cores_len == 0 {
            Vec::new()
        } else {
            // SAFETY: the caller passes so many numbers.
            unsafe { slice::from_raw_parts(cores, cores_len) }.iter().map(|&core| core as usize).collect()
        };
        context.start(&cores, if flags == SPIN { Backoff::NEVER } else { Backoff::default() })
    })
}

const SPIN: u32 = crate::words::dcp_workers_flags::DCP_WORKERS_SPIN as u32;
/// More than any machine has.
const CORES_MAX: usize = 4096;

/// Ends the workers' threads; polls drive the workers then. Does nothing when there are none. Threads: serialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_stop_workers(context: *mut dcp_context) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        context.workers.lock().map_err(|_| BROKEN)?.take();
        Ok(0)
    })
}

/// Number of workers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_num_workers(context: *mut dcp_context) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        Ok(c_int::try_from(context.device.workers()).unwrap_or(c_int::MAX))
    })
}

/// Reads the counters. Waits for every worker once: not for the hot path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_query_stats(context: *mut dcp_context, stats: *mut dcp_stats) -> c_int {
    entry(|| {
        // SAFETY: the caller passes NULL or a live handle.
        let context = unsafe { borrow(context) }?;
        let sum = context.sum()?;
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        unsafe { sized::write(stats, &sum) }?;
        Ok(0)
    })
}

/// Options, as the Rust library has them.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) eal: EalConfig,
    pub(crate) net: device::DeviceConfig,
    pub(crate) verbs: DeviceConfig,
    ip: IpConfig,
    link_wait: Duration,
}

impl Settings {
    pub(crate) fn of(options: &dcp_options) -> Result<Self, Failure> {
        let mut eal = EalConfig {
            telemetry: options.telemetry == 1,
            memory_mib: or(options.memory_mib, EalConfig::default().memory_mib),
            ..EalConfig::default()
        };
        eal.huge = match options.huge_pages {
            0 => HugePreference::Auto,
            1 => HugePreference::Never,
            2 => HugePreference::Require,
            _ => return Err(Failure::fixed(libc::EINVAL, "options.huge_pages is no dcp_huge_pages")),
        };
        let workers = u16::try_from(options.workers.max(1)).unwrap_or(u16::MAX);
        let mut net = device::DeviceConfig { queues: workers, ..device::DeviceConfig::default() };
        net.mbufs = or(options.mbufs, net.mbufs);
        net.mac = (options.mac != [0; 6]).then_some(MacAddr(options.mac));
        if options.mtu != 0 {
            net.mtu = MtuChoice::Exactly(options.mtu);
        }
        let mut verbs = DeviceConfig { workers, ..DeviceConfig::new(Ipv4Addr::from(options.ip)) };
        verbs.mbufs = or(options.mbufs, verbs.mbufs);
        verbs.qps_max = or(options.qps_max, verbs.qps_max);
        if options.posts_max != 0 {
            verbs.posts_max = options.posts_max as usize;
        }
        if options.service_port != 0 {
            verbs.service_port = options.service_port;
        }
        let past_last = u32::from(verbs.service_port) + u32::from(workers);
        if past_last > 1 << 16 || options.reserved != 0 || verbs.posts_max > POSTS_MAX {
            return Err(Failure::fixed(
                libc::EINVAL,
                "options: service_port, reserved or posts_max is out of range",
            ));
        }
        let link_wait = Duration::from_millis(or(options.link_wait_ms, LINK_WAIT_MS).into());
        Ok(Self { eal, net, verbs, ip: network(options)?, link_wait })
    }
}

const LINK_WAIT_MS: u32 = 10_000;

fn network(options: &dcp_options) -> Result<IpConfig, Failure> {
    if options.telemetry > 1 {
        return Err(Failure::fixed(libc::EINVAL, "options.telemetry is 0 or 1"));
    }
    let prefix_len = if options.prefix_len == 0 { 24 } else { options.prefix_len };
    let gateway = (options.gateway != [0; 4]).then_some(Ipv4Addr::from(options.gateway));
    let address = InterfaceAddress::new(Ipv4Addr::from(options.ip), prefix_len);
    address
        .and_then(|address| IpConfig::new(address, gateway))
        .map_err(|error| Failure::of(libc::EINVAL, &error))
}

const POSTS_MAX: usize = 1 << 20;

const fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

impl Context {
    /// A device of its own, with a network stack.
    fn open(eal: &Arc<Eal>, net: NetDevice, settings: &Settings) -> Result<Self, Failure> {
        process::know_this_thread();
        let device = Device::open(eal, net, settings.ip, &settings.verbs)?;
        Ok(Self { device, workers: Mutex::new(None) })
    }

    /// An end of a pair: nobody else is there to be found.
    pub(crate) fn end_of_pair(
        eal: &Arc<Eal>,
        mut net: NetDevice,
        config: DeviceConfig,
    ) -> Result<Self, Failure> {
        let config = DeviceConfig { mtu: net.mtu(), ..config };
        let queues = net.take_queues().into_iter().map(|worker| worker.queues).collect();
        process::know_this_thread();
        Ok(Self { device: Device::new(eal, queues, &config)?, workers: Mutex::new(None) })
    }

    fn start(&self, cores: &[usize], backoff: Backoff) -> Result<c_int, Failure> {
        let mut workers = self.workers.lock().map_err(|_| BROKEN)?;
        if workers.is_some() {
            return Err(Failure::fixed(libc::EALREADY, "the workers have threads already"));
        }
        let few = !cores.is_empty() && cores.len() < self.device.workers();
        let errno = if few { libc::EINVAL } else { libc::EAGAIN };
        let spawned =
            Workers::spawn(&self.device, cores, backoff).map_err(|error| Failure::of(errno, &error))?;
        *workers = Some(spawned);
        Ok(0)
    }

    fn sum(&self) -> Result<dcp_stats, Failure> {
        let mut sum = dcp_stats::ZERO;
        for worker in self.device.stats()?.workers {
            sum.data_packets += worker.endpoint.data_packets;
            sum.data_bytes += worker.endpoint.data_bytes;
            sum.retransmitted += worker.endpoint.retransmitted;
            sum.data_received += worker.endpoint.data_received;
            sum.ho_bounced += worker.endpoint.ho_bounced;
            sum.ho_returned += worker.endpoint.ho_returned;
            sum.timeouts += worker.endpoint.timeouts;
            sum.dropped += worker.endpoint.dropped_total();
            sum.frames_received += worker.worker.received;
            sum.frames_sent += worker.worker.sent;
        }
        Ok(sum)
    }
}

pub(crate) fn device_failure(error: &DeviceError) -> Failure {
    let errno = match error {
        DeviceError::BadMtu { .. }
        | DeviceError::Mtu { .. }
        | DeviceError::Queues { .. }
        | DeviceError::LoopHasTwoEnds => libc::EINVAL,
        DeviceError::Permission { .. } => libc::EPERM,
        DeviceError::Pool(_) => libc::ENOMEM,
        DeviceError::NoLink { .. } | DeviceError::InterfaceDown { .. } => libc::ENETDOWN,
        _ => libc::ENODEV,
    };
    Failure::of(errno, error)
}
