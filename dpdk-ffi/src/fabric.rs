//! Links inside the process: pairs of queue pairs over DPDK rings, packed into few net_ring devices.

use std::ffi::CString;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dpdk_sys::rte_ring;

use crate::eal::Eal;
use crate::errno::Errno;
use crate::pool::{self, Pool, PoolConfig, PoolError};
use crate::port::{self, DeviceQueues, PortError};
use crate::queue::{BURST_MAX, DeviceOfQueue, Keep, QueueId, QueuePair, RxQueue, TxQueue};
use crate::region;

/// How many links, and how deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricConfig {
    /// Links to make, at least 1.
    pub links: usize,
    /// Frames that each direction of a link holds, 1 to 2^20.
    pub ring_size: u32,
}

/// Makes links. Each has two ends, by convention a host's and a switch's; what one end sends, the other receives.
///
/// Up to 16 ends share a net_ring device, host ends and switch ends apart: 33 links take 6 of the 32 devices that a
/// process can have. When the last queue of a call is dropped, its devices are closed, what lies in the rings is freed,
/// and the devices can be had again.
///
/// # Errors
/// [`FabricError`]; nothing is left behind.
pub fn create_links(eal: &Eal, config: FabricConfig) -> Result<Vec<(QueuePair, QueuePair)>, FabricError> {
    let FabricConfig { links, ring_size } = config;
    if links == 0 || ring_size == 0 || ring_size > RING_SIZE_MAX {
        return Err(FabricError::BadConfig { config });
    }
    let needed = 2 * links.div_ceil(QUEUES_PER_DEVICE);
    let free = port::devices_free();
    if needed > free {
        return Err(FabricError::TooManyLinks {
            links,
            needed,
            free,
            links_max: free / 2 * QUEUES_PER_DEVICE,
        });
    }
    let fabric = Arc::new(Fabric::build(eal, config)?);
    let serial = FABRICS.fetch_add(1, Ordering::Relaxed);
    Ok((0..links)
        .map(|link| (fabric.end(link, Side::Host, serial), fabric.end(link, Side::Switch, serial)))
        .collect())
}

/// `RTE_PMD_RING_MAX_RX_RINGS`.
const QUEUES_PER_DEVICE: usize = dpdk_sys::RTE_PMD_RING_MAX_RX_RINGS as usize;
const RING_SIZE_MAX: u32 = 1 << 20;
/// Numbers rings and devices, so that names never meet.
static SERIAL: AtomicU64 = AtomicU64::new(0);
/// Numbers calls, for addresses.
static FABRICS: AtomicU64 = AtomicU64::new(0);

/// The two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Host = 0,
    Switch = 1,
}

/// The devices and rings of one call. Fields are dropped in this order: devices, then rings, then the pool.
#[derive(Debug)]
struct Fabric {
    devices: [Vec<Device>; 2],
    /// Per link: host to switch, switch to host.
    rings: Vec<[Ring; 2]>,
    /// DPDK wants a pool for every receive queue; net_ring never uses it.
    _pool: Pool,
    _eal: Eal,
}

impl Keep for Fabric {
    fn eal(&self) -> &Eal {
        &self._eal
    }
}

impl Fabric {
    fn build(eal: &Eal, config: FabricConfig) -> Result<Self, FabricError> {
        let pool = Pool::new(eal, PoolConfig { name: "fabric", count: 1, data_room: 64, cache: 0 })
            .map_err(FabricError::Pool)?;
        let mut fabric =
            Self { devices: [Vec::new(), Vec::new()], rings: Vec::new(), _pool: pool, _eal: eal.clone() };
        for _ in 0..config.links {
            fabric.rings.push([Ring::new(config.ring_size)?, Ring::new(config.ring_size)?]);
        }
        for side in [Side::Host, Side::Switch] {
            for links in fabric.rings.chunks(QUEUES_PER_DEVICE) {
                let device = Device::new(links, side, &fabric._pool)?;
                fabric.devices[side as usize].push(device);
            }
        }
        Ok(fabric)
    }

    fn end(self: &Arc<Self>, link: usize, side: Side, serial: u64) -> QueuePair {
        let device = &self.devices[side as usize][link / QUEUES_PER_DEVICE];
        #[expect(clippy::cast_possible_truncation, reason = "below QUEUES_PER_DEVICE")]
        let queue = (link % QUEUES_PER_DEVICE) as u16;
        let keep: Arc<dyn Keep> = Arc::<Self>::clone(self);
        #[expect(clippy::cast_possible_truncation, reason = "QUEUES_PER_DEVICE at most")]
        let queues = self.rings.len().min(QUEUES_PER_DEVICE) as u16;
        let device = DeviceOfQueue { port: device.port, queues, burst_max: BURST_MAX };
        let id = QueueId { device, queue, keep };
        let ring = self.rings[link][side as usize].raw;
        QueuePair {
            rx: RxQueue::new(id.clone()),
            tx: TxQueue::new(id, Some(ring)),
            mac: mac(link, side, serial),
            started: true,
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // A device that is stopped still has frames in its rings; DPDK would leave them for the next run to find.
        self.devices.iter_mut().for_each(Vec::clear);
        self.rings.clear();
        region::sweep();
        pool::sweep();
    }
}

/// A locally administered unicast address that no other end has, unless 2^16 fabrics are made during the life of one.
fn mac(link: usize, side: Side, serial: u64) -> [u8; 6] {
    let [.., link_high, link_low] = link.to_be_bytes();
    let [.., fabric_high, fabric_low] = serial.to_be_bytes();
    [0x02 | (side as u8) << 2, 0xdc, fabric_high, fabric_low, link_high, link_low]
}

/// A started net_ring device over one side of up to 16 links.
#[derive(Debug)]
struct Device {
    port: u16,
    name: CString,
}

impl Device {
    fn new(links: &[[Ring; 2]], side: Side, pool: &Pool) -> Result<Self, FabricError> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let short = format!("dcp{serial}");
        let [tx_index, rx_index] = if side == Side::Host { [0, 1] } else { [1, 0] };
        let tx: Vec<*mut rte_ring> = links.iter().map(|rings| rings[tx_index].raw.as_ptr()).collect();
        let rx: Vec<*mut rte_ring> = links.iter().map(|rings| rings[rx_index].raw.as_ptr()).collect();
        let count = u32::try_from(links.len()).unwrap_or(u32::MAX);
        let c_name = CString::new(short.as_str()).unwrap_or_default();
        // SAFETY: the rings outlive the device (`Fabric` drops devices first), the arrays hold `count` each and are copied,
        // as is the name.
        let code = unsafe {
            dpdk_sys::rte_eth_from_rings(c_name.as_ptr(), rx.as_ptr(), count, tx.as_ptr(), count, 0)
        };
        let port = u16::try_from(code).map_err(|_| FabricError::Device { errno: Errno::last_dpdk() })?;
        // net_ring puts its own name in front.
        let device = Self { port, name: CString::new(format!("net_ring_{short}")).unwrap_or_default() };
        let queues =
            DeviceQueues { count: count.try_into().unwrap_or(u16::MAX), rx_ring_size: 0, tx_ring_size: 0 };
        port::configure(port, queues, None, pool).map_err(FabricError::Port)?;
        port::start(port).map_err(FabricError::Port)?;
        Ok(device)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        port::close(self.port, &self.name);
    }
}

/// One direction of a link.
#[derive(Debug)]
struct Ring {
    raw: NonNull<rte_ring>,
}

// SAFETY: made for one producing and one consuming thread; `TxQueue` and `RxQueue` see to that.
unsafe impl Send for Ring {}
// SAFETY: through a shared reference only the pointer is read.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(size: u32) -> Result<Self, FabricError> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("dcp_link_{serial}")).unwrap_or_default();
        let flags = dpdk_sys::DCP_RING_F_SP_ENQ | dpdk_sys::DCP_RING_F_SC_DEQ | dpdk_sys::DCP_RING_F_EXACT_SZ;
        // SAFETY: the EAL runs; the name is copied.
        let raw = unsafe { dpdk_sys::rte_ring_create(name.as_ptr(), size, ANY_SOCKET, flags) };
        let raw = NonNull::new(raw).ok_or_else(|| FabricError::Ring { size, errno: Errno::last_dpdk() })?;
        Ok(Self { raw })
    }

    /// Frees what nobody will receive any more.
    fn drain(&self) {
        let mut frames: [*mut std::ffi::c_void; BURST as usize] = [ptr::null_mut(); BURST as usize];
        loop {
            // SAFETY: the ring is alive, no queue is left to use it, and `frames` has room for a burst.
            let count = unsafe {
                dpdk_sys::dcpshim_ring_dequeue_burst(self.raw.as_ptr(), frames.as_mut_ptr(), BURST)
            };
            if count == 0 {
                return;
            }
            // SAFETY: only transmit puts something into a ring: frames, whose last owner it was.
            unsafe { dpdk_sys::dcpshim_free_bulk(frames.as_mut_ptr().cast(), count) };
        }
    }
}

const BURST: u32 = 32;

impl Drop for Ring {
    fn drop(&mut self) {
        self.drain();
        // SAFETY: the devices over it are closed, and it is empty.
        unsafe { dpdk_sys::rte_ring_free(self.raw.as_ptr()) };
    }
}

const ANY_SOCKET: i32 = -1;

/// Why links could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FabricError {
    /// A number out of range.
    BadConfig {
        /// What was asked for.
        config: FabricConfig,
    },
    /// More devices than the process has left.
    TooManyLinks {
        /// Links asked for.
        links: usize,
        /// Devices that they take.
        needed: usize,
        /// Devices left.
        free: usize,
        /// Links that would fit.
        links_max: usize,
    },
    /// A ring was refused.
    Ring {
        /// Its size.
        size: u32,
        /// DPDK's reason.
        errno: Errno,
    },
    /// The pool that DPDK insists on was refused.
    Pool(PoolError),
    /// net_ring was refused.
    Device {
        /// DPDK's reason.
        errno: Errno,
    },
    /// A device could not be started.
    Port(PortError),
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadConfig { config: FabricConfig { links, ring_size } } => write!(
                f,
                "{links} links of {ring_size} frames cannot be made: ask for at least 1 link, and 1 to {RING_SIZE_MAX} frames"
            ),
            Self::TooManyLinks { links, needed, free, links_max } => write!(
                f,
                "{links} links take {needed} devices and {free} are left in this process: use at most {links_max} links"
            ),
            Self::Ring { size, errno } => {
                write!(
                    f,
                    "a ring of {size} frames was refused ({errno}): give the EAL more memory, or use smaller rings"
                )
            }
            Self::Pool(error) => error.fmt(f),
            Self::Device { errno } => {
                write!(
                    f,
                    "net_ring could not be started ({errno}): check that DPDK's ring driver is installed"
                )
            }
            Self::Port(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FabricError {}
