//! The loop of the switch: receive, hand to the pipeline, send what it lets go.

use std::io;

use dcp_pipeline::{ConfigError, Direction, LinkRate, Pipeline, PipelineConfig, PortId};
use dpdk_ffi::{Clock, MbufBatch, QueuePair};

use crate::arrival::ArrivingLink;
use crate::capture::{Capture, CaptureFile, CapturePoint, SharedCapture};
use crate::checksum;
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
    /// Frames that the pipeline let go and no device took before its link was down or the switch stopped.
    pub discarded: u64,
}

/// What the device of one port did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeviceCounters {
    /// Frames it gave.
    pub received: u64,
    /// Frames it took.
    pub sent: u64,
    /// Frames that the pipeline let go and it did not take before its link was down or the switch stopped.
    pub discarded: u64,
    /// Frames that it has not taken yet.
    pub waiting: usize,
    /// Frames whose checksum the kernel had left unfinished ([`Switch::set_finishes_checksums`]).
    pub finished_checksums: u64,
    /// Frames that came shorter than their IP header says, seen where checksums are finished.
    pub cut: u64,
}

/// What became of the frames that were in a switch when it was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stopped {
    /// Sent after all.
    pub sent: u64,
    /// Dropped: their port took no more, or their time had not come. Counted like any other loss.
    pub dropped: u64,
}

/// A switch over queue pairs of Ethernet devices: port `n` of the pipeline is the `n`-th of them.
#[derive(Debug)]
pub struct Switch {
    pipeline: Pipeline<MbufFrame, Capture>,
    ports: Vec<Port>,
    clock: Clock,
    rx: MbufBatch,
}

#[derive(Debug)]
struct Port {
    queues: QueuePair,
    /// The link on which frames come, where it has a rate.
    arriving: Option<Box<ArrivingLink>>,
    /// Frames that the pipeline let go and the device has not taken yet.
    tx: MbufBatch,
    counters: SwitchCounters,
    /// Whether the kernel leaves checksums to be finished, and what was found.
    finishes_checksums: bool,
    found: checksum::Found,
}

impl Port {
    fn new(queues: QueuePair) -> Self {
        Self {
            queues,
            arriving: None,
            tx: MbufBatch::new(),
            counters: SwitchCounters::default(),
            finishes_checksums: false,
            found: checksum::Found::default(),
        }
    }

    /// Drops what the device has not taken; how many frames.
    fn discard(&mut self) -> u64 {
        let frames = self.tx.len() as u64;
        self.counters.discarded += frames;
        self.tx.free_all();
        frames
    }

    #[inline]
    fn receive(&mut self, now: u64, batch: &mut MbufBatch) -> usize {
        let count = match &mut self.arriving {
            None => self.queues.rx.burst(batch),
            Some(link) => link.receive(now, &mut self.queues.rx, batch),
        };
        if count > 0 && self.finishes_checksums {
            self.found.add(checksum::finish(batch));
        }
        count
    }
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
        let pipeline = Pipeline::with_tap(config, Capture::default())?;
        let ports = ports.into_iter().map(Port::new).collect();
        Ok(Self { pipeline, ports, clock, rx: MbufBatch::new() })
    }

    /// The pipeline, for its counters and notes.
    pub fn pipeline(&self) -> &Pipeline<MbufFrame, Capture> {
        &self.pipeline
    }

    /// The pipeline, to change faults and links while it runs.
    pub fn pipeline_mut(&mut self) -> &mut Pipeline<MbufFrame, Capture> {
        &mut self.pipeline
    }

    /// Captures frames at those points into one file, until [`Self::finish_captures`]. `unix_ns` is the time since 1970
    /// now, in nanoseconds.
    ///
    /// # Errors
    /// What the file says.
    pub fn capture(&mut self, points: &[CapturePoint], file: CaptureFile, unix_ns: u64) -> io::Result<()> {
        self.capture_shared(points, &SharedCapture::new(file)?, unix_ns);
        Ok(())
    }

    /// The same into a file that other switches write to as well.
    pub(crate) fn capture_shared(&mut self, points: &[CapturePoint], shared: &SharedCapture, unix_ns: u64) {
        let offset_ns = unix_ns.wrapping_sub(self.clock.now_ns());
        self.pipeline.tap_mut().start(points, shared.clone(), offset_ns);
    }

    /// Ends all captures; how many frames they hold.
    ///
    /// # Errors
    /// The first thing that went wrong with a file; it is whole up to there.
    pub fn finish_captures(&mut self) -> io::Result<u64> {
        self.pipeline.tap_mut().finish()
    }

    /// Frames come to `port` at that rate from now on; what comes faster waits at the sender. For links inside the
    /// process, which have no rate of their own; [`PipelineConfig::links`] are the other direction.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_arrival_rate(&mut self, port: PortId, rate: LinkRate) {
        let arriving = (!rate.is_unlimited()).then(|| Box::new(ArrivingLink::new(rate)));
        self.ports[port.index()].arriving = arriving;
    }

    /// Whether frames that come to `port` may have checksums that the kernel left for a network card to finish: packet
    /// sockets on veth and its like give such ones away, and no receiver elsewhere takes them.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_finishes_checksums(&mut self, port: PortId, finishes: bool) {
        self.ports[port.index()].finishes_checksums = finishes;
    }

    /// Counters of the driver, all ports together.
    pub fn counters(&self) -> SwitchCounters {
        self.ports.iter().fold(SwitchCounters::default(), |sum, port| SwitchCounters {
            received: sum.received + port.counters.received,
            sent: sum.sent + port.counters.sent,
            discarded: sum.discarded + port.counters.discarded,
        })
    }

    /// Counters of a port's device.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn device_counters(&self, port: PortId) -> DeviceCounters {
        let port = &self.ports[port.index()];
        let SwitchCounters { received, sent, discarded } = port.counters;
        let checksum::Found { finished: finished_checksums, cut } = port.found;
        DeviceCounters { received, sent, discarded, waiting: port.tx.len(), finished_checksums, cut }
    }

    /// One round over all ports. Returns the frames received and sent.
    pub fn poll(&mut self) -> usize {
        self.poll_at(self.clock.now_ns())
    }

    /// The same at a time of the caller's, which never goes back.
    pub(crate) fn poll_at(&mut self, now: u64) -> usize {
        self.pipeline.handle_timeout(now);
        let mut moved = 0;
        for index in 0..self.ports.len() {
            let count = self.ports[index].receive(now, &mut self.rx);
            if count > 0 {
                moved += count;
                self.ports[index].counters.received += count as u64;
                moved += self.forward(now, index);
            }
        }
        moved + transmit(&mut self.pipeline, &mut self.ports, now)
    }

    /// The queues of every port in order, for what devices need done between rounds.
    pub fn queues_mut(&mut self) -> impl Iterator<Item = &mut QueuePair> {
        self.ports.iter_mut().map(|port| &mut port.queues)
    }

    /// Tells the switch that the link of a port is there, or is gone: then what waits for it is dropped, and who was
    /// behind it forgotten, so that frames for them find their new place.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_link(&mut self, port: PortId, is_up: bool) {
        self.pipeline.set_link(port, Direction::Egress, is_up);
        if !is_up {
            self.pipeline.forget_macs(port);
            self.ports[port.index()].discard();
        }
    }

    /// Receives no more, and sends what is in the switch: until it is empty, or for `limit_ns`. The rest is dropped. The
    /// switch can go on afterwards.
    pub fn stop(&mut self, limit_ns: u64) -> Stopped {
        let mut stopped = Stopped::default();
        let end = self.clock.now_ns().saturating_add(limit_ns);
        loop {
            let now = self.clock.now_ns();
            self.pipeline.handle_timeout(now);
            stopped.sent += transmit(&mut self.pipeline, &mut self.ports, now) as u64;
            let waits = self.ports.iter().any(|port| !port.tx.is_empty());
            if now >= end || (!waits && self.pipeline.next_timeout().is_none()) {
                break;
            }
            std::hint::spin_loop();
        }
        for port in &mut self.ports {
            stopped.dropped += port.discard();
        }
        stopped.dropped += self.pipeline.drain() as u64;
        stopped
    }

    /// Runs one received burst through the pipeline.
    // Not a part of `poll_at`, with which it would share its registers.
    #[inline(never)]
    fn forward(&mut self, now: u64, ingress: usize) -> usize {
        let Self { pipeline, ports, rx, .. } = self;
        let mut sent = 0;
        let mut left = rx.len();
        let mut frames = rx.drain().map(MbufFrame);
        while left > 0 {
            // The first chunk is what is over.
            let chunk = (left - 1) % CHUNK + 1;
            pipeline.handle_frames(now, port_id(ingress), frames.by_ref().take(chunk));
            left -= chunk;
            if left > 0 {
                sent += transmit(pipeline, ports, now);
            }
        }
        sent
    }
}

/// Sends from every port that has something to send.
fn transmit(pipeline: &mut Pipeline<MbufFrame, Capture>, ports: &mut [Port], now: u64) -> usize {
    let mut sent = 0;
    for (index, port) in ports.iter_mut().enumerate() {
        let id = port_id(index);
        if port.tx.is_empty() && !pipeline.has_queued(id) {
            continue;
        }
        pipeline.poll_transmit(now, id, &mut BatchSink(&mut port.tx));
        let taken = port.queues.tx.burst(&mut port.tx);
        port.counters.sent += taken as u64;
        sent += taken;
    }
    sent
}

fn port_id(index: usize) -> PortId {
    PortId(u16::try_from(index).expect("a pipeline has fewer than 2^16 ports"))
}
