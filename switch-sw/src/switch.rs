//! The loop of the switch: receive, hand to the pipeline, send what it lets go.

use dcp_pipeline::{ConfigError, Pipeline, PipelineConfig, PortId};
use dpdk_ffi::{Clock, MbufBatch, QueuePair};

use crate::frame::{BatchSink, MbufFrame};

/// Frames handed to the pipeline before it sends: a burst that a NIC delivers at once should not look like a queue.
const CHUNK: usize = 16;

/// What the driver counts beside its pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SwitchCounters {
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
}

/// A switch over queue pairs of Ethernet devices: port `n` of the pipeline is the `n`-th of them.
#[derive(Debug)]
pub struct Switch {
    pipeline: Pipeline<MbufFrame>,
    ports: Vec<Port>,
    clock: Clock,
    rx: MbufBatch,
    counters: SwitchCounters,
}

#[derive(Debug)]
struct Port {
    queues: QueuePair,
    /// Frames that the pipeline let go and the device has not taken yet.
    tx: MbufBatch,
}

impl Switch {
    /// A switch whose pipeline has as many ports as there are queue pairs.
    ///
    /// # Errors
    /// The configuration is out of range; the sentence says how.
    ///
    /// # Panics
    /// When the numbers of ports differ.
    pub fn new(config: PipelineConfig, ports: Vec<QueuePair>, clock: Clock) -> Result<Self, ConfigError> {
        assert_eq!(usize::from(config.ports), ports.len(), "a queue pair per port");
        let pipeline = Pipeline::new(config)?;
        let ports = ports.into_iter().map(|queues| Port { queues, tx: MbufBatch::new() }).collect();
        Ok(Self { pipeline, ports, clock, rx: MbufBatch::new(), counters: SwitchCounters::default() })
    }

    /// The pipeline, for its counters and notes.
    pub fn pipeline(&self) -> &Pipeline<MbufFrame> {
        &self.pipeline
    }

    /// Counters of the driver.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// One round over all ports. Returns the frames received and sent.
    pub fn poll(&mut self) -> usize {
        let now = self.clock.now_ns();
        let mut moved = 0;
        for index in 0..self.ports.len() {
            let count = self.ports[index].queues.rx.burst(&mut self.rx);
            if count > 0 {
                moved += count;
                self.counters.received += count as u64;
                moved += self.forward(now, index);
            }
        }
        moved + self.transmit(now)
    }

    /// Runs one received burst through the pipeline.
    fn forward(&mut self, now: u64, ingress: usize) -> usize {
        let mut batch = std::mem::take(&mut self.rx);
        let mut sent = 0;
        let mut left = batch.len();
        let ingress = port_id(ingress);
        for frame in batch.drain() {
            self.pipeline.handle_frame(now, ingress, MbufFrame(frame));
            left -= 1;
            if left > 0 && left.is_multiple_of(CHUNK) {
                sent += self.transmit(now);
            }
        }
        self.rx = batch;
        sent
    }

    /// Sends from every port that has something to send.
    fn transmit(&mut self, now: u64) -> usize {
        let mut sent = 0;
        for (index, port) in self.ports.iter_mut().enumerate() {
            let id = port_id(index);
            if port.tx.is_empty() && !self.pipeline.has_queued(id) {
                continue;
            }
            self.pipeline.poll_transmit(now, id, &mut BatchSink(&mut port.tx));
            sent += port.queues.tx.burst(&mut port.tx);
        }
        self.counters.sent += sent as u64;
        sent
    }
}

fn port_id(index: usize) -> PortId {
    PortId(u16::try_from(index).expect("a pipeline has fewer than 2^16 ports"))
}
