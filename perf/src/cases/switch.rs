//! The switch's pipeline without a driver: receive, decide, queue, schedule, send.

use dcp_pipeline::{Classified, EditRefused, Frame, Pipeline, PipelineConfig, PortId};

use super::frames::{mac, write};
use super::{Case, Entry};

/// Frames of a burst.
pub const BURST: usize = 32;
/// Ports of the switch.
pub const PORTS: u16 = 8;
/// Where every frame goes.
pub const TO: PortId = PortId(1);
/// Payload of every frame.
const PAYLOAD: usize = 1024;

/// Headers in a box of their own and a length, as an mbuf is to the switch.
#[derive(Clone)]
pub struct HeadFrame {
    /// The first bytes.
    pub head: Box<[u8; 128]>,
    /// Bytes of the whole frame.
    pub len: u32,
}

impl Frame for HeadFrame {
    fn classify(&self, service_ports: &[u16]) -> Option<Classified> {
        dcp_wire::classify(&self.head[..], service_ports)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn trim(&mut self) -> Result<(), EditRefused> {
        let len = dcp_wire::trim(&mut self.head[..]).map_err(|_| EditRefused::NotDcp)?;
        self.len = u32::try_from(len).map_err(|_| EditRefused::NotDcp)?;
        Ok(())
    }

    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        dcp_wire::mark_ce(&mut self.head[..]).map_err(|_| EditRefused::NotDcp)
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// WRITEs of many flows to one port.
pub fn burst() -> Vec<HeadFrame> {
    let frame = |flow| {
        let headers = write(flow, mac(TO.0));
        let mut head = Box::new([0; 128]);
        let header_len = dcp_wire::emit(&headers, PAYLOAD, &mut head[..]);
        HeadFrame { head, len: u32::try_from(header_len + PAYLOAD).unwrap_or(u32::MAX) }
    };
    (0u16..).take(BURST).map(frame).collect()
}

/// A switch that knows where its hosts are.
pub fn config() -> PipelineConfig {
    PipelineConfig {
        static_macs: (0..PORTS).map(|port| (mac(port), PortId(port))).collect(),
        ..PipelineConfig::new(PORTS)
    }
}

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: BURST as u64, make };
    vec![
        entry("pipeline/forward/32", || Box::new(Forward::new(config(), burst()))),
        entry("pipeline/trim/31_of_32", || {
            Box::new(Forward::new(PipelineConfig { trim_threshold_bytes: 0, ..config() }, burst()))
        }),
    ]
}

/// Bursts come in and leave by whatever port they were sent to.
pub struct Forward {
    switch: Pipeline<HeadFrame>,
    frames: Vec<HeadFrame>,
    arriving: Vec<HeadFrame>,
    sent: Vec<HeadFrame>,
    now: u64,
}

impl Forward {
    /// A switch, and the burst that comes to its first port again and again.
    ///
    /// # Panics
    /// When the configuration is not legal.
    pub fn new(config: PipelineConfig, frames: Vec<HeadFrame>) -> Self {
        let Ok(switch) = Pipeline::new(config) else { panic!("a legal switch") };
        let (arriving, sent) = (Vec::with_capacity(BURST), Vec::with_capacity(2 * BURST));
        Self { switch, frames, arriving, sent, now: 0 }
    }
}

impl Case for Forward {
    fn prepare(&mut self) {
        // Time enough for a burst on a link of 100 Gb/s.
        self.now += 10_000;
        self.sent.clear();
        self.arriving.clone_from(&self.frames);
    }

    fn run(&mut self) {
        for frame in self.arriving.drain(..) {
            self.switch.handle_frame(self.now, PortId(0), frame);
        }
        self.switch.handle_timeout(self.now);
        for port in (1..PORTS).map(PortId) {
            if self.switch.has_queued(port) {
                self.switch.poll_transmit(self.now, port, &mut self.sent);
            }
        }
    }
}
