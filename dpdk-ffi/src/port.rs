//! Devices by name: net_tap, net_af_packet, net_memif, net_null, and what the machine has.

mod error;
mod stats;

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

pub use error::PortError;
pub use stats::PortStats;

use crate::eal::{self, Eal};
use crate::errno::Errno;
use crate::interrupts::InterruptGate;
use crate::pool::Pool;
use crate::queue::{BURST_MAX, DeviceOfQueue, Keep, QueueId, QueuePair, RxQueue, TxQueue};

/// A device that was found but not started. Dropping it releases a device that [`create`](Self::create) made.
#[derive(Debug)]
pub struct Port {
    inner: PortInner,
}

/// How to start a device.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Pairs of queues.
    pub queues: u16,
    /// Frames that a receive queue holds; adjusted to what the device takes.
    pub rx_ring_size: u16,
    /// Frames that a transmit queue holds; adjusted likewise.
    pub tx_ring_size: u16,
    /// The largest IP packet; `None` leaves the driver's own, which for net_memif is the only way to jumbo frames.
    pub mtu: Option<u16>,
    /// Where received frames are put. Its data room must hold a whole frame.
    pub pool: Pool,
}

impl Port {
    /// Finds a device that the EAL has, by name.
    ///
    /// # Errors
    /// [`PortError::NotFound`], with what DPDK said while probing.
    pub fn by_name(eal: &Eal, name: &str) -> Result<Self, PortError> {
        let c_name = c_name(name)?;
        let port = lookup(name, &c_name)?;
        Ok(Self { inner: PortInner { port, created: None, greets: false, eal: eal.clone() } })
    }

    /// Makes a virtual device, such as `net_tap0` with `iface=dcp0`.
    ///
    /// # Errors
    /// [`PortError::NotFound`], with what DPDK said while probing.
    pub fn create(eal: &Eal, name: &str, arguments: &str) -> Result<Self, PortError> {
        let c_name = c_name(name)?;
        let c_arguments =
            CString::new(arguments).map_err(|_| PortError::BadName { name: arguments.to_owned() })?;
        // Drops what was logged before, so that the reason is this device's.
        drop(eal::log_tail());
        // SAFETY: the EAL runs, and both strings are copied.
        let code = unsafe { dpdk_sys::rte_vdev_init(c_name.as_ptr(), c_arguments.as_ptr()) };
        if code != 0 {
            return Err(PortError::NotFound {
                name: name.to_owned(),
                reason: reason(Errno::from_return(code)),
            });
        }
        // A driver may fail to probe without saying so.
        let port = lookup(name, &c_name)?;
        let greets = name.starts_with("net_memif") && arguments.contains("role=client");
        Ok(Self { inner: PortInner { port, created: Some(c_name), greets, eal: eal.clone() } })
    }

    /// The driver's name, such as `net_tap`.
    pub fn driver(&self) -> String {
        driver_of(self.inner.port)
    }

    /// Whether the device sends frames in several segments.
    pub fn takes_segments(&self) -> bool {
        let capabilities = info(self.inner.port).map(|info| info.tx_offload_capa).unwrap_or_default();
        capabilities & dpdk_sys::DCP_TX_OFFLOAD_MULTI_SEGS != 0
    }

    /// Starts the device; it runs until the last queue is dropped.
    ///
    /// # Errors
    /// [`PortError`], naming the step that the device refused.
    pub fn start(self, config: &PortConfig) -> Result<Vec<QueuePair>, PortError> {
        let port = self.inner.port;
        let mut pairs = self.configure(config)?;
        start(port)?;
        pairs.iter_mut().for_each(|pair| pair.set_started(true));
        Ok(pairs)
    }

    /// Sets a device up without starting it: a net_memif client cannot start before its server is there. Its queues
    /// move nothing until [`QueuePair::start`].
    ///
    /// # Errors
    /// [`PortError`], naming the step that the device refused.
    pub fn configure(self, config: &PortConfig) -> Result<Vec<QueuePair>, PortError> {
        let port = self.inner.port;
        let queues = DeviceQueues {
            count: config.queues,
            rx_ring_size: config.rx_ring_size,
            tx_ring_size: config.tx_ring_size,
        };
        configure(port, queues, config.mtu, &config.pool)?;
        // A device without the filter needs no switching off.
        // SAFETY: the port is valid.
        unsafe { dpdk_sys::rte_eth_promiscuous_enable(port) };
        let mut mac = dpdk_sys::rte_ether_addr::default();
        // SAFETY: the port is valid, `mac` is ours.
        unsafe { dpdk_sys::rte_eth_macaddr_get(port, &raw mut mac) };
        let burst_max = burst_max(&self.driver());
        let keep: Arc<dyn Keep> = Arc::new(Running { inner: self.inner, _pool: config.pool.clone() });
        let pair = |queue| {
            let device = DeviceOfQueue { port, queues: config.queues, burst_max };
            let id = QueueId { device, queue, keep: Arc::clone(&keep) };
            let (rx, tx) = (RxQueue::new(id.clone()), TxQueue::new(id, None));
            let mut pair = QueuePair { rx, tx, mac: mac.addr_bytes, started: false };
            pair.set_started(false);
            pair
        };
        Ok((0..config.queues).map(pair).collect())
    }
}

/// net_memif takes bursts of 32 at most.
fn burst_max(driver: &str) -> u16 {
    if driver == "net_memif" { 32 } else { BURST_MAX }
}

/// A device that its queues keep running. The device goes before the pool.
#[derive(Debug)]
struct Running {
    inner: PortInner,
    _pool: Pool,
}

impl Keep for Running {
    fn eal(&self) -> &Eal {
        &self.inner.eal
    }
}

#[derive(Debug)]
struct PortInner {
    port: u16,
    /// The name, when it is ours to remove.
    created: Option<CString>,
    /// A net_memif client, whose server must have greeted it before it leaves.
    greets: bool,
    eal: Eal,
}

/// What net_memif's server may take to greet a client: one whose interrupt thread stands most of the time does it late.
const GREETING: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(5);

impl PortInner {
    /// DPDK's net_memif aborts the server's program when a client is gone before it is greeted. So one that has no link yet
    /// stays for a while, whatever it has come to leave for.
    fn take_leave(&self) {
        let mut left = GREETING;
        // SAFETY: the device is there until it is closed.
        while unsafe { dpdk_sys::dcpshim_link_is_up(self.port) } == 0 && !left.is_zero() {
            crate::clock::pause(LOOK);
            left = left.saturating_sub(LOOK);
        }
    }
}

impl Drop for PortInner {
    fn drop(&mut self) {
        if self.greets {
            self.take_leave();
        }
        // The interrupt thread may be about to free the same things: see `interrupts`.
        let _gate = InterruptGate::close(&self.eal);
        match &self.created {
            Some(name) => close(self.port, name),
            // SAFETY: valid, and no queue is left. A device that never ran ignores it.
            None => drop(unsafe { dpdk_sys::rte_eth_dev_stop(self.port) }),
        }
    }
}

fn c_name(name: &str) -> Result<CString, PortError> {
    CString::new(name).map_err(|_| PortError::BadName { name: name.to_owned() })
}

fn lookup(name: &str, c_name: &CStr) -> Result<u16, PortError> {
    let mut port = 0;
    // SAFETY: the EAL runs; the name is a C string and `port` is ours.
    let code = unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(c_name.as_ptr(), &raw mut port) };
    if code == 0 {
        return Ok(port);
    }
    Err(PortError::NotFound { name: name.to_owned(), reason: reason(Errno::from_return(code)) })
}

/// What the driver logged, or else what the number means.
fn reason(errno: Errno) -> String {
    let log = eal::log_tail();
    if let Some(line) = log.lines().map(str::trim).find(|line| !line.is_empty()) {
        if line.contains("mp action callback") {
            return "it needs DPDK's channel between processes: start with EalConfig::ipc".to_owned();
        }
        return line.to_owned();
    }
    // The bus returns a bare -1 when no driver takes the name: not an EPERM.
    if errno.0 == libc::EPERM { "no driver takes it".to_owned() } else { errno.to_string() }
}

/// Devices that this process can still have.
pub(crate) fn devices_free() -> usize {
    // SAFETY: counts entries of a table.
    let taken = unsafe { dpdk_sys::rte_eth_dev_count_total() };
    (dpdk_sys::RTE_MAX_ETHPORTS as usize).saturating_sub(usize::from(taken))
}

/// The queues of a device; a size of zero is the driver's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceQueues {
    pub(crate) count: u16,
    pub(crate) rx_ring_size: u16,
    pub(crate) tx_ring_size: u16,
}

/// Starts a device that is configured.
pub(crate) fn start(port: u16) -> Result<(), PortError> {
    // SAFETY: DPDK checks the number; the device is alive, as every caller holds it.
    let code = unsafe { dpdk_sys::rte_eth_dev_start(port) };
    if code < 0 {
        let driver = driver_of(port);
        return Err(PortError::Refused { driver, step: "its start", errno: Errno::from_return(code) });
    }
    Ok(())
}

/// Stops a device; its interrupt handlers stand still meanwhile. Nobody may be inside a burst.
pub(crate) fn stop(port: u16, eal: &Eal) {
    let _gate = InterruptGate::close(eal);
    // SAFETY: the device is alive, as every caller holds it. One that does not run ignores it.
    unsafe { dpdk_sys::rte_eth_dev_stop(port) };
}

/// Configures a device.
pub(crate) fn configure(
    port: u16,
    queues: DeviceQueues,
    mtu: Option<u16>,
    pool: &Pool,
) -> Result<(), PortError> {
    let info = info(port)?;
    let driver = driver_name(&info);
    let count = queues.count;
    let most = info.max_rx_queues.min(info.max_tx_queues);
    if count == 0 || count > most {
        return Err(PortError::Queues { driver, count, most });
    }
    let refused = |step: &'static str, code: i32| PortError::Refused {
        driver: driver.clone(),
        step,
        errno: Errno::from_return(code),
    };
    let check = |step, code| if code < 0 { Err(refused(step, code)) } else { Ok(()) };
    let mut conf = dpdk_sys::rte_eth_conf::default();
    // Drivers differ in offloads: ask for those that exist only.
    conf.txmode.offloads = info.tx_offload_capa & dpdk_sys::DCP_TX_OFFLOAD_MULTI_SEGS;
    conf.rxmode.offloads = info.rx_offload_capa & dpdk_sys::DCP_RX_OFFLOAD_SCATTER;
    // SAFETY: the port is valid, as `info` found; the configuration is copied.
    check("its configuration", unsafe {
        dpdk_sys::rte_eth_dev_configure(port, count, count, &raw const conf)
    })?;
    if let Some(mtu) = mtu {
        // SAFETY: as above.
        let code = unsafe { dpdk_sys::rte_eth_dev_set_mtu(port, mtu) };
        if code != 0 {
            return Err(PortError::Mtu { driver, mtu, errno: Errno::from_return(code) });
        }
    }
    let (mut rx_ring, mut tx_ring) = (queues.rx_ring_size, queues.tx_ring_size);
    // SAFETY: as above; both sizes are ours.
    let code =
        unsafe { dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(port, &raw mut rx_ring, &raw mut tx_ring) };
    check("its ring sizes", code)?;
    for queue in 0..count {
        // SAFETY: as above; `pool` outlives the device, since whoever starts it keeps both.
        let code = unsafe {
            dpdk_sys::rte_eth_rx_queue_setup(port, queue, rx_ring, ANY_SOCKET, ptr::null(), pool.as_ptr())
        };
        check("a receive queue", code)?;
        // SAFETY: as above.
        let code = unsafe { dpdk_sys::rte_eth_tx_queue_setup(port, queue, tx_ring, ANY_SOCKET, ptr::null()) };
        check("a transmit queue", code)?;
    }
    Ok(())
}

/// `SOCKET_ID_ANY`.
const ANY_SOCKET: u32 = u32::MAX;

/// Stops a device that nobody uses any more and removes it, so that its name and number are free again.
pub(crate) fn close(port: u16, name: &CStr) {
    // SAFETY: valid until closed, and no queue is left. A device that never ran ignores it.
    unsafe { dpdk_sys::rte_eth_dev_stop(port) };
    // SAFETY: as above.
    unsafe { dpdk_sys::rte_eth_dev_close(port) };
    // SAFETY: the name is a C string; a name that the bus does not know is ignored.
    unsafe { dpdk_sys::rte_vdev_uninit(name.as_ptr()) };
}

fn info(port: u16) -> Result<dpdk_sys::rte_eth_dev_info, PortError> {
    let mut info = dpdk_sys::rte_eth_dev_info::default();
    // SAFETY: DPDK checks the port number; `info` is ours.
    let code = unsafe { dpdk_sys::rte_eth_dev_info_get(port, &raw mut info) };
    if code == 0 {
        Ok(info)
    } else {
        Err(PortError::Refused {
            driver: format!("port {port}"),
            step: "its description",
            errno: Errno::from_return(code),
        })
    }
}

pub(crate) fn bus_device(port: u16) -> Option<*mut dpdk_sys::rte_device> {
    info(port).ok().map(|info| info.device)
}

pub(crate) fn driver_of(port: u16) -> String {
    info(port).map(|info| driver_name(&info)).unwrap_or_default()
}

fn driver_name(info: &dpdk_sys::rte_eth_dev_info) -> String {
    if info.driver_name.is_null() {
        return String::new();
    }
    // SAFETY: a static string of the driver's.
    unsafe { CStr::from_ptr(info.driver_name) }.to_string_lossy().into_owned()
}
