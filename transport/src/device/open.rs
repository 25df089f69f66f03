//! From a URI to running queues.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use dcp_wire::MacAddr;
use dpdk_ffi::interface::Capability;
use dpdk_ffi::{
    DmaDevice, Eal, EalConfig, Interface, Pool, PoolConfig, Port, PortConfig, PortError, QueuePair,
};

use super::error::DeviceError;
use super::limits::{self, DriverLimits, IP_OVERHEAD, MTU_DEFAULT_MAX, MTU_MAX, MTU_MIN, Transmit};
use super::memif;
use super::upkeep::Upkeep;
use super::uri::{DeviceUri, MemifRole};

/// The MTU, payload of a full packet, to open a device with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MtuChoice {
    /// The largest power of two that the device carries, up to 4096.
    #[default]
    Largest,
    /// This one, or an error when the device cannot carry it.
    Exactly(u32),
}

/// How to open a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// Payload of a full packet. Default: the largest power of two that the device carries, up to 4096.
    pub mtu: MtuChoice,
    /// Queue pairs, one per worker. Default 1; more only where the device has them.
    pub queues: u16,
    /// Frames that each receive queue and each transmit queue holds; the device may adjust it. Default 1024.
    pub ring_frames: u16,
    /// Mbufs for received frames. Default 8191: two full rings, bursts, and what DPDK keeps per thread.
    pub mbufs: u32,
    /// Ethernet address to use instead of the device's own. Default: the device's.
    pub mac: Option<MacAddr>,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self { mtu: MtuChoice::Largest, queues: 1, ring_frames: 1024, mbufs: 8191, mac: None }
    }
}

/// What the EAL must be started with for these devices to open: the channel that net_memif insists on, cards to take.
#[must_use]
pub fn eal_config(mut config: EalConfig, uris: &[DeviceUri]) -> EalConfig {
    for uri in uris {
        match uri {
            DeviceUri::Memif { .. } => config.ipc = true,
            DeviceUri::Vdev { name, .. } if name.starts_with("net_memif") => config.ipc = true,
            DeviceUri::Pci { address } if !config.pci.contains(address) => config.pci.push(address.clone()),
            _ => {}
        }
    }
    config
}

/// Memory of the EAL's that the mbufs of a device take, in bytes, with ordinary pages; huge pages hold them in less.
pub fn pool_bytes(uri: &DeviceUri, config: &DeviceConfig) -> u64 {
    let most = mtu_most(uri, &DriverLimits::of(uri)).unwrap_or(MTU_DEFAULT_MAX);
    let mtu = choose_mtu(uri, config.mtu, most).unwrap_or(MTU_DEFAULT_MAX);
    let mbuf = u64::from(data_room(uri, mtu)) + MBUF_OVERHEAD;
    // None crosses into a page that it could do without.
    let each = if mbuf > PAGE { mbuf.next_multiple_of(PAGE) } else { PAGE / (PAGE / mbuf) };
    u64::from(config.mbufs) * each
}

const PAGE: u64 = 4096;
/// Its descriptor, headroom, and what a pool keeps of each.
const MBUF_OVERHEAD: u64 = 448;

/// Numbers virtual devices, so that names never meet.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// What opening settles; [`NetDevice`](super::NetDevice) is made of it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) queues: Vec<QueuePair>,
    pub(super) upkeep: Option<Upkeep>,
    pub(super) mtu: u32,
    pub(super) mtu_most: u32,
    pub(super) transmit: Transmit,
    /// A card that reads memory by itself.
    pub(super) dma: Option<DmaDevice>,
    pub(super) mac: MacAddr,
    pub(super) pool: Pool,
}

pub(super) fn open(eal: &Eal, uri: &DeviceUri, config: &DeviceConfig) -> Result<Opened, DeviceError> {
    let limits = DriverLimits::of(uri);
    if config.queues == 0 || config.queues > limits.queues_max {
        let most = limits.queues_max;
        return Err(DeviceError::Queues { uri: uri.to_string(), count: config.queues, most });
    }
    let mtu_most = mtu_most(uri, &limits)?;
    let mtu = choose_mtu(uri, config.mtu, mtu_most)?;
    check_rights(uri)?;
    let role = match uri {
        DeviceUri::Memif { socket, role, .. } => Some(memif::prepare(socket, *role)?),
        _ => None,
    };
    let port = make_port(eal, uri, role, mtu)?;
    let transmit = if port.takes_segments() { limits.transmit } else { Transmit::Linear };
    let data_room = data_room(uri, mtu);
    let pool =
        Pool::new(eal, PoolConfig::frames("rx", config.mbufs, data_room)).map_err(DeviceError::Pool)?;
    let ip_bytes = u16::try_from(mtu + IP_OVERHEAD).unwrap_or(u16::MAX);
    let port_config = PortConfig {
        queues: config.queues,
        rx_ring_size: config.ring_frames,
        tx_ring_size: config.ring_frames,
        // Never below what every Ethernet has: others on the link send that much.
        mtu: limits.sets_mtu.then_some(ip_bytes.max(1500)),
        pool: pool.clone(),
    };
    let started = start(eal, port, &port_config, role);
    let (queues, upkeep) = started.map_err(|error| explain(uri, error))?;
    let own = queues.first().map(|pair| pair.mac).unwrap_or_default();
    let dma = match uri {
        DeviceUri::Pci { .. } => queues.first().and_then(QueuePair::dma_device),
        _ => None,
    };
    let transmit = match uri {
        DeviceUri::Pci { .. } if dma.is_none() => Transmit::Linear,
        _ => transmit,
    };
    let mac = config.mac.unwrap_or_else(|| mac_for(uri, own));
    Ok(Opened { queues, upkeep, mtu, mtu_most, transmit, dma, mac, pool })
}

fn start(
    eal: &Eal,
    port: Port,
    config: &PortConfig,
    role: Option<MemifRole>,
) -> Result<(Vec<QueuePair>, Option<Upkeep>), PortError> {
    let Some(role) = role else { return Ok((port.start(config)?, None)) };
    let mut queues = port.configure(config)?;
    let upkeep = queues.first_mut().map(|pair| Upkeep::new(eal, pair, role));
    Ok((queues, upkeep))
}

/// The largest MTU that the device carries now.
fn mtu_most(uri: &DeviceUri, limits: &DriverLimits) -> Result<u32, DeviceError> {
    let ip_bytes = match uri {
        DeviceUri::AfPacket { interface } | DeviceUri::AfXdp { interface } => {
            let read = Interface::read(interface).map_err(DeviceError::Interface)?;
            if !read.is_up {
                return Err(DeviceError::InterfaceDown { interface: interface.clone() });
            }
            limits.ip_bytes_max.min(read.mtu)
        }
        DeviceUri::Tap { interface } if Interface::read(interface).is_ok() => {
            return Err(DeviceError::InterfaceExists { interface: interface.clone() });
        }
        _ => limits.ip_bytes_max,
    };
    limits::mtu_of_link(ip_bytes).ok_or_else(|| DeviceError::LinkTooSmall {
        uri: uri.to_string(),
        ip_bytes,
        least: MTU_MIN + IP_OVERHEAD,
    })
}

/// G4: what cannot be carried is refused before a frame is cut.
fn choose_mtu(uri: &DeviceUri, choice: MtuChoice, most: u32) -> Result<u32, DeviceError> {
    match choice {
        MtuChoice::Largest => {
            let power = 1 << most.ilog2();
            Ok(power.min(MTU_DEFAULT_MAX))
        }
        MtuChoice::Exactly(mtu) if !(MTU_MIN..=MTU_MAX).contains(&mtu) => Err(DeviceError::BadMtu { mtu }),
        MtuChoice::Exactly(mtu) if mtu > most => Err(DeviceError::Mtu { uri: uri.to_string(), mtu, most }),
        MtuChoice::Exactly(mtu) => Ok(mtu),
    }
}

/// What can be known before DPDK fails without saying why.
fn check_rights(uri: &DeviceUri) -> Result<(), DeviceError> {
    let needed = match uri {
        DeviceUri::Tap { .. } => Capability::NetAdmin,
        DeviceUri::AfPacket { .. } | DeviceUri::AfXdp { .. } => Capability::NetRaw,
        _ => return Ok(()),
    };
    if !needed.is_held() {
        return Err(DeviceError::Permission { uri: uri.to_string(), needs: needed.name() });
    }
    if matches!(uri, DeviceUri::Tap { .. }) && !Path::new("/dev/net/tun").exists() {
        return Err(DeviceError::NoTun);
    }
    Ok(())
}

fn make_port(eal: &Eal, uri: &DeviceUri, role: Option<MemifRole>, mtu: u32) -> Result<Port, DeviceError> {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let frame = limits::frame_bytes(mtu);
    let (driver, arguments) = match uri {
        DeviceUri::Loop => return Err(DeviceError::LoopHasTwoEnds),
        DeviceUri::Memif { socket, id, .. } => {
            let role = role.unwrap_or(MemifRole::Server).name();
            let bsize = limits::memif_buffer(frame);
            (
                "net_memif",
                format!("role={role},id={id},socket={socket},socket-abstract=no,bsize={bsize},rsize=10"),
            )
        }
        DeviceUri::Tap { interface } => ("net_tap", format!("iface={interface}")),
        DeviceUri::AfPacket { interface } => {
            let slot = limits::af_packet_slot(frame);
            (
                "net_af_packet",
                format!("iface={interface},framesz={slot},blocksz={AF_PACKET_BLOCK},framecnt=512"),
            )
        }
        DeviceUri::AfXdp { interface } => ("net_af_xdp", format!("iface={interface}")),
        DeviceUri::Null => ("net_null", "size=64".to_owned()),
        DeviceUri::Pci { address } => {
            return Port::by_name(eal, address)
                .map_err(|error| DeviceError::Port { uri: uri.to_string(), error });
        }
        DeviceUri::Vdev { name, arguments } => {
            return Port::create(eal, name, arguments)
                .map_err(|error| DeviceError::Port { uri: uri.to_string(), error });
        }
    };
    let name = format!("{driver}{serial}");
    Port::create(eal, &name, &arguments).map_err(|error| explain(uri, error))
}

/// Bytes per block of net_af_packet's rings: a multiple of every slot.
const AF_PACKET_BLOCK: u32 = 65536;

fn explain(uri: &DeviceUri, error: PortError) -> DeviceError {
    let reason = match &error {
        PortError::NotFound { reason, .. } => reason.clone(),
        PortError::Refused { errno, .. } => errno.to_string(),
        _ => return DeviceError::Port { uri: uri.to_string(), error },
    };
    match uri {
        DeviceUri::AfXdp { interface } => DeviceError::NoXdp { interface: interface.clone(), reason },
        DeviceUri::Memif { socket, .. } if reason.contains("setup socket") => {
            DeviceError::Socket { socket: socket.clone(), reason }
        }
        DeviceUri::Tap { .. } if reason.contains("ermission") || reason.contains("not permitted") => {
            DeviceError::Permission { uri: uri.to_string(), needs: Capability::NetAdmin.name() }
        }
        DeviceUri::AfPacket { interface } if reason.contains("PACKET_FANOUT") => {
            DeviceError::Fanout { interface: interface.clone() }
        }
        DeviceUri::AfPacket { .. } if reason.contains("not permitted") => {
            DeviceError::Permission { uri: uri.to_string(), needs: Capability::NetRaw.name() }
        }
        _ => DeviceError::Port { uri: uri.to_string(), error },
    }
}

/// Bytes that an mbuf must hold for a frame to arrive whole, in one segment.
fn data_room(uri: &DeviceUri, mtu: u32) -> u16 {
    let frame = limits::frame_bytes(mtu);
    let room = match uri {
        // As large as the driver's own buffers, whatever comes in them.
        DeviceUri::Memif { .. } => limits::memif_buffer(frame),
        DeviceUri::AfPacket { .. } => limits::af_packet_slot(frame),
        // What others send on such a link, and what the drivers ask for at least.
        _ => frame.max(ETHERNET_FRAME).next_multiple_of(64).max(2048),
    };
    u16::try_from(room).unwrap_or(u16::MAX)
}

/// 1500 bytes, Ethernet header and VLAN tag.
const ETHERNET_FRAME: u32 = 1518;

/// The kernel's end of a tap has the device's own address: a bridge would keep frames for it to itself.
fn mac_for(uri: &DeviceUri, own: [u8; 6]) -> MacAddr {
    let [a, b, c, d, e, f] = own;
    match uri {
        DeviceUri::Tap { .. } => MacAddr([a, b, c, d, e, f ^ 1]),
        _ => MacAddr(own),
    }
}
