//! The switch's pipeline without a driver: receive, decide, queue, schedule, send.

use dcp_pipeline::{Classified, Classifier, EditRefused, Frame, Pipeline, PipelineConfig, PortId};
use dcp_wire::Headers;

use super::frames::{ack, mac, write};
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
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        classifier.classify(&self.head[..])
    }

    fn flow_hash(&self) -> u32 {
        dcp_wire::flow_hash(&self.head[..])
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
    (0u16..).take(BURST).map(|flow| frame(&write(flow, mac(TO.0)), PAYLOAD)).collect()
}

/// WRITEs to one port and acknowledgements to another in turns: no frame looks like the one before.
pub fn burst_of_two_kinds() -> Vec<HeadFrame> {
    let frames = [frame(&write(0, mac(TO.0)), PAYLOAD), frame(&ack(mac(TO.0 + 1)), 0)];
    frames.into_iter().cycle().take(BURST).collect()
}

fn frame(headers: &Headers, payload_len: usize) -> HeadFrame {
    let mut head = Box::new([0; 128]);
    let header_len = dcp_wire::emit(headers, payload_len, &mut head[..]);
    HeadFrame { head, len: u32::try_from(header_len + payload_len).unwrap_or(u32::MAX) }
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
        entry("pipeline/two_kinds/32", || Box::new(Forward::new(config(), burst_of_two_kinds()))),
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
        self.switch.handle_frames(self.now, PortId(0), self.arriving.drain(..));
        self.switch.handle_timeout(self.now);
        for port in (1..PORTS).map(PortId) {
            if self.switch.has_queued(port) {
                self.switch.poll_transmit(self.now, port, &mut self.sent);
            }
        }
    }
}
