//! Parameters of a switch, and what is refused at start (D6).

use dcp_wire::{MacAddr, SERVICE_PORT};

use crate::config_error::{ConfigError, Parameter, PerPort, in_range};
use crate::fault::FaultConfig;
use crate::link::LinkConfig;
use crate::note::Note;
use crate::port::PortId;
use crate::red::RedConfig;
use crate::route::{GroupConfig, GroupId, check_groups};
use crate::trim_to::TrimTo;
use crate::weight::{HO_FRAME_LEN, Incast, Weight, WeightConfig};

/// Most ports of one switch.
pub const PORTS_MAX: u16 = 1024;
/// Most bytes of one queue: 1 GiB.
pub const QUEUE_BYTES_MAX: u32 = 1 << 30;
/// Most frames of one queue.
pub const QUEUE_FRAMES_MAX: u32 = 1 << 20;
/// Most entries of the MAC table.
pub const MAC_ENTRIES_MAX: u32 = 1 << 20;
/// Most UDP ports that mean DCP; each frame is compared with all.
pub const SERVICE_PORTS_MAX: u32 = 16;

/// Parameters of a [`crate::Pipeline`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineConfig {
    /// Number of ports, 1 ..= [`PORTS_MAX`].
    pub ports: u16,
    /// S-1: a data packet is trimmed if more than this many bytes are queued before it. Default 512 KiB (the paper
    /// gives none), range 0 ..= [`QUEUE_BYTES_MAX`].
    pub trim_threshold_bytes: u32,
    /// Most frames in a data queue; a full one trims like a long one. Default 8192, range 1 ..= [`QUEUE_FRAMES_MAX`].
    pub data_frames_max: u32,
    /// S-4: bound of a control queue in bytes. Default 64 KiB, range 0 ..= [`QUEUE_BYTES_MAX`].
    pub control_bytes_max: u32,
    /// S-4: bound of a control queue in frames. Default 2048, range 0 ..= [`QUEUE_FRAMES_MAX`].
    pub control_frames_max: u32,
    /// S-1: ACK-class frames use the control queue. Default true; false in the paper.
    /// One that finds that queue full goes with the data.
    pub acks_use_control_queue: bool,
    /// S-3: control against data. `None`, the default, derives it for an incast of all ports.
    pub weight: Option<WeightConfig>,
    /// S-6: ECN marking. Default none.
    pub ecn: Option<RedConfig>,
    /// Whether source addresses are learned. Default true.
    pub learn_macs: bool,
    /// Addresses known from the start; never learned over.
    pub static_macs: Vec<(MacAddr, PortId)>,
    /// S-5: groups of parallel links; a port is in one at most. Default none.
    pub groups: Vec<GroupConfig>,
    /// Addresses behind groups, known from the start; never learned over.
    pub group_macs: Vec<(MacAddr, GroupId)>,
    /// Where unicast frames for unknown addresses go instead of everywhere, unless they came from there. Default none.
    pub default_group: Option<GroupId>,
    /// After how many nanoseconds without a frame from it an address is forgotten, or up to a quarter earlier. Default
    /// 300 s as in IEEE 802.1D; 0 = never.
    pub mac_age_ns: u64,
    /// Addresses that the table holds. Default 4096, range 1 ..= [`MAC_ENTRIES_MAX`].
    pub mac_entries_max: u32,
    /// S-0: UDP destination ports that mean DCP. Default 17791; 1 ..= [`SERVICE_PORTS_MAX`] of them.
    pub service_ports: Vec<u16>,
    /// Links behind the egress ports. Empty, the default, for ideal ones; else one for each port.
    pub links: Vec<LinkConfig>,
    /// Trim like a switch that knows nothing of DCP. Default none: header-only packets (S-2).
    pub trim_to: Option<TrimTo>,
    /// S-7: faults per ingress port. Empty, the default, for none; else one for each port.
    pub faults: Vec<FaultConfig>,
    /// S-7: faults per egress port, likewise.
    pub egress_faults: Vec<FaultConfig>,
    /// Seed of everything random. Default 1.
    pub seed: u64,
}

impl PipelineConfig {
    /// The defaults for a switch of `ports` ports.
    pub fn new(ports: u16) -> Self {
        Self {
            ports,
            trim_threshold_bytes: 512 << 10,
            data_frames_max: 8192,
            control_bytes_max: 64 << 10,
            control_frames_max: 2048,
            acks_use_control_queue: true,
            weight: None,
            ecn: None,
            learn_macs: true,
            static_macs: Vec::new(),
            groups: Vec::new(),
            group_macs: Vec::new(),
            default_group: None,
            mac_age_ns: 300_000_000_000,
            mac_entries_max: 4096,
            service_ports: vec![SERVICE_PORT],
            links: Vec::new(),
            trim_to: None,
            faults: Vec::new(),
            egress_faults: Vec::new(),
            seed: 1,
        }
    }

    /// The weight in use and, where it is not the derived one, a note.
    pub(crate) fn resolve_weight(&self) -> Result<(Weight, Option<Note>), ConfigError> {
        match self.weight {
            Some(WeightConfig::ExplicitMilli(milli)) => {
                let weight = Weight::from_milli(milli).ok_or(ConfigError::Weight { milli })?;
                Ok((weight, None))
            }
            Some(WeightConfig::Derived(incast)) => {
                in_range(Parameter::IncastPorts, u32::from(incast.ports), 1..=PORTS_MAX.into())?;
                in_range(Parameter::TrimmableFrameLen, incast.trimmable_frame_len, 58..=1 << 16)?;
                in_range(Parameter::AckSharePpm, incast.ack_share_ppm, 0..=999_999)?;
                Ok(incast.weight(self.header_len()))
            }
            None => {
                let ack_share_ppm = if self.acks_use_control_queue { Incast::ACK_SHARE_PPM } else { 0 };
                let trimmable_frame_len = Incast::TRIMMABLE_FRAME_LEN;
                let incast = Incast { ports: self.ports, trimmable_frame_len, ack_share_ppm };
                Ok(incast.weight(self.header_len()))
            }
        }
    }

    /// Length of a trimmed frame.
    fn header_len(&self) -> u32 {
        self.trim_to.map_or(HO_FRAME_LEN, |to| to.trim_bytes)
    }

    /// What works, but not as one may expect.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Note> {
        let trim_threshold_bytes = self.trim_threshold_bytes;
        let late = self.ecn.filter(|red| red.max_bytes >= trim_threshold_bytes);
        let late = late.map(|red| Note::MarksLate { max_bytes: red.max_bytes, trim_threshold_bytes });
        let ports_max = |to: TrimTo| Incast::ports_max(to.trim_bytes);
        let foreign = self.trim_to.map(|to| Note::TrimsLikeOthers { to, incast_ports_max: ports_max(to) });
        late.into_iter().chain(foreign)
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        in_range(Parameter::Ports, u32::from(self.ports), 1..=PORTS_MAX.into())?;
        in_range(Parameter::TrimThresholdBytes, self.trim_threshold_bytes, 0..=QUEUE_BYTES_MAX)?;
        in_range(Parameter::DataFramesMax, self.data_frames_max, 1..=QUEUE_FRAMES_MAX)?;
        in_range(Parameter::ControlBytesMax, self.control_bytes_max, 0..=QUEUE_BYTES_MAX)?;
        in_range(Parameter::ControlFramesMax, self.control_frames_max, 0..=QUEUE_FRAMES_MAX)?;
        in_range(Parameter::MacEntriesMax, self.mac_entries_max, 1..=MAC_ENTRIES_MAX)?;
        let count = u32::try_from(self.service_ports.len()).unwrap_or(u32::MAX);
        in_range(Parameter::ServicePorts, count, 1..=SERVICE_PORTS_MAX)?;
        for &(address, port) in &self.static_macs {
            if port.0 >= self.ports {
                return Err(ConfigError::StaticMacPort { address, port });
            }
            if address.0[0] & 1 != 0 {
                return Err(ConfigError::StaticMacGroup { address });
            }
        }
        self.check_routes()?;
        if let Some(red) = self.ecn {
            in_range(Parameter::EcnMaxBytes, red.max_bytes, 0..=QUEUE_BYTES_MAX)?;
            in_range(Parameter::EcnMinBytes, red.min_bytes, 0..=red.max_bytes)?;
        }
        self.one_per_port(PerPort::Faults, self.faults.len())?;
        self.one_per_port(PerPort::EgressFaults, self.egress_faults.len())?;
        self.one_per_port(PerPort::Links, self.links.len())?;
        self.faults.iter().chain(&self.egress_faults).try_for_each(FaultConfig::check)?;
        self.links.iter().try_for_each(LinkConfig::check)?;
        self.trim_to.map_or(Ok(()), |to| to.check())
    }

    fn check_routes(&self) -> Result<(), ConfigError> {
        check_groups(&self.groups, self.ports)?;
        for &(address, _) in &self.group_macs {
            if address.0[0] & 1 != 0 {
                return Err(ConfigError::StaticMacGroup { address });
            }
        }
        let mut named = self.group_macs.iter().map(|&(_, group)| group).chain(self.default_group);
        match named.find(|group| usize::from(group.0) >= self.groups.len()) {
            Some(group) => Err(ConfigError::NoSuchGroup { group }),
            None => Ok(()),
        }
    }

    fn one_per_port(&self, what: PerPort, given: usize) -> Result<(), ConfigError> {
        if given == 0 || given == usize::from(self.ports) {
            return Ok(());
        }
        Err(ConfigError::PerPort { what, given, ports: self.ports })
    }
}
