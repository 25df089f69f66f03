//! The loops of the probe.

use std::time::Duration;

use dcp::device::Upkeep;
use dcp::device::{LinkEvent, NetDevice, Transmit, WorkerQueues, limits};
use dcp::dpdk::{
    Clock, Eal, HugePreference, Mbuf, MbufBatch, MbufStash, Pool, PoolConfig, QueuePair, Region,
};

use crate::Fault;
use crate::frames::{ANSWERED, ASKED, HEADER_LEN, frame, read};

/// Frames under way at once, each with a slot of the region.
const WINDOW: usize = 16;
const SLOT: usize = 16 << 10;

/// One end of the wire.
pub(crate) struct Station {
    clock: Clock,
    device: NetDevice,
    queues: Option<QueuePair>,
    upkeep: Option<Upkeep>,
    stash: MbufStash,
    linear: Pool,
    region: Region,
    next_slot: usize,
    rx: MbufBatch,
    tx: MbufBatch,
    transmit: Transmit,
    frame_max: usize,
    mac: [u8; 6],
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Station {
    pub(crate) fn new(eal: &Eal, device: NetDevice, clock: Clock) -> Result<Self, String> {
        let header = Pool::new(eal, PoolConfig::header("hdr", 1023)).map_err(text)?;
        let payload = Pool::new(eal, PoolConfig::payload("pay", 1023)).map_err(text)?;
        let linear = Pool::new(eal, PoolConfig::frames("lin", 1023, 9000)).map_err(text)?;
        Ok(Self {
            clock,
            queues: None,
            upkeep: None,
            stash: MbufStash::new(&header, &payload),
            linear,
            region: Region::alloc(WINDOW * SLOT, HugePreference::Never).map_err(text)?,
            next_slot: 0,
            rx: MbufBatch::new(),
            tx: MbufBatch::new(),
            transmit: device.transmit(),
            frame_max: limits::frame_bytes(device.mtu()) as usize,
            mac: device.mac().0,
            device,
        })
    }

    pub(crate) fn wait_for_link(&mut self, wait_ms: u64) -> Result<(), String> {
        self.device.wait_for_link(&self.clock, Duration::from_millis(wait_ms)).map_err(text)?;
        println!("up");
        let WorkerQueues { queues, upkeep } =
            self.device.take_queues().pop().ok_or("the device has no queues")?;
        self.queues = Some(queues);
        self.upkeep = upkeep;
        Ok(())
    }

    /// Receives; says how the link goes.
    fn poll(&mut self) {
        let Some(queues) = &mut self.queues else { return };
        if let Some(upkeep) = &mut self.upkeep {
            match upkeep.poll(self.clock.now_ns(), queues) {
                LinkEvent::None => {}
                LinkEvent::Up => println!("up"),
                LinkEvent::Down => {
                    self.tx.free_all();
                    println!("down");
                }
            }
        }
        queues.rx.burst(&mut self.rx);
        queues.tx.burst(&mut self.tx);
        if !queues.is_running() {
            self.tx.free_all();
        }
    }

    /// Queues a frame: in three segments, two of them outside, where the device takes that.
    fn send(&mut self, bytes: &[u8]) {
        let mbuf = match self.transmit {
            Transmit::Linear => Mbuf::from_bytes(&self.linear, bytes),
            Transmit::External => self.in_segments(bytes),
        };
        if let Some(mbuf) = mbuf {
            self.tx.discard(mbuf);
        }
    }

    fn in_segments(&mut self, bytes: &[u8]) -> Option<Mbuf> {
        self.stash.refill();
        let (header, rest) = bytes.split_at_checked(HEADER_LEN)?;
        let mut mbuf = self.stash.take_header()?;
        mbuf.grow_head(HEADER_LEN)?.copy_from_slice(header);
        let at = (self.next_slot * SLOT) as u64;
        self.next_slot = (self.next_slot + 1) % WINDOW;
        self.region.write(at, rest).ok()?;
        let half = rest.len() / 2;
        self.stash.attach(&mut mbuf, &self.region, at, half).ok()?;
        self.stash.attach(&mut mbuf, &self.region, at + half as u64, rest.len() - half).ok()?;
        Some(mbuf)
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let frames = self.rx.drain().map(|mbuf| {
            let mut bytes = vec![0; mbuf.frame_len()];
            mbuf.copy_to_slice(0, &mut bytes).map(|()| bytes)
        });
        frames.flatten().collect()
    }

    /// Answers for ever.
    pub(crate) fn echo(&mut self) -> Result<(), Fault> {
        loop {
            self.poll();
            for bytes in self.received() {
                if let Some((ASKED, number)) = read(&bytes) {
                    let expected = frame(ASKED, [0; 6], number, bytes.len());
                    if bytes[HEADER_LEN..] != expected[HEADER_LEN..] {
                        return Err((1, format!("frame {number} of {} bytes came damaged", bytes.len())));
                    }
                    self.send(&frame(ANSWERED, self.mac, number, bytes.len()));
                }
            }
        }
    }

    /// Sends as fast as it goes, for ever: there is always someone inside a burst.
    pub(crate) fn flood(&mut self) -> Result<(), Fault> {
        let len = self.frame_max;
        loop {
            self.poll();
            self.rx.free_all();
            while self.tx.len() < WINDOW / 2 {
                let bytes = frame(ASKED, self.mac, 0, len);
                self.send(&bytes);
            }
        }
    }

    /// Every length from 60 to the largest, sent again until it is answered.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let step = (self.frame_max / 600).max(1);
        let mut lengths: Vec<usize> = (60..=self.frame_max).step_by(step).collect();
        lengths.push(self.frame_max);
        for (number, &len) in (0..).zip(&lengths) {
            let answer = self.ask(number, len)?;
            let expected = frame(ANSWERED, [0; 6], number, len);
            if answer[HEADER_LEN..] != expected[HEADER_LEN..] {
                return Err(format!("the answer to frame {number} of {len} bytes is not what was sent"));
            }
        }
        println!("checked {}", lengths.len());
        Ok(())
    }

    fn ask(&mut self, number: u32, len: usize) -> Result<Vec<u8>, String> {
        let question = frame(ASKED, self.mac, number, len);
        let start = self.clock.now_ns();
        let mut again = start;
        loop {
            let now = self.clock.now_ns();
            if now >= again {
                self.send(&question);
                again = now + 200_000_000;
            }
            self.poll();
            for bytes in self.received() {
                if read(&bytes) == Some((ANSWERED, number)) {
                    return Ok(bytes);
                }
            }
            if now - start > 5_000_000_000 {
                return Err(format!("frame {number} of {len} bytes was not answered"));
            }
        }
    }
}
