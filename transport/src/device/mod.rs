//! Network devices: named by URI, opened within what their drivers really carry, and kept going.

mod error;
pub mod limits;
mod memif;
mod open;
mod upkeep;
mod uri;
mod worker;

use std::time::Duration;

use dcp_wire::MacAddr;
use dpdk_ffi::{Clock, DmaDevice, Eal, FabricConfig, Interface, Pool, PoolConfig, QueuePair, create_links};

pub use error::DeviceError;
pub use limits::{DriverLimits, Transmit};
use open::Opened;
pub use open::{DeviceConfig, MtuChoice, eal_config, pool_bytes};
pub use upkeep::{LinkEvent, Upkeep, Upkeeps};
pub use uri::{DeviceUri, INTERFACE_LEN_MAX, MemifRole, SOCKET_LEN_MAX, UriError};
pub use worker::WorkerOptions;

/// An open device: its queues, and what a worker must know to use them.
#[derive(Debug)]
pub struct NetDevice {
    uri: DeviceUri,
    opened: Opened,
}

/// What a worker gets: one queue pair, and what else the device needs of the thread that runs it.
#[derive(Debug)]
pub struct WorkerQueues {
    /// Receive and transmit queue.
    pub queues: QueuePair,
    /// For [`Worker::set_upkeep`](crate::Worker::set_upkeep), where the device needs any.
    pub upkeep: Option<Upkeep>,
}

impl NetDevice {
    /// Opens a device. The EAL must have been started with [`eal_config`].
    ///
    /// A net_memif device is open before its peer is there; [`wait_for_link`](Self::wait_for_link) waits for one.
    ///
    /// # Errors
    /// [`DeviceError`], one sentence that says what to do.
    pub fn open(eal: &Eal, uri: &DeviceUri, config: &DeviceConfig) -> Result<Self, DeviceError> {
        if *uri == DeviceUri::Loop {
            return Err(DeviceError::LoopHasTwoEnds);
        }
        Ok(Self { uri: uri.clone(), opened: open::open(eal, uri, config)? })
    }

    /// The two ends of `loop`: what one sends, the other receives.
    ///
    /// # Errors
    /// [`DeviceError`], as for [`open`](Self::open).
    pub fn open_loop(eal: &Eal, config: &DeviceConfig) -> Result<(Self, Self), DeviceError> {
        let limits = DriverLimits::of(&DeviceUri::Loop);
        let (count, most) = (config.queues, limits.queues_max);
        if count == 0 || count > most {
            return Err(DeviceError::Queues { uri: DeviceUri::Loop.to_string(), count, most });
        }
        let mtu = match config.mtu {
            MtuChoice::Largest => limits::MTU_DEFAULT_MAX,
            MtuChoice::Exactly(mtu) if (limits::MTU_MIN..=limits::MTU_MAX).contains(&mtu) => mtu,
            MtuChoice::Exactly(mtu) => return Err(DeviceError::BadMtu { mtu }),
        };
        // Frames stay in the sender's mbufs; copies of odd ones need a few of the receiver's own.
        let room = PoolConfig::frames("loop", 255, 2048);
        let links =
            FabricConfig { links: usize::from(count), ring_size: u32::from(config.ring_frames).max(1) };
        let ends = create_links(eal, links).map_err(DeviceError::Fabric)?;
        let (hosts, peers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let end = |queues: Vec<QueuePair>, mac: Option<MacAddr>| {
            let own = MacAddr(queues.first().map(|pair| pair.mac).unwrap_or_default());
            let opened = Opened {
                queues,
                upkeep: None,
                mtu,
                mtu_most: limits::MTU_MAX,
                transmit: limits.transmit,
                mac: mac.unwrap_or(own),
                pool: Pool::new(eal, room).map_err(DeviceError::Pool)?,
                dma: None,
            };
            Ok(Self { uri: DeviceUri::Loop, opened })
        };
        Ok((end(hosts, config.mac)?, end(peers, None)?))
    }

    /// What it was opened by.
    pub fn uri(&self) -> &DeviceUri {
        &self.uri
    }

    /// Payload of a full packet, in bytes: what to offer a peer. Frames of [`limits::frame_bytes`] of it pass whole.
    pub fn mtu(&self) -> u32 {
        self.opened.mtu
    }

    /// The largest MTU that the device could have been opened with.
    pub fn mtu_most(&self) -> u32 {
        self.opened.mtu_most
    }

    /// How payload is to be put into frames.
    pub fn transmit(&self) -> Transmit {
        self.opened.transmit
    }

    /// A pool for the frames that a worker builds: heads only, or whole frames where payload is copied into them.
    ///
    /// # Errors
    /// The EAL's memory does not hold it.
    pub fn header_pool(&self, eal: &Eal, count: u32) -> Result<Pool, DeviceError> {
        let room = match self.opened.transmit {
            Transmit::External => {
                return Pool::new(eal, PoolConfig::header("tx", count)).map_err(DeviceError::Pool);
            }
            Transmit::Linear => limits::frame_bytes(self.opened.mtu),
        };
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        Pool::new(eal, PoolConfig::frames("tx", count, room)).map_err(DeviceError::Pool)
    }

    /// The Ethernet address to send from and be reached at.
    pub fn mac(&self) -> MacAddr {
        self.opened.mac
    }

    /// The card that reads payload by itself, if it is one and takes segments: memory must be mapped for it
    /// ([`dpdk_ffi::Region::map_for`]) before frames point there. Untested: no card was at hand.
    pub fn dma_device(&self) -> Option<DmaDevice> {
        self.opened.dma.clone().filter(|_| self.opened.transmit == Transmit::External)
    }

    /// Mbufs that received frames come in.
    pub fn pool(&self) -> &Pool {
        &self.opened.pool
    }

    /// Queue pairs not yet [taken](Self::take_queues).
    pub fn queues(&self) -> usize {
        self.opened.queues.len()
    }

    /// Whether the device can move frames now. Not for the hot path.
    pub fn link_is_up(&self) -> bool {
        if let Some(upkeep) = &self.opened.upkeep {
            return upkeep.is_connected();
        }
        // net_af_packet calls its link up whatever the interface does.
        if let DeviceUri::AfPacket { interface } = &self.uri {
            return Interface::read(interface).is_ok_and(|interface| interface.is_running);
        }
        self.opened.queues.first().is_some_and(QueuePair::link_is_up)
    }

    /// Waits until the device can move frames: for net_memif, until a peer is there.
    ///
    /// # Errors
    /// [`DeviceError::NoLink`] after `timeout`.
    pub fn wait_for_link(&mut self, clock: &Clock, timeout: Duration) -> Result<(), DeviceError> {
        let start = clock.now_ns();
        loop {
            let now = clock.now_ns();
            if let (Some(upkeep), Some(queues)) = (&mut self.opened.upkeep, self.opened.queues.first_mut()) {
                upkeep.poll(now, queues);
            }
            if self.link_is_up() {
                return Ok(());
            }
            if u128::from(now - start) >= timeout.as_nanos() {
                let waited_ms = (now - start) / 1_000_000;
                let advice = match self.uri {
                    DeviceUri::Memif { .. } => "start the peer on the same socket and id",
                    _ => "check the cable, or the other end of the pair",
                };
                return Err(DeviceError::NoLink { uri: self.uri.to_string(), waited_ms, advice });
            }
            dpdk_ffi::clock::pause(Duration::from_millis(1));
        }
    }

    /// The queue pairs with what belongs to them, one for each worker. They keep the device running.
    pub fn take_queues(&mut self) -> Vec<WorkerQueues> {
        let mut upkeep = self.opened.upkeep.take();
        let taken = std::mem::take(&mut self.opened.queues).into_iter();
        taken.map(|queues| WorkerQueues { queues, upkeep: upkeep.take() }).collect()
    }
}
